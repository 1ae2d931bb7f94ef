/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tick.c - visits one worker, in the walk (tick_walk.c) or after a change, and decides its next
 * step. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "worker/worker_tree.h"

/* Limit of consecutive states without a tick, for states that form a cycle. */
#define HASTE_MAX 8

void det_worker_set_reason(struct det_worker *worker, const char *reason)
{
    if (strcmp(worker->reason, reason) != 0)
        det_text_copy(worker->reason, sizeof worker->reason, reason);
}

void det_worker_notify_parent(struct det_worker *worker)
{
    if (worker->parent)
        worker->parent->attention |= DET_CHECK_VIEW;
}

void det_worker_set_state(struct det_worker *worker, uint16_t state)
{
    det_assert(state < worker->kind->state_count);
    worker->state = state;
    worker->since = worker->workers->now;
    worker->since_wall = worker->workers->now + worker->workers->wall_ahead;
    worker->seen.state = worker->kind->states[state].name;
    worker->seen.phase = worker->kind->states[state].phase;
    worker->attention |= DET_CHECK_CHILDREN | DET_CHECK_OBSERVED;
    det_worker_notify_parent(worker);
    det_workers_hurry(worker->workers);
}

/* Changes the state, reports and counts it. */
static void enter_state(struct det_worker *worker, uint16_t state, const char *reason)
{
    struct det_workers *workers = worker->workers;
    const struct det_worker_state *states = worker->kind->states;
    uint16_t from = worker->state;
    det_time took = workers->now - worker->since;

    det_assert(state != from && det_life_is_live(worker));
    det_worker_set_reason(worker, reason);
    det_worker_set_state(worker, state);
    worker->counts.transitions++;
    worker->acting.state_counts[from].total += took;
    worker->acting.state_counts[state].entered++;
    det_history_state(worker, from, state, worker->reason);
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_TRANSITION,
                                           .from = states[from].name,
                                           .to = states[state].name,
                                           .reason = worker->reason,
                                           .number = (uint64_t)(took / DET_MILLISECOND),
                                           .took = took });
}

/* The first reason that applies. */
const char *det_worker_stop_reason(const struct det_worker *worker)
{
    if (worker->shutdown_wanted && worker->leaving.has_to_rest && worker->faults)
        return worker->faults->rest_reason;
    if (worker->shutdown_wanted)
        return worker->leaving.is_restart_wanted ? "restarting" : "shutdown requested";
    if (worker->rest.is_disabled)
        return "disabled by its spec";
    if (worker->rest.is_ordered_off)
        return "disabled by an order";
    if (worker->parent && worker->parent->rest.is_off)
        return "an ancestor is disabled";
    if (worker->run_in && worker->parent && !(worker->run_in >> worker->parent->state & 1))
        return "disabled in the current state of its parent";
    return NULL;
}

void det_worker_view(struct det_worker *worker, bool stop, struct det_worker_view *ret)
{
    struct det_workers *workers = worker->workers;

    *ret = (struct det_worker_view){
        .kind = worker->kind,
        .desired = worker->desire.value,
        .observed = worker->observing.value,
        .stop_wanted = stop,
        .shutdown_wanted = worker->shutdown_wanted,
        .state = worker->state,
        .now = workers->now,
        .wall = workers->now + workers->wall_ahead,
        .observed_at = worker->observing.observed_at,
        .since = worker->since,
        .collect_error = worker->observing.has_error ? worker->observing.error : NULL,
        .degraded_by = worker->desire.is_degraded ? worker->desire.degraded_by : NULL,
        .identity = &worker->identity,
        .counts = &worker->counts,
        .last_action = &worker->acting.last,
        .children = &worker->children.view,
        .scratch = &workers->scratch,
    };
}

static bool is_stop_phase(enum det_phase phase)
{
    return phase == DET_PHASE_STOPPED || phase == DET_PHASE_STOPPING;
}

