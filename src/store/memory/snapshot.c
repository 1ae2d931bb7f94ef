/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* snapshot.c - snapshots in the memory store, and deletion of the events before them. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "store/contract.h"
#include "store/memory/memory.h"

static size_t snapshot_size(const struct memory_machine *machine)
{
    return sizeof(struct memory_snapshot) + machine->data_size;
}

/* A reserved snapshot without content has no time. */
int det_memory_snapshot_reserve(struct memory_store *store, struct memory_instance *instance)
{
    if (!instance->more->snapshot)
        instance->more->snapshot =
            det_alloc_zero(store->store.allocator, snapshot_size(instance->machine));
    return instance->more->snapshot ? 0 : DET_ERR_NO_MEMORY;
}

static bool is_taken(const struct memory_snapshot *snapshot)
{
    return snapshot && snapshot->head.visit;
}

void det_memory_snapshot_take(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit)
{
    struct memory_snapshot *snapshot = instance->more->snapshot;

    det_assert(commit->history_count <= DET_HISTORY_MAX);
    if (is_taken(snapshot) && snapshot->head.sequence >= instance->head.sequence)
        return;
    snapshot->head = instance->head;
    snapshot->taken_at = det_memory_now(&store->store);
    snapshot->history_count = commit->history_count;
    if (commit->history_count)
        memcpy(snapshot->history, commit->history, commit->history_count * sizeof(uint16_t));
    memcpy(snapshot->reason, instance->more->reason, sizeof snapshot->reason);
    memcpy(snapshot->data, instance->data, instance->machine->data_size);
}

void det_memory_snapshot_close(
    struct memory_store *store, const struct memory_machine *machine,
    struct memory_snapshot *snapshot)
{
    det_free(store->store.allocator, snapshot, snapshot_size(machine));
}

int det_memory_start(
    struct det_store *store, struct det_store_instance *handle, struct det_store_start *ret)
{
    const struct memory_instance *instance = memory_instance_of(handle);

    (void)store;
    if (!instance->start || instance->row_count < instance->head.sequence)
        return DET_ERR_NOT_FOUND;
    ret->at = instance->started_at;
    ret->version = instance->machine->version;
    ret->state = instance->start_state;
    memcpy(ret->data, instance->start, instance->machine->data_size);
    return 0;
}

int det_memory_snapshot(
    struct det_store *store, struct det_store_instance *handle, struct det_store_snapshot *ret)
{
    const struct memory_instance *instance = memory_instance_of(handle);
    const struct memory_snapshot *snapshot = instance->more ? instance->more->snapshot : NULL;

    (void)store;
    if (!is_taken(snapshot))
        return DET_ERR_NOT_FOUND;
    ret->taken_at = snapshot->taken_at;
    ret->loaded.head = snapshot->head;
    ret->loaded.history_count = snapshot->history_count;
    memcpy(ret->loaded.history, snapshot->history, sizeof snapshot->history);
    memcpy(ret->loaded.reason, snapshot->reason, sizeof snapshot->reason);
    memcpy(ret->loaded.data, snapshot->data, instance->machine->data_size);
    return 0;
}

int det_memory_prune(
    struct det_store *store, struct det_store_instance *handle, uint64_t sequence,
    det_time answers_before, uint64_t *ret)
{
    struct memory_instance *instance = memory_instance_of(handle);
    struct memory_more *more = instance->more;

    det_contract_prune(handle, ret);
    *ret = 0;
    if (!more)
        return 0;
    if (is_taken(more->snapshot)) {
        uint64_t last = more->snapshot->head.sequence;

        if (sequence < last)
            last = sequence;
        *ret = det_memory_rows_forget(instance, instance->head.sequence - last);
    }
    det_memory_answer_forget(memory_store_of(store), more, answers_before);
    return 0;
}
