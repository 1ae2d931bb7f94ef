/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_header.h - the headers that a detent.yaml gives to a request, some of which are secret. */
#ifndef DET_DAEMON_HTTP_HEADER_H
#define DET_DAEMON_HTTP_HEADER_H

#include "config/config.h"
#include "http/client.h"

/* Adds one; a secret is read now, from where it stands. False: `why`, of that capacity, says what
 * went wrong, but not what the secret is; it is left as it was for want of memory. */
DET_MUST_CHECK bool http_lines_add_header(
    struct http_lines *lines, struct det_world *world, const struct config_header *header,
    char *why, size_t capacity);

#endif
