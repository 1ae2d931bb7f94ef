/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kind.c - validates a kind of worker, and names of phases. */
#include <string.h>

#include <detent/workers.h>

#define NAMES "abcdefghijklmnopqrstuvwxyz0123456789_"

const char *det_phase_name(enum det_phase phase)
{
    static const char *const names[] = {
#define DET_PHASE(name, text) text,
        DET_PHASES(DET_PHASE)
#undef DET_PHASE
    };

    return (size_t)phase < sizeof names / sizeof names[0] ? names[phase] : "unknown";
}

const char *det_worker_event_name(enum det_worker_event_kind kind)
{
    static const char *const names[] = {
#define DET_WORKER_EVENT(name, wire, level, text) #wire,
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
    };

    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

static bool is_name(const char *text)
{
    return text && *text && strlen(text) <= DET_WORKER_NAME_MAX && !text[strspn(text, NAMES)];
}

static bool is_stopping(enum det_phase phase)
{
    return phase == DET_PHASE_STOPPED || phase == DET_PHASE_STOPPING;
}

/* A linear search: names are few, and this runs once per kind. */
static int check_state(const struct det_worker_kind *kind, uint16_t index, struct det_error *reterr)
{
    const struct det_worker_state *state = &kind->states[index];

    if (!is_name(state->name) || !state->next || (unsigned)state->phase > DET_PHASE_STOPPING)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "worker %s: state %u has no name of [a-z0-9_], no phase or no next()", kind->name,
            (unsigned)index);
    for (uint16_t i = 0; i < index; i++)
        if (!strcmp(kind->states[i].name, state->name))
            return det_error_set(
                reterr, DET_ERR_INVALID, "worker %s: two states are named %s", kind->name,
                state->name);
    if (is_stopping(state->phase))
        return 0;
    if (state->on_stop >= kind->state_count || !is_stopping(kind->states[state->on_stop].phase))
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "worker %s: state %s does not stop into a state of the phase STOPPED or STOPPING",
            kind->name, state->name);
    return 0;
}

static int check_action(
    const struct det_worker_kind *kind, uint16_t index, struct det_error *reterr)
{
    const struct det_worker_action *action = &kind->actions[index];

    if (!is_name(action->name) || !action->run || action->timeout < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "worker %s: action %u has no name of [a-z0-9_], no function or a negative timeout",
            kind->name, (unsigned)index);
    for (uint16_t i = 0; i < index; i++)
        if (!strcmp(kind->actions[i].name, action->name))
            return det_error_set(
                reterr, DET_ERR_INVALID, "worker %s: two actions are named %s", kind->name,
                action->name);
    return 0;
}

/* Names that the supervisor adds to a worker's documents; NULL at the end. */
static const char *const reserved_of_observed[] = { "state", "phase",       "reason",
                                                    "since", "degraded_by", NULL };
static const char *const reserved_of_desired[] = { "shutdown_requested", "disabled", NULL };

static int check_fields(
    const struct det_worker_kind *kind, struct det_record_ref ref, const char *const *taken,
    struct det_error *reterr)
{
    const struct det_record *record = det_record_of(ref);

    for (; record && *taken; taken++)
        if (det_record_field(record, *taken))
            return det_error_set(
                reterr, DET_ERR_INVALID,
                "worker %s: record %s has a field %s, a name that its document uses; rename the "
                "field",
                kind->name, record->name, *taken);
    return 0;
}

static int check_records(const struct det_worker_kind *kind, struct det_error *reterr)
{
    const struct det_record_ref *refs[] = { &kind->config, &kind->desired, &kind->observed };
    int r;

    for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
        const struct det_record *record = det_record_of(*refs[i]);

        if (!record)
            continue;
        r = det_record_check(record, reterr);
        if (r < 0)
            return r;
    }
    r = check_fields(kind, kind->desired, reserved_of_desired, reterr);
    if (r == 0)
        r = check_fields(kind, kind->observed, reserved_of_observed, reterr);
    if (r < 0)
        return r;
    if (det_record_of(kind->config) && !kind->derive)
        return det_error_set(
            reterr, DET_ERR_INVALID, "worker %s has a config record and no derive()", kind->name);
    return 0;
}

int det_worker_kind_check(const struct det_worker_kind *kind, struct det_error *reterr)
{
    int r;

    if (!is_name(kind->name))
        return det_error_set(
            reterr, DET_ERR_INVALID, "a kind of worker has a name of 1 to %d bytes of [a-z0-9_]",
            DET_WORKER_NAME_MAX);
    if (!kind->states || !kind->state_count || kind->state_count > DET_WORKER_STATES_MAX ||
        kind->action_count > DET_WORKER_ACTIONS_MAX || (kind->action_count && !kind->actions))
        return det_error_set(
            reterr, DET_ERR_INVALID, "worker %s has 1 to %d states and at most %d actions",
            kind->name, DET_WORKER_STATES_MAX, DET_WORKER_ACTIONS_MAX);
    if (kind->observe_every < 0 || kind->observe_timeout < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "worker %s has a negative time", kind->name);
    if (!kind->collect && det_record_of(kind->observed))
        return det_error_set(
            reterr, DET_ERR_INVALID, "worker %s has an observed record and no collect()",
            kind->name);
    if (kind->states[0].phase != DET_PHASE_STOPPED)
        return det_error_set(
            reterr, DET_ERR_INVALID, "worker %s: its first state %s is not of the phase STOPPED",
            kind->name, kind->states[0].name ? kind->states[0].name : "");
    for (uint16_t i = 0; i < kind->state_count; i++) {
        r = check_state(kind, i, reterr);
        if (r < 0)
            return r;
    }
    for (uint16_t i = 0; i < kind->action_count; i++) {
        r = check_action(kind, i, reterr);
        if (r < 0)
            return r;
    }
    return check_records(kind, reterr);
}