/* The problem of a decision; NULL: none. */
static const char *fault_of(const struct det_worker *worker, struct det_next next, bool stop)
{
    const struct det_worker_kind *kind = worker->kind;

    if (!next.reason || !*next.reason)
        return "next() gave no reason";
    switch (next.kind) {
    case DET_NEXT_HOLD:
    case DET_NEXT_RESTART:
        return NULL;
    case DET_NEXT_GOTO:
        if (next.what >= kind->state_count)
            return "next() goes to an unknown state";
        if (next.what == worker->state)
            return "next() goes to the current state: hold instead";
        if (stop && !is_stop_phase(kind->states[next.what].phase))
            return "next() does not stop the worker";
        return NULL;
    case DET_NEXT_DO:
        return next.what < kind->action_count ? NULL : "next() does an unknown action";
    }
    return "next() returned an invalid decision";
}

static void carry_out(struct det_worker *worker, struct det_next next)
{
    switch (next.kind) {
    case DET_NEXT_HOLD:
        worker->haste = 0;
        det_worker_set_reason(worker, next.reason);
        break;
    case DET_NEXT_GOTO:
        enter_state(worker, next.what, next.reason);
        break;
    case DET_NEXT_DO:
        det_worker_set_reason(worker, next.reason);
        det_act_start(worker, next.what);
        break;
    case DET_NEXT_RESTART:
        det_worker_set_reason(worker, next.reason);
        if (!worker->shutdown_wanted)
            det_stop_restart(worker, next.reason);
        break;
    }
}

static bool is_gated(const struct det_worker *worker)
{
    return worker->observing.sequence < worker->observing.gate;
}

static void ask(struct det_worker *worker, bool stop)
{
    struct det_worker_view view;
    struct det_next next;
    const char *fault;

    det_assert(stop || (worker->desire.is_there && !is_gated(worker)));
    det_worker_view(worker, stop, &view);
    next = worker->kind->states[worker->state].next(&view);
    fault = fault_of(worker, next, stop);
    if (!fault) {
        carry_out(worker, next);
        return;
    }
    det_worker_set_reason(worker, fault);
    det_panic_note(worker, DET_WORKER_EVENT_NEXT_INVALID, fault, NULL);
}

/* The result of a cancelled action is visible only after its end; a worker that stops earlier may
 * leave the world in an undesired state. Waits at most half of the grace, and not at all for a
 * worker without observations. */
static bool is_unsettled(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    worker->is_settling =
        worker->is_settling && (worker->acting.running || is_gated(worker)) &&
        workers->now - worker->since < workers->limits.stop_grace / 2 &&
        workers->now - worker->observing.observed_at < worker->observing.stale_after;
    return worker->is_settling;
}

static void stop(struct det_worker *worker, const char *reason)
{
    const struct det_worker_state *state = &worker->kind->states[worker->state];

    switch (state->phase) {
    case DET_PHASE_STARTING:
    case DET_PHASE_RUNNING:
    case DET_PHASE_DEGRADED:
        worker->is_settling = worker->acting.running || is_gated(worker);
        det_act_cancel(worker);
        enter_state(worker, state->on_stop, reason);
        break;
    case DET_PHASE_STOPPING:
        if (is_unsettled(worker))
            det_worker_set_reason(worker, "waiting for a cancelled action to end");
        else
            ask(worker, true);
        break;
    case DET_PHASE_STOPPED:
        det_worker_set_reason(worker, reason);
        if (worker->shutdown_wanted)
            det_life_leave(worker);
        break;
    }
}

static void decide(struct det_worker *worker)
{
    const char *reason = det_worker_stop_reason(worker);

    if (reason) {
        if (worker->shutdown_wanted && worker->children.active)
            det_worker_set_reason(worker, "waiting for its children to stop");
        else
            stop(worker, reason);
        return;
    }
    if (worker->rest.is_paused || (worker->faults && det_panic_is_open(worker)) ||
        !worker->desire.is_there || !det_collect_is_fresh(worker) || is_gated(worker))
        return;
    ask(worker, false);
}

/* Work that is not needed in every tick. */
static void attend(struct det_worker *worker)
{
    worker->due = DET_NEVER;
    det_stop_visit(worker);
    if (!det_life_is_live(worker))
        return;
    det_desire_visit(worker);
    det_act_visit(worker);
    det_collect_visit(worker);
    if (worker->faults)
        det_circuit_visit(worker);
}

