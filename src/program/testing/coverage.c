/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* coverage.c - counts states and transitions, and prints what was missed. */
#include "testing/coverage.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "terminal/input.h"
#include "testing/transition_index.h"
#include "json/writer.h"

/* Lines about what was missed; a machine may have half a million. */
#define SHOWN_MAX 50

int cli_coverage_init(
    struct cli_coverage *coverage, const struct det_machine *machine,
    const struct det_allocator *allocator)
{
    *coverage = (struct cli_coverage){
        .machine = machine,
        .states = DET_NEW_ARRAY(allocator, machine->state_count, bool),
        .transitions = DET_NEW_ARRAY(allocator, cli_transitions_count(machine), bool),
        .order = cli_transitions_in_order(machine, allocator),
    };
    if (coverage->states && coverage->transitions && coverage->order)
        return 0;
    cli_coverage_deinit(coverage, allocator);
    return DET_ERR_NO_MEMORY;
}

void cli_coverage_deinit(struct cli_coverage *coverage, const struct det_allocator *allocator)
{
    if (!coverage->machine)
        return;
    DET_DELETE_ARRAY(allocator, coverage->states, coverage->machine->state_count);
    DET_DELETE_ARRAY(allocator, coverage->transitions, cli_transitions_count(coverage->machine));
    cli_transitions_free(coverage->machine, allocator, coverage->order);
    *coverage = (struct cli_coverage){ 0 };
}

void cli_coverage_note(struct cli_coverage *coverage, const struct det_note *note, size_t edge)
{
    det_assert(note->to < coverage->machine->state_count);
    det_assert(edge < cli_transitions_count(coverage->machine));
    coverage->states[note->to] = true;
    if (note->event != UINT16_MAX && note->outcome <= DET_OUTCOME_STOP)
        coverage->transitions[edge] = true;
}

struct cli_coverage_counts cli_coverage_count(const struct cli_coverage *coverage)
{
    const struct det_machine *machine = coverage->machine;
    struct cli_coverage_counts counts = { .states = machine->state_count };

    for (size_t i = 0; i < machine->state_count; i++)
        counts.states_visited += coverage->states[i];
    for (size_t i = 0; i < cli_transitions_count(machine); i++) {
        if (cli_transition_at(machine, i).transition->outcome == DET_OUTCOME_UNHANDLED)
            continue;
        counts.transitions++;
        counts.transitions_taken += coverage->transitions[i];
    }
    det_assert(counts.states_visited <= counts.states);
    det_assert(counts.transitions_taken <= counts.transitions);
    return counts;
}

static bool is_missed(const struct cli_coverage *coverage, size_t edge)
{
    return cli_transition_at(coverage->machine, edge).transition->outcome !=
               DET_OUTCOME_UNHANDLED &&
           !coverage->transitions[edge];
}

/* The guard, or "else" of an alternative that has none; NULL: neither. */
static const char *condition_of(const struct cli_transition *edge)
{
    const struct det_transition_more *more = edge->transition->more;

    if (more && more->guard)
        return more->guard->name;
    return edge->is_else ? "else" : NULL;
}

static unsigned percent_of(size_t part, size_t whole)
{
    det_assert(part <= whole);
    return whole ? (unsigned)(part * 100 / whole) : 100;
}

static void print_missed(
    struct cli *cli, const struct det_machine *machine, size_t number, const struct det_spec *spec)
{
    struct cli_transition edge = cli_transition_at(machine, number);
    const struct det_transition *transition = edge.transition;
    struct det_place place = det_spec_row_place(spec, transition->row);
    const char *condition = condition_of(&edge);

    if (place.file)
        cli_print_in(cli, CLI_FAINT, "  %s:%u:%u: ", place.file, place.line, place.column);
    cli_print(
        cli, "not taken: %s on %s", machine->states[edge.state].name,
        machine->events[edge.event].name);
    if (condition)
        cli_print(cli, " [%s]", condition);
    if (transition->outcome == DET_OUTCOME_GOTO)
        cli_print(cli, " -> %s\n", machine->states[transition->to].name);
    else
        cli_print(cli, " (%s)\n", transition->outcome == DET_OUTCOME_STAY ? "stay" : "stop");
}

