/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* circuit.c - circuit breakers. The breaker of a subtree (circuit.fsm) counts children that
 * restarted, could not be opened, or were abandoned; it pauses its worker and the subtree, but no
 * stop and no collector. The root has none: it would pause everything because of one part. The
 * breaker of panics pauses one worker until its panics are out of the window. */
#include <detent/driver/policy.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/memory.h"
#include "worker/worker_tree.h"

#define FSM_LOCAL
#define FSM_SPEC "worker/circuit.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "worker/circuit.fsm"
#include <detent/fsm/define.h>

#define ATTEMPTS_ESCALATED 5

/* Shown to its parent. */
static void show_open(struct det_worker *worker, bool is_open)
{
    worker->seen.is_circuit_open = is_open;
    det_worker_set_condition(worker, DET_CONDITION_CIRCUIT, is_open);
}

/* The invariants of each state, checked after entering it. */
static void assert_circuit(const struct det_worker *worker)
{
    const struct det_worker_faults *faults = worker->faults;

    det_assert(worker->parent && faults->failures);
    switch ((enum circuit_state)faults->circuit) {
    case CIRCUIT_CLOSED:
        det_assert(!worker->seen.is_circuit_open);
        break;
    case CIRCUIT_OPEN:
        det_assert(worker->seen.is_circuit_open && worker->workers->circuits_open > 0);
        break;
    case CIRCUIT_PROBING:
        det_assert(faults->circuit_attempts > 0 && worker->workers->circuits_open > 0);
        break;
    case circuit_state_count:
        det_assert(false);
        break;
    }
}

static void step(struct det_worker *worker, enum circuit_event_kind event)
{
    struct det_worker_faults *faults = worker->faults;
    const struct det_transition *transition =
        det_machine_step(&circuit_machine, faults->circuit, event);

    det_assert(transition->outcome == DET_OUTCOME_GOTO);
    faults->circuit = (uint8_t)transition->to;
    faults->circuit_at = worker->workers->now;
    show_open(worker, faults->circuit == CIRCUIT_OPEN);
    assert_circuit(worker);
    worker->due = 0;
}

bool det_circuit_is_open(const struct det_worker *worker)
{
    return worker->faults && worker->faults->circuit == CIRCUIT_OPEN;
}

static void publish_change(
    struct det_worker *worker, enum det_worker_event_kind kind, const char *reason, uint64_t number)
{
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = kind, .reason = reason, .number = number });
}

static void open_it(struct det_worker *worker, const char *reason)
{
    struct det_workers *workers = worker->workers;
    struct det_worker_faults *faults = worker->faults;
    uint64_t chance = (uint64_t)det_workers_chance(workers, INT64_MAX) << 1;

    if (faults->circuit == CIRCUIT_CLOSED) {
        faults->circuit_since = workers->now;
        faults->circuit_attempts = 0;
        workers->circuits_open++;
    }
    faults->circuit_delay = det_backoff_delay(
        &workers->limits.circuit_backoff, faults->circuit_attempts, faults->circuit_delay, chance);
    step(worker, CIRCUIT_TRIP);
    publish_change(
        worker, DET_WORKER_EVENT_CIRCUIT_OPENED, reason,
        det_intensity_count(faults->failures, workers->now));
    if (faults->circuit_attempts == ATTEMPTS_ESCALATED)
        publish_change(
            worker, DET_WORKER_EVENT_CIRCUIT_ESCALATED,
            "its children keep failing: check their reasons, fix them, then restart the worker",
            faults->circuit_attempts);
}

void det_circuit_failure(struct det_worker *child, const char *reason)
{
    struct det_worker *worker = child->parent;
    struct det_worker_faults *faults;

    if (!worker || !worker->parent || worker->shutdown_wanted)
        return;
    faults = det_worker_faults(worker);
    if (!faults || (!faults->failures && det_intensity_open(
                                             &worker->workers->limits.circuit,
                                             worker->workers->allocator, &faults->failures, NULL)))
        return;
    if (det_intensity_note(faults->failures, worker->workers->now) &&
        faults->circuit != CIRCUIT_PROBING)
        return;
    if (faults->circuit != CIRCUIT_OPEN)
        open_it(worker, reason);
}

