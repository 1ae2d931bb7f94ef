/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check.c - rules about a whole definition: missing rows, and their place. They include overridden
 * rows, as the compiler does. */
#include "machine/builder_build.h"

static void check_some(struct det_build *build, enum det_build_kind kind)
{
    if (det_build_count(build, kind) == 0)
        (void)det_build_report(
            &build->findings, DET_RULE_NO_STATES, NULL, &build->builder->name, "%s has no %ss",
            build->name, det_build_kind_noun(kind));
}

static void report_second_initial(struct det_build *build, const struct det_build_row *state)
{
    const struct det_build_row *first =
        det_build_thing(build, DET_BUILD_STATE, (size_t)build->initial);
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_TWO_INITIAL, state, &state->name,
        "%s is a second initial state of %s, after %s", state->name.text, build->name,
        first->name.text);

    det_build_other(&build->findings, finding, first, &first->name);
}

static void find_initial(struct det_build *build)
{
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_STATE); i++) {
        const struct det_build_row *state = det_build_thing(build, DET_BUILD_STATE, i);

        if ((state->state.flags & DET_STATE_INITIAL) == 0)
            continue;
        if (build->initial < 0)
            build->initial = (int32_t)i;
        else
            report_second_initial(build, state);
    }
}

static void check_initial(struct det_build *build)
{
    const struct det_build_row *first;
    struct det_diagnostic *finding;

    if (build->initial >= 0 || det_build_count(build, DET_BUILD_STATE) == 0)
        return;
    first = det_build_thing(build, DET_BUILD_STATE, 0);
    finding = det_build_report(
        &build->findings, DET_RULE_NO_INITIAL, first, &first->name, "%s has no initial state",
        build->name);
    det_build_hint(
        &build->findings, finding, "write STATE(%s, %s, INITIAL) if it starts there",
        first->name.text, first->wire.text);
}

static void check_entered(struct det_build *build, const struct det_build_row *state)
{
    if (!state->is_used && (state->state.flags & DET_STATE_INITIAL) == 0)
        (void)det_build_report(
            &build->findings, DET_RULE_NOT_ENTERED, state, &state->name,
            "%s is entered by no transition of %s", state->name.text, build->name);
}

static void check_taken(struct det_build *build, const struct det_build_row *event)
{
    struct det_diagnostic *finding;

    if (!event->is_used) {
        finding = det_build_report(
            &build->findings, DET_RULE_NOT_TAKEN, event, &event->name,
            "%s is accepted by no transition of %s", event->name.text, build->name);
        det_build_hint(
            &build->findings, finding, "add a transition: ON(STATE, %s, ...)", event->name.text);
    }
    /* A dispatch function may produce any event. */
    if (event->event.is_internal && !event->event.is_produced && !det_build_is_component(build))
        (void)det_build_report(
            &build->findings, DET_RULE_NOT_PRODUCED, event, &event->name,
            "%s is internal, and produced by no effect or timeout of %s", event->name.text,
            build->name);
}

static bool is_answered(
    const struct det_build *build, const struct det_build_name *state,
    const struct det_build_name *event)
{
    if (state->id < 0 || event->id < 0)
        return true; /* reported as unknown already */
    return det_build_cell(build, (size_t)state->id, (size_t)event->id) != NULL;
}

static void check_after(struct det_build *build, const struct det_build_row *row)
{
    const struct det_build_name *event = &row->about.timeout.event;

    for (uint32_t i = 0; i < row->about.states.count; i++) {
        const struct det_build_name *state = &row->about.states.items[i];
        struct det_diagnostic *finding;

        if (is_answered(build, state, event))
            continue;
        finding = det_build_report(
            &build->findings, DET_RULE_TIMEOUT_UNANSWERED, row, state,
            "%s of %s has a timeout with %s, but does not accept it", state->text, build->name,
            event->text);
        det_build_hint(
            &build->findings, finding, "add a transition: ON(%s, %s, ...)", state->text,
            event->text);
    }
}

static void check_within(struct det_build *build, const struct det_build_row *row)
{
    const struct det_build_name *event = &row->on.within.event;
    const struct det_build_name *state = &row->on.to;
    struct det_diagnostic *finding;

    if (is_answered(build, state, event))
        return;
    finding = det_build_report(
        &build->findings, DET_RULE_TIMEOUT_UNANSWERED, row, event,
        "%s of %s is entered with the timeout %s, but does not accept it", state->text, build->name,
        event->text);
    det_build_hint(
        &build->findings, finding, "add a transition: ON(%s, %s, ...)", state->text, event->text);
}

static void check_timeouts(struct det_build *build)
{
    for (const struct det_build_row *row = build->builder->rows; row != NULL; row = row->next) {
        if (row->kind == DET_BUILD_AFTER)
            check_after(build, row);
        else if (row->kind == DET_BUILD_ON)
            check_within(build, row);
    }
}

void det_check_rules(struct det_build *build)
{
    find_initial(build);
    if (build->is_row_missing)
        return;
    check_some(build, DET_BUILD_STATE);
    check_some(build, DET_BUILD_EVENT);
    check_initial(build);
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_STATE); i++)
        check_entered(build, det_build_thing(build, DET_BUILD_STATE, i));
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_EVENT); i++)
        check_taken(build, det_build_thing(build, DET_BUILD_EVENT, i));
    check_timeouts(build);
    det_check_component(build);
}
