/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* curl_shortage.c - tells a peer that is away from a process of ours that has no descriptors. */
#include "kinds/curl_shortage.h"

#include "os/os.h"

/* What a connection needs: a socket, the pair that wakes it, and a file of certificates. Some of
 * them are closed again when another one could not be opened. */
#define PER_CONNECTION 4

/* The results of a socket, a resolver or a file of certificates that could not be opened. */
static bool may_be_shortage(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_FAILED_INIT ||
           code == CURLE_SSL_CACERT_BADFILE;
}

bool curl_shortage(CURL *curl, CURLcode code)
{
    long number = 0, sent = 0;

    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent);
    if (sent > 0)
        return false;
    if (code == CURLE_OUT_OF_MEMORY)
        return true;
    if (!may_be_shortage(code))
        return false;
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
    return det_errno_is_shortage((int)number) || det_descriptors_are_short(PER_CONNECTION);
}
