/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_attempt.c - what was claimed is done as a task, under a claim that is renewed.
 *
 *     claimed --> added --> running --renewed every third of the lease--> removed --> ended
 *                    \         |                                             |
 *                 refused      +-- lost, or about to lapse: cancelled -------+--> not ended: it is
 *                 later                                                           another one's
 *
 * The claim counts from before it was asked for, so it ends for us before it does for the store. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "os/os.h"
#include "task/durable.h"
#include "task/registry.h"

#define UNKNOWN_AGAIN    DET_MINUTE /* a work that is not known may be known to the next version */
#define PROCESS_BODY_MAX ((size_t)64 << 10)
/* Waits do not count sleep: so it is looked at this often whether the machine slept. */
#define LOOK_EVERY DET_SECOND

/* Counts while the machine sleeps, as the clock of a store elsewhere does. */
static det_time boot(const struct det_durable *durable)
{
    return det_world_now(durable->world, DET_CLOCK_BOOT);
}

/* What may be otherwise in a moment. */
static bool is_passing(int r)
{
    return r == DET_ERR_IO || r == DET_ERR_TIMEOUT || r == DET_ERR_BUSY || r == DET_ERR_NO_MEMORY;
}

static bool is_lost(struct det_store *store)
{
    return store->ops->is_lost && store->ops->is_lost(store);
}

/* Ends the claim. While it is not known whether the store has heard it, it is said again, as long
 * as the claim lasts and nobody waits for us; behind that the row is done again. */
static void end_claim(
    struct durable_runner *runner, enum det_job_state state, det_time again_after,
    const char *reason)
{
    struct det_durable *durable = runner->durable;
    struct det_store *store = durable->options.store;
    struct det_job_end end = { runner->key, runner->job.attempt, state, 0, reason };
    bool is_last;

    if (again_after)
        end.run_at = store->ops->now(store) + again_after;
    do {
        is_last = det_durable_is_stopping(durable);
        if (!is_passing(durable->ops->end(store, &end)) || is_lost(store))
            return;
        if (!is_last)
            det_durable_wait(durable, NULL, durable->options.lease / 12);
    } while (!is_last && boot(durable) < runner->lease_end);
}

/* The environment of a process: its own, and three of ours. */
struct environment {
    char *texts[3];
    const char **all;
    size_t count;
};

