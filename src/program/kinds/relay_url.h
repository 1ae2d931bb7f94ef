/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_url.h - whether a URL can be that of a relay. Pure. */
#ifndef DET_KINDS_RELAY_URL_H
#define DET_KINDS_RELAY_URL_H

#include <stdbool.h>

/* http:// or https://, a host (a name, an IPv4 address, or an IPv6 address in brackets), perhaps a
 * port and a path. No user, no query, no fragment: secrets have a field of their own. */
bool relay_url_is_valid(const char *url);
/* Whether a valid one is of this machine: localhost, 127.0.0.0/8, [::1]. */
bool relay_url_is_loopback(const char *url);

#endif
