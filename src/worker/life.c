/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* life.c - the life of a worker, from its request to its end, by life.fsm. */
#include <detent/driver/policy.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/limits.h"
#include "worker/worker_tree.h"

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

/* Shown to its parent: the worker is missing though it is requested. */
static void set_down(struct det_worker *worker, bool is_down)
{
    if (worker->seen.is_down == is_down)
        return;
    worker->seen.is_down = is_down;
    det_worker_set_condition(worker, DET_CONDITION_DOWN, is_down);
}

/* The invariants of each state, checked after entering it. */
static void assert_worker(const struct det_worker *worker)
{
    det_assert(worker->acting.running <= worker->kind->action_count);
    det_assert(worker->state < worker->kind->state_count);
    det_assert(worker->children.active <= worker->children.count);
    det_assert(!worker->children.first == !worker->children.count);
    det_assert(!worker->children.first == !worker->children.last);
    det_assert(!worker->incarnation || worker->incarnation->holders > 0);
    switch ((enum life_state)worker->life) {
    case LIFE_WAITING:
    case LIFE_DOWN:
    case LIFE_GONE:
        det_assert(!worker->incarnation && !worker->leaving.closing);
        det_assert(!worker->observing.collect && !worker->acting.running);
        det_assert(worker->life != LIFE_GONE || !worker->children.count);
        break;
    case LIFE_LIVE:
        det_assert(worker->incarnation && !worker->leaving.closing);
        det_assert(!worker->observing.collect && !worker->acting.running);
        break;
    case LIFE_CLOSING:
        det_assert(!worker->observing.collect && !worker->acting.running);
        det_assert(!worker->observing.spare && !worker->leaving.closing);
        break;
    case LIFE_OPENING:
        det_assert(!worker->incarnation && !worker->observing.collect && !worker->acting.running);
        det_assert(!worker->leaving.closing);
        break;
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

    det_assert(det_loop_is_mine(worker->workers->loop));
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

/* True if a document on its way to the store refers to the worker, whose memory must stay. */
static bool is_awaited(const struct det_worker *worker)
{
    return worker->documents.is_identity_pending || worker->desire.is_pending ||
           worker->documents.is_observed_pending;
}

void det_workers_free_gone(struct det_workers *workers)
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
    det_workers_free_gone(workers);
}

/* Removes it from the tree; its memory is freed when no walk is under way. */
static void end(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    det_manual_keep(worker);
    step(worker, LIFE_FINISH);
    worker->attention = 0;
    for (enum det_worker_condition i = 0; i < DET_CONDITION_COUNT; i++)
        det_worker_set_condition(worker, i, false);
    det_tick_remove(worker);
    det_worker_unlink(worker);
    det_map_remove(&workers->map, worker->place.key);
    det_assert(workers->count > 0 && !worker->children.first);
    workers->count--;
    det_circuit_forget(worker);
    det_worker_publish(worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_REMOVED });
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

/* The delay before the next attempt after a failure. */
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
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ADD_FAILED,
                                           .code = code,
                                           .reason = text,
                                           .number = failures });
    det_circuit_failure(worker, text);
}

/* Resets all state of an earlier life. */
static void begin(struct det_worker *worker)
{
    uint64_t startups;

    step(worker, LIFE_BEGIN);
    det_worker_set_state(worker, 0);
    worker->observing.observed_at = 0;
    worker->observing.sequence = 0;
    worker->observing.gate = 0;
    worker->observing.is_stale = false;
    det_worker_set_condition(worker, DET_CONDITION_STALE, false);
    worker->observing.failures = 0;
    worker->observing.is_short = false;
    worker->observing.error[0] = '\0';
    worker->observing.has_error = false;
    worker->counts.collector_restarts = 0;
    worker->counts.failures = 0;
    worker->leaving.stop_at = DET_NEVER;
    worker->leaving.was_forced = false;
    worker->acting.last = (struct det_action_end){ 0 };
    memset(worker->observing.value, 0, det_record_size(worker->kind->observed));
    det_act_forget(worker);
    startups = det_record_startups(worker->workers, worker) + 1;
    /* Equal if the last start was not recorded. */
    det_assert(startups >= worker->counts.startups);
    worker->counts.startups = startups;
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
    worker->attention |= DET_CHECK_CHILDREN | DET_CHECK_DERIVE | DET_CHECK_OBSERVED;
    if (worker->leaving.is_restart_wanted) {
        worker->leaving.is_restart_wanted = false;
        det_worker_publish(
            worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_RESTART_DONE,
                                               .number = worker->counts.restarts });
    }
    det_worker_set_reason(worker, "initial");
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ADDED,
                                           .number = worker->counts.startups });
    det_worker_visit(worker);
}

/* The deadline for running code to return: the stop grace, but not after stop_at; at least a tenth
 * of the grace. */
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

/* A second request, or a timeout: running code is abandoned. */
static void give_up(struct det_worker *worker)
{
    if (det_stop_now(worker->workers) < worker->leaving.leave_at)
        return;
    if (worker->observing.collect && det_run_abandon(worker->observing.collect))
        det_collect_lost(worker);
    for (uint16_t i = 0; i < worker->kind->action_count; i++)
        if (worker->acting.actions[i].run && det_run_abandon(worker->acting.actions[i].run))
            det_act_lost(worker, i, 0);
}

static bool is_wanted(const struct det_worker *worker)
{
    return !worker->leaving.is_unwanted && !worker->workers->stopping.is_wanted;
}

/* True if its children are gone, or at rest until it is back. */
static bool is_clear(const struct det_worker *worker)
{
    return is_wanted(worker) ? !worker->children.active : !worker->children.first;
}

static void close_incarnation(struct det_worker *worker)
{
    struct det_incarnation *incarnation = worker->incarnation;

    det_assert(is_clear(worker));
    /* It was forced to stop before it was recorded. */
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
    det_assert(!incarnation->closing);
    /* An abandoned run may hold it for ever. */
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

/* While everything stops, a close() that hangs is not waited for without a limit; closing the
 * supervisor still waits for it. A restarting worker waits: two lives would conflict. */
static void leave_behind(struct det_worker *worker)
{
    if (!worker->leaving.closing || !worker->workers->stopping.is_wanted ||
        det_stop_now(worker->workers) < worker->leaving.leave_at)
        return;
    det_assert(worker->leaving.closing->closing == worker);
    worker->leaving.closing->closing = NULL;
    det_stop_note_hung_close(worker);
    det_life_closed(worker);
}

/* Number of restarts within the window; older ones do not make the delay longer. */
static uint32_t restarts_of_late(const struct det_worker *worker)
{
    return worker->faults && worker->faults->restarts
               ? det_intensity_count(worker->faults->restarts, worker->workers->now)
               : 1;
}

void det_life_closed(struct det_worker *worker)
{
    det_assert(worker->life == LIFE_CLOSING && !worker->incarnation);
    worker->leaving.closing = NULL;
    if (worker->leaving.is_unwanted || worker->workers->stopping.is_wanted) {
        /* Children that rested during its restart are removed first. */
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
    worker->attention |= DET_CHECK_DESIRED;
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

/* True if the time has come, and the parent is live and does not stop. */
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
    refuse(worker, DET_ERR_TIMEOUT, "open() did not return and was abandoned");
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
        else if (is_wanted(worker) && det_desire_has_changed(worker))
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
