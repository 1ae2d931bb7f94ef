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
 * A guess takes only an empty cell, without a finding. A replaced row leaves no trace in the cell.
 *
 *      the cell has         an ELSE comes
 *      nothing              ELSE_NOTHING, takes it as an orphan
 *      a row                joins the alternatives; ELSE_NEVER where it could not be taken
 *      an orphan, a guess   nothing: one mistake is one finding
 *
 * Of the pairs of an ELSE only the first of a kind is reported.
 *
 * An OVERRIDE of a pair with alternatives is OVERRIDE_ELSE and replaces nothing: the compiler
 * cannot remove alternatives that it has read.
 *
 * A cell is a number: (index of its row + 1) * MARKS + marks. */
#include "base/assert.h"
#include "machine/builder_build.h"

/* A definition may decide every possible pair once, and override each. */
#define PAIRS_MAX ((size_t)2 * DET_CELLS_MAX)

enum marks {
    ORPHAN = 1, /* an OVERRIDE or an ELSE without an earlier row */
    BLUNT = 2,  /* an OVERRIDE without IF was here */
    MARKS = 4,
};

/* A pair of a row. */
struct pair {
    const struct det_build_row *row;
    const struct det_build_name *from, *event;
};

enum kind { PLAIN, OVERRIDE, ELSE };

/* "to PAID", "stay", "stop"; as the second of two, "PAID". */
static const char *outcome_word(const struct det_build_on *on)
{
    return on->outcome == DET_OUTCOME_STAY   ? "stay"
           : on->outcome == DET_OUTCOME_STOP ? "stop"
                                             : "to ";
}

static const char *target_text(const struct det_build_on *on)
{
    return on->outcome == DET_OUTCOME_GOTO && on->to.text != NULL ? on->to.text : "";
}

/* Returns the name of a row with this outcome. */
static const char *row_word(const struct det_build_on *on, enum kind kind)
{
    static const char *const words[][3] = {
        { "ON", "OVERRIDE", "ELSE" },
        { "STAY", "OVERRIDE_STAY", "ELSE_STAY" },
        { "STOP", "OVERRIDE_STOP", "ELSE_STOP" },
    };

    return words
        [on->outcome == DET_OUTCOME_STAY   ? 1
         : on->outcome == DET_OUTCOME_STOP ? 2
                                           : 0][kind];
}

/* Returns the comma before a target; empty without a target. */
static const char *comma_before(const struct det_build_on *on)
{
    return on->outcome == DET_OUTCOME_GOTO ? ", " : "";
}

/* Returns the name by which a row lists this state: the place of a finding about the pair. */
static const struct det_build_name *from_name(const struct det_build_row *row, int32_t state)
{
    for (uint32_t i = 0; i < row->on.from.count; i++) {
        if (row->on.from.items[i].id == state)
            return &row->on.from.items[i];
    }
    return NULL;
}

static void point_at(
    struct det_build *build, struct det_diagnostic *finding, const struct pair *pair,
    const struct det_build_row *other)
{
    det_build_other(&build->findings, finding, other, from_name(other, pair->from->id));
}

static void report_duplicate(
    struct det_build *build, const struct pair *pair, const struct det_build_row *first)
{
    const struct det_build_on *on = &pair->row->on;
    struct det_build_findings *findings = &build->findings;
    struct det_diagnostic *finding = det_build_report(
        findings, DET_RULE_DUPLICATE_TRANSITION, pair->row, pair->from,
        "%s on %s is already a transition of %s: %s%s", pair->from->text, pair->event->text,
        build->name, outcome_word(&first->on), target_text(&first->on));

    point_at(build, finding, pair, first);
    if (first == pair->row)
        det_build_hint(findings, finding, "the row lists the pair more than once");
    else if (first->on.guard.text != NULL)
        det_build_hint(
            findings, finding, "write %s(%s, %s%s%s) if it is the next alternative",
            row_word(on, ELSE), pair->from->text, pair->event->text, comma_before(on),
            target_text(on));
    else if (on->guard.text != NULL)
        det_build_hint(
            findings, finding,
            "a choice begins with the row that has IF: put it first, and use ELSE for the other");
    else
        det_build_hint(
            findings, finding, "write %s(%s, %s%s%s) if that is intended", row_word(on, OVERRIDE),
            pair->from->text, pair->event->text, comma_before(on), target_text(on));
}

