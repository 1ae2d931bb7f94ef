/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list.c - the instances of a machine in the memory store, in the order of their ids.
 *
 *     ordered:  a c f k m | d b      new ones are appended; the next list sorts them and merges
 *               sorted      new      them into the rest
 *
 * A new instance is cheap, a page of a list costs only what it reads, and the first list after n
 * new instances sorts them and makes one pass over the array. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/memory/memory.h"

#define CHUNK        64u
#define CAPACITY_MIN 16u

static int grow_ordered(struct memory_store *store, struct memory_machine *machine)
{
    size_t old = machine->ordered_capacity, capacity = old ? old * 2 : CAPACITY_MIN;
    struct memory_instance **ordered;

    ordered = det_realloc(
        store->store.allocator, machine->ordered, old * sizeof(struct memory_instance *),
        capacity * sizeof(struct memory_instance *));
    if (!ordered)
        return DET_ERR_NO_MEMORY;
    machine->ordered = ordered;
    machine->ordered_capacity = capacity;
    return 0;
}

/* Every instance is in the map and in the array; what is sorted is in order. */
static void assert_ordered(const struct memory_machine *machine)
{
    det_assert(machine->sorted_count <= machine->ordered_count);
    det_assert(machine->ordered_count <= machine->ordered_capacity);
    det_assert(machine->ordered_count == machine->instances.count);
    for (size_t i = 1; DET_CHECKS_ALL(machine->ordered_count) && i < machine->sorted_count; i++)
        det_assert(strcmp(machine->ordered[i - 1]->id, machine->ordered[i]->id) < 0);
}

int det_memory_list_put(
    struct memory_store *store, struct memory_machine *machine, struct memory_instance *instance)
{
    int r = 0;

    if (machine->ordered_count == machine->ordered_capacity)
        r = grow_ordered(store, machine);
    if (r == 0)
        r = det_map_put(&machine->instances, instance);
    if (r < 0)
        return r;
    machine->ordered[machine->ordered_count++] = instance;
    instance->older = machine->newest;
    machine->newest = instance;
    assert_ordered(machine);
    return 0;
}

void det_memory_list_close(struct memory_store *store, struct memory_machine *machine)
{
    if (machine->ordered)
        DET_DELETE_ARRAY(store->store.allocator, machine->ordered, machine->ordered_capacity);
}

static int by_id(const void *left, const void *right)
{
    return strcmp(
        (*(struct memory_instance *const *)left)->id,
        (*(struct memory_instance *const *)right)->id);
}

/* From the end, so that no element is overwritten before it has moved. */
static void merge_chunks(
    struct memory_instance **ordered, size_t sorted_count, struct memory_instance **added,
    size_t added_count)
{
    for (size_t place = sorted_count + added_count; added_count;) {
        bool is_old =
            sorted_count && by_id(&ordered[sorted_count - 1], &added[added_count - 1]) > 0;

        ordered[--place] = is_old ? ordered[--sorted_count] : added[--added_count];
    }
}

static int sort_instances(struct memory_store *store, struct memory_machine *machine)
{
    struct memory_instance **added;
    size_t count = machine->ordered_count - machine->sorted_count;

    if (!count)
        return 0;
    added = DET_NEW_ARRAY(store->store.allocator, count, struct memory_instance *);
    if (!added)
        return DET_ERR_NO_MEMORY;
    memcpy(
        added, machine->ordered + machine->sorted_count, count * sizeof(struct memory_instance *));
    qsort(added, count, sizeof(struct memory_instance *), by_id);
    merge_chunks(machine->ordered, machine->sorted_count, added, count);
    machine->sorted_count = machine->ordered_count;
    assert_ordered(machine);
    DET_DELETE_ARRAY(store->store.allocator, added, count);
    return 0;
}

/* The index of the first instance after an id. */
static size_t place_after(const struct memory_machine *machine, const char *id)
{
    size_t from = 0, to = machine->sorted_count;

    while (id && from < to) {
        size_t middle = from + (to - from) / 2;

        if (strcmp(machine->ordered[middle]->id, id) > 0)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* The next instances after an id, at most a chunk: the visitor is not called under the mutex. */
static int next_chunk(
    struct memory_store *store, struct memory_machine *machine, const char *after,
    struct memory_instance **chunk, size_t *ret_count)
{
    size_t place;
    int r;

    det_mutex_lock(store->store.world, store->mutex);
    r = sort_instances(store, machine);
    if (r == 0) {
        place = place_after(machine, after);
        *ret_count = machine->sorted_count - place;
        if (*ret_count > CHUNK)
            *ret_count = CHUNK;
        if (*ret_count)
            memcpy(chunk, machine->ordered + place, *ret_count * sizeof(struct memory_instance *));
    }
    det_mutex_unlock(store->store.world, store->mutex);
    return r;
}

static struct det_store_listed listed_row(const struct memory_instance *instance)
{
    uint32_t listed = atomic_load_explicit(&instance->listed, memory_order_relaxed);

    return (struct det_store_listed){
        .id = instance->id,
        .state = listed & UINT16_MAX,
        .is_stopped = listed > UINT16_MAX,
        .sequence = atomic_load_explicit(&instance->listed_sequence, memory_order_relaxed),
        .started_at = instance->started_at,
        .moved_at = atomic_load_explicit(&instance->listed_moved_at, memory_order_relaxed),
    };
}

static bool is_dead(const struct memory_timer *timer)
{
    return atomic_load_explicit(&timer->is_dead, memory_order_relaxed);
}

static bool has_dead(struct memory_store *store, const struct memory_instance *instance)
{
    const struct memory_more *more = instance->more;
    bool is_found;

    det_mutex_lock(store->store.world, store->mutex);
    is_found = is_dead(&instance->state_timer);
    for (unsigned i = 0; more && more->timers && i <= instance->machine->timer_count; i++)
        is_found = is_found || is_dead(&more->timers[i]);
    if (more) {
        DET_LIST_EACH(node, &more->effects)
        {
            is_found = is_found || DET_CONTAINER(node, struct memory_effect, node)->row.is_dead;
        }
    }
    det_mutex_unlock(store->store.world, store->mutex);
    return is_found;
}

/* Conditions that require reading the instance. */
static bool has_wanted(
    struct memory_store *store, const struct memory_instance *instance,
    const struct det_store_query *query)
{
    if (query->is_locked && det_memory_lock_check(store, instance, 0) == 0)
        return false;
    return !query->has_dead || has_dead(store, instance);
}

static bool is_wanted(const struct det_store_listed *row, const struct det_store_query *query)
{
    if (query->has_state && row->state != query->state)
        return false;
    if (query->moved_before && row->moved_at >= query->moved_before)
        return false;
    return query->stopped == DET_STORE_ANY ||
           row->is_stopped == (query->stopped == DET_STORE_STOPPED);
}

int det_memory_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct memory_machine *known = det_memory_machine_find(memory_store_of(store), machine);
    struct memory_instance *chunk[CHUNK];
    const char *after = query->after;
    size_t count = CHUNK, visited = 0;
    int r = 0;

    det_contract_list(machine, query, visit);
    while (r == 0 && count == CHUNK) {
        r = next_chunk(memory_store_of(store), known, after, chunk, &count);
        for (size_t i = 0; r == 0 && i < count; i++) {
            struct det_store_listed row = listed_row(chunk[i]);

            after = row.id;
            if (!is_wanted(&row, query) || !has_wanted(memory_store_of(store), chunk[i], query))
                continue;
            r = visit(context, &row);
            if (r == 0 && ++visited == query->limit)
                return 0;
        }
    }
    return r;
}
