/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run.c - one call of user code on a thread pool: its arguments, its results, and its deadlines:
 *
 *     timeout       it is cancelled
 *     2 timeouts    it is reported as stuck
 *     3 timeouts    it is abandoned: its thread is replaced, and its result is ignored */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"

static struct det_run *run_of(struct det_worker_context *context)
{
    return DET_CONTAINER(context, struct det_run, context);
}

/* Functions for user code, on its thread. */

static bool is_cancelled(struct det_worker_context *context)
{
    return atomic_load_explicit(&run_of(context)->job.is_cancelled, memory_order_acquire);
}

static struct det_worker_threads *pool_of(const struct det_run *run)
{
    return run->kind == DET_RUN_COLLECT ? run->workers->collectors : run->workers->actors;
}

static int wait_until(struct det_worker_context *context, det_time deadline)
{
    struct det_run *run = run_of(context);

    return det_worker_threads_wait(pool_of(run), &run->job, deadline);
}

DET_PRINTF(2, 0) static void log_text(struct det_run *run, const char *format, va_list list)
{
    char text[2 * DET_WORKER_REASON_MAX];

    vsnprintf(text, sizeof text, format, list);
    det_text_copy(run->text, sizeof run->text, text);
}

DET_PRINTF(2, 3) static void explain(struct det_worker_context *context, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    log_text(run_of(context), format, list);
    va_end(list);
}

DET_PRINTF(2, 3) static void panic(struct det_worker_context *context, const char *format, ...)
{
    struct det_run *run = run_of(context);
    va_list list;

    va_start(list, format);
    log_text(run, format, list);
    va_end(list);
    longjmp(run->panic, 1);
}

static struct det_run_metric *metric(
    struct det_worker_context *context, const char *name, bool is_gauge)
{
    struct det_run *run = run_of(context);
    struct det_run_metric *metric;

    if (!run->metrics)
        run->metrics =
            DET_NEW_ARRAY(run->workers->allocator, DET_RUN_METRICS_MAX, struct det_run_metric);
    if (!run->metrics)
        return NULL;
    for (uint32_t i = 0; i < run->metric_count; i++)
        if (!strcmp(run->metrics[i].name, name))
            return &run->metrics[i];
    if (run->metric_count == DET_RUN_METRICS_MAX || !*name || strlen(name) > DET_WORKER_NAME_MAX ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return NULL;
    metric = &run->metrics[run->metric_count++];
    det_text_copy(metric->name, sizeof metric->name, name);
    metric->is_gauge = is_gauge;
    return metric;
}

static void count(struct det_worker_context *context, const char *name, uint64_t more)
{
    struct det_run_metric *counted = metric(context, name, false);

    if (counted)
        counted->count += more;
}

static void gauge(struct det_worker_context *context, const char *name, double value)
{
    struct det_run_metric *measured = metric(context, name, true);

    if (measured)
        measured->value = value;
}

static void lock(struct det_worker_context *context)
{
    struct det_run *run = run_of(context);

    det_mutex_lock(context->world, run->incarnation->mutex);
    run->has_lock = true;
}

static void unlock(struct det_worker_context *context)
{
    struct det_run *run = run_of(context);

    det_assert(run->has_lock);
    run->has_lock = false;
    det_mutex_unlock(context->world, run->incarnation->mutex);
}

/* Only open() provides things, before any descendant can use them. */
static void provide(struct det_worker_context *context, const char *name, void *thing)
{
    struct det_run *run = run_of(context);
    struct det_offer *offer;

    if (run->kind != DET_RUN_OPEN)
        return;
    offer = DET_NEW(run->workers->allocator, struct det_offer);
    if (!offer)
        return;
    det_text_copy(offer->name, sizeof offer->name, name);
    offer->thing = thing;
    det_list_append(&run->incarnation->provided, &offer->node);
}

static void *offered(struct det_incarnation *incarnation, const char *name)
{
    for (struct det_list *node = incarnation->provided.next; node != &incarnation->provided;
         node = node->next) {
        struct det_offer *offer = DET_CONTAINER(node, struct det_offer, node);

        if (!strcmp(offer->name, name))
            return offer->thing;
    }
    return NULL;
}

static void *inherited(struct det_worker_context *context, const char *name)
{
    const struct det_run *run = run_of(context);
    void *thing = NULL;

    for (struct det_incarnation *incarnation = run->incarnation->parent; incarnation && !thing;
         incarnation = incarnation->parent)
        thing = offered(incarnation, name);
    for (size_t i = 0; i < run->workers->provided_count && !thing; i++)
        if (!strcmp(run->workers->provided[i].name, name))
            thing = run->workers->provided[i].thing;
    return thing;
}

static int read_other(
    struct det_worker_context *context, const char *id, const struct det_record *record, void *ret)
{
    struct det_worker_status *status = DET_NEW(context->allocator, struct det_worker_status);
    int r;

