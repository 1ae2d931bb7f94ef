/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_header.h - headers that a detent.yaml adds to a request; some are secret. */
#ifndef DET_DAEMON_HTTP_HEADER_H
#define DET_DAEMON_HTTP_HEADER_H

#include "config/config.h"
#include "http/client.h"

/* Adds one header; a secret is read now. False: `why`, of that capacity, has the reason without the
 * secret, or is unchanged when out of memory. */
DET_MUST_CHECK bool http_lines_add_header(
    struct http_lines *lines, struct det_world *world, const struct config_header *header,
    char *why, size_t capacity);

#endif
