/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_component.c - rows that only a component has: resolves their names, and checks what a
 * component must and must not have. fsm/component_checks.h has the same rules for the compiler. */
#include <string.h>

#include "machine/builder_build.h"

/* In the order of the kinds. */
static const char *row_word(const struct det_build_row *row)
{
    static const char *const words[] = { "DISPATCH", "FAILURE", "CLOSED", "COMPLETION",
                                         "INVARIANT" };

    return words[row->kind - DET_BUILD_DISPATCH];
}

/* Returns a name of the row, as the place of a finding. */
static const struct det_build_name *name_of(const struct det_build_row *row)
{
    if (row->component.states.count > 0)
        return &row->component.states.items[0];
    return row->component.event.text != NULL ? &row->component.event : &row->component.function;
}

/* A missing FSM_CONTEXT is reported once. */
static bool check_context(struct det_build *build, const struct det_build_row *row)
{
    struct det_diagnostic *finding;

    if (det_build_is_component(build) || build->is_component_reported)
        return det_build_is_component(build);
    build->is_component_reported = true;
    finding = det_build_report(
        &build->findings, DET_RULE_COMPONENT_ROW, row, name_of(row),
        "%s is permitted only in a component, and %s is not a component", row_word(row),
        build->name);
    det_build_hint(
        &build->findings, finding, "name the struct of its context: #define FSM_CONTEXT");
    return false;
}

/* A C function has one type: a guard cannot also be a dispatch function. */
static void check_function(struct det_build *build, const struct det_build_row *row)
{
    const struct det_build_name *function = &row->component.function;
    size_t kind;

    if (function->text == NULL)
        return;
    kind = det_build_kind_named(build, function->text);
    if (kind >= DET_BUILD_EFFECT && kind <= DET_BUILD_FILL)
        (void)det_build_report(
            &build->findings, DET_RULE_DUPLICATE_NAME, row, function,
            "%s is already %s of %s, and cannot be the function of %s as well", function->text,
            det_build_kind_text((enum det_build_kind)kind), build->name, row_word(row));
}

static void check_dispatch(struct det_build *build, const struct det_build_row *row)
{
    bool is_block = row->component.mode == DET_DISPATCH_BLOCK;

    if (is_block && row->component.function.text != NULL)
        (void)det_build_report(
            &build->findings, DET_RULE_ROW_ARGUMENTS, row, &row->component.function,
            "DISPATCH with BLOCK takes no function");
    else if (!is_block && row->component.function.text == NULL)
        (void)det_build_report(
            &build->findings, DET_RULE_ROW_ARGUMENTS, row, name_of(row),
            "DISPATCH with POLL or IGNORE needs a function");
}

static void report_second(
    struct det_build *build, enum det_rule rule, const struct det_build_row *row,
    const struct det_build_name *name, const struct det_build_row *first)
{
    struct det_diagnostic *finding = det_build_report(
        &build->findings, rule, row, name, "%s of %s already has its %s",
        rule == DET_RULE_COMPONENT_TWICE ? "the component" : name->text, build->name,
        row_word(row));

    det_build_other(&build->findings, finding, first, name_of(first));
}

/* Each state remembers its row of this kind. */
static void attach_row(struct det_build *build, struct det_build_row *row)
{
    for (uint32_t i = 0; i < row->component.states.count; i++) {
        const struct det_build_name *name = &row->component.states.items[i];
        struct det_build_row *state = det_build_named(build, DET_BUILD_STATE, name);
        const struct det_build_row **slot;

        if (state == NULL || name->is_guess)
            continue;
        slot = row->kind == DET_BUILD_DISPATCH ? &state->state.dispatch : &state->state.closed;
        if (*slot != NULL)
            report_second(build, DET_RULE_DISPATCH_TWICE, row, name, *slot);
        else
            *slot = row;
        if ((state->state.flags & DET_STATE_FINAL) != 0)
            (void)det_build_report(
                &build->findings, DET_RULE_DISPATCH_TWICE, row, name,
                "%s of %s is FINAL, and cannot have %s", name->text, build->name, row_word(row));
    }
}

static void attach_once(
    struct det_build *build, const struct det_build_row *row, const struct det_build_row **slot)
{
    if (*slot != NULL)
        report_second(build, DET_RULE_COMPONENT_TWICE, row, name_of(row), *slot);
    else
        *slot = row;
}