    if (!status)
        return DET_ERR_NO_MEMORY;
    r = det_workers_get(run_of(context)->workers, id, record, status, ret, NULL);
    if (r == 0 && status->freshness == DET_FRESHNESS_NEVER)
        r = DET_ERR_NOT_FOUND;
    DET_DELETE(context->allocator, status);
    return r;
}

static const struct det_worker_calls calls = {
    .is_cancelled = is_cancelled,
    .wait = wait_until,
    .explain = explain,
    .panic = panic,
    .count = count,
    .gauge = gauge,
    .lock = lock,
    .unlock = unlock,
    .provide = provide,
    .inherited = inherited,
    .read = read_other,
};

static int call(struct det_run *run)
{
    const struct det_worker_kind *kind = run->incarnation->kind;
    void *deps = run->incarnation->deps;

    switch (run->kind) {
    case DET_RUN_OPEN:
        return kind->open(&run->context, deps);
    case DET_RUN_COLLECT:
        return kind->collect(&run->context, deps, run->desired, run->observed);
    case DET_RUN_ACTION:
        return kind->actions[run->action].run(&run->context, deps, run->desired);
    case DET_RUN_CLOSE:
        kind->close(deps);
        return 0;
    }
    return DET_ERR_INVALID;
}

/* A separate function: setjmp() may clobber none of the caller's variables. */
static int guard(struct det_run *run)
{
    if (setjmp(run->panic) == 0)
        return call(run);
    run->has_panicked = true;
    /* A panic must not keep the lock. */
    if (run->has_lock)
        unlock(&run->context);
    return DET_ERR_ACTION_FAILED;
}

static void run_it(void *argument)
{
    struct det_run *run = argument;
    struct det_world *world = run->workers->world;

    if (run->timeout != DET_NEVER)
        run->context.deadline =
            atomic_load_explicit(&run->job.started_at, memory_order_acquire) + run->timeout;
    if (run->kind != DET_RUN_CLOSE && is_cancelled(&run->context))
        run->code = DET_ERR_CANCELLED;
    else
        run->code = guard(run);
    run->ended_at = world->ops->now(world, DET_CLOCK_MONOTONIC);
}

/* On the loop. */

static void count_lost(struct det_run *run, bool is_lost)
{
    uint8_t *count = run->kind == DET_RUN_COLLECT  ? &run->incarnation->lost_collects
                     : run->kind == DET_RUN_ACTION ? &run->incarnation->lost_actions[run->action]
                                                   : NULL;

    det_assert(!count || (is_lost ? *count < UINT8_MAX : *count > 0));
    if (count)
        *count = (uint8_t)(is_lost ? *count + 1 : *count - 1);
}

static void come_late(struct det_run *run)
{
    struct det_workers *workers = run->workers;
    struct det_worker_event event = {
        .kind = DET_WORKER_EVENT_ACTION_LATE,
        .at = workers->now,
        .wall = workers->now + workers->wall_ahead,
        .identity = &run->incarnation->identity,
        .action =
            run->kind == DET_RUN_ACTION ? run->incarnation->kind->actions[run->action].name : NULL,
        .code = run->code,
    };

    if (workers->on_event)
        workers->on_event(workers->user, &event);
}

static void finish_open(struct det_run *run)
{
    struct det_worker *worker = run->worker;
    char text[DET_WORKER_REASON_MAX + 1];
    int code = run->code;

    det_assert(worker->observing.collect == run);
    det_text_copy(text, sizeof text, run->text);
    worker->observing.collect = NULL;
    det_run_free(run);
    det_life_opened(worker, code, text);
}

static void done(void *argument)
{
    struct det_run *run = argument;
    struct det_worker *worker = run->worker;

    det_assert(!worker || run->kind == DET_RUN_CLOSE || worker->incarnation == run->incarnation);
    det_assert(run->kind != DET_RUN_COLLECT || run->workers->outstanding.observing > 0);
    det_workers_now(run->workers);
    run->workers->outstanding.observing -= run->kind == DET_RUN_COLLECT;
    if (run->job.is_dropped)
        run->code = DET_ERR_CANCELLED;
    if (run->job.is_dropped && run->kind == DET_RUN_CLOSE)
        run->incarnation->kind->close(run->incarnation->deps);
    if (worker)
        det_metrics_take(worker, run);
    if (run->kind == DET_RUN_CLOSE || !worker) {
        if (run->kind == DET_RUN_OPEN && run->code >= 0)
            run->incarnation->is_open = true;
        if (!worker && run->job.is_late) {
            count_lost(run, false);
            come_late(run);
        }
        det_run_free(run);
        return;
    }
    if (run->kind == DET_RUN_OPEN)
        finish_open(run);
    else if (run->kind == DET_RUN_COLLECT)
        det_collect_done(worker, run);
    else
        det_act_done(worker, run);
}

static int make(
    struct det_incarnation *incarnation, enum det_run_kind kind, uint16_t action,
    struct det_run **ret)
{
    struct det_workers *workers = incarnation->workers;
    size_t head = det_aligned(sizeof(struct det_run)), desired = 0, observed = 0;
    struct det_run *run;

