/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.c - counts in the memory store. Reads every instance while others change them. Sizes in
 * bytes are unknown: only the allocator has them. */
#include <detent/tool/store.h>

#include "base/memory.h"
#include "os/os.h"
#include "store/count.h"
#include "store/memory/memory.h"

static uint64_t is_armed(const struct memory_timer *timer)
{
    return atomic_load_explicit(&timer->next, memory_order_relaxed) != DET_NEVER;
}

static void count_timer(const struct memory_timer *timer, struct det_store_counted *row)
{
    row->timers += is_armed(timer);
    row->dead += atomic_load_explicit(&timer->is_dead, memory_order_relaxed);
}

/* Under the mutex, as in memory/due.c. */
static void count_more(const struct memory_instance *instance, struct det_store_counted *row)
{
    const struct memory_more *more = instance->more;

    count_timer(&instance->state_timer, row);
    if (!more)
        return;
    for (unsigned i = 0; more->timers && i <= instance->machine->timer_count; i++)
        count_timer(&more->timers[i], row);
    DET_LIST_EACH(node, &more->effects)
    {
        bool is_dead = DET_CONTAINER(node, struct memory_effect, node)->row.is_dead;

        row->effects += !is_dead;
        row->dead += is_dead;
    }
}

static int count_instance(
    struct memory_store *store, const struct memory_instance *instance, struct det_count *count)
{
    const struct memory_machine *machine = instance->machine;
    uint32_t listed = atomic_load_explicit(&instance->listed, memory_order_relaxed);
    struct det_store_counted in_state = { .machine = machine->name,
                                          .state = machine->machine->states[(uint16_t)listed].name,
                                          .running = listed <= UINT16_MAX,
                                          .stopped = listed > UINT16_MAX };
    struct det_store_counted waiting = { .machine = machine->name };
    int r;

    det_mutex_lock(store->store.world, store->mutex);
    count_more(instance, &waiting);
    det_mutex_unlock(store->store.world, store->mutex);
    r = det_count_add(count, &waiting);
    return r < 0 ? r : det_count_add(count, &in_state);
}

static int count_machine(
    struct memory_store *store, const struct memory_machine *machine, struct det_count *count)
{
    const struct det_store_counted known = { .machine = machine->name };
    const struct memory_instance *instance;
    int r;

    det_mutex_lock(store->store.world, store->mutex);
    instance = machine->newest;
    det_mutex_unlock(store->store.world, store->mutex);
    r = det_count_add(count, &known);
    for (; r == 0 && instance; instance = instance->older)
        r = count_instance(store, instance, count);
    return r;
}

/* The current machines; they live as long as the store. NULL: no memory, or no machines. */
static const struct memory_machine **machines_of(struct memory_store *store, size_t *ret_count)
{
    const struct memory_machine **machines, *machine;
    size_t count = 0;

    det_mutex_lock(store->store.world, store->mutex);
    *ret_count = store->machines.count;
    machines = DET_NEW_ARRAY(store->store.allocator, *ret_count, const struct memory_machine *);
    for (size_t cursor = 0; machines && (machine = det_map_next(&store->machines, &cursor));)
        machines[count++] = machine;
    det_mutex_unlock(store->store.world, store->mutex);
    return machines;
}

int det_memory_count(
    struct det_store *base, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes)
{
    struct memory_store *store = memory_store_of(base);
    size_t machine_count;
    const struct memory_machine **machines = machines_of(store, &machine_count);
    struct det_count count;
    int r = machines || !machine_count ? 0 : DET_ERR_NO_MEMORY;

    det_count_init(&count, base->allocator);
    for (size_t i = 0; r == 0 && i < machine_count; i++)
        r = count_machine(store, machines[i], &count);
    if (machines)
        DET_DELETE_ARRAY(base->allocator, machines, machine_count);
    if (r == 0)
        r = det_count_report(&count, visit, context);
    det_count_deinit(&count);
    if (r == 0)
        *ret_bytes = 0;
    return r;
}
