/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop.c - stops workers: each is requested to reach STOPPED by itself, children before parents and
 * siblings at the same time, and is forced after a timeout. The time of a worker is the grace of
 * its own level and of all levels below, so a parent keeps its own time when its children have used
 * theirs. */
#include <detent/driver/policy.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"
#include "worker/worker_tree.h"

det_time det_stop_now(const struct det_workers *workers)
{
    return (workers->tick.is_clock_held ? workers->tick.began : workers->now) - workers->tick.held;
}

/* Counts the levels below each worker of the subtree. */
static void measure(struct det_worker *top)
{
    for (struct det_worker *worker = top; worker; worker = det_worker_after(worker, top))
        worker->place.height = 0;
    det_assert(top->place.depth < DET_WORKER_DEPTH_MAX);
    for (struct det_worker *worker = top; worker; worker = det_worker_after(worker, top)) {
        uint16_t height = 1;

        for (struct det_worker *above = worker; above != top; height++) {
            above = above->parent;
            if (above->place.height < height)
                above->place.height = height;
        }
    }
}

static void request(struct det_worker *worker, det_time grace, const char *reason)
{
    struct det_workers *workers = worker->workers;
    det_time stop_at =
        det_stop_now(workers) + grace + workers->limits.stop_grace * worker->place.height;

    worker->due = 0;
    if (workers->stopping.is_wanted)
        worker->leaving.leave_at = stop_at;
    if (worker->shutdown_wanted) {
        if (worker->leaving.stop_at > stop_at)
            worker->leaving.stop_at = stop_at;
        return;
    }
    worker->leaving.stop_at = stop_at;
    worker->shutdown_wanted = true;
    det_worker_hasten(worker);
    worker->attention |= DET_CHECK_DESIRED;
    det_worker_publish(
        worker,
        (struct det_worker_event){ .kind = DET_WORKER_EVENT_SHUTDOWN_REQUESTED, .reason = reason });
}

void det_stop_shutdown(struct det_worker *top, det_time grace, const char *reason)
{
    measure(top);
    request(top, grace, reason);
    for (struct det_worker *worker = top; (worker = det_worker_after(worker, top));) {
        if (top->leaving.is_unwanted) {
            worker->leaving.is_unwanted = true;
            worker->leaving.is_restart_wanted = false;
            worker->leaving.is_forgotten =
                worker->leaving.is_forgotten || top->leaving.is_forgotten;
        }
        if (det_life_is_active(worker))
            request(worker, top->workers->limits.stop_grace, reason);
    }
}

void det_stop_revoke(struct det_worker *worker)
{
    worker->due = 0;
    worker->attention |= DET_CHECK_DESIRED | DET_CHECK_CHILDREN;
    /* A worker that will rest continues to stop; one that is being closed restarts afterwards. */
    if (!det_life_may_stay(worker) || worker->leaving.has_to_rest)
        return;
    worker->shutdown_wanted = false;
    worker->leaving.stop_at = DET_NEVER;
}

/* True if it exceeds the intensity; false without memory to count. */
static bool is_too_often(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    struct det_worker_faults *faults = det_worker_faults(worker);
    bool is_fine;

    if (!faults || (!faults->restarts &&
                    det_intensity_open(
                        &workers->limits.restarts, workers->allocator, &faults->restarts, NULL)))
        return false;
    is_fine = det_intensity_note(faults->restarts, workers->now);
    if (!is_fine)
        det_worker_publish(
            worker, (struct det_worker_event){
                        .kind = DET_WORKER_EVENT_RESTART_INTENSITY,
                        .number = det_intensity_count(faults->restarts, workers->now) });
    return !is_fine;
}

void det_stop_rest(struct det_worker *worker, const char *reason)
{
    struct det_worker_faults *faults = det_worker_faults(worker);

    worker->leaving.has_to_rest = true;
    worker->leaving.is_restart_wanted = false;
    if (faults)
        det_text_copy(faults->rest_reason, sizeof faults->rest_reason, reason);
}

