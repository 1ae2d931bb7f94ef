/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_start.c - makes tasks of claimed jobs, and the thread that watches the leases of running
 * ones. It never calls the store, so it abandons a claim in time even if the store is unreachable.
 *
 *     claimed: each is prepared --> all are added in one call of the loop --> running
 *
 * The keeper itself starts functions without `prepare` if the loop sleeps: a claim of one job then
 * costs no thread switch. The starter handles the rest: processes, works with `prepare`, and jobs
 * claimed while the loop is awake.
 *
 *     running: a quarter of the lease before the claim can lapse its task is asked to stop */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "os/os.h"
#include "task/durable.h"

#define UNKNOWN_AGAIN    DET_MINUTE /* an unknown work may be known to the next version */
#define PROCESS_BODY_MAX ((size_t)64 << 10)
/* Waits do not count machine sleep, so it is checked at this interval. */
#define CHECK_EVERY DET_SECOND
#define NOT_IN_TIME "not begun in time"
/* Maximum number of tasks added in one call of the loop. */
#define STARTS_MAX 64

/* The environment of a process: its own, and three variables of the queue. */
struct environment {
    char *texts[3];
    const char **all;
    size_t count;
};

/* A task under construction. */
struct durable_start {
    struct det_durable *durable;
    struct durable_attempt *attempt; /* may be freed once its task is added */
    const struct det_durable_work *work;
    bool is_prepared;
    struct det_task_spec spec;
    struct det_process_spec process;
    struct environment environment;
    void *handle;
    char name[DET_TASK_NAME_MAX + 1];
    struct det_error error;
    int r;
};

struct starts {
    struct durable_start *all;
    size_t count;
};

struct removals {
    det_task_id tasks[STARTS_MAX];
    size_t count;
};

static void environment_close(struct det_durable *durable, struct environment *environment)
{
    for (int i = 0; i < 3; i++)
        det_free_string(durable->allocator, environment->texts[i]);
    if (environment->all)
        DET_DELETE_ARRAY(durable->allocator, environment->all, environment->count);
    *environment = (struct environment){ 0 };
}

static char *variable(
    const struct det_durable *durable, const char *name, const char *value, uint32_t number)
{
    struct det_buffer text;
    char *copy;

    det_buffer_init(&text, durable->allocator);
    if (value)
        det_buffer_format(&text, "%s=%s", name, value);
    else
        det_buffer_format(&text, "%s=%u", name, number);
    copy = det_buffer_status(&text) < 0
               ? NULL
               : det_string_copy(durable->allocator, det_buffer_text(&text));
    det_buffer_deinit(&text);
    return copy;
}

