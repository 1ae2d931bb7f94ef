/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* life.c - a worker from the moment it is wanted to its end, by life.fsm. */
#include <detent/driver/policy.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/limits.h"
#include "worker/tree.h"

#define FSM_LOCAL
#define FSM_SPEC "worker/life.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "worker/life.fsm"
#include <detent/fsm/define.h>

static bool is_active(unsigned life)
{
    return life != LIFE_WAITING && life != LIFE_DOWN && life != LIFE_GONE;
}

/* What its parent is to see: that it is not there though it shall be. */
static void set_down(struct det_worker *worker, bool is_down)
{
    if (worker->seen.is_down == is_down)
        return;
    worker->seen.is_down = is_down;
    det_worker_set_ailment(worker, DET_AILMENT_DOWN, is_down);
}

/* What a worker has in each state of its life, after it has come there. */
static void assert_worker(const struct det_worker *worker)
{
    det_assert(worker->acting.running <= worker->kind->action_count);
    det_assert(worker->children.active <= worker->children.count);
    det_assert(!worker->children.first == !worker->children.count);
    switch ((enum life_state)worker->life) {
    case LIFE_WAITING:
    case LIFE_DOWN:
    case LIFE_GONE:
        det_assert(!worker->incarnation && !worker->leaving.closing);
        det_assert(!worker->observing.collect && !worker->acting.running);
        break;
    case LIFE_LIVE:
        det_assert(worker->incarnation && !worker->leaving.closing);
        break;
    case LIFE_CLOSING:
        det_assert(!worker->observing.collect && !worker->acting.running);
        break;
    case LIFE_OPENING:
    case LIFE_LEAVING:
        det_assert(!worker->leaving.closing);
        break;
    case life_state_count:
        break;
    }
}

static void step(struct det_worker *worker, enum life_event_kind event)
{
    const struct det_transition *transition = det_machine_step(&life_machine, worker->life, event);

    det_assert(transition->outcome == DET_OUTCOME_GOTO);
    if (worker->parent) {
        worker->parent->children.active += is_active(transition->to);
        worker->parent->children.active -= is_active(worker->life);
    }
    worker->life = (uint8_t)transition->to;
    assert_worker(worker);
    det_assert(
        !worker->parent || worker->parent->children.active <= worker->parent->children.count);
    worker->due = 0;
    set_down(
        worker, transition->to == LIFE_DOWN ||
                    (event == LIFE_REFUSE && transition->to == LIFE_WAITING) ||
                    (worker->seen.is_down && transition->to == LIFE_OPENING));
    det_workers_hurry(worker->workers);
}

bool det_life_is_active(const struct det_worker *worker)
{
    return is_active(worker->life);
}

bool det_life_is_live(const struct det_worker *worker)
{
    return worker->life == LIFE_LIVE;
}

bool det_life_may_have_children(const struct det_worker *worker)
{
    return !worker->leaving.is_unwanted && det_life_may_stay(worker);
}

bool det_life_may_stay(const struct det_worker *worker)
{
    return worker->life != LIFE_LEAVING && worker->life != LIFE_CLOSING &&
           worker->life != LIFE_GONE;
}

bool det_life_is_gone(const struct det_worker *worker)
{
    return worker->life == LIFE_GONE;
}

const char *det_life_name(const struct det_worker *worker)
{
    return life_state_name(worker->life);
}

void det_worker_due(struct det_worker *worker, det_time at)
{
    if (at < worker->due)
        worker->due = at;
}

/* What is on its way to the store answers to the worker: it stays until then. */
static bool is_awaited(const struct det_worker *worker)
{
    return worker->documents.is_identity_pending || worker->desire.is_pending ||
           worker->documents.is_observed_pending;
}

void det_workers_bury(struct det_workers *workers)
{
    if (workers->tick.walking)
        return;
    while (workers->gone) {
        struct det_worker *worker = workers->gone;

        det_assert(worker->life == LIFE_GONE && !is_awaited(worker) && !worker->parent);
        workers->gone = worker->next;
        det_worker_free(worker);
    }
}

