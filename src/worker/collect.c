/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* collect.c - observations: when the next one is due, what one changes, how old it may be.
 *
 *     age of the observation, from its begin
 *     0 ............ 10 s ............. 20 s ... +2 s ... +4 s ... +8 s
 *     fresh          stale: paused      restart  restart  restart  the worker stops
 *
 * A restart abandons the hanging run and starts another one. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"

static det_time every(const struct det_worker *worker)
{
    det_time own = worker->kind->observe_every;

    return own ? own : worker->workers->limits.observe_every;
}

void det_collect_soon(struct det_worker *worker)
{
    worker->observing.collect_at = worker->workers->now;
    worker->due = 0;
}

void det_collect_again(struct det_worker *worker)
{
    worker->observing.eager_sequence = worker->observing.collect_sequence + 1;
    det_collect_soon(worker);
}

/* Schedules the next observation, counted from the begin of the last, with a random spread. A
 * worker that waits at the gate is observed at once, but not again at once after a failure. */
static void schedule(struct det_worker *worker, det_time began, bool has_failed)
{
    det_time span = every(worker);

    worker->observing.collect_at = began + span - det_workers_chance(worker->workers, span / 10);
    if (worker->observing.eager_sequence ||
        (!has_failed && worker->observing.gate > worker->observing.sequence &&
         !worker->acting.running))
        worker->observing.collect_at = worker->workers->now;
    det_worker_due(worker, worker->observing.collect_at);
}

/* While this many observations are under way, periodic ones wait, but not until they get stale:
 * workers that start, act or have a new config go first. */
#define OBSERVING_MAX 65536

static bool may_wait(const struct det_worker *worker)
{
    const struct det_workers *workers = worker->workers;

    return workers->outstanding.observing >= OBSERVING_MAX && worker->observing.observed_at &&
           !worker->observing.eager_sequence &&
           worker->observing.gate <= worker->observing.sequence &&
           workers->now - worker->observing.observed_at < worker->observing.stale_after / 2;
}

static void put_off(struct det_worker *worker, det_time span)
{
    worker->observing.collect_at = worker->workers->now + span;
    det_worker_due(worker, worker->observing.collect_at);
}

static void begin(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    const struct det_record *desired = det_record_of(worker->kind->desired);
    det_time timeout = worker->kind->observe_timeout;
    struct det_run *run = worker->observing.spare;

    det_assert(worker->kind->collect && worker->desire.is_there && !worker->observing.collect);
    det_assert(det_life_is_live(worker) && worker->incarnation);
    det_assert(!run || (run->kind == DET_RUN_COLLECT && run->incarnation == worker->incarnation));
    if (worker->incarnation->lost_collects >= DET_LOST_MAX && !worker->observing.is_collector_new) {
        put_off(worker, every(worker));
        return;
    }
    if (may_wait(worker)) {
        put_off(worker, workers->limits.tick);
        return;
    }
    worker->observing.is_collector_new = false;
    worker->observing.spare = NULL;
    if (!run && det_run_new(worker, DET_RUN_COLLECT, 0, &run) < 0) {
        worker->observing.is_short = true;
        put_off(worker, every(worker));
        return;
    }
    if (desired)
        memcpy(run->desired, worker->desire.value, desired->size);
    memset(run->observed, 0, det_record_or_empty(worker->kind->observed)->size);
    run->sequence = ++worker->observing.collect_sequence;
    worker->observing.collect = run;
    det_run_start(run, timeout ? timeout : workers->limits.observe_timeout);
}

void det_collect_lost(struct det_worker *worker)
{
    det_assert(worker->observing.collect);
    worker->observing.collect = NULL;
    worker->observing.is_short = false;
    worker->observing.collect_at = worker->workers->now;
}

void det_collect_visit(struct det_worker *worker)
{
    if (worker->observing.collect && det_run_watch(worker->observing.collect))
        det_collect_lost(worker);
    if (worker->observing.collect || !worker->desire.is_there || !worker->kind->collect)
        return;
    if (worker->workers->now >= worker->observing.collect_at)
        begin(worker);
    else
        det_worker_due(worker, worker->observing.collect_at);
}

