/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_read_check.c - rules of a .worker file as a whole: its names, its first state, its stops.
 * The compiler checks the same (worker/define.h), and so does det_worker_kind_check() for the
 * tables. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "machine/reserved_names.h"
#include "worker/spec_read.h"

#define WIRE_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

static void DET_PRINTF(4, 5) report(
    struct det_worker_spec *spec, enum det_rule rule, const struct det_node *node,
    const char *format, ...)
{
    struct det_place place = det_parse_place(node);
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    det_parse_report(spec->text, rule, &place, "%s", text);
}

static bool stops(int phase)
{
    return phase == DET_PHASE_STOPPED || phase == DET_PHASE_STOPPING;
}

static void check_wire(struct det_worker_spec *spec, const struct det_node *node)
{
    if (node == NULL || node->kind != DET_NODE_NAME)
        return;
    if (node->text[strspn(node->text, WIRE_LETTERS)] != '\0')
        report(
            spec, DET_RULE_BAD_NAME, node,
            "%.64s is stored on disk: use only lower case letters, digits and _", node->text);
    else if (node->width > DET_WORKER_NAME_MAX)
        report(
            spec, DET_RULE_BAD_NAME, node, "%.64s... is longer than %d bytes", node->text,
            DET_WORKER_NAME_MAX);
}

static void check_reserved(struct det_worker_spec *spec, const struct det_node *node)
{
    const char *use = node != NULL ? det_name_use(node->text) : NULL;

    if (use != NULL)
        report(spec, DET_RULE_BAD_NAME, node, "%s is %s: choose another name", node->text, use);
}

static void check_words(struct det_worker_spec *spec)
{
    struct det_spec *text = spec->text;
    const struct det_node *name = text->words[DET_WORKER_WORD_NAME];
    const struct det_node *prefix = text->words[DET_WORKER_WORD_PREFIX];
    struct det_place place = { .file = text->sources->path, .line = 1, .column = 1 };

    check_wire(spec, name);
    for (int i = 0; i < DET_WORKER_WORD_COUNT; i++)
        check_reserved(spec, text->words[i]);
    if (name != NULL && prefix != NULL)
        return;
    det_parse_report(
        text, DET_RULE_NO_NAME, &place, "there is no #define %s",
        name == NULL ? "WORKER_NAME: a fragment is not a worker by itself"
                     : "WORKER_PREFIX, the prefix of the worker's enumerators in C");
    det_parse_hint(
        text, "add the line: #define %s", name == NULL ? "WORKER_NAME link" : "WORKER_PREFIX LINK");
}

/* A duplicate name, with the place of its first declaration. */
static void report_twice(
    struct det_worker_spec *spec, const struct det_node *second, const struct det_node *first,
    const char *what)
{
    report(spec, DET_RULE_DUPLICATE_NAME, second, "%s is %s already", second->text, what);
    det_parse_other(spec->text, first);
}

static bool same(const struct det_node *a, const struct det_node *b)
{
    return a != NULL && b != NULL && strcmp(a->text, b->text) == 0;
}

static void check_state_names(struct det_worker_spec *spec, uint16_t index)
{
    const struct det_worker_read_state *state = &spec->read[index];

    check_wire(spec, state->wire);
    check_reserved(spec, state->name);
    check_reserved(spec, state->wire);
    for (uint16_t i = 0; i < index; i++) {
        const struct det_worker_read_state *other = &spec->read[i];

        if (same(state->name, other->name)) {
            report_twice(spec, state->name, other->name, "a state");
            return;
        }
        if (same(state->wire, other->wire)) {
            report_twice(spec, state->wire, other->wire, "the name of a state on disk");
            return;
        }
    }
}

static void check_action_names(struct det_worker_spec *spec, uint16_t index)
{
    const struct det_node *name = spec->actions[index]->arguments, *wire = name->next;

    check_wire(spec, wire);
    check_reserved(spec, name);
    check_reserved(spec, wire);
    for (uint16_t i = 0; i < spec->facts.state_count; i++) {
        if (same(name, spec->read[i].name))
            report_twice(spec, name, spec->read[i].name, "a state");
    }
    for (uint16_t i = 0; i < index; i++) {
        const struct det_node *other = spec->actions[i]->arguments;

        if (same(name, other))
            report_twice(spec, name, other, "an action");
        else if (same(wire, other->next))
            report_twice(spec, wire, other->next, "the name of an action on disk");
    }
}

