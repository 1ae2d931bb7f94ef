/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due.c - what is due in the memory store. It looks at every instance of a machine and keeps the
 * first ones in a heap, whose top is the last of them. Runtimes ask once for a machine, so there is
 * no index that every commit would have to maintain. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "os/os.h"
#include "store/memory/memory.h"

#define CAPACITY_MIN 16u

struct entry {
    det_time due;
    const struct memory_instance *instance;
    bool is_timer;
};

struct look {
    const struct det_allocator *allocator;
    struct entry *entries; /* a binary heap, the last one due on top */
    size_t count, capacity, limit;
    const struct det_store_due_query *query;
    det_time next;
};

/* Equal times in the order of ids, so that a run is repeatable. */
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

static int grow_entries(struct look *look)
{
    size_t capacity = look->capacity ? look->capacity * 2 : CAPACITY_MIN;
    struct entry *entries;

    entries = det_realloc(
        look->allocator, look->entries, look->capacity * sizeof *entries,
        capacity * sizeof *entries);
    if (!entries)
        return DET_ERR_NO_MEMORY;
    look->entries = entries;
    look->capacity = capacity;
    return 0;
}

static void pass_due(struct look *look, det_time due)
{
    if (due < look->next)
        look->next = due;
}

static bool is_wanted(const struct det_store_due_query *query, det_time due, bool is_timer)
{
    return due != DET_NEVER && (!query->from || due >= query->from) &&
           query->kind != (is_timer ? DET_DUE_EFFECTS : DET_DUE_TIMERS);
}

static int add_entry(
    struct look *look, const struct memory_instance *instance, det_time due, bool timer)
{
    struct entry entry = { due, instance, timer };
    int r = 0;

    if (!is_wanted(look->query, due, timer))
        return 0;
    if (due > look->query->before || !look->limit) {
        pass_due(look, due);
        return 0;
    }
    if (look->count == look->limit) {
        bool is_earlier = compare_entries(&entry, &look->entries[0]) < 0;

        pass_due(look, is_earlier ? look->entries[0].due : due);
        if (is_earlier) {
            look->entries[0] = entry;
            sift_down(look->entries, look->count);
        }
        return 0;
    }
    if (look->count == look->capacity)
        r = grow_entries(look);
    if (r < 0)
        return r;
    look->entries[look->count] = entry;
    sift_up(look->entries, look->count++);
    return 0;
}

static det_time timer_due(const struct memory_timer *timer)
{
    return atomic_load_explicit(&timer->next, memory_order_relaxed);
}

/* Under the mutex, under which all of it but the times of timers is changed. */
static int look_at(struct look *look, const struct memory_instance *instance)
{
    const struct memory_more *more = instance->more;
    int r;

    r = add_entry(look, instance, timer_due(&instance->state_timer), true);
    if (!more)
        return r;
    for (unsigned i = 0; r == 0 && more->timers && i <= instance->machine->timer_count; i++)
        r = add_entry(look, instance, timer_due(&more->timers[i]), true);
    for (struct det_list *node = more->effects.next; r == 0 && node != &more->effects;
         node = node->next) {
        const struct det_store_effect *row = &DET_CONTAINER(node, struct memory_effect, node)->row;

        if (!row->is_dead)
            r = add_entry(look, instance, row->next, false);
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

static int look_at_all(
    struct memory_store *store, const struct det_machine *machine, struct look *look)
{
    int r = 0;

    for (const struct memory_instance *instance = newest_of(store, machine); r == 0 && instance;
         instance = instance->older) {
        det_mutex_lock(store->store.world, store->mutex);
        r = look_at(look, instance);
        det_mutex_unlock(store->store.world, store->mutex);
    }
    return r;
}

int det_memory_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct look look = {
        .allocator = store->allocator, .limit = query->limit, .query = query, .next = DET_NEVER
    };
    int r;

    r = look_at_all(memory_store_of(store), machine, &look);
    if (r == 0 && look.count)
        qsort(look.entries, look.count, sizeof *look.entries, compare_entries);
    for (size_t i = 0; r == 0 && i < look.count; i++) {
        const struct entry *entry = &look.entries[i];

        r = visit(
            context, &(struct det_store_due){ entry->instance->id, entry->due, entry->is_timer });
    }
    if (look.entries)
        DET_DELETE_ARRAY(store->allocator, look.entries, look.capacity);
    if (r == 0)
        *ret_next = look.next;
    return r;
}