static void report_orphan(struct det_build *build, const struct pair *pair)
{
    const struct det_build_on *on = &pair->row->on;
    struct det_diagnostic *finding = det_build_report(
        &build->findings, on->is_else ? DET_RULE_ELSE_NOTHING : DET_RULE_OVERRIDE_NOTHING,
        pair->row, pair->from, "%s on %s is not a transition of %s yet: %s", pair->from->text,
        pair->event->text, build->name,
        on->is_else ? "no earlier row for this ELSE" : "no earlier row to override");

    det_build_hint(
        &build->findings, finding, "write %s(%s, %s%s%s), or move the row after the one that %s",
        row_word(on, PLAIN), pair->from->text, pair->event->text, comma_before(on), target_text(on),
        on->is_else ? "decides the pair" : "it overrides");
}

static void report_override(
    struct det_build *build, const struct pair *pair, const struct det_build_row *replaced)
{
    const struct det_build_on *on = &pair->row->on, *old = &replaced->on;
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_OVERRIDES, pair->row, pair->from, "%s on %s: %s%s instead of %s",
        pair->from->text, pair->event->text, outcome_word(on), target_text(on),
        old->outcome == DET_OUTCOME_GOTO ? target_text(old) : outcome_word(old));

    point_at(build, finding, pair, replaced);
}

static void report_too_late(
    struct det_build *build, const struct pair *pair, const struct det_build_row *alternative)
{
    struct det_diagnostic *finding = det_build_report(
        &build->findings, DET_RULE_OVERRIDE_ELSE, pair->row, pair->from,
        "%s on %s has ELSE rows already, which an OVERRIDE cannot replace", pair->from->text,
        pair->event->text);

    point_at(build, finding, pair, alternative);
    det_build_hint(
        &build->findings, finding,
        "move it before the ELSE rows, which then belong to it, or leave them out");
}

/* Reports an ELSE that is never taken; the pair is in the middle of the sentence. */
static void report_never(
    struct det_build *build, const struct pair *pair, const struct det_build_row *other,
    const char *before, const char *behind)
{
    struct det_diagnostic *finding;

    if (build->never == pair->row)
        return;
    build->never = pair->row;
    finding = det_build_report(
        &build->findings, DET_RULE_ELSE_NEVER, pair->row, pair->from,
        "%s%s on %s %s, so this %s is never taken", before, pair->from->text, pair->event->text,
        behind, before[0] != '\0' ? "ELSE" : "one");
    point_at(build, finding, pair, other);
    if (other == pair->row)
        det_build_hint(&build->findings, finding, "the row lists the pair more than once");
    else if (before[0] != '\0')
        det_build_hint(
            &build->findings, finding,
            "give it an IF(guard); events that the guard refuses then reach the ELSE");
    else
        det_build_hint(&build->findings, finding, "give one of the two an IF(guard)");
}

static size_t cell_of(const struct det_build *build, size_t state, size_t event)
{
    return state * det_build_count(build, DET_BUILD_EVENT) + event;
}

static const struct det_build_row *row_of(const struct det_build *build, uint32_t cell)
{
    return cell != 0 ? build->ons.items[cell / MARKS - 1] : NULL;
}

/* Adds an ELSE to a pair that has a row. */
static void join_choice(struct det_build *build, const struct pair *pair, size_t at)
{
    const struct det_build_row *first = row_of(build, build->cells[at]);
    struct det_build_else *added = &build->elses[build->else_count++];
    bool is_bare = pair->row->on.guard.text == NULL;

    det_assert(first != NULL && (build->cells[at] & ORPHAN) == 0);
    *added = (struct det_build_else){ pair->row, (uint32_t)at, build->first_else[at], 0 };
    if (added->next != 0)
        added->bare = build->elses[added->next - 1].bare;
    if ((build->cells[at] & BLUNT) != 0)
        report_never(build, pair, first, "an OVERRIDE of ", "has no IF");
    else if (first->on.guard.text == NULL)
        report_never(build, pair, first, "the row of ", "has no IF");
    else if (is_bare && added->bare != 0)
        report_never(
            build, pair, build->elses[added->bare - 1].row, "", "already has an ELSE without IF");
    added->bare = is_bare ? build->else_count : added->bare;
    build->first_else[at] = build->else_count;
}

static void claim_else(struct det_build *build, const struct pair *pair, size_t at, uint32_t own)
{
    const struct det_build_row *held = row_of(build, build->cells[at]);

    if (held == NULL) {
        if (build->orphan != pair->row)
            report_orphan(build, pair);
        build->orphan = pair->row;
        build->cells[at] = own | ORPHAN;
    } else if (!held->on.is_guess && (build->cells[at] & ORPHAN) == 0) {
        join_choice(build, pair, at);
    }
}

static void claim_override(
    struct det_build *build, const struct pair *pair, size_t at, uint32_t own)
{
    const struct det_build_row *held = row_of(build, build->cells[at]);
    uint32_t marks = build->cells[at] % MARKS;

