/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.c - a queue in a store: opening, closing and submitting.
 *
 * Invariants
 *   1. Threads never hold the mutex while they call the store or the tasks, except to hold the
 *      tasks.
 *   2. The tasks are held (det_tasks_run() continues) from opening, and from each notification,
 *      until a later claim finds the queue empty: no job is queued, delayed or running in any
 *      process. Schedules hold them until closing, as a task with a schedule does. */
#include <detent/driver/loop.h>

#include "task/durable.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "os/os.h"
#include "store/jobs.h"
#include "task/registry.h"

#define LEASE_DEFAULT    (30 * DET_SECOND)
#define POLL_DEFAULT     DET_SECOND
#define KEPT_DEFAULT     (7 * DET_DAY)
#define ATTEMPTS_DEFAULT 20
#define WIDTH_MAX        256
#define WORK_NAME_MAX    100
#define FORGET_EVERY     DET_HOUR
/* Interval of turning a user's loop while waiting for it. */
#define TURN_EVERY (5 * DET_MILLISECOND)

static det_time monotonic(const struct det_durable *durable)
{
    return det_world_now(durable->world, DET_CLOCK_MONOTONIC);
}

/* Returns the number of remaining threads. */
static uint32_t ask_to_stop(struct det_durable *durable, bool is_closing)
{
    uint32_t running;

    det_mutex_lock(durable->world, durable->mutex);
    durable->is_stopping = true;
    durable->is_closing = durable->is_closing || is_closing;
    running = durable->running;
    det_condition_broadcast(durable->world, durable->changed);
    det_condition_broadcast(durable->world, durable->for_keeper);
    det_condition_broadcast(durable->world, durable->for_starter);
    det_mutex_unlock(durable->world, durable->mutex);
    return running;
}

void det_durable_stop(struct det_durable *durable)
{
    (void)ask_to_stop(durable, false);
}

/* Under the mutex. A queue that only submits is not waited for. */
static void hold(struct det_durable *durable)
{
    if (durable->is_holding || (!durable->options.work_count && !durable->options.schedule_count))
        return;
    durable->is_holding = true;
    det_tasks_keep(durable->options.tasks);
}

/* The loop is nudged without the mutex. */
void det_durable_let_go(struct det_durable *durable, uint64_t seen)
{
    bool is_last = durable->is_holding && durable->news == seen;

    if (!is_last)
        return;
    durable->is_holding = false;
    det_tasks_let_go(durable->options.tasks);
    det_mutex_unlock(durable->world, durable->mutex);
    det_tasks_nudge(durable->options.tasks);
    det_mutex_lock(durable->world, durable->mutex);
}

void det_durable_wake(struct det_durable *durable)
{
    det_mutex_lock(durable->world, durable->mutex);
    durable->news++;
    hold(durable);
    det_condition_signal(durable->world, durable->for_keeper);
    det_mutex_unlock(durable->world, durable->mutex);
}

int det_durable_thread(struct det_durable *durable, det_thread_fn *run, struct det_thread **ret)
{
    int r;

    durable->running++;
    r = det_thread_start(durable->world, "det-durable", run, durable, ret);
    if (r < 0)
        durable->running--;
    return r;
}

void det_durable_leave(struct det_durable *durable)
{
    durable->running--;
    det_condition_broadcast(durable->world, durable->changed);
}

/* The clock thread: schedules, and deletion of old ended jobs. */

/* A failure is retried the next time. */
static void forget_old(const struct det_durable *durable)
{
    struct det_store *store = durable->options.store;
    uint64_t count;

    (void)durable->ops->forget(store, store->ops->now(store) - durable->options.kept, &count);
}

static bool is_stopping(struct det_durable *durable)
{
    bool is;

    det_mutex_lock(durable->world, durable->mutex);
    is = durable->is_stopping;
    det_mutex_unlock(durable->world, durable->mutex);
    return is;
}

