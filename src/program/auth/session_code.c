/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session_code.c - one-time codes: the console gets a token without typing one.
 *
 * Codes are only in memory: a killed process has none left, and prints a new one when it starts. */
#include <sodium.h>
#include <string.h>

#include "auth/tokens_internal.h"
#include "base/assert.h"

#define CODE_BYTES 16

/* Returns a free slot, or the one that expires first. */
static struct tokens_code *make_room(struct tokens *tokens)
{
    struct tokens_code *first = tokens->codes;

    for (size_t i = 0; i < TOKENS_CODES; i++) {
        if (tokens->codes[i].until < first->until)
            first = &tokens->codes[i];
    }
    return first;
}

void tokens_code_new(struct tokens *tokens, char code[TOKENS_CODE_SIZE + 1])
{
    unsigned char bytes[CODE_BYTES];
    struct tokens_code *made;

    det_world_random(tokens->world, bytes, sizeof bytes);
    sodium_bin2base64(
        code, TOKENS_CODE_SIZE + 1, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof bytes);
    det_assert(strlen(code) == TOKENS_CODE_SIZE);
    det_mutex_lock(tokens->world, tokens->mutex);
    made = make_room(tokens);
    memcpy(made->text, code, sizeof made->text);
    made->until = det_world_now(tokens->world, DET_CLOCK_MONOTONIC) + TOKENS_CODE_SPAN;
    det_mutex_unlock(tokens->world, tokens->mutex);
}

/* Compares all codes, so that the time reveals nothing. */
static struct tokens_code *find_code(struct tokens *tokens, const char *code, det_time now)
{
    bool can_be = strlen(code) == TOKENS_CODE_SIZE;
    struct tokens_code *found = NULL;

    for (size_t i = 0; can_be && i < TOKENS_CODES; i++) {
        bool is_same = sodium_memcmp(tokens->codes[i].text, code, TOKENS_CODE_SIZE) == 0;

        if (is_same && tokens->codes[i].until > now)
            found = &tokens->codes[i];
    }
    return found;
}

/* Removes the code, so that no other client can redeem it meanwhile. */
static bool take_code(
    struct tokens *tokens, const char *code, const char *peer, struct tokens_code *ret,
    det_time *ret_wait)
{
    det_time now = det_world_now(tokens->world, DET_CLOCK_MONOTONIC);
    struct tokens_code *found;

    det_mutex_lock(tokens->world, tokens->mutex);
    found = find_code(tokens, code, now);
    if (found) {
        *ret = *found;
        sodium_memzero(found, sizeof *found);
    } else {
        *ret_wait = tokens_peer_failed(&tokens->peers, peer, now);
    }
    det_mutex_unlock(tokens->world, tokens->mutex);
    return found;
}

static void put_back(struct tokens *tokens, const struct tokens_code *code)
{
    det_assert(code->until > 0 && strlen(code->text) == TOKENS_CODE_SIZE);
    det_mutex_lock(tokens->world, tokens->mutex);
    *make_room(tokens) = *code;
    det_mutex_unlock(tokens->world, tokens->mutex);
}

int tokens_code_redeem(
    struct tokens *tokens, const char *code, const char *peer, struct tokens_login *ret,
    struct det_error *reterr)
{
    static const struct tokens_grant grant = { TOKENS_CONSOLE, TOKENS_ALL, TOKENS_LOGIN_SPAN };
    struct tokens_code taken;
    int r;

    ret->wait = 0;
    if (!take_code(tokens, code, peer, &taken, &ret->wait))
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "the code is invalid or expired; a code works once");
    r = tokens_add(tokens, &grant, ret->text, &ret->token, reterr);
    if (r < 0)
        put_back(tokens, &taken);
    sodium_memzero(&taken, sizeof taken);
    return r;
}