static void attend_after(struct det_worker *worker)
{
    if (worker->attention & DET_CHECK_CHILDREN)
        det_children_ask(worker);
    if (worker->attention & (DET_CHECK_REQUESTS | DET_CHECK_MORE))
        det_children_reconcile(worker);
    if (worker->attention & DET_CHECK_DESIRED)
        det_record_desired(worker);
    if (worker->attention & DET_CHECK_OBSERVED)
        det_record_observed(worker);
}

static bool is_scope_old(const struct det_worker *worker)
{
    const struct det_worker *parent = worker->parent;

    return worker->desire.scope_seen !=
           (parent ? parent->desire.scope_generation : worker->workers->scope_generation);
}

/* True if it has all of its requested children. children() of a kind is not called before it
 * runs. */
static bool has_its_children(const struct det_worker *worker)
{
    const uint32_t open = DET_CHECK_CHILDREN | DET_CHECK_REQUESTS | DET_CHECK_MORE;

    if (!det_life_is_live(worker) || worker->shutdown_wanted || !worker->desire.is_there ||
        worker->attention & open || worker->requests.round_at || worker->requests.refused_hash)
        return false;
    if (!worker->parent && !worker->workers->is_applied)
        return false;
    return !worker->kind->children ||
           worker->kind->states[worker->state].phase == DET_PHASE_RUNNING;
}

static void visit_live(struct det_worker *worker)
{
    struct det_worker *parent = worker->parent;

    worker->rest.is_paused = (parent && parent->rest.is_paused) || det_circuit_is_open(worker);
    if (worker->attention & DET_CHECK_VIEW)
        det_children_count(worker);
    if (is_scope_old(worker))
        worker->attention |= DET_CHECK_DERIVE;
    if (worker->attention & DET_CHECK_DERIVE || worker->workers->now >= worker->due)
        attend(worker);
    if (det_life_is_live(worker))
        decide(worker);
    if (worker->attention)
        attend_after(worker);
    if (worker->children.has_unclaimed && has_its_children(worker))
        det_unclaimed_drop(worker);
}

static void inspect(struct det_worker *worker)
{
    worker->rest.is_off = worker->rest.is_disabled || worker->rest.is_ordered_off ||
                          (worker->parent && worker->parent->rest.is_off);
    if (det_life_is_live(worker)) {
        visit_live(worker);
        return;
    }
    if (worker->attention & (DET_CHECK_REQUESTS | DET_CHECK_MORE))
        det_children_reconcile(worker);
    if (worker->attention & DET_CHECK_VIEW)
        det_children_count(worker);
    if (worker->attention & DET_CHECK_OBSERVED && !det_life_is_gone(worker))
        det_record_observed(worker);
    det_life_visit(worker);
}

/* Visits new children at once outside of a tick, whose walk would visit them anyway. */
static void welcome(struct det_worker *worker)
{
    struct det_worker *child = worker->requests.first_new;

    worker->requests.first_new = NULL;
    for (struct det_worker *next; child; child = next) {
        next = child->next;
        if (!det_life_is_active(child))
            inspect(child);
    }
}

void det_worker_continue_children(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    workers->tick.walking++;
    det_children_reconcile(worker);
    welcome(worker);
    workers->tick.walking--;
    det_workers_free_gone(workers);
}

void det_worker_hasten(struct det_worker *worker)
{
    worker->haste = HASTE_MAX;
}

/* A worker in haste does not wait for the next tick in each state. */
static void inspect_early(struct det_worker *worker)
{
    uint64_t transitions;

    do {
        transitions = worker->counts.transitions;
        inspect(worker);
    } while (worker->haste && worker->counts.transitions != transitions &&
             det_life_is_live(worker) && worker->haste--);
}

void det_worker_visit(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    workers->tick.walking++;
    inspect_early(worker);
    det_assert(workers->tick.walking > 0);
    if (worker->requests.first_new && workers->tick.walking == 1)
        welcome(worker);
    workers->tick.walking--;
    det_workers_free_gone(workers);
}