static void print_text(
    struct cli *cli, const struct cli_coverage *coverage, const struct det_spec *spec)
{
    const struct det_machine *machine = coverage->machine;
    struct cli_coverage_counts counts = cli_coverage_count(coverage);
    size_t missed = 0;

    cli_print_in(cli, CLI_BOLD, "coverage of %s: ", machine->name);
    cli_print(
        cli, "%zu of %zu state%s (%u %%), %zu of %zu transition%s (%u %%)\n", counts.states_visited,
        counts.states, det_plural(counts.states), percent_of(counts.states_visited, counts.states),
        counts.transitions_taken, counts.transitions, det_plural(counts.transitions),
        percent_of(counts.transitions_taken, counts.transitions));
    for (size_t i = 0; i < machine->state_count; i++) {
        if (!coverage->states[i] && missed++ < SHOWN_MAX)
            cli_print(cli, "  not visited: %s\n", machine->states[i].name);
    }
    for (size_t i = 0; i < cli_transitions_count(machine); i++) {
        if (is_missed(coverage, coverage->order[i]) && missed++ < SHOWN_MAX)
            print_missed(cli, machine, coverage->order[i], spec);
    }
    if (missed > SHOWN_MAX)
        cli_print(cli, "  and %zu more; --json lists them all\n", missed - SHOWN_MAX);
}

static void put_missed(
    struct det_json_writer *json, const struct det_machine *machine, size_t number,
    const struct det_spec *spec)
{
    struct cli_transition edge = cli_transition_at(machine, number);
    struct det_place place = det_spec_row_place(spec, edge.transition->row);

    det_json_open(json, NULL, '{');
    det_json_text(json, "from", machine->states[edge.state].name);
    det_json_text(json, "event", machine->events[edge.event].name);
    det_json_text(json, "if", condition_of(&edge));
    det_json_text(json, "to", machine->states[edge.transition->to].name);
    det_json_text(json, "file", place.file);
    det_json_number(json, "line", place.line);
    det_json_number(json, "column", place.column);
    det_json_close(json, '}');
}

static void put_all_missed(
    struct det_json_writer *json, const struct cli_coverage *coverage, const struct det_spec *spec)
{
    const struct det_machine *machine = coverage->machine;

    det_json_open(json, "missed_states", '[');
    for (size_t i = 0; i < machine->state_count; i++) {
        if (!coverage->states[i])
            det_json_text(json, NULL, machine->states[i].name);
    }
    det_json_close(json, ']');
    det_json_open(json, "missed_transitions", '[');
    for (size_t i = 0; i < cli_transitions_count(machine); i++) {
        if (is_missed(coverage, coverage->order[i]))
            put_missed(json, machine, coverage->order[i], spec);
    }
    det_json_close(json, ']');
}

static void print_json(
    struct cli *cli, const struct cli_coverage *coverage, const struct det_spec *spec)
{
    struct cli_coverage_counts counts = cli_coverage_count(coverage);
    struct det_json_writer json;

    cli_json_begin(cli, &json, "coverage");
    det_json_text(&json, "machine", coverage->machine->name);
    det_json_text(&json, "file", det_spec_file(spec, 0));
    det_json_number(&json, "states", counts.states);
    det_json_number(&json, "states_visited", counts.states_visited);
    det_json_number(&json, "transitions", counts.transitions);
    det_json_number(&json, "transitions_taken", counts.transitions_taken);
    put_all_missed(&json, coverage, spec);
    cli_json_end(cli, &json);
}

void cli_coverage_print(
    struct cli *cli, const struct cli_coverage *coverage, const struct det_spec *spec)
{
    if (cli->is_json)
        print_json(cli, coverage, spec);
    else
        print_text(cli, coverage, spec);
}