static int environment_open(
    const struct durable_attempt *attempt, const char *const *own, struct environment *ret)
{
    struct det_durable *durable = attempt->durable;
    size_t count = 0;

    while (own[count])
        count++;
    *ret = (struct environment){ .count = count + 4 };
    ret->texts[0] = variable(durable, "DETENT_JOB", attempt->job.id, 0);
    ret->texts[1] = variable(durable, "DETENT_JOB_ATTEMPT", NULL, attempt->job.attempt);
    ret->texts[2] = variable(durable, "DETENT_JOB_BODY", attempt->job.body, 0);
    ret->all = DET_NEW_ARRAY(durable->allocator, ret->count, const char *);
    if (!ret->texts[0] || !ret->texts[1] || !ret->texts[2] || !ret->all) {
        environment_close(durable, ret);
        return DET_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        ret->all[i] = own[i];
    for (size_t i = 0; i < 3; i++)
        ret->all[count + i] = ret->texts[i];
    return 0;
}

static int prepare_process(struct durable_start *start)
{
    const struct det_durable_job *job = &start->attempt->job;
    int r;

    start->process = *start->spec.process;
    if (job->size > PROCESS_BODY_MAX || memchr(job->body, 0, job->size))
        return det_error_set(
            &start->error, DET_ERR_REFUSED,
            "its body cannot be passed to a process: it has a NUL byte or is too long");
    r = environment_open(start->attempt, start->process.environment, &start->environment);
    if (r < 0)
        return det_error_set(&start->error, r, "out of memory");
    start->process.environment = start->environment.all;
    start->spec.process = &start->process;
    return 0;
}

/* Without the mutex. */
static int prepare_start(struct durable_start *start)
{
    const struct det_durable_work *work = start->work;
    int r;

    start->spec = *work->spec;
    det_durable_task_name(work->name, start->attempt->key, start->name);
    start->spec.name = start->name;
    start->spec.argument = &start->attempt->job;
    start->spec.release = NULL;
    r = work->prepare
            ? work->prepare(
                  work->user, &start->attempt->job, &start->spec, &start->handle, &start->error)
            : 0;
    if (r < 0)
        return DET_ERR_REFUSED;
    start->is_prepared = true;
    return start->spec.process ? prepare_process(start) : 0;
}

static void finish_start(struct durable_start *start)
{
    const struct det_durable_work *work = start->work;

    environment_close(start->durable, &start->environment);
    if (work->prepare && start->is_prepared)
        work->finish(work->user, start->handle);
}

/* The loop may not have been turned for a long time. */
static bool is_late(struct durable_attempt *attempt)
{
    struct det_durable *durable = attempt->durable;
    bool is_late;

    det_mutex_lock(durable->world, durable->mutex);
    is_late = attempt->is_lost ||
              durable_boot(durable) >= attempt->lease_end - durable->options.lease / 4;
    det_mutex_unlock(durable->world, durable->mutex);
    return is_late;
}

/* On the loop. A task may have ended when this returns. */
static int add_all(struct det_tasks *tasks, void *argument)
{
    struct starts *starts = argument;

    for (size_t i = 0; i < starts->count; i++) {
        struct durable_start *start = &starts->all[i];
        struct durable_attempt *attempt = start->attempt;
        struct det_durable *durable = start->durable;
        det_task_id id;

        if (start->r == 0 && is_late(attempt))
            start->r = det_error_set(&start->error, DET_ERR_TIMEOUT, NOT_IN_TIME);
        if (start->r < 0)
            continue;
        start->r = det_tasks_add(tasks, &start->spec, &attempt->waiter, &id, &start->error);
        if (start->r < 0)
            continue;
        det_mutex_lock(durable->world, durable->mutex);
        attempt->task = id;
        det_durable_attempt_set_stage(attempt, DURABLE_RUNNING);
        det_mutex_unlock(durable->world, durable->mutex);
        det_waiter_set_notify(attempt->waiter, det_durable_attempt_reported, attempt);
    }
    return 0;
}

/* Ends an attempt that did not become a task; under the mutex. */
static void end_start(struct durable_start *start)
{
    int r = start->r;

    if (r == DET_ERR_INVALID || r == DET_ERR_REFUSED)
        det_durable_attempt_end(start->attempt, DET_JOB_FAILED, 0, start->error.text);
    else
        det_durable_attempt_give_back(
            start->attempt,
            r == DET_ERR_CLOSED || r == DET_ERR_TIMEOUT ? 0 : start->durable->options.lease,
            start->error.text);
}

/* `r` is the result of adding the tasks. */
static void end_starts(struct det_durable *durable, struct starts *starts, int r)
{
    bool is_closed = false;

    /* The attempts of added tasks may be freed from here on. */
    for (size_t i = 0; i < starts->count; i++) {
        struct durable_start *start = &starts->all[i];

        if (r < 0 && start->r == 0)
            start->r = det_error_set(&start->error, r, "%s", det_error_text(r));
        is_closed = is_closed || start->r == DET_ERR_CLOSED;
        finish_start(start);
    }
    /* Closed tasks never open again. */
    if (is_closed)
        det_durable_stop(durable);
    det_mutex_lock(durable->world, durable->mutex);
    for (size_t i = 0; i < starts->count; i++) {
        if (starts->all[i].r < 0)
            end_start(&starts->all[i]);
    }
    det_mutex_unlock(durable->world, durable->mutex);
}

static void prepare_all(struct starts *starts)
{
    for (size_t i = 0; i < starts->count; i++)
        starts->all[i].r = prepare_start(&starts->all[i]);
}

static void start_all(struct det_durable *durable, struct starts *starts)
{
    int r;

    prepare_all(starts);
    r = det_tasks_call(durable->options.tasks, true, add_all, starts);
    end_starts(durable, starts, r);
}

/* Adds the tasks if the loop is available without a wait; false: nothing was started. */
static bool start_all_at_once(struct det_durable *durable, struct starts *starts)
{
    int r;

    prepare_all(starts);
    if (!det_tasks_try(durable->options.tasks, add_all, starts, &r))
        return false;
    end_starts(durable, starts, r);
    return true;
}

/* Ends an attempt that must not start; under the mutex. True if it was ended here. */
static bool end_early(struct durable_attempt *attempt)
{
    const struct det_durable_options *options = &attempt->durable->options;

    if (attempt->durable->is_stopping)
        det_durable_attempt_give_back(attempt, 0, "stopped with the process");
    else if (attempt->lost >= options->attempts_max)
        det_durable_attempt_end(
            attempt, DET_JOB_FAILED, 0, "too many of its attempts were lost before they ended");
    else if (!attempt->work)
        det_durable_attempt_give_back(
            attempt, UNKNOWN_AGAIN, "this process has no work of that name");
    else if (durable_boot(attempt->durable) >= attempt->lease_end - options->lease / 4)
        det_durable_attempt_give_back(attempt, 0, NOT_IN_TIME);
    else
        return false;
    return true;
}

/* Under the mutex. */
static void take_claimed(struct det_durable *durable, struct starts *starts)
{
    struct det_list *claimed = &durable->attempts[DURABLE_CLAIMED];

    starts->count = 0;
    while (!det_list_is_empty(claimed) && starts->count < STARTS_MAX) {
        struct durable_attempt *attempt = durable_attempt_at(claimed->next);

        if (end_early(attempt))
            continue;
        det_durable_attempt_set_stage(attempt, DURABLE_STARTING);
        starts->all[starts->count++] =
            (struct durable_start){ .durable = durable, .attempt = attempt, .work = attempt->work };
    }
}

static int remove_all(struct det_tasks *tasks, void *argument)
{
    const struct removals *removals = argument;

    for (size_t i = 0; i < removals->count; i++)
        (void)!det_tasks_remove(tasks, removals->tasks[i]);
    return 0;
}

/* Finds attempts whose claim is lost, or might lapse before their task has stopped; all while
 * closing. Under the mutex. Returns the span until there may be others. */
static det_time find_removals(struct det_durable *durable, struct removals *ret)
{
    det_time margin = durable->options.lease / 4, left = CHECK_EVERY;
    det_time now = durable_boot(durable);

    ret->count = 0;
    DET_LIST_EACH(node, &durable->attempts[DURABLE_RUNNING])
    {
        struct durable_attempt *attempt = durable_attempt_at(node);
        det_time until = attempt->lease_end - margin - now;

        attempt->is_lost = attempt->is_lost || until <= 0;
        if (attempt->is_removed || ret->count == STARTS_MAX)
            continue;
        attempt->is_removed = attempt->is_lost || durable->is_closing;
        if (attempt->is_removed)
            ret->tasks[ret->count++] = attempt->task;
        else if (until < left)
            left = until;
    }
    return left;
}

/* The monotonic time of the next check. Under the mutex, which is released meanwhile. */
static det_time watch_leases(struct det_durable *durable)
{
    struct removals removals;
    det_time left;

    for (;;) {
        left = find_removals(durable, &removals);
        if (!removals.count)
            return det_world_now(durable->world, DET_CLOCK_MONOTONIC) + left;
        det_mutex_unlock(durable->world, durable->mutex);
        (void)!det_tasks_call(durable->options.tasks, true, remove_all, &removals);
        det_mutex_lock(durable->world, durable->mutex);
    }
}

/* Waits until there is a job to start or to abandon, or no more work will come. While the keeper
 * starts one job after the other, this thread sleeps and checks occasionally. */
static void wait_for_claims(struct det_durable *durable, det_time until)
{
    bool has_any = durable->counts[DURABLE_RUNNING] || durable->has_started;

    if (durable->counts[DURABLE_CLAIMED] || durable->has_kept)
        return;
    durable->has_started = false;
    durable->check_at = has_any ? until : DET_NEVER;
    (void)det_condition_wait(
        durable->world, durable->for_starter, durable->mutex, durable->check_at);
    durable->check_at = 0;
}

/* The starter must not sleep past the time at which the first of these claims is abandoned. */
static void wake_before(struct det_durable *durable, det_time lease_end)
{
    det_time left = lease_end - durable->options.lease / 4 - durable_boot(durable);

    durable->has_started = true;
    if (det_world_now(durable->world, DET_CLOCK_MONOTONIC) + left < durable->check_at)
        det_condition_signal(durable->world, durable->for_starter);
}

static det_time first_lease_end(const struct starts *starts)
{
    det_time first = DET_NEVER;

    for (size_t i = 0; i < starts->count; i++) {
        if (starts->all[i].attempt->lease_end < first)
            first = starts->all[i].attempt->lease_end;
    }
    return first;
}

/* Returns them to the claimed jobs, in their order. */
static void take_back(struct starts *starts)
{
    for (size_t i = 0; i < starts->count; i++)
        det_durable_attempt_set_stage(starts->all[i].attempt, DURABLE_CLAIMED);
}

void det_durable_start_claimed(struct det_durable *durable)
{
    struct starts starts = { durable->own_starts, 0 };
    bool is_started = durable->own_starts != NULL;
    det_time lease_end;

    while (is_started && durable->counts[DURABLE_CLAIMED]) {
        take_claimed(durable, &starts);
        if (!starts.count)
            return;
        lease_end = first_lease_end(&starts);
        det_mutex_unlock(durable->world, durable->mutex);
        is_started = start_all_at_once(durable, &starts);
        det_mutex_lock(durable->world, durable->mutex);
        if (is_started)
            wake_before(durable, lease_end);
        else
            take_back(&starts);
    }
    if (durable->counts[DURABLE_CLAIMED])
        det_condition_signal(durable->world, durable->for_starter);
}

static void run_starter(void *argument)
{
    struct det_durable *durable = argument;
    struct starts starts = { durable->starts, 0 };

    det_mutex_lock(durable->world, durable->mutex);
    while (!durable->has_kept) {
        wait_for_claims(durable, watch_leases(durable));
        take_claimed(durable, &starts);
        if (!starts.count)
            continue;
        det_mutex_unlock(durable->world, durable->mutex);
        start_all(durable, &starts);
        det_mutex_lock(durable->world, durable->mutex);
    }
    det_durable_leave(durable);
    det_mutex_unlock(durable->world, durable->mutex);
}

/* True if all works are functions whose start runs no user code. */
static bool is_simple(const struct det_durable_options *options)
{
    for (size_t i = 0; i < options->work_count; i++) {
        if (!options->works[i].spec->function || options->works[i].prepare)
            return false;
    }
    return true;
}

int det_durable_starter_open(struct det_durable *durable)
{
    durable->starts = DET_NEW_ARRAY(durable->allocator, STARTS_MAX, struct durable_start);
    if (!durable->starts)
        return DET_ERR_NO_MEMORY;
    if (is_simple(&durable->options)) {
        durable->own_starts = DET_NEW_ARRAY(durable->allocator, STARTS_MAX, struct durable_start);
        if (!durable->own_starts)
            return DET_ERR_NO_MEMORY;
    }
    return det_durable_thread(durable, run_starter, &durable->starter);
}

void det_durable_starter_close(struct det_durable *durable)
{
    if (durable->starter)
        det_thread_join(durable->world, durable->starter);
    if (durable->starts)
        DET_DELETE_ARRAY(durable->allocator, durable->starts, STARTS_MAX);
    if (durable->own_starts)
        DET_DELETE_ARRAY(durable->allocator, durable->own_starts, STARTS_MAX);
}
