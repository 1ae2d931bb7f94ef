/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_flow.c - rules that a compiler cannot check: where the transitions of the resulting table
 * lead, and unused declarations. Only a definition without errors is checked, so every name has its
 * id. */
#include "base/assert.h"
#include "machine/builder_build.h"

static bool leaves_state(const struct det_build_row *row, size_t state)
{
    return row->on.outcome == DET_OUTCOME_STOP ||
           (row->on.outcome == DET_OUTCOME_GOTO && (size_t)row->on.to.id != state);
}

/* Marks every state that a path from the initial one reaches. NULL if memory failed. */
static const bool *find_reachable(struct det_build *build)
{
    size_t states = det_build_count(build, DET_BUILD_STATE);
    size_t events = det_build_count(build, DET_BUILD_EVENT);
    bool *is_reached = det_build_scratch(build, states, sizeof *is_reached);
    uint32_t *queue = det_build_scratch(build, states, sizeof *queue);
    size_t head = 0, tail = 0;

    if (is_reached == NULL || queue == NULL)
        return NULL;
    is_reached[build->initial] = true;
    queue[tail++] = (uint32_t)build->initial;
    while (head < tail) {
        uint32_t state = queue[head++];

        for (size_t event = 0; event < events; event++) {
            struct det_build_row_cursor cursor = { 0 };
            const struct det_build_row *row;

            while ((row = det_build_next_row(build, state, event, &cursor)) != NULL) {
                if (row->on.outcome != DET_OUTCOME_GOTO || is_reached[row->on.to.id])
                    continue;
                is_reached[row->on.to.id] = true;
                det_assert(tail < states);
                queue[tail++] = (uint32_t)row->on.to.id;
            }
        }
    }
    return is_reached;
}

static void report_unreachable(struct det_build *build, const struct det_build_row *state)
{
    const struct det_build_row *initial =
        det_build_thing(build, DET_BUILD_STATE, (size_t)build->initial);

    (void)det_build_report(
        &build->findings, DET_RULE_UNREACHABLE, state, &state->name,
        "%s cannot be reached from %s, where %s starts", state->name.text, initial->name.text,
        build->name);
}

static void report_dead_end(struct det_build *build, const struct det_build_row *state)
{
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_DEAD_END, state, &state->name,
        "no transition of %s leaves %s, and it is not final", build->name, state->name.text);

    /* In a spec a state is INITIAL or FINAL, not both. */
    if ((state->state.flags & DET_STATE_INITIAL) != 0)
        det_build_hint(
            &build->findings, finding, "add a transition: ON(%s, EVENT, ...)", state->name.text);
    else
        det_build_hint(
            &build->findings, finding, "write STATE(%s, %s, FINAL) if that is intended",
            state->name.text, state->wire.text);
}

static void report_final_left(
    struct det_build *build, const struct det_build_row *state, const struct det_build_row *row,
    const struct det_build_row *event)
{
    const struct det_build_name *name = NULL;
    struct det_diagnostic *finding;

    for (uint32_t i = 0; i < row->on.from.count && name == NULL; i++) {
        if ((uint32_t)row->on.from.items[i].id == state->id)
            name = &row->on.from.items[i];
    }
    finding = det_build_report(
        &build->findings, DET_RULE_FINAL_LEFT, row, name,
        "%s is a final state of %s, but %s leads to %s", state->name.text, build->name,
        event->name.text, row->on.to.text);
    det_build_other(&build->findings, finding, state, &state->name);
}

/* Returns a row by which the event leaves the state, or leads to another one; NULL: none. */
static const struct det_build_row *find_exit(
    const struct det_build *build, size_t state, size_t event, bool is_goto)
{
    struct det_build_row_cursor cursor = { 0 };
    const struct det_build_row *row;

    while ((row = det_build_next_row(build, state, event, &cursor)) != NULL) {
        if (leaves_state(row, state) && (!is_goto || row->on.outcome == DET_OUTCOME_GOTO))
            return row;
    }
    return NULL;
}

/* Checks the exits of one state: at least one, or none if it is final. */
static void check_exits(struct det_build *build, const struct det_build_row *state)
{
    bool is_final = (state->state.flags & DET_STATE_FINAL) != 0;

    for (size_t event = 0; event < det_build_count(build, DET_BUILD_EVENT); event++) {
        const struct det_build_row *row = find_exit(build, state->id, event, is_final);

        if (row == NULL)
            continue;
        if (is_final)
            report_final_left(build, state, row, det_build_thing(build, DET_BUILD_EVENT, event));
        return;
    }
    if (!is_final)
        report_dead_end(build, state);
}

static void check_paths(struct det_build *build)
{
    const bool *is_reached = find_reachable(build);

    for (size_t i = 0; i < det_build_count(build, DET_BUILD_STATE) && is_reached != NULL; i++) {
        const struct det_build_row *state = det_build_thing(build, DET_BUILD_STATE, i);

        if (is_reached[i])
            check_exits(build, state);
        else
            report_unreachable(build, state);
    }
}

static void check_used(struct det_build *build)
{
    for (enum det_build_kind kind = DET_BUILD_EFFECT; kind <= DET_BUILD_TIMER; kind++) {
        for (size_t i = 0; i < det_build_count(build, kind); i++) {
            const struct det_build_row *thing = det_build_thing(build, kind, i);

            if (!thing->is_used)
                (void)det_build_report(
                    &build->findings, DET_RULE_NOT_USED, thing, &thing->name,
                    "the %s %s of %s is never %s", det_build_kind_noun(kind), thing->name.text,
                    build->name, kind == DET_BUILD_TIMER ? "armed" : "used");
        }
    }
}