    if (kind == DET_RUN_COLLECT || kind == DET_RUN_ACTION)
        desired = det_aligned(det_record_size(incarnation->kind->desired));
    if (kind == DET_RUN_COLLECT)
        observed = det_aligned(det_record_size(incarnation->kind->observed));
    run = det_alloc_zero(workers->allocator, head + desired + observed);
    if (!run)
        return DET_ERR_NO_MEMORY;
    run->size = head + desired + observed;
    run->desired = (char *)run + head;
    run->observed = (char *)run + head + desired;
    run->workers = workers;
    run->incarnation = incarnation;
    run->kind = kind;
    run->action = action;
    det_incarnation_hold(incarnation);
    workers->outstanding.runs++;
    *ret = run;
    return 0;
}

int det_run_new(
    struct det_worker *worker, enum det_run_kind kind, uint16_t action, struct det_run **ret)
{
    int r;

    det_assert(worker->incarnation && kind != DET_RUN_CLOSE);
    det_assert(kind != DET_RUN_ACTION || action < worker->kind->action_count);
    r = make(worker->incarnation, kind, action, ret);
    if (r < 0)
        return r;
    (*ret)->worker = worker;
    return 0;
}

int det_run_new_close(struct det_incarnation *incarnation, struct det_run **ret)
{
    return make(incarnation, DET_RUN_CLOSE, 0, ret);
}

void det_run_free(struct det_run *run)
{
    struct det_workers *workers = run->workers;
    struct det_incarnation *incarnation = run->incarnation;

    det_assert(workers->outstanding.runs > 0);
    if (run->metrics)
        DET_DELETE_ARRAY(workers->allocator, run->metrics, DET_RUN_METRICS_MAX);
    det_free(workers->allocator, run, run->size);
    workers->outstanding.runs--;
    det_incarnation_drop(incarnation);
}

void det_run_start(struct det_run *run, det_time timeout)
{
    struct det_workers *workers = run->workers;

    det_assert(timeout > 0 && run->incarnation->holders > 0);
    det_assert(det_loop_is_mine(workers->loop));
    run->job = (struct det_worker_threads_job){ .run = run_it, .done = done, .argument = run };
    /* Three timeouts must not overflow. */
    run->timeout = timeout > DET_NEVER / 4 ? DET_NEVER : timeout;
    run->submitted_at = workers->now;
    run->lateness = 0;
    run->code = 0;
    run->has_panicked = false;
    run->has_lock = false;
    run->text[0] = '\0';
    run->metric_count = 0;
    run->context = (struct det_worker_context){
        .calls = &calls,
        .identity = &run->incarnation->identity,
        .world = workers->world,
        .allocator = workers->allocator,
        .user = workers->user,
        .deadline = DET_NEVER,
    };
    if (run->worker && run->timeout != DET_NEVER)
        det_worker_due(run->worker, workers->now + run->timeout);
    workers->outstanding.observing += run->kind == DET_RUN_COLLECT;
    det_workers_hold_threads(workers);
    det_worker_threads_submit(pool_of(run), &run->job);
}

void det_run_cancel(struct det_run *run)
{
    det_worker_threads_cancel(pool_of(run), &run->job);
}

bool det_run_abandon(struct det_run *run)
{
    struct det_worker_threads *pool = pool_of(run);

    det_assert(run->worker && run->kind != DET_RUN_CLOSE);
    if (det_worker_threads_withdraw(pool, &run->job)) {
        det_assert(run->kind != DET_RUN_COLLECT || run->workers->outstanding.observing > 0);
        run->workers->outstanding.observing -= run->kind == DET_RUN_COLLECT;
        det_run_free(run);
        return true;
    }
    if (det_worker_threads_abandon(pool, &run->job) < 0)
        return false;
    run->worker = NULL;
    count_lost(run, true);
    return true;
}

/* The name in reports; NULL: a collect. */
static const char *name_of(const struct det_run *run)
{
    switch (run->kind) {
    case DET_RUN_OPEN:
        return "open";
    case DET_RUN_CLOSE:
        return "close";
    case DET_RUN_ACTION:
        return run->incarnation->kind->actions[run->action].name;
    case DET_RUN_COLLECT:
        break;
    }
    return NULL;
}

static void report_late(struct det_run *run, enum det_worker_event_kind kind, uint64_t number)
{
    det_worker_publish(
        run->worker,
        (struct det_worker_event){ .kind = kind, .action = name_of(run), .number = number });
}

static bool quarantine(struct det_run *run)
{
    struct det_worker *worker = run->worker;
    bool is_action = run->kind != DET_RUN_COLLECT;
    struct det_worker_threads *pool = pool_of(run);
    const char *action = name_of(run);

    if (!det_run_abandon(run))
        return false;
    det_worker_publish(
        worker,
        (struct det_worker_event){ .kind = is_action ? DET_WORKER_EVENT_ACTION_QUARANTINED
                                                     : DET_WORKER_EVENT_COLLECTOR_QUARANTINED,
                                   .action = action,
                                   .number = det_worker_threads_hung(pool) });
    return true;
}

bool det_run_watch(struct det_run *run)
{
    struct det_worker *worker = run->worker;
    bool is_action = run->kind != DET_RUN_COLLECT;
    det_time now = run->workers->now, began = now, took;

    det_assert(worker && worker->incarnation == run->incarnation && run->lateness <= 2);
    if (run->timeout == DET_NEVER)
        return false;
    if (atomic_load_explicit(&run->job.is_started, memory_order_acquire))
        began = atomic_load_explicit(&run->job.started_at, memory_order_acquire);
    took = now - began;
    if (took >= run->timeout && run->lateness < 1) {
        run->lateness = 1;
        det_run_cancel(run);
        if (is_action)
            report_late(run, DET_WORKER_EVENT_ACTION_TIMEOUT, (uint64_t)(took / DET_MILLISECOND));
    }
    if (took >= 2 * run->timeout && run->lateness < 2) {
        run->lateness = 2;
        report_late(
            run, is_action ? DET_WORKER_EVENT_ACTION_STUCK : DET_WORKER_EVENT_COLLECTOR_STUCK,
            (uint64_t)(took / DET_MILLISECOND));
    }
    if (took >= 3 * run->timeout && quarantine(run))
        return true;
    det_worker_due(
        worker, run->lateness < 2
                    ? began + (run->lateness + 1) * run->timeout
                    : (took < 3 * run->timeout ? began + 3 * run->timeout : now + run->timeout));
    return false;
}
