/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_url.h - validates the URL of a relay. Pure. */
#ifndef DET_KINDS_RELAY_URL_H
#define DET_KINDS_RELAY_URL_H

#include <stdbool.h>

/* http:// or https://, a host (a name, an IPv4 address, or an IPv6 address in brackets), perhaps a
 * port and a path. No user, no query, no fragment: secrets have a separate field. */
bool relay_url_is_valid(const char *url);

#endif
