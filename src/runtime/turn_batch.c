/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* turn_batch.c - many turns in one call of the store. */
#include "runtime/turn_batch.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "runtime/meter.h"
#include "runtime/submit.h"

static void assert_batch(const struct det_batch *batch)
{
    det_assert(batch->over <= batch->stored && batch->stored <= batch->begun);
    det_assert(batch->begun <= batch->count && batch->count <= batch->capacity);
}

int det_batch_open(struct det_runtime *runtime, size_t capacity, struct det_batch **ret)
{
    const struct det_allocator *allocator = runtime->allocator;
    struct det_batch *batch = DET_NEW(allocator, struct det_batch);

    if (!batch)
        return DET_ERR_NO_MEMORY;
    batch->runtime = runtime;
    batch->capacity = capacity;
    batch->items = DET_NEW_ARRAY(allocator, capacity, struct det_batch_item);
    batch->commits = DET_NEW_ARRAY(allocator, capacity, struct det_store_commit *);
    if (!batch->items || !batch->commits) {
        det_batch_close(batch);
        return DET_ERR_NO_MEMORY;
    }
    *ret = batch;
    return 0;
}

void det_batch_close(struct det_batch *batch)
{
    const struct det_allocator *allocator;

    if (!batch)
        return;
    allocator = batch->runtime->allocator;
    det_assert(batch->count == 0);
    for (size_t i = 0; batch->items && i < batch->capacity; i++)
        det_free(allocator, batch->items[i].copy, batch->items[i].copy_capacity);
    if (batch->items)
        DET_DELETE_ARRAY(allocator, batch->items, batch->capacity);
    if (batch->commits)
        DET_DELETE_ARRAY(allocator, batch->commits, batch->capacity);
    DET_DELETE(allocator, batch);
}

struct det_batch_item *det_batch_next(struct det_batch *batch)
{
    struct det_batch_item *item = &batch->items[batch->count];

    det_assert(!det_batch_is_full(batch));
    item->error.code = 0;
    item->event = NULL;
    item->result = 0;
    item->is_ready = false;
    return item;
}

/* A turn without a commit ends at once. */
static void begin(struct det_batch_item *item)
{
    int r;

    item->turn.request.events = &item->event;
    item->turn.request.event_count = item->event ? 1 : 0;
    r = det_turn_begin(&item->turn, &item->commit, &item->sent);
    item->is_ready = r > 0;
    if (!item->is_ready)
        item->result = det_turn_end(&item->turn, NULL, r, &item->sent);
}

void det_batch_begin(struct det_batch *batch, struct det_batch_item *item)
{
    det_assert(item == &batch->items[batch->count]);
    if (batch->capacity == 1) {
        item->result = det_turn_run(&item->turn, &item->event, item->event ? 1 : 0, &item->sent);
        item->ended(item);
        return;
    }
    if (batch->count == 0)
        atomic_store(&batch->owner, det_thread_self(batch->runtime->world));
    batch->count++;
    item->turn.is_batched = true;
    begin(item);
    batch->begun = batch->count;
    assert_batch(batch);
}

/* Skips turns that have ended already. */
static void store(struct det_batch *batch)
{
    struct det_runtime *runtime = batch->runtime;
    size_t count = 0;
    det_time took = 0;
    int r = 0;

    for (size_t i = batch->stored; i < batch->begun; i++) {
        if (batch->items[i].is_ready)
            batch->commits[count++] = &batch->items[i].commit;
    }
    if (count)
        r = det_meter_commit(runtime, batch->commits, count, &took);
    for (; batch->stored < batch->begun; batch->stored++) {
        struct det_batch_item *item = &batch->items[batch->stored];

        if (!item->is_ready)
            continue;
        item->result = r < 0 ? r : item->commit.result;
        item->turn.commit_took = took;
    }
}

/* The end of a turn may run user code that calls this again: then the inner call continues with the
 * rest. */
static void carry_out(struct det_batch *batch)
{
    store(batch);
    while (batch->over < batch->stored) {
        struct det_batch_item *item = &batch->items[batch->over++];

        if (item->is_ready)
            item->result = det_turn_end(&item->turn, &item->commit, item->result, &item->sent);
    }
    assert_batch(batch);
}

void det_batch_end(struct det_batch *batch)
{
    if (batch->count == 0)
        return;
    carry_out(batch);
    det_assert(batch->over == batch->count);
    atomic_store(&batch->owner, NULL);
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].ended(&batch->items[i]);
    batch->count = batch->begun = batch->stored = batch->over = 0;
}

static struct det_batch *own_batch(struct det_runtime *runtime)
{
    const void *self = det_thread_self(runtime->world);

    if (runtime->batch && atomic_load(&runtime->batch->owner) == self)
        return runtime->batch;
    return det_writers_batch(runtime, self);
}

bool det_batch_yield(struct det_runtime *runtime, struct det_shard *shard)
{
    struct det_batch *batch = own_batch(runtime);

    if (!batch || batch->over == batch->begun)
        return false;
    det_shard_unlock(runtime, shard);
    carry_out(batch);
    det_shard_lock(runtime, shard);
    return true;
}