/* Powers of two only, so that a collect that fails for weeks does not fill the log. */
static bool is_worth_reporting(uint32_t failures)
{
    return (failures & (failures - 1)) == 0;
}

static void failed(struct det_worker *worker, const struct det_run *run)
{
    const char *text = run->text[0] ? run->text : det_error_text(run->code);
    /* A stopping worker has cancelled the observation itself. */
    bool is_failure = run->code != DET_ERR_CANCELLED || !worker->shutdown_wanted;

    det_text_copy(worker->observing.error, sizeof worker->observing.error, text);
    worker->observing.has_error = worker->observing.error[0] != '\0';
    worker->observing.failures++;
    worker->observing.is_short = run->code == DET_ERR_LIMIT || run->code == DET_ERR_NO_MEMORY;
    worker->workers->observations.failed += is_failure;
    if (run->has_panicked)
        det_panic_note(worker, DET_WORKER_EVENT_OBSERVE_PANIC, text, NULL);
    else if (is_failure && is_worth_reporting(worker->observing.failures))
        det_worker_publish(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_OBSERVE_FAILED,
                                               .code = run->code,
                                               .reason = text,
                                               .number = worker->observing.failures });
}

static void recovered(struct det_worker *worker)
{
    if (worker->counts.collector_restarts)
        det_worker_publish(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_COLLECTOR_RECOVERED,
                                               .number = worker->counts.collector_restarts });
    worker->counts.collector_restarts = 0;
    worker->observing.is_stale = false;
    det_worker_set_condition(worker, DET_CONDITION_STALE, false);
}

static void accept(struct det_worker *worker, const struct det_run *run)
{
    const struct det_record *record = det_record_or_empty(worker->kind->observed);
    bool is_first = !worker->observing.observed_at;

    worker->observing.observed_at =
        atomic_load_explicit(&run->job.started_at, memory_order_acquire);
    if (worker->observing.gate > worker->observing.sequence &&
        worker->observing.gate <= run->sequence)
        det_worker_publish(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_GATE_CLEARED });
    det_assert(run->sequence > worker->observing.sequence);
    det_assert(run->sequence <= worker->observing.collect_sequence);
    worker->observing.sequence = run->sequence;
    worker->counts.observations++;
    worker->workers->observations.all++;
    recovered(worker);
    if (run->code < 0 ||
        (!is_first && det_record_equal(record, worker->observing.value, run->observed)))
        return;
    memcpy(worker->observing.value, run->observed, record->size);
    worker->attention |= DET_CHECK_OBSERVED | DET_CHECK_CHILDREN;
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_OBSERVED_CHANGED });
}

/* An invalid record could not be written as a document. */
static int validate_observation(struct det_worker *worker, struct det_run *run)
{
    struct det_error error;

    if (run->code < 0)
        return run->code;
    run->code =
        det_record_validate(det_record_or_empty(worker->kind->observed), run->observed, &error);
    if (run->code < 0)
        det_text_copy(run->text, sizeof run->text, error.text);
    return run->code;
}

void det_collect_done(struct det_worker *worker, struct det_run *run)
{
    det_time began = atomic_load_explicit(&run->job.started_at, memory_order_acquire);
    bool was_waiting = !worker->observing.observed_at ||
                       worker->observing.sequence < worker->observing.gate ||
                       worker->observing.eager_sequence;

    det_assert(worker->observing.collect == run && run->kind == DET_RUN_COLLECT);
    worker->observing.collect = NULL;
    if (worker->observing.eager_sequence && run->sequence >= worker->observing.eager_sequence) {
        worker->observing.eager_sequence = 0;
        det_worker_hasten(worker);
    }
    if (validate_observation(worker, run) < 0)
        failed(worker, run);
    else {
        worker->observing.failures = 0;
        worker->observing.is_short = false;
        worker->observing.error[0] = '\0';
        worker->observing.has_error = false;
    }
    if (run->code >= 0 || (worker->kind->errors_are_observed && run->code != DET_ERR_CANCELLED))
        accept(worker, run);
    schedule(worker, began, run->code < 0);
    if (det_life_is_live(worker) && !run->metrics && !worker->observing.spare)
        worker->observing.spare = run;
    else
        det_run_free(run);
    if (was_waiting || !det_life_is_live(worker))
        det_worker_visit(worker);
}

