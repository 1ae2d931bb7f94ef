/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage.c - computes everything that a commit needs before it is sent: encoded data and payloads,
 * event hashes, the head's checksum; and reserves the memory of its handle, so that nothing can
 * fail after the commit. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/commit_batch.h"

/* Number of keys that the server reserves at once. */
#define KEYS_AT_ONCE 256

static int grow_room(
    const struct det_allocator *allocator, void **items, size_t *capacity, size_t wanted,
    size_t size)
{
    size_t next = *capacity ? *capacity : 16;
    void *grown;

    if (wanted <= *capacity)
        return 0;
    while (next < wanted)
        next *= 2;
    grown = det_realloc(allocator, *items, *capacity * size, next * size);
    if (!grown)
        return DET_ERR_NO_MEMORY;
    *items = grown;
    *capacity = next;
    return 0;
}

static int reserve_stage(struct postgres_batch *batch, size_t commits, size_t events)
{
    const struct det_allocator *allocator = batch->store->store.allocator;
    void *staged = batch->staged, *of_events = batch->events;
    int r;

    r = grow_room(allocator, &staged, &batch->capacity, commits, sizeof *batch->staged);
    batch->staged = staged;
    if (r == 0)
        r = grow_room(allocator, &of_events, &batch->event_capacity, events, sizeof *batch->events);
    batch->events = of_events;
    return r;
}

static void send_keys(struct postgres_exchange *exchange, void *context)
{
    (void)context;
    det_postgres_ask(exchange, POSTGRES_KEYS, NULL);
}

static int take_keys(struct postgres_exchange *exchange, void *context)
{
    *(int64_t *)context = det_postgres_number(exchange->results[0], 0, 0);
    return 0;
}

/* An unused key; the server reserves keys in blocks. */
static int next_key(struct postgres_store *store, int64_t *ret)
{
    struct det_world *world = store->store.world;
    int64_t first = 0;
    const struct postgres_job job = { send_keys, take_keys, &first, true, 0 };
    int r = 0;

    det_mutex_lock(world, store->sql.mutex);
    if (store->next_key == store->last_key) {
        det_mutex_unlock(world, store->sql.mutex);
        r = det_postgres_run(store, &job, NULL);
        det_mutex_lock(world, store->sql.mutex);
        /* The rest of another block is lost, which is harmless. */
        if (r == 0) {
            store->next_key = first;
            store->last_key = first + KEYS_AT_ONCE;
        }
    }
    det_assert(r < 0 || store->next_key < store->last_key);
    if (r == 0)
        *ret = store->next_key++;
    det_mutex_unlock(world, store->sql.mutex);
    return r;
}

/* The handle of the instance after the commit. */
static int find_instance(struct postgres_store *store, struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;

    if (!commit->is_new) {
        staged->instance = postgres_instance_of(commit->instance);
        return 0;
    }
    det_assert(commit->data);
    staged->instance = det_postgres_instance_open(store, commit->machine, commit->id);
    if (!staged->instance)
        return DET_ERR_NO_MEMORY;
    staged->instance->started_at = commit->head->started_at;
    return next_key(store, &staged->instance->key);
}

static int encode_data(struct postgres_batch *batch, struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    struct det_chain_bytes bytes;
    int r;

    if (!commit->data)
        return 0;
    r = det_row_data_encode(commit->machine, commit->data, &batch->scratch, &bytes);
    if (r < 0)
        return r;
    staged->has_data = true;
    staged->data_size = bytes.size;
    staged->data = batch->scratch.size - bytes.size;
    return 0;
}

struct det_chain_bytes det_postgres_staged_data(
    const struct postgres_batch *batch, const struct postgres_staged *staged)
{
    det_assert(!staged->has_data || staged->data + staged->data_size <= batch->scratch.size);
    if (staged->has_data)
        return (struct det_chain_bytes){ batch->scratch.data + staged->data, staged->data_size };
    return (struct det_chain_bytes){ staged->instance->data, staged->instance->data_size };
}