/* The state of this name, or state_count. */
static uint16_t find_state(const struct det_worker_spec *spec, const struct det_node *name)
{
    uint16_t i = 0;

    while (i < spec->facts.state_count && !same(spec->read[i].name, name))
        i++;
    return i;
}

static void report_unknown(struct det_worker_spec *spec, const struct det_node *name)
{
    const char *names[DET_WORKER_STATES_MAX];

    /* The name may belong to a row that could not be read. */
    if (spec->is_row_lost)
        return;
    for (uint16_t i = 0; i < spec->facts.state_count; i++)
        names[i] = spec->read[i].name->text;
    report(spec, DET_RULE_UNKNOWN_STATE, name, "%s is not a state of this worker", name->text);
    det_parse_hint_nearest(spec->text, name->text, names, spec->facts.state_count);
}

static void check_stop(struct det_worker_spec *spec, uint16_t index)
{
    const struct det_worker_read_state *state = &spec->read[index];
    uint16_t to;

    if (state->phase < 0)
        return;
    if (state->stop == NULL) {
        if (stops(state->phase))
            return;
        report(
            spec, DET_RULE_NO_STOP, state->row, "%s is %s and has no STOP(...) state",
            state->name->text, det_phase_name((enum det_phase)state->phase));
        det_parse_hint(
            spec->text, "add STOP(...) after the phase, with a state that is STOPPING or STOPPED");
        return;
    }
    if (stops(state->phase)) {
        report(
            spec, DET_RULE_BAD_STOP, state->stop,
            "%s is %s, a phase that has no STOP; remove STOP(...)", state->name->text,
            det_phase_name((enum det_phase)state->phase));
        return;
    }
    to = find_state(spec, state->stop);
    if (to == spec->facts.state_count)
        report_unknown(spec, state->stop);
    else if (spec->read[to].phase >= 0 && !stops(spec->read[to].phase))
        report(
            spec, DET_RULE_BAD_STOP, state->stop,
            "%s stops into %s, which is %s, not STOPPING or STOPPED", state->name->text,
            state->stop->text, det_phase_name((enum det_phase)spec->read[to].phase));
}

static void check_first(struct det_worker_spec *spec)
{
    struct det_place place = { .file = spec->text->sources->path, .line = 1, .column = 1 };
    const struct det_worker_read_state *first = &spec->read[0];

    if (spec->facts.state_count == 0) {
        if (!spec->is_row_lost)
            det_parse_report(
                spec->text, DET_RULE_NO_STATES, &place, "a worker must have at least one state");
        return;
    }
    if (first->phase >= 0 && first->phase != DET_PHASE_STOPPED && !spec->is_row_lost)
        report(
            spec, DET_RULE_FIRST_STATE, first->row,
            "%s is the first state, which must be stopped, but is %s", first->name->text,
            det_phase_name((enum det_phase)first->phase));
}

static void fill_states(struct det_worker_spec *spec)
{
    for (uint16_t i = 0; i < spec->facts.state_count; i++) {
        const struct det_worker_read_state *state = &spec->read[i];
        uint16_t to = state->stop != NULL ? find_state(spec, state->stop) : spec->facts.state_count;

        spec->states[i] = (struct det_worker_spec_state){
            .name = state->name->text,
            .wire = det_parse_text(state->wire != NULL ? state->wire : state->name),
            .phase = state->phase >= 0 ? (enum det_phase)state->phase : DET_PHASE_STOPPED,
            .on_stop = to < spec->facts.state_count ? to : DET_WORKER_NO_STOP,
            .place = det_parse_place(state->row),
        };
    }
}

void det_worker_read_check(struct det_worker_spec *spec)
{
    check_words(spec);
    check_first(spec);
    for (uint16_t i = 0; i < spec->facts.state_count; i++) {
        check_state_names(spec, i);
        check_stop(spec, i);
    }
    for (uint16_t i = 0; i < spec->facts.action_count; i++)
        check_action_names(spec, i);
    fill_states(spec);
}