void det_worker_settle(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    if (worker->life == LIFE_GONE && !is_awaited(worker)) {
        worker->next = workers->gone;
        workers->gone = worker;
    }
    det_workers_bury(workers);
}

/* Out of the tree; its memory goes when nobody walks. */
static void end(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    det_manual_keep(worker);
    step(worker, LIFE_FINISH);
    worker->attention = 0;
    for (enum det_ailment i = 0; i < DET_AILMENT_COUNT; i++)
        det_worker_set_ailment(worker, i, false);
    det_tick_leave(worker);
    det_worker_unlink(worker);
    det_map_remove(&workers->map, worker->place.key);
    det_assert(workers->count > 0 && !worker->children.first);
    workers->count--;
    det_circuit_forget(worker);
    det_tell(worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_REMOVED });
    if (worker->leaving.is_forgotten) {
        det_unclaimed_drop(worker);
        det_record_drop(worker);
    }
    if (worker == workers->root) {
        workers->root = NULL;
        det_stop_gone(workers);
    }
    worker->parent = NULL;
    det_list_remove(&worker->requests.maker);
    det_worker_settle(worker);
}

/* How long after a failure it is tried again. */
static det_time delay_of(struct det_worker *worker, uint32_t failures)
{
    struct det_worker_faults *faults = det_worker_faults(worker);
    uint64_t chance;

    if (!faults)
        return worker->workers->limits.restart_backoff.max;
    worker->workers->world->ops->random(worker->workers->world, &chance, sizeof chance);
    faults->delay = det_backoff_delay(
        &worker->workers->limits.restart_backoff, failures ? failures - 1 : 0, faults->delay,
        chance);
    return faults->delay;
}

static void refuse(struct det_worker *worker, int code, const char *text)
{
    struct det_worker_faults *faults = det_worker_faults(worker);
    uint32_t failures = faults ? ++faults->open_failures : 1;

    if (worker->incarnation) {
        det_incarnation_drop(worker->incarnation);
        worker->incarnation = NULL;
    }
    step(worker, LIFE_REFUSE);
    if (!worker->leaving.is_unwanted)
        worker->shutdown_wanted = false;
    worker->leaving.open_at = worker->workers->now + delay_of(worker, failures);
    det_worker_set_reason(worker, text);
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ADD_FAILED,
                                           .code = code,
                                           .reason = text,
                                           .number = failures });
    det_circuit_failure(worker, text);
}

/* As new, whatever there was before. */
static void begin(struct det_worker *worker)
{
    step(worker, LIFE_BEGIN);
    det_worker_set_state(worker, 0);
    worker->observing.observed_at = 0;
    worker->observing.sequence = 0;
    worker->observing.gate = 0;
    worker->observing.is_stale = false;
    det_worker_set_ailment(worker, DET_AILMENT_STALE, false);
    worker->observing.failures = 0;
    worker->observing.is_short = false;
    worker->observing.error[0] = '\0';
    worker->counts.collector_restarts = 0;
    worker->counts.failures = 0;
    worker->leaving.stop_at = DET_NEVER;
    worker->leaving.was_forced = false;
    worker->acting.last = (struct det_action_end){ 0 };
    memset(worker->observing.value, 0, det_record_size(worker->kind->observed));
    det_act_forget(worker);
    worker->counts.startups = det_record_startups(worker->workers, worker) + 1;
    det_record_identity(worker);
}

void det_life_recorded(struct det_worker *worker, int code, const struct det_error *error)
{
    int r;

    if (worker->life != LIFE_OPENING)
        return;
    if (code < 0) {
        refuse(worker, code, error ? error->text : det_error_text(code));
        return;
    }
    r = det_incarnation_new(worker, &worker->incarnation);
    if (r < 0) {
        refuse(worker, r, det_error_text(r));
        return;
    }
    if (worker->kind->open) {
        struct det_run *run;

        r = det_run_new(worker, DET_RUN_OPEN, 0, &run);
        if (r < 0)
            refuse(worker, r, det_error_text(r));
        else {
            worker->observing.collect = run;
            det_run_start(run, worker->workers->limits.action_timeout);
        }
        return;
    }
    det_life_opened(worker, 0, "");
}

