/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tick.c - what is decided about one worker when the walk (tick_walk.c) or news come to it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "worker/tree.h"

/* States that lead in a circle end at so many without a tick. */
#define HASTE_MAX 8

void det_worker_set_reason(struct det_worker *worker, const char *reason)
{
    if (strcmp(worker->reason, reason) != 0)
        det_text_copy(worker->reason, sizeof worker->reason, reason);
}

void det_worker_poke_parent(struct det_worker *worker)
{
    if (worker->parent)
        worker->parent->attention |= DET_LOOK_VIEW;
}

void det_worker_set_state(struct det_worker *worker, uint16_t state)
{
    worker->state = state;
    worker->since = worker->workers->now;
    worker->since_wall = worker->workers->now + worker->workers->wall_ahead;
    worker->seen.state = worker->kind->states[state].name;
    worker->seen.phase = worker->kind->states[state].phase;
    worker->attention |= DET_LOOK_CHILDREN | DET_LOOK_OBSERVED;
    det_worker_poke_parent(worker);
    det_workers_hurry(worker->workers);
}

void det_worker_enter(struct det_worker *worker, uint16_t state, const char *reason)
{
    struct det_workers *workers = worker->workers;
    const struct det_worker_state *states = worker->kind->states;
    uint16_t from = worker->state;
    det_time took = workers->now - worker->since;

    det_worker_set_reason(worker, reason);
    det_worker_set_state(worker, state);
    worker->counts.transitions++;
    worker->acting.state_counts[from].total += took;
    worker->acting.state_counts[state].entered++;
    det_history_state(worker, from, state, worker->reason);
    det_tell(
        worker, (struct det_worker_event){ .kind = DET_WORKER_EVENT_TRANSITION,
                                           .from = states[from].name,
                                           .to = states[state].name,
                                           .reason = worker->reason,
                                           .number = (uint64_t)(took / DET_MILLISECOND),
                                           .took = took });
}

/* A worker that is to go waits for its children first. */
const char *det_worker_stop_reason(const struct det_worker *worker)
{
    if (worker->shutdown_wanted && worker->leaving.has_to_rest && worker->faults)
        return worker->faults->rest_reason;
    if (worker->shutdown_wanted)
        return worker->leaving.is_restart_wanted ? "is to begin anew" : "shutdown requested";
    if (worker->rest.is_disabled)
        return "disabled by its spec";
    if (worker->rest.is_ordered_off)
        return "disabled by an order";
    if (worker->parent && worker->parent->rest.is_off)
        return "what it is below is disabled";
    if (worker->run_in && worker->parent && !(worker->run_in >> worker->parent->state & 1))
        return "the state of its parent does not want it";
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
        .collect_error = worker->observing.error[0] ? worker->observing.error : NULL,
        .degraded_by = worker->desire.degraded_by[0] ? worker->desire.degraded_by : NULL,
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

/* What is wrong with an answer; NULL: nothing. */
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
            return "next() goes to a state that is none";
        if (next.what == worker->state)
            return "next() goes to the state it is in: hold instead";
        if (stop && !is_stop_phase(kind->states[next.what].phase))
            return "next() goes on though it is to stop";
        return NULL;
    case DET_NEXT_DO:
        return next.what < kind->action_count ? NULL : "next() does an action that is none";
    }
    return "next() answered what is no answer";
}

