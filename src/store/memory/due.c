/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due.c - lists due work of the memory store. It reads every instance of a machine and keeps the
 * first entries in a heap, whose top is the last of them. Runtimes list once per machine, so an
 * index maintained by every commit would cost more. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/memory/memory.h"

#define CAPACITY_MIN 16u

struct entry {
    det_time due;
    const struct memory_instance *instance;
    bool is_timer;
};

struct reading {
    const struct det_allocator *allocator;
    struct entry *entries; /* a binary heap with the latest entry on top */
    size_t count, capacity, limit;
    const struct det_store_due_query *query;
    det_time next;
};

/* Equal times are ordered by id, so that a run is repeatable. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int r;

    if (a->due != b->due)
        return a->due < b->due ? -1 : 1;
    r = strcmp(a->instance->id, b->instance->id);
    return r ? r : b->is_timer - a->is_timer;
}

static void swap_entries(struct entry *a, struct entry *b)
{
    struct entry kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_up(struct entry *entries, size_t place)
{
    while (place && compare_entries(&entries[(place - 1) / 2], &entries[place]) < 0) {
        swap_entries(&entries[(place - 1) / 2], &entries[place]);
        place = (place - 1) / 2;
    }
}

static void sift_down(struct entry *entries, size_t count)
{
    for (size_t place = 0, child; (child = 2 * place + 1) < count; place = child) {
        if (child + 1 < count && compare_entries(&entries[child], &entries[child + 1]) < 0)
            child++;
        if (compare_entries(&entries[place], &entries[child]) >= 0)
            return;
        swap_entries(&entries[place], &entries[child]);
    }
}

static int grow_entries(struct reading *reading)
{
    size_t capacity = reading->capacity ? reading->capacity * 2 : CAPACITY_MIN;
    struct entry *entries;

    entries = det_realloc(
        reading->allocator, reading->entries, reading->capacity * sizeof *entries,
        capacity * sizeof *entries);
    if (!entries)
        return DET_ERR_NO_MEMORY;
    reading->entries = entries;
    reading->capacity = capacity;
    return 0;
}

static void pass_due(struct reading *reading, det_time due)
{
    if (due < reading->next)
        reading->next = due;
}

static bool is_wanted(const struct det_store_due_query *query, det_time due, bool is_timer)
{
    return due != DET_NEVER && (!query->from || due >= query->from) &&
           query->kind != (is_timer ? DET_DUE_EFFECTS : DET_DUE_TIMERS);
}

static int add_entry(
    struct reading *reading, const struct memory_instance *instance, det_time due, bool timer)
{
    struct entry entry = { due, instance, timer };
    int r = 0;

    if (!is_wanted(reading->query, due, timer))
        return 0;
    if (due > reading->query->before || !reading->limit) {
        pass_due(reading, due);
        return 0;
    }
    if (reading->count == reading->limit) {
        bool is_earlier = compare_entries(&entry, &reading->entries[0]) < 0;

        pass_due(reading, is_earlier ? reading->entries[0].due : due);
        if (is_earlier) {
            reading->entries[0] = entry;
            sift_down(reading->entries, reading->count);
        }
        return 0;
    }
    if (reading->count == reading->capacity)
        r = grow_entries(reading);
    if (r < 0)
        return r;
    det_assert(reading->count < reading->capacity && reading->count < reading->limit);
    reading->entries[reading->count] = entry;
    sift_up(reading->entries, reading->count++);
    return 0;
}

static det_time timer_due(const struct memory_timer *timer)
{
    return atomic_load_explicit(&timer->next, memory_order_relaxed);
}

/* Under the mutex, which protects everything except the times of timers. */
static int inspect(struct reading *reading, const struct memory_instance *instance)
{
    const struct memory_more *more = instance->more;
    int r;

    r = add_entry(reading, instance, timer_due(&instance->state_timer), true);
    if (!more)
        return r;
    for (unsigned i = 0; r == 0 && more->timers && i <= instance->machine->timer_count; i++)
        r = add_entry(reading, instance, timer_due(&more->timers[i]), true);
    for (struct det_list *node = more->effects.next; r == 0 && node != &more->effects;
         node = node->next) {
        const struct det_store_effect *row = &DET_CONTAINER(node, struct memory_effect, node)->row;

        if (!row->is_dead)
            r = add_entry(reading, instance, row->next, false);
    }
    return r;
}

static const struct memory_instance *newest_of(
    struct memory_store *store, const struct det_machine *machine)
{
    const struct memory_machine *known = det_memory_machine_find(store, machine);
    const struct memory_instance *newest;

    det_mutex_lock(store->store.world, store->mutex);
    newest = known->newest;
    det_mutex_unlock(store->store.world, store->mutex);
    return newest;
}

static int inspect_all(
    struct memory_store *store, const struct det_machine *machine, struct reading *reading)
{
    int r = 0;

    for (const struct memory_instance *instance = newest_of(store, machine); r == 0 && instance;
         instance = instance->older) {
        det_mutex_lock(store->store.world, store->mutex);
        r = inspect(reading, instance);
        det_mutex_unlock(store->store.world, store->mutex);
    }
    return r;
}

int det_memory_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct reading reading = {
        .allocator = store->allocator, .limit = query->limit, .query = query, .next = DET_NEVER
    };
    int r;

    det_contract_due(machine, query, visit, ret_next);
    r = inspect_all(memory_store_of(store), machine, &reading);
    if (r == 0 && reading.count)
        qsort(reading.entries, reading.count, sizeof *reading.entries, compare_entries);
    for (size_t i = 0; r == 0 && i < reading.count; i++) {
        const struct entry *entry = &reading.entries[i];

        r = visit(
            context, &(struct det_store_due){ entry->instance->id, entry->due, entry->is_timer });
    }
    if (reading.entries)
        DET_DELETE_ARRAY(store->allocator, reading.entries, reading.capacity);
    if (r == 0)
        *ret_next = reading.next;
    return r;
}
