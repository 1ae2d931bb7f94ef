/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* chain.c - feeds the fields of a row to a BLAKE2b hash or a CRC-32C checksum.
 *
 *     field --> 512 bytes on the stack --> full, or the end: hash or checksum
 *
 * The buffer gives both large pieces, since a call costs more than a few bytes. */
#include "store/chain.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/unset.h"

_Static_assert(
    DET_CHAIN_SIZE == crypto_generichash_blake2b_BYTES, "a hash has the size of the digest");

struct writer {
    crypto_generichash_blake2b_state hash;
    size_t used;
    uint32_t checksum;
    bool is_hash; /* false: a checksum */
    unsigned char piece[512];
};

static void writer_init(struct writer *writer, bool is_hash)
{
    writer->is_hash = is_hash;
    writer->checksum = 0;
    writer->used = 0;
    if (is_hash)
        crypto_generichash_blake2b_init(&writer->hash, NULL, 0, DET_CHAIN_SIZE);
}

static void hash_bytes(struct writer *writer, const void *bytes, size_t size)
{
    if (writer->is_hash)
        crypto_generichash_blake2b_update(&writer->hash, bytes, size);
    else
        writer->checksum = det_crc32c(writer->checksum, bytes, size);
}

static void flush_writer(struct writer *writer)
{
    hash_bytes(writer, writer->piece, writer->used);
    writer->used = 0;
}

static void append_bytes(struct writer *writer, const void *bytes, size_t size)
{
    if (size > sizeof writer->piece - writer->used)
        flush_writer(writer);
    if (size > sizeof writer->piece) {
        hash_bytes(writer, bytes, size);
        return;
    }
    memcpy(writer->piece + writer->used, bytes, size);
    writer->used += size;
}

/* Most fields are a number or the length of a text, which this writes with one store instead of a
 * call. */
static inline unsigned char *room_for(struct writer *writer, size_t size)
{
    unsigned char *place;

    if (size > sizeof writer->piece - writer->used)
        flush_writer(writer);
    place = writer->piece + writer->used;
    writer->used += size;
    return place;
}

/* Without a loop compilers merge this into one store. */
static inline void store_word(unsigned char *place, uint32_t word)
{
    place[0] = (unsigned char)word;
    place[1] = (unsigned char)(word >> 8);
    place[2] = (unsigned char)(word >> 16);
    place[3] = (unsigned char)(word >> 24);
}

static inline void put_number(struct writer *writer, uint64_t number)
{
    unsigned char *place = room_for(writer, 8);

    store_word(place, (uint32_t)number);
    store_word(place + 4, (uint32_t)(number >> 32));
}

static void put_time(struct writer *writer, det_time time)
{
    put_number(writer, (uint64_t)time);
}

static void put_bytes(struct writer *writer, const void *data, size_t size)
{
    uint32_t length = data ? (uint32_t)size : UINT32_MAX;

    det_assert(!data || size < UINT32_MAX);
    store_word(room_for(writer, 4), length);
    if (data && size > 0)
        append_bytes(writer, data, size);
}

static void put_text(struct writer *writer, const char *text)
{
    put_bytes(writer, text, text ? strlen(text) : 0);
}

static struct det_chain_hash finish_hash(struct writer *writer)
{
    struct det_chain_hash hash;

    flush_writer(writer);
    crypto_generichash_blake2b_final(&writer->hash, hash.bytes, sizeof hash.bytes);
    return hash;
}

static uint32_t finish_checksum(struct writer *writer)
{
    flush_writer(writer);
    return writer->checksum;
}

/* The last fields of heads of instances and of snapshots. */
static void put_rest_of_head(struct writer *writer, const struct det_chain_head *head)
{
    put_number(writer, head->visit);
    put_number(writer, head->transitions);
    put_time(writer, head->started_at);
    put_time(writer, head->moved_at);
    put_number(writer, head->is_stopped);
    put_text(writer, head->reason);
    put_bytes(writer, head->data.data, head->data.size);
    put_bytes(writer, head->hash.bytes, sizeof head->hash.bytes);
}

void det_chain_prepare(void)
{
    int r = sodium_init();

    /* If this fails, the portable code stays in use. */
    (void)r;
}

struct det_chain_hash det_chain_start(const struct det_chain_start *start)
{
    static const unsigned char zero[DET_CHAIN_SIZE];
    DET_UNSET struct writer writer;

    writer_init(&writer, true);
    append_bytes(&writer, zero, sizeof zero);
    put_text(&writer, start->machine);
    put_text(&writer, start->id);
    put_time(&writer, start->at);
    if (start->state) {
        put_number(&writer, start->version);
        put_text(&writer, start->state);
        put_bytes(&writer, start->data.data, start->data.size);
    } else {
        put_text(&writer, NULL);
    }
    return finish_hash(&writer);
}

struct det_chain_hash det_chain_next(
    const struct det_chain_hash *previous, const struct det_chain_event *event)
{
    DET_UNSET struct writer writer;

    writer_init(&writer, true);
    append_bytes(&writer, previous->bytes, sizeof previous->bytes);
    put_text(&writer, event->machine);
    put_text(&writer, event->id);
    put_number(&writer, event->version);
    put_number(&writer, event->sequence);
    put_number(&writer, event->visit);
    put_text(&writer, event->from);
    put_text(&writer, event->to);
    put_text(&writer, event->event);
    put_text(&writer, event->outcome);
    put_number(&writer, event->choice);
    put_number(&writer, event->is_timeout);
    put_time(&writer, event->at);
    put_text(&writer, event->event_id);
    put_text(&writer, event->cause);
    put_bytes(&writer, event->payload.data, event->payload.size);
    return finish_hash(&writer);
}

struct det_chain_hash det_chain_bytes(
    const struct det_chain_hash *previous, struct det_chain_bytes bytes)
{
    DET_UNSET struct writer writer;

    writer_init(&writer, true);
    append_bytes(&writer, previous->bytes, sizeof previous->bytes);
    append_bytes(&writer, bytes.data, bytes.size);
    return finish_hash(&writer);
}

uint32_t det_chain_head_checksum(const struct det_chain_head *head)
{
    DET_UNSET struct writer writer;

    writer_init(&writer, false);
    put_text(&writer, head->machine);
    put_text(&writer, head->id);
    put_number(&writer, head->version);
    put_text(&writer, head->state);
    put_number(&writer, head->sequence);
    put_rest_of_head(&writer, head);
    return finish_checksum(&writer);
}

uint32_t det_chain_snapshot_checksum(
    const struct det_chain_head *head, const char *history, det_time taken_at)
{
    DET_UNSET struct writer writer;

    writer_init(&writer, false);
    put_text(&writer, head->machine);
    put_text(&writer, head->id);
    put_number(&writer, head->sequence);
    put_number(&writer, head->version);
    put_text(&writer, head->state);
    put_rest_of_head(&writer, head);
    put_text(&writer, history);
    put_time(&writer, taken_at);
    return finish_checksum(&writer);
}

void det_chain_fingerprint(const char *spec, char target[33])
{
    unsigned char bytes[16];

    crypto_generichash_blake2b(
        bytes, sizeof bytes, (const unsigned char *)spec, strlen(spec), NULL, 0);
    sodium_bin2hex(target, 2 * sizeof bytes + 1, bytes, sizeof bytes);
}