/* The worker rests after too many restarts, with the last reason. */
static void rest(struct det_worker *worker, const char *reason)
{
    char text[DET_WORKER_REASON_MAX + 1];

    snprintf(
        text, sizeof text,
        "restarted too often, stays down until its config changes or it is restarted: %.60s",
        reason);
    det_stop_rest(worker, text);
}

static void request_restart(struct det_worker *worker, const char *reason)
{
    worker->counts.restarts++;
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_RESTART_REQUESTED,
                                           .reason = reason,
                                           .number = worker->counts.restarts });
    worker->leaving.is_restart_wanted = true;
}

void det_stop_restart(struct det_worker *worker, const char *reason)
{
    request_restart(worker, reason);
    if (is_too_often(worker))
        rest(worker, reason);
    det_circuit_failure(worker, reason);
    det_stop_shutdown(worker, worker->workers->limits.restart_grace, reason);
}

void det_stop_restart_by_order(struct det_worker *worker, const char *reason)
{
    request_restart(worker, reason);
    det_stop_shutdown(worker, worker->workers->limits.restart_grace, reason);
}

/* It did not reach STOPPED by itself. */
static void note_forced(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    det_assert(!worker->leaving.was_forced && !det_life_is_gone(worker));
    worker->leaving.was_forced = true;
    worker->leaving.stop_at = DET_NEVER;
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = worker->leaving.is_restart_wanted
                                                       ? DET_WORKER_EVENT_RESTART_FORCED
                                                       : DET_WORKER_EVENT_STOP_TIMEOUT,
                                           .reason = worker->reason });
    if (workers->stopping.is_wanted) {
        det_mutex_lock(workers->world, workers->mutex);
        if (!workers->stopping.forced++)
            det_text_copy(
                workers->stopping.forced_first, sizeof workers->stopping.forced_first,
                worker->identity.path);
        det_mutex_unlock(workers->world, workers->mutex);
    }
}

void det_stop_force(struct det_worker *worker)
{
    note_forced(worker);
    det_life_leave(worker);
}

void det_stop_note_hung_close(struct det_worker *worker)
{
    if (!worker->leaving.was_forced)
        note_forced(worker);
}

void det_stop_visit(struct det_worker *worker)
{
    const struct det_workers *workers = worker->workers;

    if (!worker->shutdown_wanted)
        return;
    if (det_stop_now(workers) >= worker->leaving.stop_at)
        det_stop_force(worker);
    else
        det_worker_due(worker, det_add_time(worker->leaving.stop_at, workers->tick.held));
}

void det_stop_all(struct det_workers *workers)
{
    struct det_worker *root = workers->root;

    if (!root)
        return;
    if (!workers->stopping.is_wanted) {
        workers->stopping.is_wanted = true;
        root->leaving.is_unwanted = true;
        root->leaving.is_restart_wanted = false;
        det_stop_shutdown(root, workers->limits.stop_grace, "the supervisor is shutting down");
        return;
    }
    workers->stopping.is_forcing = true;
    det_worker_publish(root, (struct det_worker_event){ .kind = DET_WORKER_EVENT_STOP_FORCED });
    for (struct det_worker *worker = root; worker; worker = det_worker_after(worker, root)) {
        worker->due = 0;
        worker->leaving.leave_at = det_stop_now(workers);
        if (worker->leaving.stop_at != DET_NEVER)
            worker->leaving.stop_at = det_stop_now(workers);
    }
}

void det_stop_gone(struct det_workers *workers)
{
    det_assert(!workers->root && !workers->stopping.is_over);
    det_mutex_lock(workers->world, workers->mutex);
    workers->stopping.is_over = true;
    det_condition_broadcast(workers->world, workers->changed);
    det_mutex_unlock(workers->world, workers->mutex);
}
