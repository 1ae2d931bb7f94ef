/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash_chain.c - the hash at the end of each line. */
#include "transfer/hash_chain.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define HEX_SIZE ((size_t)2 * DET_CHAIN_SIZE)

static const char prefix[] = ",\"hash\":\"";
static const char suffix[] = "\"}";

#define TAIL_SIZE (sizeof prefix - 1 + HEX_SIZE + sizeof suffix - 1)

static void to_hex(const struct det_chain_hash *hash, char target[HEX_SIZE + 1])
{
    for (size_t i = 0; i < DET_CHAIN_SIZE; i++)
        snprintf(target + 2 * i, 3, "%02x", hash->bytes[i]);
}

static void advance_hash(struct seal *seal, const char *text, size_t size)
{
    seal->hash = det_chain_bytes(&seal->hash, (struct det_chain_bytes){ text, size });
}

void seal_close(struct seal *seal, struct det_json_writer *json)
{
    char hex[HEX_SIZE + 1];
    size_t size;

    if (det_buffer_status(&json->text) < 0)
        return;
    size = json->text.size;
    det_assert(size > 0 && json->text.data[0] == '{');
    advance_hash(seal, det_buffer_text(&json->text), json->text.size);
    to_hex(&seal->hash, hex);
    det_buffer_format(&json->text, "%s%s%s", prefix, hex, suffix);
    det_assert(det_buffer_status(&json->text) < 0 || json->text.size == size + TAIL_SIZE);
}

bool seal_check(struct seal *seal, const char *text, size_t size)
{
    size_t tail = TAIL_SIZE;
    char hex[HEX_SIZE + 1];
    const char *end;

    if (size <= tail)
        return false;
    end = text + size - tail;
    advance_hash(seal, text, size - tail);
    to_hex(&seal->hash, hex);
    return memcmp(end, prefix, sizeof prefix - 1) == 0 &&
           memcmp(end + sizeof prefix - 1, hex, HEX_SIZE) == 0 &&
           memcmp(end + tail - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0;
}
