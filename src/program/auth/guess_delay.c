/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* guess_delay.c - delays the answers to wrong tokens.
 *
 * A valid token is never delayed: otherwise any client of the same address could lock others
 * out. */
#include <string.h>

#include "auth/tokens_internal.h"
#include "base/assert.h"
#include "base/hash.h"
#include "http/address.h"

#define WAIT_FIRST   DET_MILLISECOND
#define WAIT_MAX     DET_SECOND
#define DOUBLE_MAX   10
#define FORGET_AFTER DET_MINUTE

/* Hashes an address without its port; of IPv6 the /64 network, which one host may own:
 * "127.0.0.1:41000", "[::1]:9", "unix". */
static uint64_t hash_of(const struct tokens_peers *peers, const char *peer)
{
    union http_address address;
    char origin[INET6_ADDRSTRLEN];
    uint64_t hash;

    if (http_address_read(peer, &address, NULL) == 0) {
        http_address_print_origin(&address, origin, sizeof origin);
        peer = origin;
    }
    hash = det_hash64(peer, strlen(peer), peers->key);
    return hash ? hash : 1;
}

static struct tokens_peer *slots_of(struct tokens_peers *peers, uint64_t hash)
{
    _Static_assert(TOKENS_PEERS % TOKENS_WAYS == 0, "slots are divided evenly");
    det_assert(hash != 0);
    return &peers->items[hash % (TOKENS_PEERS / TOKENS_WAYS) * TOKENS_WAYS];
}

/* Consecutive failures, as long as they are remembered; 0 for a free slot. */
static unsigned failures_of(const struct tokens_peer *peer, det_time now)
{
    return now - peer->at <= FORGET_AFTER ? peer->failures : 0;
}

static struct tokens_peer *find_peer(struct tokens_peers *peers, uint64_t hash)
{
    struct tokens_peer *ways = slots_of(peers, hash);

    for (size_t i = 0; i < TOKENS_WAYS; i++) {
        if (ways[i].hash == hash)
            return &ways[i];
    }
    return NULL;
}

/* Returns true if `one` must be kept rather than `other`. */
static bool outranks_peer(
    const struct tokens_peer *one, const struct tokens_peer *other, det_time now)
{
    unsigned ours = failures_of(one, now), others = failures_of(other, now);

    return ours != others ? ours > others : one->at > other->at;
}

/* Returns a slot for a new address. */
static struct tokens_peer *make_room(struct tokens_peers *peers, uint64_t hash, det_time now)
{
    struct tokens_peer *ways = slots_of(peers, hash), *least = ways;

    for (size_t i = 1; i < TOKENS_WAYS; i++) {
        if (outranks_peer(least, &ways[i], now))
            least = &ways[i];
    }
    return least;
}

det_time tokens_peer_failed(struct tokens_peers *peers, const char *peer, det_time now)
{
    uint64_t hash = hash_of(peers, peer);
    struct tokens_peer *found = find_peer(peers, hash);
    unsigned before = found ? failures_of(found, now) : 0;
    det_time wait = WAIT_FIRST << (before < DOUBLE_MAX ? before : DOUBLE_MAX);

    if (!found)
        found = make_room(peers, hash, now);
    det_assert(
        wait > 0 && found >= slots_of(peers, hash) && found < slots_of(peers, hash) + TOKENS_WAYS);
    *found = (struct tokens_peer){ .hash = hash, .failures = before + 1, .at = now };
    return wait < WAIT_MAX ? wait : WAIT_MAX;
}