void det_life_opened(struct det_worker *worker, int code, const char *text)
{
    struct det_workers *workers = worker->workers;

    det_assert(worker->incarnation && !worker->observing.collect);
    if (worker->life == LIFE_LEAVING) {
        worker->incarnation->is_open = code >= 0;
        det_worker_visit(worker);
        return;
    }
    if (code < 0) {
        refuse(worker, code, *text ? text : det_error_text(code));
        return;
    }
    step(worker, LIFE_OPENED);
    worker->incarnation->is_open = true;
    if (worker->faults)
        worker->faults->open_failures = 0;
    worker->since = workers->now;
    worker->since_wall = workers->now + workers->wall_ahead;
    worker->observing.live_since = workers->now;
    worker->observing.collect_at = workers->now;
    worker->attention |= DET_LOOK_CHILDREN | DET_LOOK_DERIVE | DET_LOOK_OBSERVED;
    if (worker->leaving.is_restart_wanted) {
        worker->leaving.is_restart_wanted = false;
        det_tell(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_RESTART_DONE,
                                               .number = worker->counts.restarts });
    }
    det_worker_set_reason(worker, "initial");
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ADDED,
                                           .number = worker->counts.startups });
    det_worker_visit(worker);
}

/* How long what runs has to come back: no longer than the grace that is left, which is that of its
 * parent then, but for a moment. */
static det_time leave_at(const struct det_worker *worker)
{
    const struct det_workers *workers = worker->workers;
    det_time now = det_stop_now(workers);
    det_time last = now + workers->limits.stop_grace;
    det_time moment = now + workers->limits.stop_grace / 10;
    det_time stop_at = worker->leaving.was_forced ? 0 : worker->leaving.stop_at;

    if (workers->stopping.is_forcing)
        return now;
    if (stop_at >= last)
        return last;
    return stop_at > moment ? stop_at : moment;
}

void det_life_leave(struct det_worker *worker)
{
    step(worker, LIFE_LEAVE);
    worker->leaving.leave_at = leave_at(worker);
    if (worker->observing.collect)
        det_run_cancel(worker->observing.collect);
    det_act_cancel(worker);
    det_life_visit(worker);
}

/* A second request, or too long: what runs is left behind. */
static void give_up(struct det_worker *worker)
{
    if (det_stop_now(worker->workers) < worker->leaving.leave_at)
        return;
    if (worker->observing.collect && det_run_give_up(worker->observing.collect))
        det_collect_lost(worker);
    for (uint16_t i = 0; i < worker->kind->action_count; i++)
        if (worker->acting.actions[i].run && det_run_give_up(worker->acting.actions[i].run))
            det_act_lost(worker, i, 0);
}

static void close_incarnation(struct det_worker *worker)
{
    struct det_incarnation *incarnation = worker->incarnation;

    /* It was taken down before it was on record. */
    if (!incarnation) {
        step(worker, LIFE_QUIET);
        det_life_closed(worker);
        return;
    }
    if (worker->observing.spare)
        det_run_free(worker->observing.spare);
    worker->observing.spare = NULL;
    step(worker, LIFE_QUIET);
    worker->incarnation = NULL;
    /* A run that was given up has it for longer than anybody can wait. */
    if (incarnation->holders > 1 || !incarnation->is_open || !incarnation->kind->close) {
        det_incarnation_drop(incarnation);
        det_life_closed(worker);
        return;
    }
    incarnation->closing = worker;
    worker->leaving.closing = incarnation;
    worker->leaving.leave_at = leave_at(worker);
    det_incarnation_drop(incarnation);
}

/* While all stops nobody waits for ever for a close() that hangs; it is still waited for when the
 * supervisor is closed. A worker that is to begin anew waits: two lives would be in each other's
 * way. */
