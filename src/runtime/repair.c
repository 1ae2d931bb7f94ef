/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* repair.c - derives the damaged head of an instance from its snapshot, or from its start, and the
 * later events. The store proves by the checksum that the result equals the head; so a derivation
 * need not be certain. */
#include <detent/tool/machine.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "machine/history_replay.h"
#include "runtime/runtime.h"

struct derivation {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    void *data;
    struct det_store_loaded *loaded;
    struct det_error error; /* the reason of a failure */
};

static void set_reason(struct derivation *derivation, const char *reason)
{
    snprintf(
        derivation->loaded->reason, sizeof derivation->loaded->reason, "%s", reason ? reason : "");
}

static int fail_to_replay(struct derivation *derivation, const struct det_store_event *row)
{
    const struct det_machine *machine = derivation->machine;

    det_error_set(
        &derivation->error, DET_ERR_REPLAY, "event %llu does not fit the definition",
        (unsigned long long)row->sequence);
    derivation->error.state = machine->states[row->from].name;
    derivation->error.event = machine->events[row->event].name;
    derivation->error.expected = row->sequence;
    return DET_ERR_REPLAY;
}

/* Applies the recorded transition to the data, and notes a stop. */
static int apply(struct derivation *derivation, const struct det_store_event *row)
{
    const struct det_transition *path;

    path = det_replay_transition(derivation->machine, row->from, row->event, row->choice);
    if (!path || path->outcome != row->outcome || path->to != row->to)
        return fail_to_replay(derivation, row);
    if (row->outcome == DET_OUTCOME_STOP)
        set_reason(derivation, path->more ? path->more->reason : NULL);
    return det_machine_apply(
        derivation->machine, path, derivation->data, row->value, &derivation->error);
}

/* The reason of a manual stop is in the row. */
static int derive_event(void *context, const struct det_store_event *row)
{
    struct derivation *derivation = context;
    struct det_store_head *head = &derivation->loaded->head;
    int r = 0;

    if (row->sequence != head->sequence + 1)
        return det_error_set(
            &derivation->error, DET_ERR_CORRUPT, "event %llu is missing",
            (unsigned long long)head->sequence + 1);
    if (row->event != UINT16_MAX && row->outcome <= DET_OUTCOME_STOP)
        r = apply(derivation, row);
    head->sequence = row->sequence;
    head->visit = row->visit;
    head->state = row->to;
    head->transition_count += row->outcome == DET_OUTCOME_GOTO;
    if (row->outcome == DET_OUTCOME_GOTO || row->outcome == DET_OUTCOME_STOP)
        head->last_transition_at = row->at;
    head->is_stopped = head->is_stopped || row->outcome == DET_OUTCOME_STOP;
    return r;
}

static int begin_at_start(struct derivation *derivation, struct det_store_instance *instance)
{
    const struct det_runtime *runtime = derivation->runtime;
    struct det_store_start start = { .data = derivation->data };
    int r = DET_ERR_NOT_FOUND;

    if (runtime->ops->start)
        r = runtime->ops->start(runtime->store, instance, &start);
    if (r == DET_ERR_NOT_FOUND)
        return det_error_set(
            &derivation->error, DET_ERR_CORRUPT, "it has neither a snapshot nor its start");
    derivation->loaded->head = (struct det_store_head){
        .visit = 1,
        .started_at = start.at,
        .last_transition_at = start.at,
        .state = start.state,
    };
    return r;
}

static int begin_at_snapshot(struct derivation *derivation, struct det_store_instance *instance)
{
    const struct det_runtime *runtime = derivation->runtime;
    struct det_store_snapshot snapshot = { .loaded = { .data = derivation->data } };
    int r;

    r = runtime->ops->snapshot(runtime->store, instance, &snapshot);
    if (r == DET_ERR_NOT_FOUND)
        return r;
    if (r < 0)
        return det_error_set(&derivation->error, r, "its snapshot: %s", det_error_text(r));
    derivation->loaded->head = snapshot.loaded.head;
    if (snapshot.loaded.head.is_stopped)
        set_reason(derivation, snapshot.loaded.reason);
    return 0;
}

static int go_on(struct derivation *derivation, struct det_store_instance *instance)
{
    const struct det_runtime *runtime = derivation->runtime;
    int r;

    r = runtime->ops->events(
        runtime->store, instance, derivation->loaded->head.sequence, derive_event, derivation);
    if (r < 0 && derivation->error.code != r)
        det_error_set(&derivation->error, r, "its events: %s", det_error_text(r));
    return r;
}

static int derive(
    void *context, struct det_store_instance *instance, struct det_store_loaded *loaded)
{
    struct derivation *derivation = context;
    int r;

    derivation->loaded = loaded;
    loaded->data = derivation->data;
    r = begin_at_snapshot(derivation, instance);
    if (r == DET_ERR_NOT_FOUND)
        r = begin_at_start(derivation, instance);
    if (r == 0)
        r = go_on(derivation, instance);
    if (!loaded->head.is_stopped)
        set_reason(derivation, NULL);
    return r;
}

static int explain(const struct derivation *derivation, const char *id, int r, struct det_error *e)
{
    const char *why = det_error_text(r);

    if (r == 0)
        return 0;
    if (derivation->error.code == r)
        why = derivation->error.text;
    else if (r == DET_ERR_CORRUPT)
        why = "the head derived from its events does not match the checksum";
    else if (r == DET_ERR_EXISTS)
        why = "the head is not damaged";
    det_error_set(e, r, "%s %s cannot be repaired: %s", derivation->machine->name, id, why);
    if (e && r == DET_ERR_REPLAY) {
        e->state = derivation->error.state;
        e->event = derivation->error.event;
        e->expected = derivation->error.expected;
    }
    return r;
}

int det_runtime_repair(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr)
{
    struct derivation derivation = { .runtime = runtime, .machine = machine };
    struct det_served *served;
    int r;

    det_assert(runtime && machine && instance);
    r = det_served_get(runtime, machine, reterr, &served);
    if (r < 0)
        return r;
    if (!runtime->ops->repair)
        return det_error_set(reterr, DET_ERR_UNSUPPORTED, "this store does not support repair");
    derivation.data = det_alloc_zero(runtime->allocator, served->data_size);
    if (!derivation.data)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "out of memory: cannot repair %.64s", instance);
    r = runtime->ops->repair(runtime->store, machine, instance, derive, &derivation);
    det_free(runtime->allocator, derivation.data, served->data_size);
    return explain(&derivation, instance, r, reterr);
}