/* Returns true if this state handles an event that arrives by itself. */
static bool is_dealt_with(const struct det_build *build, size_t state, size_t event)
{
    return det_build_cell(build, state, event) != NULL ||
           det_build_policy(build, det_build_thing(build, DET_BUILD_EVENT, event)) !=
               DET_UNHANDLED_ERROR;
}

/* Returns true if all products of this effect are handled after the transition. */
static bool check_products(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *effect,
    size_t state)
{
    const struct det_build_names *events =
        &det_build_thing(build, DET_BUILD_EFFECT, (size_t)effect->id)->function.produces;

    for (uint32_t i = 0; i < events->count; i++) {
        const char *name = det_build_thing(build, DET_BUILD_STATE, state)->name.text;
        struct det_diagnostic *finding;

        if (is_dealt_with(build, state, (size_t)events->items[i].id))
            continue;
        finding = det_build_report(
            &build->findings, DET_RULE_PRODUCT_UNANSWERED, row, effect,
            "%s may produce %s, which %s of %s does not accept", effect->text,
            events->items[i].text, name, build->name);
        det_build_hint(
            &build->findings, finding, "add a transition: ON(%s, %s, ...), or UNHANDLED(%s, ...)",
            name, events->items[i].text, events->items[i].text);
        return false;
    }
    return true;
}

static bool owns_a_cell(
    const struct det_build *build, const struct det_build_row *row, size_t state)
{
    if (row->on.is_else)
        return true; /* an alternative is never replaced */
    for (uint32_t i = 0; i < row->on.events.count; i++) {
        if (det_build_cell(build, state, (size_t)row->on.events.items[i].id) == row)
            return true;
    }
    return false;
}

/* Reports a second call of a guard for one pair: it has refused already, and refuses again unless
 * it depends on the target. `asked` has, by guard, the cell of its last call, from 1. */
static void check_guards_of_pair(
    struct det_build *build, size_t state, size_t event, uint32_t *asked)
{
    uint32_t cell = (uint32_t)(state * det_build_count(build, DET_BUILD_EVENT) + event) + 1;
    struct det_build_row_cursor cursor = { 0 };
    const struct det_build_row *row;

    while ((row = det_build_next_row(build, state, event, &cursor)) != NULL) {
        if (row->on.guard.id < 0)
            continue;
        if (asked[row->on.guard.id] == cell)
            (void)det_build_report(
                &build->findings, DET_RULE_GUARD_AGAIN, row, &row->on.guard,
                "%s was already called for %s on %s of %s: if it returns the same, this ELSE is "
                "never taken",
                row->on.guard.text, det_build_thing(build, DET_BUILD_STATE, state)->name.text,
                det_build_thing(build, DET_BUILD_EVENT, event)->name.text, build->name);
        asked[row->on.guard.id] = cell;
    }
}

static void check_guards(struct det_build *build)
{
    size_t states = det_build_count(build, DET_BUILD_STATE);
    size_t events = det_build_count(build, DET_BUILD_EVENT);
    uint32_t *asked =
        det_build_scratch(build, det_build_count(build, DET_BUILD_GUARD), sizeof *asked);

    for (size_t i = 0; i < states * events && asked != NULL && build->else_count > 0; i++) {
        if (build->first_else[i] != 0)
            check_guards_of_pair(build, i / events, i % events, asked);
    }
}

/* Reports one finding per row. A GOTO row has one target state for all its sources; a STOP row has
 * none. */
static void check_products_of_row(struct det_build *build, const struct det_build_row *row)
{
    bool is_fine = true,
         is_done = row->on.outcome == DET_OUTCOME_STOP || row->on.effects.count == 0;

    for (uint32_t i = 0; i < row->on.from.count && is_fine && !is_done; i++) {
        size_t from = (size_t)row->on.from.items[i].id;
        size_t after = row->on.outcome == DET_OUTCOME_GOTO ? (size_t)row->on.to.id : from;

        if (!owns_a_cell(build, row, from))
            continue;
        is_done = row->on.outcome == DET_OUTCOME_GOTO;
        for (uint32_t j = 0; j < row->on.effects.count && is_fine; j++)
            is_fine = check_products(build, row, &row->on.effects.items[j], after);
    }
}

static const char *policy_text(enum det_unhandled policy)
{
    switch (policy) {
    case DET_UNHANDLED_ERROR:
        return "an error";
    case DET_UNHANDLED_IGNORE:
        return "ignored";
    case DET_UNHANDLED_DEFER:
        return "deferred";
    case DET_UNHANDLED_DEAD_LETTER:
        return "a dead letter";
    }
    return "";
}

static void report_unhandled(struct det_build *build)
{
    for (size_t i = 0; i < det_build_count(build, DET_BUILD_STATE); i++) {
        const struct det_build_row *state = det_build_thing(build, DET_BUILD_STATE, i);

        for (size_t j = 0; j < det_build_count(build, DET_BUILD_EVENT); j++) {
            const struct det_build_row *event = det_build_thing(build, DET_BUILD_EVENT, j);

            if (det_build_cell(build, i, j) == NULL)
                (void)det_build_report(
                    &build->findings, DET_RULE_UNHANDLED_PAIR, state, &state->name,
                    "%s does not accept %s: the event is %s", state->name.text, event->name.text,
                    policy_text(det_build_policy(build, event)));
        }
    }
}

void det_check_flow(struct det_build *build)
{
    check_paths(build);
    check_used(build);
    check_guards(build);
    for (size_t i = 0; i < build->ons.count; i++)
        check_products_of_row(build, build->ons.items[i]);
    det_check_timers(build);
    if (build->builder->is_unhandled_wanted)
        report_unhandled(build);
}