static void heal(struct det_worker *worker)
{
    struct det_worker_faults *faults = worker->faults;
    det_time paused = worker->workers->now - faults->circuit_since;

    step(worker, CIRCUIT_HEAL);
    det_assert(worker->workers->circuits_open > 0);
    worker->workers->circuits_open--;
    faults->circuit_delay = 0;
    det_intensity_clear(faults->failures);
    publish_change(
        worker, DET_WORKER_EVENT_CIRCUIT_CLOSED, NULL, (uint64_t)(paused / DET_MILLISECOND));
}

void det_circuit_forget(struct det_worker *worker)
{
    struct det_worker_faults *faults = worker->faults;

    if (!faults)
        return;
    det_assert(
        worker->workers->circuits_open >=
        (uint32_t)(faults->circuit != CIRCUIT_CLOSED) + (faults->panic_until != 0));
    worker->workers->circuits_open -= faults->circuit != CIRCUIT_CLOSED;
    worker->workers->circuits_open -= faults->panic_until != 0;
}

/* True if the worker is down, restarts, or must run and has no observation yet. */
static bool is_unproven(const struct det_worker *worker)
{
    if (worker->health.conditions)
        return true;
    if (worker->rest.is_off || worker->leaving.is_unwanted)
        return false;
    if (worker->shutdown_wanted)
        return true;
    return !det_worker_stop_reason(worker) &&
           (!det_life_is_live(worker) || (worker->kind->collect && !worker->observing.observed_at));
}

/* The first descendant that prevents the circuit from closing; NULL: none. A descendant that waits
 * for its next attempt, or has no new observation, has not failed again, but has not proven to work
 * either. */
static const struct det_worker *find_unproven(const struct det_worker *top)
{
    for (const struct det_worker *worker = top; (worker = det_worker_after(worker, top));)
        if (is_unproven(worker))
            return worker;
    return NULL;
}

void det_circuit_visit(struct det_worker *worker)
{
    struct det_worker_faults *faults = worker->faults;
    det_time at = faults->circuit_at + faults->circuit_delay;

    if (faults->circuit == CIRCUIT_CLOSED)
        return;
    if (worker->workers->now < at) {
        det_worker_due(worker, at);
        return;
    }
    if (faults->circuit == CIRCUIT_PROBING) {
        if (find_unproven(worker))
            det_worker_due(worker, worker->workers->now + faults->circuit_delay);
        else
            heal(worker);
        return;
    }
    faults->circuit_attempts++;
    step(worker, CIRCUIT_PROBE);
    publish_change(worker, DET_WORKER_EVENT_CIRCUIT_PROBING, NULL, faults->circuit_attempts);
    det_worker_due(worker, worker->workers->now + faults->circuit_delay);
}

void det_panic_note(
    struct det_worker *worker, enum det_worker_event_kind kind, const char *text,
    const char *action)
{
    struct det_workers *workers = worker->workers;
    struct det_worker_faults *faults = det_worker_faults(worker);
    uint32_t count = 1;
    bool is_fine = true;

    if (faults &&
        (faults->panics ||
         !det_intensity_open(&workers->limits.panics, workers->allocator, &faults->panics, NULL))) {
        is_fine = det_intensity_note(faults->panics, workers->now);
        count = det_intensity_count(faults->panics, workers->now);
        is_fine = is_fine && count < workers->limits.panics.count;
    }
    det_worker_publish(
        worker, (struct det_worker_event){ .kind = kind,
                                           .code = DET_ERR_ACTION_FAILED,
                                           .action = action,
                                           .reason = text,
                                           .number = count });
    if (faults)
        snprintf(
            faults->panic_reason, sizeof faults->panic_reason, "paused after panics: %.120s", text);
    if (is_fine || faults->panic_until)
        return;
    faults->panic_until = workers->now + workers->limits.panics.window;
    show_open(worker, true);
    workers->circuits_open++;
    publish_change(worker, DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED, text, count);
    det_circuit_failure(worker, text);
}

bool det_panic_is_open(struct det_worker *worker)
{
    struct det_worker_faults *faults = worker->faults;

    if (!faults->panic_until)
        return false;
    if (det_intensity_count(faults->panics, worker->workers->now)) {
        det_worker_set_reason(worker, faults->panic_reason);
        return true;
    }
    det_assert(worker->workers->circuits_open > 0);
    faults->panic_until = 0;
    show_open(worker, det_circuit_is_open(worker));
    worker->workers->circuits_open--;
    publish_change(worker, DET_WORKER_EVENT_PANIC_CIRCUIT_CLOSED, NULL, 0);
    return false;
}
