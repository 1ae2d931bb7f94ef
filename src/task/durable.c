/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable.c - a queue in a store: opening, submitting, and the threads that claim from it.
 *
 *     runner:   claim --- none ---> wait for news, for the next time, or for the poll --+
 *                 ^  \                                                                  |
 *                 |   +-- one ----> attempt: task, renewals, end --+                    |
 *                 +------------------------------------------------+--------------------+
 *
 * Invariants
 *   1. A runner has at most one claim, and claims nothing before it has ended or lost that.
 *   2. Threads never hold the mutex while they call the store or the tasks, but to hold these.
 *   3. The tasks are held (det_tasks_run() goes on) from opening, and from each news, until a claim
 *      that began after it finds the queue empty: nothing queued, delayed or running anywhere.
 *      Schedules hold them until closing, as a task with a schedule does. */
#include "task/durable.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
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
/* A loop of the user's is turned so often while it is waited for. */
#define TURN_EVERY (5 * DET_MILLISECOND)

static det_time monotonic(const struct det_durable *durable)
{
    return det_world_now(durable->world, DET_CLOCK_MONOTONIC);
}

bool det_durable_is_stopping(struct det_durable *durable)
{
    bool is_stopping;

    det_mutex_lock(durable->world, durable->mutex);
    is_stopping = durable->is_stopping;
    det_mutex_unlock(durable->world, durable->mutex);
    return is_stopping;
}

/* How many threads are left. */
static uint32_t ask_to_stop(struct det_durable *durable)
{
    uint32_t running;

    det_mutex_lock(durable->world, durable->mutex);
    durable->is_stopping = true;
    running = durable->running;
    det_condition_broadcast(durable->world, durable->changed);
    det_mutex_unlock(durable->world, durable->mutex);
    return running;
}

void det_durable_stop(struct det_durable *durable)
{
    (void)ask_to_stop(durable);
}

uint64_t det_durable_news(struct det_durable *durable)
{
    uint64_t news;

    det_mutex_lock(durable->world, durable->mutex);
    news = durable->news;
    det_mutex_unlock(durable->world, durable->mutex);
    return news;
}

/* Under the mutex. A queue that only submits is not waited for. */
static void hold(struct det_durable *durable)
{
    if (durable->is_holding || (!durable->runner_count && !durable->options.schedule_count))
        return;
    durable->is_holding = true;
    det_tasks_keep(durable->options.tasks);
}

/* Unless there was news since. */
static void let_go(struct det_durable *durable, uint64_t seen)
{
    bool is_last;

    det_mutex_lock(durable->world, durable->mutex);
    is_last = durable->is_holding && durable->news == seen;
    if (is_last) {
        durable->is_holding = false;
        det_tasks_let_go(durable->options.tasks);
    }
    det_mutex_unlock(durable->world, durable->mutex);
    if (is_last)
        det_tasks_nudge(durable->options.tasks);
}

void det_durable_wake(struct det_durable *durable)
{
    det_mutex_lock(durable->world, durable->mutex);
    durable->news++;
    hold(durable);
    det_condition_broadcast(durable->world, durable->changed);
    det_mutex_unlock(durable->world, durable->mutex);
}

void det_durable_wait(struct det_durable *durable, const uint64_t *seen, det_time span)
{
    det_time deadline = monotonic(durable) + span;
    int r = 0;

    det_mutex_lock(durable->world, durable->mutex);
    while (r == 0 && (!seen || durable->news == *seen) && !durable->is_stopping)
        r = det_condition_wait(durable->world, durable->changed, durable->mutex, deadline);
    det_mutex_unlock(durable->world, durable->mutex);
}

/* Runners. */

static int keep_claimed(void *context, const struct det_job_row *row)
{
    struct durable_runner *runner = context;
    struct det_buffer *texts = &runner->texts;

    det_buffer_clear(texts);
    det_buffer_append(texts, row->task, strlen(row->task) + 1);
    runner->id_at = texts->size;
    det_buffer_append(texts, row->id, strlen(row->id) + 1);
    runner->body_at = texts->size;
    det_buffer_append(texts, row->body, row->body_size);
    det_buffer_append_char(texts, 0);
    if (det_buffer_status(texts) < 0)
        return det_buffer_status(texts);
    runner->key = row->key;
    runner->lost = row->lost;
    runner->work = texts->data;
    runner->job = (struct det_durable_job){
        .queue = runner->durable->options.queue,
        .id = texts->data + runner->id_at,
        .body = texts->data + runner->body_at,
        .size = row->body_size,
        .attempt = row->attempts,
    };
    return 0;
}

/* Until when there is nothing to do, as far as is known. What others put is not. */
static det_time span_until(const struct det_durable *durable, det_time next)
{
    struct det_store *store = durable->options.store;
    det_time span = next == DET_NEVER ? DET_NEVER : next - store->ops->now(store);

    if (span > durable->options.poll)
        span = durable->options.poll;
    return span > DET_MILLISECOND ? span : DET_MILLISECOND;
}

/* What has ended long ago. When it fails it is tried again the next time. */
static void forget_old(struct det_durable *durable)
{
    struct det_store *store = durable->options.store;
    det_time now = monotonic(durable);
    uint64_t count;
    bool is_time;

    det_mutex_lock(durable->world, durable->mutex);
    is_time = !durable->forgot_at || now - durable->forgot_at >= FORGET_EVERY;
    if (is_time)
        durable->forgot_at = now;
    det_mutex_unlock(durable->world, durable->mutex);
    if (is_time)
        (void)durable->ops->forget(store, store->ops->now(store) - durable->options.kept, &count);
}

