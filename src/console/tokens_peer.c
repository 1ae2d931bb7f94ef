/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens_peer.c - how long who gives wrong tokens waits for the answer.
 *
 * A right one never waits: else anybody on the same address could keep others out. */
#include <string.h>

#include "base/hash.h"
#include "console/tokens_parts.h"

#define WAIT_FIRST   DET_MILLISECOND
#define WAIT_MAX     DET_SECOND
#define DOUBLE_MAX   10
#define FORGET_AFTER DET_MINUTE

/* Of the address without its port: "127.0.0.1:41000", "[::1]:9", "::1", "unix". */
static uint64_t hash_of(const char *peer)
{
    const char *colon = strrchr(peer, ':');
    bool has_port = colon && (strchr(peer, ':') == colon || colon[-1] == ']');
    uint64_t hash = det_hash64(peer, has_port ? (size_t)(colon - peer) : strlen(peer), 0);

    return hash ? hash : 1;
}

static struct tokens_peer *ways_of(struct tokens_peers *peers, uint64_t hash)
{
    return &peers->items[hash % (TOKENS_PEERS / TOKENS_WAYS) * TOKENS_WAYS];
}

static struct tokens_peer *find(struct tokens_peers *peers, uint64_t hash)
{
    struct tokens_peer *ways = ways_of(peers, hash);

    for (size_t i = 0; i < TOKENS_WAYS; i++) {
        if (ways[i].hash == hash)
            return &ways[i];
    }
    return NULL;
}

/* A place for a new one. */
static struct tokens_peer *make_room(struct tokens_peers *peers, uint64_t hash)
{
    struct tokens_peer *ways = ways_of(peers, hash), *oldest = ways;

    for (size_t i = 0; i < TOKENS_WAYS; i++) {
        if (!ways[i].hash) {
            peers->used++;
            return &ways[i];
        }
        if (ways[i].at < oldest->at)
            oldest = &ways[i];
    }
    return oldest;
}

det_time tokens_peer_failed(struct tokens_peers *peers, const char *peer, det_time now)
{
    uint64_t hash = hash_of(peer);
    struct tokens_peer *found = find(peers, hash);
    unsigned before = found && now - found->at <= FORGET_AFTER ? found->failures : 0;
    det_time wait = WAIT_FIRST << (before < DOUBLE_MAX ? before : DOUBLE_MAX);

    if (!found)
        found = make_room(peers, hash);
    *found = (struct tokens_peer){ .hash = hash, .failures = before + 1, .at = now };
    return wait < WAIT_MAX ? wait : WAIT_MAX;
}

void tokens_peer_passed(struct tokens_peers *peers, const char *peer)
{
    struct tokens_peer *found = peers->used ? find(peers, hash_of(peer)) : NULL;

    if (!found)
        return;
    *found = (struct tokens_peer){ 0 };
    peers->used--;
}