/* Freshness. */

static void give_up(struct det_worker *worker)
{
    uint32_t attempts = worker->counts.collector_restarts;
    char text[DET_WORKER_REASON_MAX + 1];

    snprintf(
        text, sizeof text,
        "the collector is unresponsive after %u restart%s; the worker stays down until its config "
        "changes or it is restarted",
        attempts, det_plural(attempts));
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_COLLECTOR_GIVEN_UP,
                                           .reason = text,
                                           .number = attempts });
    det_worker_set_reason(worker, text);
    det_stop_rest(worker, text);
    det_circuit_failure(worker, text);
    det_stop_shutdown(worker, worker->workers->limits.stop_grace, text);
}

static void restart(struct det_worker *worker)
{
    det_assert(worker->counts.collector_restarts < worker->workers->limits.collector_restarts_max);
    worker->counts.collector_restarts++;
    worker->observing.collector_restarted_at = worker->workers->now;
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_COLLECTOR_RESTARTING,
                                           .number = worker->counts.collector_restarts });
    if (worker->observing.collect) {
        det_run_cancel(worker->observing.collect);
        if (det_run_abandon(worker->observing.collect))
            det_collect_lost(worker);
    }
    worker->observing.is_collector_new = true;
    det_collect_soon(worker);
}

/* True if the collect waits for a thread, or runs within its limit: all threads are in use, and a
 * restart would only lose its place in the queue. */
static bool is_running_now(const struct det_worker *worker)
{
    const struct det_run *run = worker->observing.collect;

    if (!run || run->submitted_at >= worker->workers->now)
        return false;
    return !atomic_load_explicit(&run->job.is_started, memory_order_acquire) ||
           worker->workers->now -
                   atomic_load_explicit(&run->job.started_at, memory_order_acquire) <=
               run->timeout;
}

/* Reported once for all workers. */
static void report_busy(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    if (workers->now < workers->busy_until)
        return;
    workers->busy_until = workers->now + 10 * DET_SECOND;
    det_worker_publish(
        worker,
        (struct det_worker_event){ .kind = DET_WORKER_EVENT_COLLECTORS_BUSY,
                                   .number = det_worker_threads_queued(workers->collectors) });
}

static void too_old(struct det_worker *worker, det_time age)
{
    struct det_workers *workers = worker->workers;
    uint32_t restarts = worker->counts.collector_restarts;
    det_time pause = restarts ? DET_SECOND << (restarts < 10 ? restarts : 10) : 0;

    if (worker->observing.is_short || is_running_now(worker) ||
        (restarts && workers->now - worker->observing.collector_restarted_at < pause))
        return;
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_DATA_TIMEOUT,
                                           .number = (uint64_t)(age / DET_MILLISECOND) });
    if (restarts >= workers->limits.collector_restarts_max)
        give_up(worker);
    else
        restart(worker);
}

static void pause_it(struct det_worker *worker, det_time age)
{
    char text[DET_WORKER_REASON_MAX + 1], span[DET_DURATION_TEXT];

    det_format_duration(age / (DET_SECOND / 10) * (DET_SECOND / 10), span, sizeof span);
    snprintf(
        text, sizeof text, "paused: nothing was observed for %s%s%.70s", span,
        worker->observing.error[0] ? ": " : "", worker->observing.error);
    det_worker_set_reason(worker, text);
    if (worker->observing.is_stale)
        return;
    worker->observing.is_stale = true;
    if (worker->observing.collect && is_running_now(worker))
        report_busy(worker);
    det_worker_set_condition(worker, DET_CONDITION_STALE, true);
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_STALE,
                                           .reason = text,
                                           .number = (uint64_t)(age / DET_MILLISECOND) });
}

bool det_collect_is_fresh(struct det_worker *worker)
{
    det_time since = worker->observing.observed_at ? worker->observing.observed_at
                                                   : worker->observing.live_since;
    det_time age = worker->workers->now - since;

    if (!worker->kind->collect)
        return true;
    if (age < worker->observing.stale_after)
        return worker->observing.observed_at != 0;
    pause_it(worker, age);
    if (age >= worker->observing.collector_timeout)
        too_old(worker, age);
    return false;
}
