/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_token.c - the hash of the token that a user configures. */
#include "kinds/relay_token.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/hex.h"

#define HASH_BYTES 32

static int hash_once(const void *data, size_t size, char target[RELAY_HASH_TEXT])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (!EVP_Digest(data, size, hash, &length, EVP_sha3_256(), NULL) || length != HASH_BYTES)
        return DET_ERR_UNSUPPORTED;
    det_hex_write(hash, HASH_BYTES, target);
    return 0;
}

int relay_hash(const char *token, char target[RELAY_HASH_TEXT])
{
    char once[RELAY_HASH_TEXT];
    int r;

    r = hash_once(token, strlen(token), once);
    if (r < 0)
        return r;
    r = hash_once(once, strlen(once), target);
    explicit_bzero(once, sizeof once);
    return r;
}
