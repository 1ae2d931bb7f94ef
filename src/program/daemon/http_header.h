/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_header.h - what calls by libcurl share: the lines of a request's head, some of which are
 * secret, and how long a busy server wants to be left alone. */
#ifndef DET_DAEMON_HTTP_HEADER_H
#define DET_DAEMON_HTTP_HEADER_H

#include <curl/curl.h>

#include "config/config.h"

/* The zero value has none. */
struct http_lines {
    struct curl_slist *list; /* for CURLOPT_HTTPHEADER */
};

/* False: no memory. */
DET_MUST_CHECK bool http_lines_add(struct http_lines *lines, const char *name, const char *value);
/* One of a detent.yaml; a secret is read now, from where it stands. False: `why`, of that capacity,
 * says what went wrong, but not what the secret is; it is left as it was for want of memory. */
DET_MUST_CHECK bool http_lines_add_header(
    struct http_lines *lines, struct det_world *world, const struct config_header *header,
    char *why, size_t capacity);
/* Wipes and frees them. */
void http_lines_deinit(struct http_lines *lines);

/* What the header Retry-After says, in seconds or as a date, in the statuses it is meant for; at
 * most an hour; 0: nothing. */
det_time http_retry_after(CURL *curl, long status);

#endif