void det_build_resolve_component(struct det_build *build, struct det_build_row *row)
{
    bool has_states = row->kind == DET_BUILD_DISPATCH || row->kind == DET_BUILD_CLOSED;

    if (!check_context(build, row))
        return;
    if (has_states) {
        det_build_resolve_some(build, row, DET_BUILD_STATE, &row->component.states);
        attach_row(build, row);
    }
    det_build_resolve_name(build, row, DET_BUILD_EVENT, &row->component.event);
    check_function(build, row);
    if (row->kind == DET_BUILD_DISPATCH)
        check_dispatch(build, row);
    else if (row->kind == DET_BUILD_FAILURE)
        attach_once(build, row, &build->failure);
    else if (row->kind == DET_BUILD_COMPLETION)
        attach_once(build, row, &build->completion);
    else if (row->kind == DET_BUILD_INVARIANT)
        attach_once(build, row, &build->invariant);
}

static bool is_taken(
    const struct det_build *build, const struct det_build_row *state,
    const struct det_build_name *event)
{
    return event->id < 0 || det_build_cell(build, state->id, (size_t)event->id) != NULL;
}

static void check_state(struct det_build *build, const struct det_build_row *state)
{
    struct det_diagnostic *finding;

    if ((state->state.flags & DET_STATE_FINAL) != 0)
        return;
    if (state->state.dispatch == NULL) {
        finding = det_build_report(
            &build->findings, DET_RULE_DISPATCH_MISSING, state, &state->name,
            "%s of %s has no DISPATCH", state->name.text, build->name);
        det_build_hint(
            &build->findings, finding, "write DISPATCH(%s, BLOCK) if it only waits for events",
            state->name.text);
    }
    if (build->failure == NULL || is_taken(build, state, &build->failure->component.event))
        return;
    finding = det_build_report(
        &build->findings, DET_RULE_FAILURE_UNTAKEN, state, &state->name,
        "%s of %s does not accept %s, the failure event", state->name.text, build->name,
        build->failure->component.event.text);
    det_build_other(&build->findings, finding, build->failure, &build->failure->component.event);
    det_build_hint(
        &build->findings, finding, "add a transition: ON(%s, %s, ...)", state->name.text,
        build->failure->component.event.text);
}

static void check_closed(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *name)
{
    const struct det_build_row *state = det_build_named(build, DET_BUILD_STATE, name);
    const struct det_build_row *dispatch = state != NULL ? state->state.dispatch : NULL;
    const char *problem = NULL;

    if (dispatch == NULL || name->is_guess)
        return;
    if (dispatch->component.mode == DET_DISPATCH_IGNORE)
        problem = "does not receive events from outside";
    else if (!is_taken(build, state, &row->component.event))
        problem = "does not accept the event";
    if (problem != NULL)
        (void)det_build_report(
            &build->findings, DET_RULE_CLOSED_UNTAKEN, row, name,
            "CLOSED(%s, %s) has no effect: %s of %s %s", name->text, row->component.event.text,
            name->text, build->name, problem);
}

static void check_failure(struct det_build *build)
{
    struct det_diagnostic *finding;

    if (build->failure != NULL)
        return;
    finding = det_build_report(
        &build->findings, DET_RULE_FAILURE_MISSING, NULL, &build->builder->name,
        "%s has no failure event", build->name);
    det_build_hint(
        &build->findings, finding, "write FAILURE(EVENT), and accept the event in every state");
}

/* One function cannot have two roles; those of states may be shared. */
static void check_roles(struct det_build *build, const struct det_build_row *row)
{
    const struct det_build_row *roles[] = { build->completion, build->invariant };

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const char *text = roles[i] != NULL ? roles[i]->component.function.text : NULL;

        if (text != NULL && roles[i]->kind > row->kind && row->component.function.text != NULL &&
            strcmp(text, row->component.function.text) == 0)
            (void)det_build_report(
                &build->findings, DET_RULE_DUPLICATE_NAME, roles[i], &roles[i]->component.function,
                "%s is already the function of %s, and cannot be "
                "that of %s as well",
                text, row_word(row), row_word(roles[i]));
    }
}

static void report_instance(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *name,
    const char *what)
{
    (void)det_build_report(
        &build->findings, DET_RULE_INSTANCE_ROW, row, name,
        "%s is not permitted in %s, which is a component", what, build->name);
}

static bool is_kept_for_later(enum det_unhandled policy)
{
    return policy == DET_UNHANDLED_DEFER || policy == DET_UNHANDLED_DEAD_LETTER;
}

