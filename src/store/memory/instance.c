/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance.c - an instance of the memory store and the small objects that belong to it. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/memory/memory.h"

#define ALIGNMENT ((size_t)16)

static size_t align_size(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t instance_size(const struct memory_machine *machine, const char *id)
{
    return align_size(sizeof(struct memory_instance)) + 2 * align_size(machine->data_size) +
           strlen(id) + 1;
}

struct memory_instance *det_memory_instance_open(
    struct memory_store *store, struct memory_machine *machine, const char *id)
{
    struct memory_instance *instance;
    char *text;

    instance = det_alloc_zero(store->store.allocator, instance_size(machine, id));
    if (!instance)
        return NULL;
    instance->machine = machine;
    instance->state_timer.next = DET_NEVER;
    instance->data = (char *)instance + align_size(sizeof *instance);
    text = (char *)instance->data + 2 * align_size(machine->data_size);
    memcpy(text, id, strlen(id) + 1);
    instance->id = text;
    return instance;
}

void det_memory_start_keep(struct memory_instance *instance, const struct det_store_commit *commit)
{
    size_t size = instance->machine->data_size;

    det_assert(!instance->start && commit->is_new);
    if (commit->is_start_unknown || commit->head->sequence > 0)
        return;
    instance->start = (char *)instance->data + align_size(size);
    instance->start_state = commit->head->state;
    memcpy(instance->start, commit->data, size);
}

static void close_timer(
    struct memory_store *store, const struct memory_machine *machine, struct memory_timer *timer)
{
    if (timer->value)
        det_free(store->store.allocator, timer->value, machine->event_size);
    det_free_string(store->store.allocator, timer->reason);
}

static void close_more(
    struct memory_store *store, const struct memory_machine *machine, struct memory_more *more)
{
    struct det_list *node;

    while ((node = det_list_take(&more->effects)))
        det_memory_effect_close(store, machine, DET_CONTAINER(node, struct memory_effect, node));
    while ((node = det_list_take(&more->deferred)))
        det_memory_deferred_close(
            store, machine, DET_CONTAINER(node, struct memory_deferred, node));
    for (unsigned i = 0; more->timers && i <= machine->timer_count; i++)
        close_timer(store, machine, &more->timers[i]);
    if (more->timers)
        DET_DELETE_ARRAY(store->store.allocator, more->timers, (size_t)machine->timer_count + 1);
    det_memory_answer_close_all(store, more);
    if (more->snapshot)
        det_memory_snapshot_close(store, machine, more->snapshot);
    DET_DELETE(store->store.allocator, more);
}

void det_memory_instance_close(struct memory_store *store, struct memory_instance *instance)
{
    const struct memory_machine *machine = instance->machine;

    if (instance->rows)
        det_memory_rows_close(store, instance);
    close_timer(store, machine, &instance->state_timer);
    if (instance->more)
        close_more(store, machine, instance->more);
    if (instance->lock)
        det_memory_lease_close(store, instance->lock);
    det_free(store->store.allocator, instance, instance_size(machine, instance->id));
}

int det_memory_more(struct memory_store *store, struct memory_instance *instance)
{
    struct memory_more *more;

    det_assert(!instance->more);
    more = DET_NEW(store->store.allocator, struct memory_more);
    if (!more)
        return DET_ERR_NO_MEMORY;
    det_list_init(&more->effects);
    det_list_init(&more->deferred);
    det_list_init(&more->answers);
    det_map_init(
        &more->answer_of, store->store.allocator, store->seed, offsetof(struct memory_answer, id));
    det_mutex_lock(store->store.world, store->mutex);
    instance->more = more;
    det_mutex_unlock(store->store.world, store->mutex);
    return 0;
}

static size_t effect_size(const struct memory_machine *machine)
{
    return align_size(sizeof(struct memory_effect)) + align_size(machine->data_size) +
           machine->event_size;
}

struct memory_effect *det_memory_effect_open(
    struct memory_store *store, const struct memory_machine *machine,
    const struct det_store_effect *row)
{
    struct memory_effect *effect;
    char *data, *event;

    effect = det_alloc_zero(store->store.allocator, effect_size(machine));
    if (!effect)
        return NULL;
    det_list_init(&effect->node);
    det_assert(row->data && row->event && row->sequence);
    data = (char *)effect + align_size(sizeof *effect);
    event = data + align_size(machine->data_size);
    memcpy(data, row->data, machine->data_size);
    memcpy(event, row->event, machine->event_size);
    effect->row = *row;
    effect->row.is_foreign = false;
    effect->reason = row->reason ? det_string_copy(store->store.allocator, row->reason) : NULL;
    effect->row.reason = effect->reason;
    effect->row.data = data;
    effect->row.event = event;
    if (row->trace) {
        effect->trace = *row->trace;
        effect->row.trace = &effect->trace;
    }
    return effect;
}

void det_memory_effect_close(
    struct memory_store *store, const struct memory_machine *machine, struct memory_effect *effect)
{
    det_list_remove(&effect->node);
    det_free_string(store->store.allocator, effect->reason);
    det_free(store->store.allocator, effect, effect_size(machine));
}

static size_t deferred_size(const struct memory_machine *machine)
{
    return align_size(sizeof(struct memory_deferred)) + machine->event_size;
}

struct memory_deferred *det_memory_deferred_open(
    struct memory_store *store, const struct memory_machine *machine,
    const struct det_store_deferred *row)
{
    struct memory_deferred *deferred;
    char *event;

    deferred = det_alloc_zero(store->store.allocator, deferred_size(machine));
    if (!deferred)
        return NULL;
    det_list_init(&deferred->node);
    det_assert(row->event && row->sequence);
    event = (char *)deferred + align_size(sizeof *deferred);
    memcpy(event, row->event, machine->event_size);
    deferred->row = (struct det_store_deferred){ row->sequence, event };
    return deferred;
}

void det_memory_deferred_close(
    struct memory_store *store, const struct memory_machine *machine,
    struct memory_deferred *deferred)
{
    det_list_remove(&deferred->node);
    det_free(store->store.allocator, deferred, deferred_size(machine));
}

struct memory_effect *det_memory_effect_find(
    const struct memory_instance *instance, uint64_t sequence, uint16_t index)
{
    if (!instance->more)
        return NULL;
    DET_LIST_EACH(node, &instance->more->effects)
    {
        struct memory_effect *effect = DET_CONTAINER(node, struct memory_effect, node);

        if (effect->row.sequence == sequence && effect->row.index == index)
            return effect;
    }
    return NULL;
}

struct memory_deferred *det_memory_deferred_find(
    const struct memory_instance *instance, uint64_t sequence)
{
    if (!instance->more)
        return NULL;
    DET_LIST_EACH(node, &instance->more->deferred)
    {
        struct memory_deferred *deferred = DET_CONTAINER(node, struct memory_deferred, node);

        if (deferred->row.sequence == sequence)
            return deferred;
    }
    return NULL;
}