static void carry_out(struct det_worker *worker, struct det_next next)
{
    switch (next.kind) {
    case DET_NEXT_HOLD:
        worker->haste = 0;
        det_worker_set_reason(worker, next.reason);
        break;
    case DET_NEXT_GOTO:
        det_worker_enter(worker, next.what, next.reason);
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

static void ask(struct det_worker *worker, bool stop)
{
    struct det_worker_view view;
    struct det_next next;
    const char *fault;

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

static bool is_gated(struct det_worker *worker)
{
    return worker->observing.sequence < worker->observing.gate;
}

/* What an action that was just told to end leaves behind is seen only after its end; whoever stops
 * before that may leave the world as it shall not be. Half of the grace is spent on it at most, and
 * none on what cannot be observed. */
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
        det_worker_enter(worker, state->on_stop, reason);
        break;
    case DET_PHASE_STOPPING:
        if (is_unsettled(worker))
            det_worker_set_reason(worker, "waits for an action that was told to end");
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
            det_worker_set_reason(worker, "waits for its children to stop");
        else
            stop(worker, reason);
        return;
    }
    if (worker->rest.is_paused || (worker->faults && det_panic_is_open(worker)) ||
        !worker->desire.is_there || !det_collect_is_fresh(worker) || is_gated(worker))
        return;
    ask(worker, false);
}

/* What does not happen in every tick. */
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
    if (worker->attention & DET_LOOK_CHILDREN)
        det_children_ask(worker);
    if (worker->attention & (DET_LOOK_REQUESTS | DET_LOOK_MORE))
        det_children_reconcile(worker);
    if (worker->attention & DET_LOOK_DESIRED)
        det_record_desired(worker);
    if (worker->attention & DET_LOOK_OBSERVED)
        det_record_observed(worker);
}

static bool is_scope_old(const struct det_worker *worker)
{
    const struct det_worker *parent = worker->parent;

    return worker->desire.scope_seen !=
           (parent ? parent->desire.scope_generation : worker->workers->scope_generation);
}

/* Whether those that it has are those that it is to have. A kind that says which is asked in vain
 * before it runs. */
static bool has_its_children(const struct det_worker *worker)
{
    const uint32_t open = DET_LOOK_CHILDREN | DET_LOOK_REQUESTS | DET_LOOK_MORE;

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
    if (worker->attention & DET_LOOK_VIEW)
        det_children_count(worker);
    if (is_scope_old(worker))
        worker->attention |= DET_LOOK_DERIVE;
    if (worker->attention & DET_LOOK_DERIVE || worker->workers->now >= worker->due)
        attend(worker);
    if (det_life_is_live(worker))
        decide(worker);
    if (worker->attention)
        attend_after(worker);
    if (worker->children.has_unclaimed && has_its_children(worker))
        det_unclaimed_drop(worker);
}

static void look_at(struct det_worker *worker)
{
    worker->rest.is_off = worker->rest.is_disabled || worker->rest.is_ordered_off ||
                          (worker->parent && worker->parent->rest.is_off);
    if (det_life_is_live(worker)) {
        visit_live(worker);
        return;
    }
    if (worker->attention & (DET_LOOK_REQUESTS | DET_LOOK_MORE))
        det_children_reconcile(worker);
    if (worker->attention & DET_LOOK_VIEW)
        det_children_count(worker);
    if (worker->attention & DET_LOOK_OBSERVED && !det_life_is_gone(worker))
        det_record_observed(worker);
    det_life_visit(worker);
}

/* Outside of a tick, whose walk would come to them, children that were just made need not wait for
 * the next one. */
static void welcome(struct det_worker *worker)
{
    struct det_worker *child = worker->requests.first_new;

    worker->requests.first_new = NULL;
    for (struct det_worker *next; child; child = next) {
        next = child->next;
        if (!det_life_is_active(child))
            look_at(child);
    }
}

void det_worker_go_on_making(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    workers->tick.walking++;
    det_children_reconcile(worker);
    welcome(worker);
    workers->tick.walking--;
    det_workers_bury(workers);
}

void det_worker_hasten(struct det_worker *worker)
{
    worker->haste = HASTE_MAX;
}

/* A worker in haste does not wait for the next tick in each state on its way. */
static void look_in_haste(struct det_worker *worker)
{
    uint64_t transitions;

    do {
        transitions = worker->counts.transitions;
        look_at(worker);
    } while (worker->haste && worker->counts.transitions != transitions &&
             det_life_is_live(worker) && worker->haste--);
}

void det_worker_visit(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    workers->tick.walking++;
    look_in_haste(worker);
    if (worker->requests.first_new && workers->tick.walking == 1)
        welcome(worker);
    workers->tick.walking--;
    det_workers_bury(workers);
}
