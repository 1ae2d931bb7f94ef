/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tick_walk.c - the walk over the tree: parents before children, siblings in the order of their
 * specs.
 *
 * A tick is one walk. In a large tree it consists of slices, so that it holds the loop for a few
 * milliseconds at a time, and calls, timers and ends of runs are handled in between:
 *
 *     det_tick_begin() --> slice --> slice --> ... --> slice: the tick is over
 *                              loop     loop
 *
 * Invariants
 *   1. `tick.at` is the next worker of the walk, and is in the tree; NULL: no walk is under way.
 *   2. The clock of stops (det_stop_now()) stands still while a slice runs and, when everything
 *      stops, from the begin of a walk to its end, including ends of runs and pauses: the time of a
 *      worker to stop is its own. */
#include <string.h>

#include "worker/worker_tree.h"

#include "base/assert.h"

#define SLICE       (4 * DET_MILLISECOND)
#define SLICE_COUNT 32 /* workers between two readings of the clock */

/* While everything stops, the walk continues when fewer jobs than this are queued: each is the
 * close() of a worker, or a cancelled observation, and has a deadline. */
#define QUEUED_MAX  4096
#define QUEUE_PAUSE DET_MILLISECOND

/* The first worker after the subtree. */
static struct det_worker *past(const struct det_worker *worker, const struct det_worker *top)
{
    while (worker != top) {
        if (worker->next)
            return worker->next;
        worker = worker->parent;
    }
    return NULL;
}

struct det_worker *det_worker_after(const struct det_worker *worker, const struct det_worker *top)
{
    return worker->children.first ? worker->children.first : past(worker, top);
}

void det_tick_remove(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    if (workers->tick.at == worker)
        workers->tick.at = past(worker, workers->root);
}

static void beat(struct det_workers *workers)
{
    if (++workers->tick.count % workers->limits.heartbeat)
        return;
    det_worker_publish(
        workers->root, (struct det_worker_event){ .kind = DET_WORKER_EVENT_HEARTBEAT,
                                                  .number = workers->tick.count });
}

static void count(struct det_worker *worker)
{
    struct det_tally *tally = &worker->workers->tick.counting;

    tally->by_phase[worker->kind->states[worker->state].phase]++;
    tally->stale += worker->observing.is_stale;
    tally->degraded += worker->desire.is_degraded;
    tally->down += !det_life_is_live(worker) && worker->seen.is_down;
}

/* Prefetches the first cache lines of the next worker, since workers of a large tree are scattered
 * in memory. */
static void fetch(const struct det_worker *worker)
{
    const char *place = (const char *)worker;

    for (size_t i = 0; i < offsetof(struct det_worker, observing) + 64; i += 64)
        __builtin_prefetch(place + i);
    __builtin_prefetch(&worker->desire);
    __builtin_prefetch(&worker->counts);
}

static void visit_next(struct det_workers *workers)
{
    struct det_worker *worker = workers->tick.at;

    det_assert(worker->workers == workers);
    if (worker->next)
        fetch(worker->next);
    count(worker);
    det_worker_visit(worker);
    /* A removed worker leaves the walk. */
    if (workers->tick.at == worker)
        workers->tick.at = det_worker_after(worker, workers->root);
}

static det_time read_clock(const struct det_workers *workers)
{
    return workers->world->ops->now(workers->world, DET_CLOCK_MONOTONIC);
}

static void finish(struct det_workers *workers)
{
    det_assert(!workers->tick.at);
    if (workers->tick.is_clock_held)
        workers->tick.held += read_clock(workers) - workers->tick.began;
    workers->tick.is_clock_held = false;
    workers->tick.counted = workers->tick.counting;
    workers->tick.last_took = workers->tick.took;
    if (workers->tick.last_took > workers->tick.longest_took)
        workers->tick.longest_took = workers->tick.last_took;
}

void det_tick_begin(struct det_workers *workers)
{
    det_workers_now(workers);
    workers->tick.began = workers->now;
    workers->tick.took = 0;
    workers->tick.is_clock_held = workers->stopping.is_wanted;
    workers->tick.queued_before = UINT32_MAX;
    memset(&workers->tick.counting, 0, sizeof workers->tick.counting);
    if (workers->root)
        beat(workers);
    workers->tick.at = workers->root;
}

/* Until the walk or the time of the slice is over. */
static void walk(struct det_workers *workers, det_time span)
{
    det_time began, took;

    det_workers_now(workers);
    began = workers->now;
    workers->tick.walking++;
    do {
        for (int i = 0; i < SLICE_COUNT && workers->tick.at; i++)
            visit_next(workers);
        took = read_clock(workers) - began;
    } while (workers->tick.at && took < span);
    det_assert(workers->tick.walking > 0);
    workers->tick.walking--;
    det_workers_free_gone(workers);
    workers->tick.took += took;
    if (!workers->tick.is_clock_held)
        workers->tick.held += took;
    if (!workers->tick.at)
        finish(workers);
}

/* True if the worker threads have so much work that the walk should wait. If the queue does not get
 * shorter, a job may hang, and deadlines must be checked. */
static bool are_threads_behind(struct det_workers *workers)
{
    uint32_t before = workers->tick.queued_before;

    if (!workers->stopping.is_wanted || workers->stopping.is_forcing)
        return false;
    workers->tick.queued_before =
        det_worker_threads_queued(workers->actors) + det_worker_threads_queued(workers->collectors);
    return workers->tick.queued_before > QUEUED_MAX && workers->tick.queued_before < before;
}

det_time det_tick_slice(struct det_workers *workers)
{
    if (are_threads_behind(workers))
        return QUEUE_PAUSE;
    walk(workers, SLICE);
    return 0;
}

void det_workers_tick(struct det_workers *workers)
{
    det_tick_begin(workers);
    walk(workers, DET_NEVER);
}
