/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* poller.c - simulated pollers: they know when they are woken, and watch processes.
 *
 * The descriptors of a simulated process are numbers that only these pollers know. Readiness is
 * computed when a thread waits, so no state has to be kept up to date. */
#include "base/assert.h"
#include "base/memory.h"
#include "os/sim/simulation.h"

struct det_poller {
    struct det_list node;    /* in the simulation's list */
    struct det_list waiters; /* at most one */
    struct det_list watches;
    bool is_woken;
};

struct watch {
    struct det_list node; /* in its poller; moves to the end when reported */
    struct det_process *process;
    int descriptor;
    void *tag;
};

static void free_watch(struct det_sim *sim, struct watch *watch)
{
    det_list_remove(&watch->node);
    DET_DELETE(sim->allocator, watch);
}

int det_sim_poller_open(struct det_world *world, struct det_poller **ret)
{
    struct det_sim *sim = det_sim_of(world);
    struct det_poller *poller;

    poller = DET_NEW(sim->allocator, struct det_poller);
    if (!poller)
        return DET_ERR_NO_MEMORY;
    det_list_init(&poller->waiters);
    det_list_init(&poller->watches);
    det_list_append(&sim->pollers, &poller->node);
    *ret = poller;
    return 0;
}

void det_sim_poller_close(struct det_world *world, struct det_poller *poller)
{
    struct det_sim *sim = det_sim_of(world);

    det_assert(sim->failed || det_list_is_empty(&poller->waiters));
    while (!det_list_is_empty(&poller->watches))
        free_watch(sim, DET_CONTAINER(poller->watches.next, struct watch, node));
    det_list_remove(&poller->waiters);
    det_list_remove(&poller->node);
    DET_DELETE(sim->allocator, poller);
}

static struct watch *find_watch(struct det_poller *poller, int descriptor)
{
    DET_LIST_EACH(node, &poller->watches)
    {
        struct watch *watch = DET_CONTAINER(node, struct watch, node);

        if (watch->descriptor == descriptor)
            return watch;
    }
    return NULL;
}

int det_sim_poller_watch(
    struct det_world *world, struct det_poller *poller, int descriptor, unsigned events, void *tag)
{
    struct det_sim *sim = det_sim_of(world);
    struct det_process *process = det_sim_process_of(sim, descriptor);
    struct watch *watch = find_watch(poller, descriptor);

    if (!events) {
        if (watch)
            free_watch(sim, watch);
        return 0;
    }
    if (!process || events != DET_POLL_READ)
        return DET_ERR_UNSUPPORTED;
    if (!watch) {
        watch = DET_NEW(sim->allocator, struct watch);
        if (!watch)
            return DET_ERR_NO_MEMORY;
        det_list_append(&poller->watches, &watch->node);
    }
    watch->process = process;
    watch->descriptor = descriptor;
    watch->tag = tag;
    return 0;
}

static bool is_ready(const struct watch *watch)
{
    return det_sim_process_is_readable(watch->process, watch->descriptor);
}

static bool has_ready(const struct det_poller *poller)
{
    DET_LIST_EACH(node, &poller->watches)
    if (is_ready(DET_CONTAINER(node, struct watch, node)))
        return true;
    return false;
}

/* If more are ready than fit, the others come first the next time. */
static int collect_ready(struct det_poller *poller, struct det_poll_event *events, int capacity)
{
    struct det_list *node = poller->watches.next, *last = poller->watches.previous, *next;
    int count = 0;

    for (bool is_last = node == &poller->watches; !is_last && count < capacity; node = next) {
        struct watch *watch = DET_CONTAINER(node, struct watch, node);

        is_last = node == last;
        next = node->next;
        if (!is_ready(watch))
            continue;
        events[count++] = (struct det_poll_event){ .tag = watch->tag, .events = DET_POLL_READ };
        det_list_remove(node);
        det_list_append(&poller->watches, node);
    }
    return count;
}

int det_sim_poller_wait(
    struct det_world *world, struct det_poller *poller, struct det_poll_event *events, int capacity,
    det_time deadline)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    det_assert(capacity > 0 && det_list_is_empty(&poller->waiters));
    /* A poller with events does not wait, but other threads may run. */
    if (poller->is_woken || has_ready(poller))
        deadline = 0;
    r = det_schedule_wait(sim, &poller->waiters, WAIT_POLLER, deadline);
    poller->is_woken = false;
    return r < 0 && r != DET_ERR_TIMEOUT ? r : collect_ready(poller, events, capacity);
}

void det_sim_poller_wake(struct det_world *world, struct det_poller *poller)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    poller->is_woken = true;
    det_schedule_wake_all(sim, &poller->waiters);
    det_schedule_preempt(sim);
}

void det_sim_pollers_wake(struct det_sim *sim)
{
    DET_LIST_EACH(node, &sim->pollers)
    {
        struct det_poller *poller = DET_CONTAINER(node, struct det_poller, node);

        poller->is_woken = true;
        det_schedule_wake_all(sim, &poller->waiters);
    }
}

void det_sim_pollers_notify(struct det_sim *sim)
{
    DET_LIST_EACH(node, &sim->pollers)
    {
        struct det_poller *poller = DET_CONTAINER(node, struct det_poller, node);

        if (has_ready(poller))
            det_schedule_wake_all(sim, &poller->waiters);
    }
}

void det_sim_pollers_forget(struct det_sim *sim, const struct det_process *process)
{
    DET_LIST_EACH(node, &sim->pollers)
    {
        struct det_poller *poller = DET_CONTAINER(node, struct det_poller, node);
        struct det_list *next;

        for (struct det_list *each = poller->watches.next; each != &poller->watches; each = next) {
            struct watch *watch = DET_CONTAINER(each, struct watch, node);

            next = each->next;
            if (watch->process == process)
                free_watch(sim, watch);
        }
    }
}

int det_sim_poller_descriptor(struct det_world *world, struct det_poller *poller)
{
    (void)world;
    (void)poller;
    return -1;
}
