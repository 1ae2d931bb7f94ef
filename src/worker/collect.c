/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* collect.c - observations: when the next one is due, what one brings, how old it may be.
 *
 *     age of the observation, from its begin
 *     0 ............ 10 s ............. 20 s ... +2 s ... +4 s ... +8 s
 *     fresh          stale: paused      restart  restart  restart  given up: the worker stops
 *
 * A restart leaves the run that hangs behind and begins another one. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worker/tree.h"

static det_time every(const struct det_worker *worker)
{
    det_time own = worker->kind->observe_every;

    return own ? own : worker->workers->limits.observe_every;
}

void det_collect_soon(struct det_worker *worker)
{
    worker->collect_at = worker->workers->now;
    worker->due = 0;
}

void det_collect_anew(struct det_worker *worker)
{
    worker->eager_sequence = worker->collect_sequence + 1;
    det_collect_soon(worker);
}

/* The next one, counted from the begin of the last; not all of them at the same time. Whoever waits
 * at the gate need not wait for long, but one that failed is not tried again at once. */
static void schedule(struct det_worker *worker, det_time began, bool has_failed)
{
    det_time span = every(worker);

    worker->collect_at = began + span - det_workers_chance(worker->workers, span / 10);
    if (worker->eager_sequence ||
        (!has_failed && worker->gate > worker->observed_sequence && !worker->running))
        worker->collect_at = worker->workers->now;
    det_worker_due(worker, worker->collect_at);
}

/* With so many under way, what is only to be looked at again waits: who begins, acts or has a new
 * config goes first. Not for so long that an observation gets stale. */
#define OBSERVING_MAX 65536

static bool may_wait(const struct det_worker *worker)
{
    const struct det_workers *workers = worker->workers;

    return workers->observing >= OBSERVING_MAX && worker->observed_at && !worker->eager_sequence &&
           worker->gate <= worker->observed_sequence &&
           workers->now - worker->observed_at < worker->stale_after / 2;
}

static void put_off(struct det_worker *worker, det_time span)
{
    worker->collect_at = worker->workers->now + span;
    det_worker_due(worker, worker->collect_at);
}

static void begin(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;
    const struct det_record *desired = det_record_of(worker->kind->desired);
    det_time timeout = worker->kind->observe_timeout;
    struct det_run *run = worker->spare;

    if (worker->body->lost_collects >= DET_LOST_MAX && !worker->is_collector_new) {
        put_off(worker, every(worker));
        return;
    }
    if (may_wait(worker)) {
        put_off(worker, workers->limits.tick);
        return;
    }
    worker->is_collector_new = false;
    worker->spare = NULL;
    if (!run && det_run_new(worker, DET_RUN_COLLECT, 0, &run) < 0) {
        worker->is_short = true;
        put_off(worker, every(worker));
        return;
    }
    if (desired)
        memcpy(run->desired, worker->desired, desired->size);
    memset(run->observed, 0, det_record_or_empty(worker->kind->observed)->size);
    run->sequence = ++worker->collect_sequence;
    worker->collect = run;
    det_run_start(run, timeout ? timeout : workers->limits.observe_timeout);
}

void det_collect_lost(struct det_worker *worker)
{
    worker->collect = NULL;
    worker->is_short = false;
    worker->collect_at = worker->workers->now;
}

void det_collect_visit(struct det_worker *worker)
{
    if (worker->collect && det_run_watch(worker->collect))
        det_collect_lost(worker);
    if (worker->collect || !worker->has_desired || !worker->kind->collect)
        return;
    if (worker->workers->now >= worker->collect_at)
        begin(worker);
    else
        det_worker_due(worker, worker->collect_at);
}

/* Powers of two only, so that a collect that fails for weeks does not fill the log. */
static bool is_worth_telling(uint32_t failures)
{
    return (failures & (failures - 1)) == 0;
}

static void failed(struct det_worker *worker, const struct det_run *run)
{
    const char *text = run->text[0] ? run->text : det_error_text(run->code);
    /* A worker that goes has no use for it, and has cut it off. */
    bool is_trouble = run->code != DET_ERR_CANCELLED || !worker->shutdown_wanted;

    det_text_copy(worker->collect_error, sizeof worker->collect_error, text);
    worker->observe_failures++;
    worker->is_short = run->code == DET_ERR_LIMIT || run->code == DET_ERR_NO_MEMORY;
    worker->workers->observations_failed += is_trouble;
    if (run->has_panicked)
        det_panic_note(worker, DET_WORKER_OBSERVE_PANIC, text, NULL);
    else if (is_trouble && is_worth_telling(worker->observe_failures))
        det_tell(
            worker, (struct det_worker_event){ .kind = DET_WORKER_OBSERVE_FAILED,
                                               .code = run->code,
                                               .reason = text,
                                               .number = worker->observe_failures });
}

static void recovered(struct det_worker *worker)
{
    if (worker->counts.collector_restarts)
        det_tell(
            worker, (struct det_worker_event){ .kind = DET_WORKER_COLLECTOR_RECOVERED,
                                               .number = worker->counts.collector_restarts });
    worker->counts.collector_restarts = 0;
    worker->is_stale = false;
    det_worker_set_ailment(worker, DET_AILMENT_STALE, false);
}