static int chain_event(
    struct postgres_batch *batch, struct postgres_staged *staged,
    const struct det_store_event *event)
{
    struct postgres_staged_event *target = &batch->events[batch->event_count];
    const struct det_machine *machine = staged->commit->machine;
    struct det_chain_event chain;
    struct det_chain_bytes payload;
    int r;

    det_assert(batch->event_count < batch->event_capacity);
    r = det_row_payload_encode(machine, event->value, &batch->scratch, &payload);
    if (r < 0)
        return r;
    chain = det_row_chain_event(machine, staged->instance->id, event, payload);
    staged->hash = det_chain_next(&staged->hash, &chain);
    *target = (struct postgres_staged_event){
        .hash = staged->hash,
        .payload = batch->scratch.size - payload.size,
        .payload_size = payload.size,
        .has_payload = payload.data != NULL,
    };
    batch->event_count++;
    return 0;
}

static int chain_commit(struct postgres_batch *batch, struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    struct postgres_instance *instance = staged->instance;
    struct det_chain_start start;
    struct det_chain_head head;
    int r = 0;

    staged->first_event = batch->event_count;
    staged->hash = instance->hash;
    if (commit->is_new) {
        start = det_row_chain_start(commit, det_postgres_staged_data(batch, staged));
        staged->begins = start.state != NULL;
        staged->hash = det_chain_start(&start);
    }
    for (size_t i = 0; r == 0 && i < commit->event_count; i++)
        r = chain_event(batch, staged, &commit->events[i]);
    if (r < 0)
        return r;
    head = det_row_chain_head(commit->machine, instance->id, commit->head);
    head.reason = commit->reason ? commit->reason : instance->reason;
    head.data = det_postgres_staged_data(batch, staged);
    head.hash = staged->hash;
    staged->checksum = det_chain_head_checksum(&head);
    return 0;
}

static int stage_commit(struct postgres_batch *batch, struct postgres_staged *staged)
{
    struct det_store_commit *commit = staged->commit;
    int r;

    r = find_instance(batch->store, staged);
    if (r < 0)
        return r;
    /* The chain continues from the handle's hash. */
    if (!commit->is_new && (commit->event_count || commit->is_snapshot) &&
        commit->expected != staged->instance->sequence) {
        commit->actual = staged->instance->sequence;
        return DET_ERR_CONFLICT;
    }
    r = encode_data(batch, staged);
    if (r == 0)
        r = det_postgres_instance_reserve(
            batch->store, staged->instance, staged->data_size, commit->reason != NULL);
    if (r == 0)
        r = chain_commit(batch, staged);
    return r;
}

static int by_key(const void *a, const void *b)
{
    int64_t x = ((const struct postgres_staged *)a)->instance->key;
    int64_t y = ((const struct postgres_staged *)b)->instance->key;

    return x < y ? -1 : x > y;
}

void det_postgres_stage(
    struct postgres_batch *batch, struct det_store_commit *const *commits, size_t count)
{
    struct postgres_store *store = batch->store;
    size_t events = 0;
    int reserved;

    for (size_t i = 0; i < count; i++)
        events += commits[i]->event_count;
    reserved = reserve_stage(batch, count, events);
    batch->count = batch->event_count = 0;
    det_buffer_clear(&batch->scratch);
    for (size_t i = 0; i < count; i++) {
        struct postgres_staged *staged;

        commits[i]->result = reserved;
        if (reserved < 0)
            continue;
        staged = &batch->staged[batch->count];
        *staged = (struct postgres_staged){ .commit = commits[i] };
        commits[i]->result = stage_commit(batch, staged);
        if (commits[i]->result == 0)
            batch->count++;
        else if (commits[i]->is_new)
            det_postgres_instance_close(store, staged->instance);
    }
    if (batch->count > 1)
        qsort(batch->staged, batch->count, sizeof *batch->staged, by_key);
}