/* Waits until the queue is stopping, or the span has passed. */
static void wait_for_stop(struct det_durable *durable, det_time span)
{
    det_time deadline = monotonic(durable) + span;
    int r = 0;

    det_mutex_lock(durable->world, durable->mutex);
    while (r == 0 && !durable->is_stopping)
        r = det_condition_wait(durable->world, durable->changed, durable->mutex, deadline);
    det_mutex_unlock(durable->world, durable->mutex);
}

static void run_clock(void *argument)
{
    struct det_durable *durable = argument;
    det_time forget_at = monotonic(durable), span;

    while (!is_stopping(durable)) {
        if (durable->options.work_count && monotonic(durable) >= forget_at) {
            forget_old(durable);
            forget_at = monotonic(durable) + FORGET_EVERY;
        }
        span = FORGET_EVERY;
        if (durable->options.schedule_count)
            span = det_durable_schedules_run(durable);
        wait_for_stop(durable, span);
    }
    det_mutex_lock(durable->world, durable->mutex);
    det_durable_leave(durable);
    det_mutex_unlock(durable->world, durable->mutex);
}

/* Opening. */

static int check_work(const struct det_durable_work *work, struct det_error *reterr)
{
    if (det_jobs_check_name(work->name) < 0 || strlen(work->name) > WORK_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the name of a work is 1 to %d bytes without control characters", WORK_NAME_MAX);
    if (work->spec->process && !work->spec->process->environment)
        return det_error_set(
            reterr, DET_ERR_INVALID, "work %s: a process of a durable queue needs its environment",
            work->name);
    return 0;
}

static int check_options(const struct det_durable_options *options, struct det_error *reterr)
{
    int r = det_reserved_check(options->reserved, "a durable queue", reterr);

    if (r < 0)
        return r;
    if (!options->store->ops->jobs)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "this kind of store does not support submissions");
    if (!options->queue || det_jobs_check_name(options->queue) < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "a queue has a name of 1 to %d bytes", DET_JOB_NAME_MAX);
    if (options->width > WIDTH_MAX || options->lease < 0 || options->poll < 0 || options->kept < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "queue %s: a width up to %d, and times that are not negative",
            options->queue, WIDTH_MAX);
    for (size_t i = 0; r == 0 && i < options->work_count; i++)
        r = check_work(&options->works[i], reterr);
    return r == 0 ? det_durable_schedules_check(options, reterr) : r;
}

static void set_defaults(struct det_durable_options *options)
{
    if (!options->width)
        options->width = 1;
    if (!options->lease)
        options->lease = LEASE_DEFAULT;
    if (!options->poll)
        options->poll = POLL_DEFAULT;
    if (!options->kept)
        options->kept = KEPT_DEFAULT;
    if (!options->attempts_max)
        options->attempts_max = ATTEMPTS_DEFAULT;
}

static void wake_durable(void *context)
{
    det_durable_wake(context);
}

static int open_conditions(struct det_durable *durable)
{
    int r;

    r = det_mutex_open(durable->world, &durable->mutex);
    if (r == 0)
        r = det_condition_open(durable->world, &durable->changed);
    if (r == 0)
        r = det_condition_open(durable->world, &durable->for_keeper);
    if (r == 0)
        r = det_condition_open(durable->world, &durable->for_starter);
    return r;
}

static int open_parts(struct det_durable *durable)
{
    bool has_works = durable->options.work_count > 0;
    int r;

    for (int i = 0; i < DURABLE_STAGES; i++)
        det_list_init(&durable->attempts[i]);
    r = open_conditions(durable);
    if (r < 0)
        return r;
    /* A user's loop may not have been turned yet: our threads must not take its ownership. */
    det_loop_claim(durable->options.tasks->loop);
    det_mutex_lock(durable->world, durable->mutex);
    hold(durable);
    if (has_works)
        r = det_durable_starter_open(durable);
    if (r == 0 && has_works)
        r = det_durable_keeper_open(durable);
    if (r == 0 && (has_works || durable->options.schedule_count))
        r = det_durable_thread(durable, run_clock, &durable->clock);
    durable->has_kept = !durable->keeper;
    det_mutex_unlock(durable->world, durable->mutex);
    durable->is_listening = r == 0 && has_works && durable->ops->listen;
    durable->listener =
        (struct det_job_listener){ durable->options.queue, wake_durable, durable, NULL };
    if (durable->is_listening)
        durable->ops->listen(durable->options.store, &durable->listener);
    return r;
}