    if (build->first_else[at] != 0) {
        report_too_late(build, pair, build->elses[build->first_else[at] - 1].row);
        return;
    }
    if (held == NULL)
        report_orphan(build, pair);
    else if (held != pair->row && !held->on.is_guess && (marks & ORPHAN) == 0)
        report_override(build, pair, held);
    marks |= held == NULL ? ORPHAN : 0;
    marks |= pair->row->on.guard.text == NULL ? BLUNT : 0;
    build->cells[at] = own | marks;
}

/* `own` is the value of the cell when it belongs to this row. */
static void claim_cell(struct det_build *build, const struct pair *pair, uint32_t own)
{
    size_t at = cell_of(build, (size_t)pair->from->id, (size_t)pair->event->id);
    const struct det_build_row *held = row_of(build, build->cells[at]);

    if (pair->row->on.is_guess)
        build->cells[at] = held != NULL ? build->cells[at] : own;
    else if (pair->row->on.is_else)
        claim_else(build, pair, at, own);
    else if (pair->row->on.is_override)
        claim_override(build, pair, at, own);
    else if (held == NULL || held->on.is_guess || (build->cells[at] & ORPHAN) != 0)
        build->cells[at] = own;
    else
        report_duplicate(build, pair, held);
}

static void claim_all(struct det_build *build, size_t index)
{
    const struct det_build_row *row = build->ons.items[index];
    const struct det_build_on *on = &row->on;

    for (uint32_t i = 0; i < on->from.count; i++) {
        for (uint32_t j = 0; j < on->events.count; j++) {
            struct pair pair = { row, &on->from.items[i], &on->events.items[j] };

            if (pair.from->id >= 0 && pair.event->id >= 0)
                claim_cell(build, &pair, ((uint32_t)index + 1) * MARKS);
        }
    }
}

/* Reverses the list of alternatives of each pair: it was linked from the last to the first. */
static void turn_elses(struct det_build *build)
{
    for (uint32_t i = 0; i < build->else_count; i++)
        build->first_else[build->elses[i].cell] = 0;
    for (uint32_t i = build->else_count; i > 0; i--) {
        struct det_build_else *alternative = &build->elses[i - 1];

        alternative->next = build->first_else[alternative->cell];
        build->first_else[alternative->cell] = i;
    }
}

const struct det_build_row *det_build_cell(
    const struct det_build *build, size_t state, size_t event)
{
    return row_of(build, build->cells[cell_of(build, state, event)]);
}

const struct det_build_row *det_build_next_row(
    const struct det_build *build, size_t state, size_t event, struct det_build_row_cursor *cursor)
{
    const struct det_build_else *alternative;

    if (!cursor->is_begun) {
        cursor->is_begun = true;
        cursor->next_else = build->first_else[cell_of(build, state, event)];
        return det_build_cell(build, state, event);
    }
    if (cursor->next_else == 0)
        return NULL;
    alternative = &build->elses[cursor->next_else - 1];
    det_assert(alternative->next == 0 || alternative->next > cursor->next_else);
    cursor->next_else = alternative->next;
    return alternative->row;
}

/* Returns true if the pairs of all rows can be processed in reasonable time; also counts those of
 * ELSE rows. */
static bool count_pairs(struct det_build *build, size_t *ret_elses)
{
    size_t count = 0;

    *ret_elses = 0;
    for (size_t i = 0; i < build->ons.count; i++) {
        const struct det_build_row *row = build->ons.items[i];
        size_t pairs = (size_t)row->on.from.count * row->on.events.count;

        count += pairs;
        *ret_elses += row->on.is_else ? pairs : 0;
        if (count <= PAIRS_MAX)
            continue;
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, row, NULL,
            "the rows of %s list more than %zu pairs", build->name, PAIRS_MAX);
        build->is_too_large = true;
        return false;
    }
    return true;
}

void det_build_cells(struct det_build *build)
{
    size_t cells =
        det_build_count(build, DET_BUILD_STATE) * det_build_count(build, DET_BUILD_EVENT);
    size_t elses;

    if (!count_pairs(build, &elses))
        return;
    build->cells = det_build_scratch(build, cells, sizeof *build->cells);
    build->first_else = det_build_scratch(build, cells, sizeof *build->first_else);
    build->elses = det_build_scratch(build, elses, sizeof *build->elses);
    if (build->cells == NULL || build->first_else == NULL || build->elses == NULL)
        return;
    for (size_t i = 0; i < build->ons.count; i++)
        claim_all(build, i);
    det_assert(build->else_count <= elses);
    turn_elses(build);
}
