/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* coverage.c - counts states and transitions, and prints what was missed. */
#include "testing/coverage.h"

#include "base/memory.h"
#include "base/text.h"
#include "terminal/input.h"
#include "testing/transition_index.h"

/* Lines about what was missed; a machine may have half a million. */
#define SHOWN_MAX 50

int cli_coverage_init(
    struct cli_coverage *coverage, const struct det_machine *machine,
    const struct det_allocator *allocator)
{
    *coverage = (struct cli_coverage){
        .machine = machine,
        .states = DET_NEW_ARRAY(allocator, machine->state_count, bool),
        .transitions = DET_NEW_ARRAY(allocator, cli_ways_count(machine), bool),
        .order = cli_ways_in_order(machine, allocator),
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
    DET_DELETE_ARRAY(allocator, coverage->transitions, cli_ways_count(coverage->machine));
    cli_ways_free(coverage->machine, allocator, coverage->order);
    *coverage = (struct cli_coverage){ 0 };
}

void cli_coverage_note(struct cli_coverage *coverage, const struct det_note *note, size_t way)
{
    coverage->states[note->to] = true;
    if (note->event != UINT16_MAX && note->outcome <= DET_STOP)
        coverage->transitions[way] = true;
}

struct cli_coverage_counts cli_coverage_count(const struct cli_coverage *coverage)
{
    const struct det_machine *machine = coverage->machine;
    struct cli_coverage_counts counts = { .states = machine->state_count };

    for (size_t i = 0; i < machine->state_count; i++)
        counts.states_visited += coverage->states[i];
    for (size_t i = 0; i < cli_ways_count(machine); i++) {
        if (cli_way_at(machine, i).transition->outcome == DET_UNHANDLED)
            continue;
        counts.transitions++;
        counts.transitions_taken += coverage->transitions[i];
    }
    return counts;
}

static bool is_missed(const struct cli_coverage *coverage, size_t way)
{
    return cli_way_at(coverage->machine, way).transition->outcome != DET_UNHANDLED &&
           !coverage->transitions[way];
}

/* The guard, or "else" of an alternative that has none; NULL: neither. */
static const char *condition_of(const struct cli_way *way)
{
    const struct det_transition_more *more = way->transition->more;

    if (more && more->guard)
        return more->guard->name;
    return way->is_else ? "else" : NULL;
}

static unsigned percent_of(size_t part, size_t whole)
{
    return whole ? (unsigned)(part * 100 / whole) : 100;
}

static void print_missed(
    struct cli *cli, const struct det_machine *machine, size_t number, const struct det_spec *spec)
{
    struct cli_way way = cli_way_at(machine, number);
    const struct det_transition *transition = way.transition;
    struct det_place place = det_spec_row_place(spec, transition->row);
    const char *condition = condition_of(&way);

    if (place.file)
        cli_print_in(cli, CLI_FAINT, "  %s:%u:%u: ", place.file, place.line, place.column);
    cli_print(
        cli, "not taken: %s on %s", machine->states[way.state].name,
        machine->events[way.event].name);
    if (condition)
        cli_print(cli, " [%s]", condition);
    if (transition->outcome == DET_GOTO)
        cli_print(cli, " -> %s\n", machine->states[transition->to].name);
    else
        cli_print(cli, " (%s)\n", transition->outcome == DET_STAY ? "stay" : "stop");
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
    for (size_t i = 0; i < cli_ways_count(machine); i++) {
        if (is_missed(coverage, coverage->order[i]) && missed++ < SHOWN_MAX)
            print_missed(cli, machine, coverage->order[i], spec);
    }
    if (missed > SHOWN_MAX)
        cli_print(cli, "  and %zu more; --json lists them all\n", missed - SHOWN_MAX);
}

static json_t *json_missed(
    const struct det_machine *machine, size_t number, const struct det_spec *spec)
{
    struct cli_way way = cli_way_at(machine, number);
    struct det_place place = det_spec_row_place(spec, way.transition->row);
    const char *condition = condition_of(&way);

    return json_pack(
        "{s:s, s:s, s:o, s:s, s:o, s:I, s:I}", "from", machine->states[way.state].name, "event",
        machine->events[way.event].name, "if", condition ? json_string(condition) : json_null(),
        "to", machine->states[way.transition->to].name, "file",
        place.file ? cli_json_text(place.file) : json_null(), "line", (json_int_t)place.line,
        "column", (json_int_t)place.column);
}

static void print_json(
    struct cli *cli, const struct cli_coverage *coverage, const struct det_spec *spec)
{
    const struct det_machine *machine = coverage->machine;
    struct cli_coverage_counts counts = cli_coverage_count(coverage);
    json_t *states = json_array(), *transitions = json_array();

    for (size_t i = 0; i < machine->state_count; i++) {
        if (!coverage->states[i])
            json_array_append_new(states, json_string(machine->states[i].name));
    }
    for (size_t i = 0; i < cli_ways_count(machine); i++) {
        if (is_missed(coverage, coverage->order[i]))
            json_array_append_new(transitions, json_missed(machine, coverage->order[i], spec));
    }
    cli_json(
        cli, json_pack(
                 "{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "type", "coverage", "machine",
                 machine->name, "file", cli_json_text(det_spec_file(spec, 0)), "states",
                 (json_int_t)counts.states, "states_visited", (json_int_t)counts.states_visited,
                 "transitions", (json_int_t)counts.transitions, "transitions_taken",
                 (json_int_t)counts.transitions_taken, "missed_states", states,
                 "missed_transitions", transitions));
}

void cli_coverage_print(
    struct cli *cli, const struct cli_coverage *coverage, const struct det_spec *spec)
{
    if (cli->is_json)
        print_json(cli, coverage, spec);
    else
        print_text(cli, coverage, spec);
}
