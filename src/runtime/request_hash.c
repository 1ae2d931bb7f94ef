/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_hash.c - a hash of the request that an event id was used for. The hash is stored with the
 * answer and distinguishes a repeated request from other content under the same id.
 *
 * The hash covers names and encoded records, so it is the same in every process, whatever the ids
 * of a definition. Fields added by a later version of a record do not change it while they are
 * zero. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "record/binary.h"
#include "runtime/turn.h"

#define SMALL_SIZE 512
#define SEED       UINT64_C(0x64657465)

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return det_hash_mix(hash, det_hash64(text, strlen(text), SEED));
}

static size_t skip_varint(const uint8_t *bytes, size_t at)
{
    while (bytes[at] & 0x80)
        at++;
    return at + 1;
}

/* The body without its frame and without trailing zero bytes. */
static uint64_t mix_body(uint64_t hash, const uint8_t *bytes, size_t size)
{
    size_t begin = skip_varint(bytes, skip_varint(bytes, 1)), end = size - DET_RECORD_CHECKSUM_SIZE;

    while (end > begin && bytes[end - 1] == 0)
        end--;
    return det_hash_mix(hash, det_hash64(bytes + begin, end - begin, SEED));
}

/* A NULL record: no content. */
static int mix_record(
    const struct det_runtime *runtime, const struct det_record *record, const void *value,
    uint64_t *hash)
{
    uint8_t small[SMALL_SIZE], *bytes = small;
    size_t capacity = sizeof small;
    int64_t size;

    if (!record)
        return 0;
    size = det_record_encode(record, value, small, sizeof small, NULL);
    if (size == DET_ERR_LIMIT) {
        capacity = det_record_encoded_max(record);
        bytes = det_alloc(runtime->allocator, capacity);
        if (!bytes)
            return DET_ERR_NO_MEMORY;
        size = det_record_encode(record, value, bytes, capacity, NULL);
    }
    if (size > 0)
        *hash = mix_body(*hash, bytes, (size_t)size);
    if (bytes != small)
        det_free(runtime->allocator, bytes, capacity);
    return size < 0 ? (int)size : 0;
}

static int mix_start(const struct det_turn *turn, uint64_t *hash)
{
    const struct det_served *served = turn->served;
    void *zero = NULL;
    int r;

    if (!turn->request.start_data) {
        zero = det_alloc_zero(turn->runtime->allocator, served->data_size);
        if (!zero)
            return DET_ERR_NO_MEMORY;
    }
    *hash = mix_text(*hash, "start");
    r = mix_record(
        turn->runtime, det_machine_data(served->machine), zero ? zero : turn->request.start_data,
        hash);
    if (zero)
        det_free(turn->runtime->allocator, zero, served->data_size);
    return r;
}

static int mix_event(const struct det_turn *turn, const void *event, uint64_t *hash)
{
    const struct det_machine *machine = turn->served->machine;
    const struct det_event_def *def = &machine->events[det_event_kind(event)];

    *hash = mix_text(*hash, def->name);
    return mix_record(
        turn->runtime, det_record_of(def->payload), (const char *)event + def->payload_offset,
        hash);
}

int det_turn_request(struct det_turn *turn)
{
    uint64_t hash = SEED;
    int r = 0;

    if (turn->request.hash)
        return 0;
    if (turn->request.is_start)
        r = mix_start(turn, &hash);
    else if (turn->kind == DET_TURN_STOP)
        hash = mix_text(
            mix_text(hash, "stop"), turn->request.stop_reason ? turn->request.stop_reason : "");
    for (size_t i = 0; r == 0 && i < turn->request.event_count; i++)
        r = mix_event(turn, turn->request.events[i], &hash);
    if (r < 0)
        return r;
    /* Numbers in stores are below 2^63, and 0 means unknown. */
    turn->request.hash = hash >> 1 ? hash >> 1 : 1;
    return 0;
}

/* The first use of the id, for people. */
static const char *first_use(const struct det_turn *turn, const struct det_store_answer *first)
{
    if (first->event < turn->served->machine->event_count)
        return turn->served->machine->events[first->event].name;
    return first->sequence ? "a manual stop" : "the start";
}

int det_turn_compare(struct det_turn *turn, const struct det_store_answer *first)
{
    int r;

    if (!first->request)
        return 0;
    r = det_turn_request(turn);
    if (r < 0 || first->request == turn->request.hash)
        return r;
    det_error_set(
        turn->error, DET_ERR_CONFLICT,
        "%s %s: the event id %s was used for another request: %s, event %llu; use a new id",
        turn->served->machine->name, turn->resident->id, turn->request.event_id,
        first_use(turn, first), (unsigned long long)first->sequence);
    if (turn->error)
        turn->error->is_id_used = true;
    return DET_ERR_CONFLICT;
}
