/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* curl_shortage.h - whether a transfer of libcurl failed for what our own process is short of. */
#ifndef DET_KINDS_CURL_SHORTAGE_H
#define DET_KINDS_CURL_SHORTAGE_H

#include <curl/curl.h>
#include <stdbool.h>

#define CURL_SHORTAGE_TEXT                                                                      \
    "there is no descriptor or memory for a connection; raise the limit of open files (ulimit " \
    "-n)"

/* Whether nothing was sent because this process has no descriptor or memory. `code` is the result
 * of the transfer. */
bool curl_shortage(CURL *curl, CURLcode code);

#endif