static void leave_behind(struct det_worker *worker)
{
    if (!worker->leaving.closing || !worker->workers->stopping.is_wanted ||
        det_stop_now(worker->workers) < worker->leaving.leave_at)
        return;
    worker->leaving.closing->closing = NULL;
    det_stop_left_behind(worker);
    det_life_closed(worker);
}

/* Those that are long ago make no delay longer. */
static uint32_t restarts_of_late(const struct det_worker *worker)
{
    return worker->faults && worker->faults->restarts
               ? det_intensity_count(worker->faults->restarts, worker->workers->now)
               : 1;
}

void det_life_closed(struct det_worker *worker)
{
    worker->leaving.closing = NULL;
    if (worker->leaving.is_unwanted || worker->workers->stopping.is_wanted) {
        /* Children that rested while it was to begin anew go first. */
        if (worker->children.first)
            step(worker, LIFE_AGAIN);
        else
            end(worker);
        return;
    }
    worker->shutdown_wanted = false;
    if (worker->leaving.has_to_rest) {
        step(worker, LIFE_REST);
        det_worker_set_state(worker, 0);
        if (worker->faults && worker->faults->rest_reason[0])
            det_worker_set_reason(worker, worker->faults->rest_reason);
        return;
    }
    step(worker, LIFE_AGAIN);
    worker->attention |= DET_LOOK_DESIRED;
    worker->leaving.open_at = worker->workers->now;
    if (worker->leaving.is_restart_wanted)
        worker->leaving.open_at += delay_of(worker, restarts_of_late(worker));
}

void det_life_wake(struct det_worker *worker)
{
    worker->leaving.has_to_rest = false;
    if (worker->faults && worker->faults->restarts)
        det_intensity_clear(worker->faults->restarts);
    if (worker->life == LIFE_DOWN) {
        step(worker, LIFE_WAKE);
        worker->leaving.open_at = worker->workers->now;
    } else if (worker->life == LIFE_WAITING) {
        worker->leaving.open_at = worker->workers->now;
        worker->due = 0;
    }
}

static bool is_wanted(const struct det_worker *worker)
{
    return !worker->leaving.is_unwanted && !worker->workers->stopping.is_wanted;
}

/* Whether its children are out of its way: gone, or at rest until it is back. */
static bool is_clear(const struct det_worker *worker)
{
    return is_wanted(worker) ? !worker->children.active : !worker->children.first;
}

/* Its parent lives, and is to go on living. */
static bool may_begin(const struct det_worker *worker)
{
    const struct det_worker *parent = worker->parent;

    return worker->workers->now >= worker->leaving.open_at &&
           (!parent || (parent->life == LIFE_LIVE && !parent->shutdown_wanted));
}

static void visit_opening(struct det_worker *worker)
{
    if (det_stop_now(worker->workers) >= worker->leaving.stop_at) {
        det_stop_force(worker);
        return;
    }
    if (!worker->observing.collect || !det_run_watch(worker->observing.collect))
        return;
    worker->observing.collect = NULL;
    refuse(worker, DET_ERR_TIMEOUT, "its open() did not come back and was given up");
}

void det_life_visit(struct det_worker *worker)
{
    switch ((enum life_state)worker->life) {
    case LIFE_WAITING:
        if (!is_wanted(worker) && !worker->children.first)
            end(worker);
        else if (is_wanted(worker) && may_begin(worker))
            begin(worker);
        break;
    case LIFE_LEAVING:
        give_up(worker);
        if (!worker->observing.collect && !worker->acting.running && is_clear(worker))
            close_incarnation(worker);
        break;
    case LIFE_DOWN:
        if (!is_wanted(worker) && !worker->children.first)
            end(worker);
        else if (is_wanted(worker) && det_desire_is_another(worker))
            det_life_wake(worker);
        break;
    case LIFE_OPENING:
        visit_opening(worker);
        break;
    case LIFE_CLOSING:
        leave_behind(worker);
        break;
    case LIFE_LIVE:
    case LIFE_GONE:
    case life_state_count:
        break;
    }
}