int det_durable_open(
    const struct det_durable_options *options, struct det_durable **ret, struct det_error *reterr)
{
    struct det_durable *durable;
    int r;

    r = check_options(options, reterr);
    if (r < 0)
        return r;
    durable = DET_NEW(options->tasks->allocator, struct det_durable);
    if (!durable)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a durable queue");
    durable->options = *options;
    set_defaults(&durable->options);
    durable->world = options->tasks->world;
    durable->allocator = options->tasks->allocator;
    durable->ops = options->store->ops->jobs;
    durable->queue = det_string_copy(durable->allocator, options->queue);
    durable->options.queue = durable->queue;
    r = durable->queue ? open_parts(durable) : DET_ERR_NO_MEMORY;
    if (r < 0) {
        (void)det_error_set(reterr, r, "queue %s: %s", options->queue, det_error_text(r));
        det_durable_close(durable);
        return r;
    }
    *ret = durable;
    return 0;
}

/* Closing. */

/* The threads may wait for the loop, so a loop of ours must keep running. */
static void wait_for_threads(struct det_durable *durable)
{
    struct det_loop *loop = durable->options.tasks->loop;
    int r = 0;

    while (ask_to_stop(durable, true) > 0) {
        if (det_loop_is_mine(loop))
            r = det_loop_turn(loop, det_loop_now(loop) + TURN_EVERY);
        else
            r = det_world_sleep(durable->world, TURN_EVERY);
        /* The threads are checked again in any case. */
        (void)r;
    }
}

void det_durable_close(struct det_durable *durable)
{
    if (!durable)
        return;
    if (durable->is_listening)
        durable->ops->unlisten(durable->options.store, &durable->listener);
    if (durable->for_starter) {
        wait_for_threads(durable);
        det_mutex_lock(durable->world, durable->mutex);
        det_durable_let_go(durable, durable->news);
        det_mutex_unlock(durable->world, durable->mutex);
    }
    det_durable_keeper_close(durable);
    det_durable_starter_close(durable);
    if (durable->clock)
        det_thread_join(durable->world, durable->clock);
    det_condition_close(durable->world, durable->for_starter);
    det_condition_close(durable->world, durable->for_keeper);
    det_condition_close(durable->world, durable->changed);
    det_mutex_close(durable->world, durable->mutex);
    det_free_string(durable->allocator, durable->queue);
    DET_DELETE(durable->allocator, durable);
}

int det_durable_submit(
    struct det_durable *durable, const struct det_durable_submission *submission, bool *ret_is_new,
    struct det_error *reterr)
{
    struct det_job_put put = {
        .queue = durable->options.queue,
        .id = submission->id,
        .task = submission->work,
        .body = submission->body,
        .body_size = submission->size,
        .run_at = submission->run_at,
    };
    struct det_job_place place;
    char at[DET_TIME_TEXT];
    int r;

    r = durable->ops->put(durable->options.store, &put, 1, &place);
    if (r == 0)
        r = place.result;
    if (r == DET_ERR_CONFLICT)
        return det_error_set(
            reterr, r,
            "queue %s: id %s was submitted at %s for another task or with another body; use "
            "another id",
            put.queue, put.id, det_format_time(place.submitted_at, at, sizeof at));
    if (r < 0)
        return det_error_set(
            reterr, r, "queue %s refuses %s: %s", put.queue, put.id ? put.id : "NULL",
            det_error_text(r));
    if (ret_is_new)
        *ret_is_new = place.is_new;
    det_durable_wake(durable);
    return 0;
}
