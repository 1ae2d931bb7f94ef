/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_token.h - the two tokens of a relay: the hash of the configured one, and the lifetime of
 * the one from a login. */
#ifndef DET_KINDS_RELAY_TOKEN_H
#define DET_KINDS_RELAY_TOKEN_H

#include <detent/base.h>

/* A new token is fetched this long before the old one ends. */
#define RELAY_TOKEN_EARLY (10 * DET_MINUTE)
/* The relay does not report the lifetime of a token. */
#define RELAY_TOKEN_LIFE (23 * DET_HOUR)
#define RELAY_HASH_TEXT  65

/* hex(sha3-256(hex(sha3-256(token)))): the relay never sees the token itself. DET_ERR_UNSUPPORTED:
 * the cryptographic library does not know the hash. */
DET_MUST_CHECK int relay_hash(const char *token, char target[RELAY_HASH_TEXT]);

/* Returns true if a token must be replaced. An expiry of 0 is unknown, and never reached. */
static inline bool relay_token_is_expiring(det_time expiry, det_time wall)
{
    return expiry && (expiry <= wall || expiry - RELAY_TOKEN_EARLY < wall);
}

#endif