static void run_once(struct durable_runner *runner)
{
    struct det_durable *durable = runner->durable;
    struct det_job_claim claim = { durable->options.queue, durable->options.width,
                                   durable->options.lease };
    uint64_t seen = det_durable_news(durable);
    det_time begun, next = DET_NEVER;
    int r;

    /* A queue that is never empty has most to forget. */
    forget_old(durable);
    begun = det_world_now(durable->world, DET_CLOCK_BOOT);
    r = durable->ops->claim(durable->options.store, &claim, keep_claimed, runner, &next);
    if (r == 0) {
        det_durable_attempt(runner, begun);
        det_durable_wake(durable);
        return;
    }
    if (r == DET_ERR_NOT_FOUND && next == DET_NEVER && !durable->options.schedule_count)
        let_go(durable, seen);
    det_durable_wait(
        durable, &seen, r == DET_ERR_NOT_FOUND ? span_until(durable, next) : durable->options.poll);
}

static void leave(struct det_durable *durable)
{
    det_mutex_lock(durable->world, durable->mutex);
    durable->running--;
    det_condition_broadcast(durable->world, durable->changed);
    det_mutex_unlock(durable->world, durable->mutex);
}

static void run_runner(void *argument)
{
    struct durable_runner *runner = argument;

    while (!det_durable_is_stopping(runner->durable))
        run_once(runner);
    leave(runner->durable);
}

static void run_scheduler(void *argument)
{
    struct det_durable *durable = argument;

    while (!det_durable_is_stopping(durable))
        det_durable_wait(durable, NULL, det_durable_schedules_run(durable));
    leave(durable);
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
    int r = 0;

    if (!options->store->ops->jobs)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "this kind of store keeps no submissions");
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

static int start(
    struct det_durable *durable, det_thread_fn *run, void *argument, struct det_thread **ret)
{
    int r;

    durable->running++;
    r = det_thread_start(durable->world, "det-durable", run, argument, ret);
    if (r < 0)
        durable->running--;
    return r;
}

static int open_parts(struct det_durable *durable)
{
    uint32_t count = durable->options.work_count ? durable->options.width : 0;
    int r;

    r = det_mutex_open(durable->world, &durable->mutex);
    if (r == 0)
        r = det_condition_open(durable->world, &durable->changed);
    if (r < 0)
        return r;
    durable->runners = DET_NEW_ARRAY(durable->allocator, count, struct durable_runner);
    if (!durable->runners)
        return DET_ERR_NO_MEMORY;
    durable->runner_count = count;
    /* A loop of the user may not have been turned: our threads must not take it for theirs. */
    det_loop_claim(durable->options.tasks->loop);
    for (uint32_t i = 0; i < count; i++) {
        durable->runners[i].durable = durable;
        det_buffer_init(&durable->runners[i].texts, durable->allocator);
    }
    det_mutex_lock(durable->world, durable->mutex);
    hold(durable);
    for (uint32_t i = 0; r == 0 && i < count; i++)
        r = start(durable, run_runner, &durable->runners[i], &durable->runners[i].thread);
    if (r == 0 && durable->options.schedule_count)
        r = start(durable, run_scheduler, durable, &durable->scheduler);
    det_mutex_unlock(durable->world, durable->mutex);
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
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "no memory for a durable queue");
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

static void cancel_tasks(struct det_durable *durable)
{
    for (uint32_t i = 0; i < durable->runner_count; i++) {
        det_task_id task;

        det_mutex_lock(durable->world, durable->mutex);
        task = durable->runners[i].task;
        det_mutex_unlock(durable->world, durable->mutex);
        if (task)
            (void)!det_tasks_remove(durable->options.tasks, task);
    }
}

/* The threads may wait for the loop, so if it is ours it must go on. */
static void wait_for_threads(struct det_durable *durable)
{
    struct det_loop *loop = durable->options.tasks->loop;
    int r = 0;

    while (ask_to_stop(durable) > 0) {
        cancel_tasks(durable);
        if (det_loop_is_mine(loop))
            r = det_loop_turn(loop, det_loop_now(loop) + TURN_EVERY);
        else
            r = det_world_sleep(durable->world, TURN_EVERY);
        /* Whatever it says, they are looked at again. */
        (void)r;
    }
}

void det_durable_close(struct det_durable *durable)
{
    if (!durable)
        return;
    if (durable->changed) {
        wait_for_threads(durable);
        let_go(durable, det_durable_news(durable));
    }
    for (uint32_t i = 0; i < durable->runner_count; i++) {
        if (durable->runners[i].thread)
            det_thread_join(durable->world, durable->runners[i].thread);
        det_buffer_deinit(&durable->runners[i].texts);
    }
    if (durable->scheduler)
        det_thread_join(durable->world, durable->scheduler);
    if (durable->runners)
        DET_DELETE_ARRAY(durable->allocator, durable->runners, durable->runner_count);
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
    int r;

    r = durable->ops->put(durable->options.store, &put, &place);
    if (r < 0)
        return det_error_set(
            reterr, r, "queue %s does not take %s: %s", put.queue, put.id ? put.id : "NULL",
            det_error_text(r));
    if (ret_is_new)
        *ret_is_new = place.is_new;
    det_durable_wake(durable);
    return 0;
}