/* Reports declarations that only instances have. */
static void check_thing(struct det_build *build, const struct det_build_row *row)
{
    if (row->kind == DET_BUILD_UPDATE)
        report_instance(build, row, &row->name, "UPDATE");
    else if (row->kind == DET_BUILD_FILL)
        report_instance(build, row, &row->name, "FILL");
    else if (row->kind == DET_BUILD_TIMER)
        report_instance(build, row, &row->name, "TIMER");
}

static void check_row(struct det_build *build, const struct det_build_row *row)
{
    if (row->kind < DET_BUILD_THINGS)
        check_thing(build, row);
    else if (row->kind == DET_BUILD_POLICY && is_kept_for_later(row->policy))
        report_instance(build, row, &row->name, "a policy that stores deferred events");
    else if (row->kind == DET_BUILD_DISPATCH || row->kind == DET_BUILD_COMPLETION)
        check_roles(build, row);
    for (uint32_t i = 0; row->kind == DET_BUILD_CLOSED && i < row->component.states.count; i++)
        check_closed(build, row, &row->component.states.items[i]);
}

static void check_event(struct det_build *build, const struct det_build_row *event)
{
    const struct det_record *payload = event->event.payload;

    if (is_kept_for_later(event->event.unhandled))
        report_instance(build, event, &event->name, "a policy that stores deferred events");
    if (payload != NULL && payload->size + 2 * sizeof(unsigned) > DET_COMPONENT_EVENT_MAX)
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, event, &event->name,
            "%s of %s carries %u bytes; an event of a component has at most %d with its kind",
            event->name.text, build->name, (unsigned)payload->size, DET_COMPONENT_EVENT_MAX);
}

void det_check_component(struct det_build *build)
{
    if (!det_build_is_component(build))
        return;
    if (build->builder->data != NULL)
        report_instance(build, NULL, &build->builder->name, "a record of data");
    if (is_kept_for_later(build->builder->unhandled))
        report_instance(build, NULL, &build->builder->name, "a policy that stores deferred events");
    check_failure(build);
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_STATE); i++)
        check_state(build, det_build_thing(build, DET_BUILD_STATE, i));
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_EVENT); i++)
        check_event(build, det_build_thing(build, DET_BUILD_EVENT, i));
    for (const struct det_build_row *row = build->builder->rows; row != NULL; row = row->next)
        check_row(build, row);
}

/* Returns true for an event that ends a component. Several may arrive: a second signal, a second
 * request. */
static bool is_stop(const struct det_build_row *event)
{
    static const char *const names[] = { "stop", "drain", "shutdown", "shut_down" };

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !event->event.is_internal; i++) {
        if (strcmp(event->wire.text, names[i]) == 0)
            return true;
    }
    return false;
}

/* Checks that a state to which a stop leads accepts it. A repetition of the same stop is ignored,
 * but a component that was stopped in another way would fail while it drains. */
static void check_second_stop(
    struct det_build *build, const struct det_build_row *event, const struct det_build_row *row)
{
    const struct det_build_row *state =
        det_build_thing(build, DET_BUILD_STATE, (size_t)row->on.to.id);
    struct det_diagnostic *finding;

    if ((state->state.flags & DET_STATE_FINAL) != 0 ||
        det_build_cell(build, state->id, event->id) != NULL)
        return;
    finding = det_build_report(
        &build->findings, DET_RULE_STOP_AGAIN, row, &row->on.to,
        "%s of %s does not accept %s: a repetition of the stop that led there is ignored, any "
        "other stop fails the component",
        state->name.text, build->name, event->name.text);
    det_build_hint(
        &build->findings, finding, "write STAY(%s, %s), or UNHANDLED(%s, IGNORE)", state->name.text,
        event->name.text, event->name.text);
}

/* Expects a component without errors. */
void det_check_stops(struct det_build *build)
{
    for (size_t i = 0; i < build->ons.count && det_build_is_component(build); i++) {
        const struct det_build_row *row = build->ons.items[i];

        for (uint32_t j = 0; j < row->on.events.count && row->on.outcome == DET_OUTCOME_GOTO; j++) {
            const struct det_build_row *event =
                det_build_named(build, DET_BUILD_EVENT, &row->on.events.items[j]);

            if (event != NULL && is_stop(event) &&
                det_build_policy(build, event) == DET_UNHANDLED_ERROR)
                check_second_stop(build, event, row);
        }
    }
}
