/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_cells.c - every pair of state and event gets the row that decides it, in the order of the
 * rows:
 *
 *      the cell has         a plain row comes            an OVERRIDE comes
 *      nothing              takes the cell               OVERRIDE_NOTHING, takes it as an orphan
 *      a row                DUPLICATE_TRANSITION         OVERRIDES (information), takes the cell
 *      an orphan            takes the cell               takes the cell, an orphan still
 *      a guess              takes the cell               takes the cell
 *
 * A guess takes only an empty cell, and in silence. What is replaced leaves nothing behind. */
#include "machine/builder_build.h"

/* A definition may say every pair it can have once, and override each of them. */
#define PAIRS_MAX ((size_t)2 * DET_CELLS_MAX)

/* "to PAID", "stay", "stop"; as the second of two, "PAID". */
static const char *outcome_word(const struct det_build_on *on)
{
    return on->outcome == DET_STAY ? "stay" : on->outcome == DET_STOP ? "stop" : "to ";
}

static const char *target_text(const struct det_build_on *on)
{
    return on->outcome == DET_GOTO && on->to.text != NULL ? on->to.text : "";
}

static const char *override_word(const struct det_build_on *on)
{
    return on->outcome == DET_STAY   ? "OVERRIDE_STAY"
           : on->outcome == DET_STOP ? "OVERRIDE_STOP"
                                     : "OVERRIDE";
}

static const char *plain_word(const struct det_build_on *on)
{
    return on->outcome == DET_STAY ? "STAY" : on->outcome == DET_STOP ? "STOP" : "ON";
}

/* The name by which a row says this state: the place of a finding about the pair. */
static const struct det_build_name *from_name(const struct det_build_row *row, int32_t state)
{
    for (uint32_t i = 0; i < row->on.from.count; i++) {
        if (row->on.from.items[i].id == state)
            return &row->on.from.items[i];
    }
    return NULL;
}

static void report_duplicate(
    struct det_build *build, const struct det_build_row *row, const struct det_build_row *first,
    const struct det_build_name *from, const struct det_build_name *event)
{
    const struct det_build_on *on = &row->on;
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_DUPLICATE_TRANSITION, row, from,
        "%s on %s is already a transition of %s: %s%s", from->text, event->text, build->name,
        outcome_word(&first->on), target_text(&first->on));

    det_build_other(&build->findings, finding, first, from_name(first, from->id));
    if (first == row)
        det_build_hint(&build->findings, finding, "the row lists the pair twice");
    else if (on->guard.text != NULL || first->on.guard.text != NULL)
        det_build_hint(
            &build->findings, finding,
            "a guard refuses, it does not choose between rows; an effect with several answers "
            "does");
    else
        det_build_hint(
            &build->findings, finding, "say %s(%s, %s%s%s) if that is meant", override_word(on),
            from->text, event->text, on->outcome == DET_GOTO ? ", " : "", target_text(on));
}

static void report_orphan(
    struct det_build *build, const struct det_build_row *row, const struct det_build_name *from,
    const struct det_build_name *event)
{
    const struct det_build_on *on = &row->on;
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_OVERRIDE_NOTHING, row, from,
        "%s on %s is no transition of %s yet: there is nothing to override", from->text,
        event->text, build->name);

    det_build_hint(
        &build->findings, finding,
        "say %s(%s, %s%s%s), or move the row behind the one that it overrides", plain_word(on),
        from->text, event->text, on->outcome == DET_GOTO ? ", " : "", target_text(on));
}

static void report_override(
    struct det_build *build, const struct det_build_row *row, const struct det_build_row *replaced,
    const struct det_build_name *from, const struct det_build_name *event)
{
    const struct det_build_on *old = &replaced->on;
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_OVERRIDES, row, from, "%s on %s: %s%s instead of %s", from->text,
        event->text, outcome_word(&row->on), target_text(&row->on),
        old->outcome == DET_GOTO ? target_text(old) : outcome_word(old));

    det_build_other(&build->findings, finding, replaced, from_name(replaced, from->id));
}

/* `own` is what the cell holds when it is this row's. */
static void claim(
    struct det_build *build, uint32_t own, const struct det_build_name *from,
    const struct det_build_name *event)
{
    size_t event_count = det_build_count(build, DET_BUILD_EVENT);
    uint32_t *cell = &build->cells[(size_t)from->id * event_count + (size_t)event->id];
    const struct det_build_row *row = build->ons.items[own / 2 - 1];
    const struct det_build_row *held = *cell != 0 ? build->ons.items[*cell / 2 - 1] : NULL;
    bool is_orphan = (*cell & 1) != 0;

    if (row->on.is_guess) {
        *cell = held != NULL ? *cell : own;
    } else if (held == NULL && row->on.is_override) {
        report_orphan(build, row, from, event);
        *cell = own | 1;
    } else if (held == NULL || held->on.is_guess) {
        *cell = own;
    } else if (row->on.is_override) {
        if (held != row && !is_orphan)
            report_override(build, row, held, from, event);
        *cell = own | (is_orphan ? 1 : 0);
    } else if (is_orphan) {
        *cell = own;
    } else {
        report_duplicate(build, row, held, from, event);
    }
}

static void claim_all(struct det_build *build, size_t index)
{
    const struct det_build_on *on = &build->ons.items[index]->on;
    uint32_t own = ((uint32_t)index + 1) * 2;

    for (uint32_t i = 0; i < on->from.count; i++) {
        for (uint32_t j = 0; j < on->events.count; j++) {
            if (on->from.items[i].id >= 0 && on->events.items[j].id >= 0)
                claim(build, own, &on->from.items[i], &on->events.items[j]);
        }
    }
}

/* Whether all pairs of all rows, as often as they are said, can be looked at in good time. */
static bool check_pair_count(struct det_build *build)
{
    size_t count = 0;

    for (size_t i = 0; i < build->ons.count; i++) {
        const struct det_build_row *row = build->ons.items[i];

        count += (size_t)row->on.from.count * row->on.events.count;
        if (count <= PAIRS_MAX)
            continue;
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, row, NULL,
            "the rows of %s say more than %zu pairs", build->name, PAIRS_MAX);
        build->is_too_large = true;
        return false;
    }
    return true;
}

void det_build_cells(struct det_build *build)
{
    size_t states = det_build_count(build, DET_BUILD_STATE);
    size_t events = det_build_count(build, DET_BUILD_EVENT);

    if (!check_pair_count(build))
        return;
    build->cells = det_build_scratch(build, states * events, sizeof *build->cells);
    for (size_t i = 0; i < build->ons.count && build->cells != NULL; i++)
        claim_all(build, i);
}