static void accept(struct det_worker *worker, const struct det_run *run)
{
    const struct det_record *record = det_record_or_empty(worker->kind->observed);
    bool is_first = !worker->observed_at;

    worker->observed_at = atomic_load_explicit(&run->job.started_at, memory_order_acquire);
    if (worker->gate > worker->observed_sequence && worker->gate <= run->sequence)
        det_tell(worker, (struct det_worker_event){ .kind = DET_WORKER_GATE_CLEARED });
    worker->observed_sequence = run->sequence;
    worker->counts.observations++;
    worker->workers->observations++;
    recovered(worker);
    if (run->code < 0 || (!is_first && det_record_equal(record, worker->observed, run->observed)))
        return;
    memcpy(worker->observed, run->observed, record->size);
    worker->attention |= DET_LOOK_OBSERVED | DET_LOOK_CHILDREN;
    det_tell(worker, (struct det_worker_event){ .kind = DET_WORKER_OBSERVED_CHANGED });
}

/* One that is no valid record would be no document. */
static int judge(struct det_worker *worker, struct det_run *run)
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
    bool was_waiting =
        !worker->observed_at || worker->observed_sequence < worker->gate || worker->eager_sequence;

    worker->collect = NULL;
    if (worker->eager_sequence && run->sequence >= worker->eager_sequence) {
        worker->eager_sequence = 0;
        det_worker_hasten(worker);
    }
    if (judge(worker, run) < 0)
        failed(worker, run);
    else {
        worker->observe_failures = 0;
        worker->is_short = false;
        worker->collect_error[0] = '\0';
    }
    if (run->code >= 0 || (worker->kind->errors_are_observed && run->code != DET_ERR_CANCELLED))
        accept(worker, run);
    schedule(worker, began, run->code < 0);
    if (det_life_is_live(worker) && !run->metrics && !worker->spare)
        worker->spare = run;
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
        "its collector is unresponsive: %u restart%s %s in vain; it stays down until its config "
        "changes or it is restarted",
        attempts, det_plural(attempts), det_was_or_were(attempts));
    det_tell(
        worker, (struct det_worker_event){
                    .kind = DET_WORKER_COLLECTOR_GIVEN_UP, .reason = text, .number = attempts });
    det_worker_set_reason(worker, text);
    det_stop_rest(worker, text);
    det_circuit_failure(worker, text);
    det_stop_shutdown(worker, worker->workers->limits.stop_grace, text);
}

static void restart(struct det_worker *worker)
{
    worker->counts.collector_restarts++;
    worker->collector_restarted_at = worker->workers->now;
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_COLLECTOR_RESTARTING,
                                           .number = worker->counts.collector_restarts });
    if (worker->collect) {
        det_run_cancel(worker->collect);
        if (det_run_give_up(worker->collect))
            det_collect_lost(worker);
    }
    worker->is_collector_new = true;
    det_collect_soon(worker);
}

/* One that waits for a thread, or has not run for longer than it may, is not to blame for the age
 * of the observation: all threads are taken, and a restart would only cost it its place. */
static bool is_under_way(const struct det_worker *worker)
{
    const struct det_run *run = worker->collect;

    if (!run || run->submitted_at >= worker->workers->now)
        return false;
    return !atomic_load_explicit(&run->job.is_started, memory_order_acquire) ||
           worker->workers->now -
                   atomic_load_explicit(&run->job.started_at, memory_order_acquire) <=
               run->timeout;
}

/* Once for all of them. */
static void tell_busy(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    if (workers->now < workers->busy_until)
        return;
    workers->busy_until = workers->now + 10 * DET_SECOND;
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_COLLECTORS_BUSY,
                                           .number = det_crew_queued(workers->collectors) });
}

static void too_old(struct det_worker *worker, det_time age)
{
    struct det_workers *workers = worker->workers;
    uint32_t restarts = worker->counts.collector_restarts;
    det_time pause = restarts ? DET_SECOND << (restarts < 10 ? restarts : 10) : 0;

    if (worker->is_short || is_under_way(worker) ||
        (restarts && workers->now - worker->collector_restarted_at < pause))
        return;
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_DATA_TIMEOUT,
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
        worker->collect_error[0] ? ": " : "", worker->collect_error);
    det_worker_set_reason(worker, text);
    if (worker->is_stale)
        return;
    worker->is_stale = true;
    if (worker->collect && is_under_way(worker))
        tell_busy(worker);
    det_worker_set_ailment(worker, DET_AILMENT_STALE, true);
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_STALE,
                                           .reason = text,
                                           .number = (uint64_t)(age / DET_MILLISECOND) });
}

bool det_collect_is_fresh(struct det_worker *worker)
{
    det_time since = worker->observed_at ? worker->observed_at : worker->live_since;
    det_time age = worker->workers->now - since;

    if (!worker->kind->collect)
        return true;
    if (age < worker->stale_after)
        return worker->observed_at != 0;
    pause_it(worker, age);
    if (age >= worker->collector_timeout)
        too_old(worker, age);
    return false;
}