static void environment_close(struct det_durable *durable, struct environment *environment)
{
    for (int i = 0; i < 3; i++)
        det_free_string(durable->allocator, environment->texts[i]);
    if (environment->all)
        DET_DELETE_ARRAY(durable->allocator, environment->all, environment->count);
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
    const struct durable_runner *runner, const char *const *own, struct environment *ret)
{
    struct det_durable *durable = runner->durable;
    size_t count = 0;

    while (own[count])
        count++;
    *ret = (struct environment){ .count = count + 4 };
    ret->texts[0] = variable(durable, "DETENT_JOB", runner->job.id, 0);
    ret->texts[1] = variable(durable, "DETENT_JOB_ATTEMPT", NULL, runner->job.attempt);
    ret->texts[2] = variable(durable, "DETENT_JOB_BODY", runner->job.body, 0);
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

static int add_spec(
    struct durable_runner *runner, const struct det_task_spec *spec, struct det_waiter **ret,
    struct det_error *reterr)
{
    struct det_durable *durable = runner->durable;
    det_task_id id;
    int r;

    r = det_tasks_add(durable->options.tasks, spec, ret, &id, reterr);
    if (r < 0)
        return r;
    det_mutex_lock(durable->world, durable->mutex);
    runner->task = id;
    det_mutex_unlock(durable->world, durable->mutex);
    return 0;
}

static int add_process(
    struct durable_runner *runner, struct det_task_spec *spec, struct det_waiter **ret,
    struct det_error *reterr)
{
    struct det_process_spec process = *spec->process;
    struct environment environment;
    int r;

    if (runner->job.size > PROCESS_BODY_MAX || memchr(runner->job.body, 0, runner->job.size))
        return det_error_set(
            reterr, DET_ERR_REFUSED, "its body is not for a process: a 0 in it, or too long");
    r = environment_open(runner, process.environment, &environment);
    if (r < 0)
        return det_error_set(reterr, r, "no memory left");
    process.environment = environment.all;
    spec->process = &process;
    r = add_spec(runner, spec, ret, reterr);
    environment_close(runner->durable, &environment);
    return r;
}

void det_durable_task_name(const char *work, uint64_t key, char *target)
{
    (void)snprintf(target, DET_TASK_NAME_MAX + 1, "%s#%llu", work, (unsigned long long)key);
}

static int add_task(
    struct durable_runner *runner, const struct det_durable_work *work, struct det_waiter **ret,
    struct det_error *reterr)
{
    struct det_task_spec spec = *work->spec;
    char name[DET_TASK_NAME_MAX + 1];
    void *handle = NULL;
    int r;

    det_durable_task_name(work->name, runner->key, name);
    spec.name = name;
    spec.argument = &runner->job;
    spec.release = NULL;
    r = work->prepare ? work->prepare(work->user, &runner->job, &spec, &handle, reterr) : 0;
    if (r < 0)
        return DET_ERR_REFUSED;
    r = spec.process ? add_process(runner, &spec, ret, reterr)
                     : add_spec(runner, &spec, ret, reterr);
    if (work->prepare)
        work->finish(work->user, handle);
    return r;
}

/* Renews the claim; false: it is lost, or might be before the task has stopped. */
static bool renew(struct durable_runner *runner, det_time *ret_again)
{
    struct det_durable *durable = runner->durable;
    det_time lease = durable->options.lease, before = boot(durable);
    int r;

    r = durable->ops->renew(durable->options.store, runner->key, runner->job.attempt, lease);
    if (r == 0)
        runner->lease_end = before + lease;
    *ret_again = boot(durable) + (r == 0 ? lease / 3 : lease / 12);
    return r != DET_ERR_LOCK_LOST && *ret_again < runner->lease_end - lease / 4;
}

/* Renews it when that is due, and does not ask for what has gone already. */
static bool keep(struct durable_runner *runner, det_time *again)
{
    det_time now = boot(runner->durable);

    if (now >= runner->lease_end - runner->durable->options.lease / 4)
        return false;
    return now < *again || renew(runner, again);
}

/* The monotonic time of the next look. */
static det_time next_look(const struct det_durable *durable, det_time again)
{
    det_time span = again - boot(durable);

    return det_world_now(durable->world, DET_CLOCK_MONOTONIC) +
           (span < LOOK_EVERY ? span : LOOK_EVERY);
}

/* Watches the task until it is removed. Whether the claim was kept all the time. */
static bool watch(
    struct durable_runner *runner, struct det_waiter *waiter, struct det_task_end *ret)
{
    struct det_durable *durable = runner->durable;
    det_time again = runner->lease_end - durable->options.lease * 2 / 3;
    bool is_kept = true;

    while (det_waiter_wait(waiter, is_kept ? next_look(durable, again) : DET_NEVER, ret) < 0) {
        is_kept = is_kept && keep(runner, &again);
        if (!is_kept)
            (void)!det_tasks_remove(durable->options.tasks, runner->task);
    }
    return is_kept;
}

static int ask_open(struct det_tasks *tasks, void *argument)
{
    (void)argument;
    return det_tasks_is_open(tasks) ? 1 : 0;
}

/* Who cancelled it: somebody who wants it gone, or the end of this process. */
static bool is_closing(struct det_durable *durable)
{
    return det_durable_is_stopping(durable) ||
           det_tasks_call(durable->options.tasks, true, ask_open, NULL) != 1;
}

static void end_as(struct durable_runner *runner, const struct det_task_end *end)
{
    switch (end->outcome) {
    case DET_OUTCOME_COMPLETED:
        end_claim(runner, DET_JOB_DONE, 0, NULL);
        return;
    case DET_OUTCOME_CANCELLED:
    case DET_OUTCOME_FORCE_ABORTED:
    case DET_OUTCOME_REJECTED:
        if (is_closing(runner->durable))
            end_claim(runner, DET_JOB_DELAYED, 0, "stopped with the process");
        else
            end_claim(runner, DET_JOB_FAILED, 0, end->reason[0] ? end->reason : "cancelled");
        return;
    case DET_OUTCOME_NONE:
    case DET_OUTCOME_FAILED:
    case DET_OUTCOME_FATAL:
    case DET_OUTCOME_COUNT:
        break;
    }
    end_claim(runner, DET_JOB_FAILED, 0, end->reason);
}

static void run_work(struct durable_runner *runner, const struct det_durable_work *work)
{
    struct det_durable *durable = runner->durable;
    struct det_waiter *waiter = NULL;
    struct det_task_end end;
    struct det_error error = { 0 };
    bool is_kept;
    int r;

    r = add_task(runner, work, &waiter, &error);
    if (r == DET_ERR_INVALID || r == DET_ERR_REFUSED) {
        end_claim(runner, DET_JOB_FAILED, 0, error.text);
        return;
    }
    if (r < 0) {
        end_claim(
            runner, DET_JOB_DELAYED, r == DET_ERR_CLOSED ? 0 : durable->options.lease, error.text);
        /* They never open again. */
        if (r == DET_ERR_CLOSED)
            det_durable_stop(durable);
        return;
    }
    is_kept = watch(runner, waiter, &end);
    det_waiter_close(waiter);
    det_mutex_lock(durable->world, durable->mutex);
    runner->task = 0;
    det_mutex_unlock(durable->world, durable->mutex);
    if (is_kept || end.outcome == DET_OUTCOME_COMPLETED)
        end_as(runner, &end);
}

static const struct det_durable_work *find_work(const struct durable_runner *runner)
{
    const struct det_durable_options *options = &runner->durable->options;

    for (size_t i = 0; i < options->work_count; i++) {
        if (strcmp(options->works[i].name, runner->work) == 0)
            return &options->works[i];
    }
    return NULL;
}

void det_durable_attempt(struct durable_runner *runner, det_time begun)
{
    const struct det_durable_options *options = &runner->durable->options;
    const struct det_durable_work *work = find_work(runner);

    runner->lease_end = begun + options->lease;
    if (runner->lost >= options->attempts_max)
        end_claim(runner, DET_JOB_FAILED, 0, "it was begun too often and has never ended");
    else if (!work)
        end_claim(runner, DET_JOB_DELAYED, UNKNOWN_AGAIN, "there is no such work here");
    else
        run_work(runner, work);
}
