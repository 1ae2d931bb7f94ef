/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_model.c - a definition as JSON, with lists and overrides resolved. */
#include <detent/tool/machine.h>

#include "base/assert.h"
#include "codegen/codegen.h"
#include "store/row.h"
#include "terminal/input.h"
#include "testing/case.h"
#include "testing/trace_file.h"
#include "testing/transition_index.h"
#include "json/writer.h"

static void put_timeout(
    struct det_json_writer *json, const char *key, const struct det_machine *machine,
    const struct det_timeout *timeout)
{
    if (!timeout || !timeout->after) {
        det_json_null(json, key);
        return;
    }
    det_json_open(json, key, '{');
    det_json_signed(json, "after_ms", timeout->after / DET_MILLISECOND);
    det_json_text(json, "event", machine->events[timeout->event].name);
    det_json_text(json, "fill", timeout->fill ? timeout->fill->name : NULL);
    det_json_close(json, '}');
}

static void put_states(
    struct det_json_writer *json, const struct det_machine *machine, const struct det_spec *spec)
{
    det_json_open(json, "states", '[');
    for (unsigned i = 0; i < machine->state_count; i++) {
        const struct det_state_def *def = &machine->states[i];

        det_json_open(json, NULL, '{');
        det_json_text(json, "name", def->name);
        det_json_text(json, "c_name", det_spec_state_c_name(spec, i));
        det_json_bool(json, "initial", def->flags & DET_STATE_INITIAL);
        det_json_bool(json, "final", def->flags & DET_STATE_FINAL);
        det_json_text(json, "health", det_state_health_name(def->flags));
        det_json_text(json, "entry", def->entry ? def->entry->name : NULL);
        det_json_text(json, "exit", def->exit ? def->exit->name : NULL);
        put_timeout(json, "timeout", machine, &def->timeout);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void put_events(
    struct det_json_writer *json, const struct det_machine *machine, const struct det_spec *spec)
{
    static const char *const policies[] = { "error", "ignore", "defer", "dead_letter" };

    det_json_open(json, "events", '[');
    for (unsigned i = 0; i < machine->event_count; i++) {
        const struct det_event_def *def = &machine->events[i];
        const struct det_record *payload = det_record_of(def->payload);

        det_assert(def->unhandled < sizeof policies / sizeof *policies);
        det_json_open(json, NULL, '{');
        det_json_text(json, "name", def->name);
        det_json_text(json, "c_name", det_spec_event_c_name(spec, i));
        det_json_bool(json, "internal", def->is_internal);
        det_json_text(json, "unhandled", policies[def->unhandled]);
        det_json_text(json, "payload", payload ? payload->name : NULL);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void put_effects(struct det_json_writer *json, const struct det_machine *machine)
{
    det_json_open(json, "effects", '[');
    for (unsigned i = 0; i < machine->effect_count; i++) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "name", machine->effects[i].name);
        det_json_open(json, "produces", '[');
        for (unsigned k = 0; k < machine->effects[i].produces_count; k++)
            det_json_text(json, NULL, machine->events[machine->effects[i].produces[k]].name);
        det_json_close(json, ']');
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void put_timers(struct det_json_writer *json, const struct det_machine *machine)
{
    det_json_open(json, "timers", '[');
    for (unsigned i = 0; i < machine->timer_count; i++) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "name", machine->timers[i].name);
        put_timeout(json, "timeout", machine, &machine->timers[i].timeout);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void put_functions(
    struct det_json_writer *json, const char *key, const struct det_machine *machine,
    enum case_function function)
{
    const char *name;

    det_json_open(json, key, '[');
    for (size_t i = 0; (name = case_function_name(machine, function, i)); i++)
        det_json_text(json, NULL, name);
    det_json_close(json, ']');
}

static void put_groups(
    struct det_json_writer *json, const struct det_machine *machine, bool is_of_events)
{
    const struct det_group_def *groups = is_of_events ? machine->event_groups : machine->groups;
    unsigned count = is_of_events ? machine->event_group_count : machine->group_count;

    det_json_open(json, is_of_events ? "event_groups" : "groups", '[');
    for (unsigned i = 0; i < count; i++) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "name", groups[i].name);
        det_json_open(json, "members", '[');
        for (unsigned k = 0; k < groups[i].member_count; k++)
            det_json_text(
                json, NULL,
                is_of_events ? machine->events[groups[i].members[k]].name
                             : machine->states[groups[i].members[k]].name);
        det_json_close(json, ']');
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void put_text(struct det_json_writer *json, const char *key, const char *text)
{
    if (text)
        det_json_text(json, key, text);
}

static void put_effect_names(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_transition_more *more)
{
    if (!more->effect_count)
        return;
    det_json_open(json, "do", '[');
    for (unsigned i = 0; i < more->effect_count; i++)
        det_json_text(json, NULL, machine->effects[more->effects[i]].name);
    det_json_close(json, ']');
}

static void put_timer_names(
    struct det_json_writer *json, const char *key, const struct det_machine *machine,
    const uint16_t *ids, unsigned count)
{
    if (!count)
        return;
    det_json_open(json, key, '[');
    for (unsigned i = 0; i < count; i++)
        det_json_text(json, NULL, machine->timers[ids[i]].name);
    det_json_close(json, ']');
}

static void put_keeps(struct det_json_writer *json, const struct det_transition_more *more)
{
    if (!more->keep_count)
        return;
    det_json_open(json, "keep", '[');
    for (unsigned i = 0; i < more->keep_count; i++)
        det_json_text(json, NULL, more->keeps[i].name);
    det_json_close(json, ']');
}

static void put_more(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_transition_more *more)
{
    put_text(json, "if", more->guard ? more->guard->name : NULL);
    put_text(json, "call", more->hook ? more->hook->name : NULL);
    put_text(json, "set", more->update ? more->update->name : NULL);
    put_keeps(json, more);
    put_effect_names(json, machine, more);
    put_timer_names(json, "arm", machine, more->arms, more->arm_count);
    put_timer_names(json, "disarm", machine, more->disarms, more->disarm_count);
    if (more->within)
        put_timeout(json, "within", machine, more->within);
    put_text(json, "reason", more->reason);
}

static void put_transition(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct cli_transition *edge, const struct det_spec *spec)
{
    const struct det_transition *transition = edge->transition;
    struct det_place place = det_spec_row_place(spec, transition->row);

    det_json_open(json, NULL, '{');
    det_json_text(json, "from", machine->states[edge->state].name);
    det_json_text(json, "event", machine->events[edge->event].name);
    det_json_text(json, "outcome", det_outcome_name(transition->outcome));
    det_json_text(json, "to", machine->states[transition->to].name);
    det_json_text(json, "file", place.file);
    det_json_number(json, "line", place.line);
    if (edge->is_else)
        det_json_bool(json, "else", true);
    if (transition->more)
        put_more(json, machine, transition->more);
    det_json_close(json, '}');
}

static void put_transitions(
    struct det_json_writer *json, const struct det_machine *machine, const struct det_spec *spec,
    const size_t *order)
{
    det_json_open(json, "transitions", '[');
    for (size_t i = 0; i < cli_transitions_count(machine); i++) {
        struct cli_transition edge = cli_transition_at(machine, order[i]);

        if (edge.transition->outcome != DET_OUTCOME_UNHANDLED)
            put_transition(json, machine, &edge, spec);
    }
    det_json_close(json, ']');
}

static void put_values(struct det_json_writer *json, const struct det_enum *enumeration)
{
    det_json_text(json, "of", enumeration->name);
    det_json_open(json, "values", '[');
    for (size_t i = 0; i < enumeration->value_count; i++)
        det_json_text(json, NULL, enumeration->values[i].name);
    det_json_close(json, ']');
}

static void put_field(struct det_json_writer *json, const struct det_field *field)
{
    static const char *const kinds[] = { "u",   "i",     "f64",    "bool",  "time",
                                         "str", "bytes", "one_of", "nested" };
    const struct det_record *record = det_record_of(field->record);
    const struct det_enum *enumeration = det_enum_of(field->enumeration);

    det_assert(field->kind < sizeof kinds / sizeof *kinds);
    det_json_open(json, NULL, '{');
    det_json_text(json, "name", field->name);
    if (field->kind == DET_KIND_UNSIGNED || field->kind == DET_KIND_SIGNED)
        det_json_format(json, "type", "%s%u", kinds[field->kind], field->size * 8);
    else
        det_json_text(json, "type", kinds[field->kind]);
    if (field->capacity)
        det_json_number(json, "capacity", field->capacity);
    put_text(json, "of", record ? record->name : NULL);
    if (enumeration)
        put_values(json, enumeration);
    if (field->flags & DET_FIELD_SENSITIVE)
        det_json_bool(json, "sensitive", true);
    if (field->flags & DET_FIELD_OPTIONAL)
        det_json_bool(json, "optional", true);
    if (field->flags & DET_FIELD_ARRAY)
        det_json_number(json, "most", field->count_max);
    if (field->since > 1)
        det_json_number(json, "since", field->since);
    det_json_close(json, '}');
}

static void put_records(struct det_json_writer *json, const struct det_spec *spec)
{
    const struct det_record *record;

    det_json_open(json, "records", '[');
    for (size_t i = 0; (record = det_spec_record(spec, i)); i++) {
        det_json_open(json, NULL, '{');
        det_json_text(json, "name", record->name);
        det_json_number(json, "version", record->version);
        det_json_open(json, "fields", '[');
        for (size_t k = 0; k < record->field_count; k++)
            put_field(json, &record->fields[k]);
        det_json_close(json, ']');
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

void gen_json(struct det_json_writer *json, struct det_spec *spec)
{
    const struct det_machine *machine = det_spec_machine(spec);
    const struct det_record *data = det_record_of(machine->data);
    size_t *order = cli_transitions_in_order(machine, json->text.allocator);
    unsigned depth = json->depth;

    if (!order) {
        json->text.error = DET_ERR_NO_MEMORY;
        return;
    }
    det_json_text(json, "type", "machine");
    det_json_text(json, "name", machine->name);
    det_json_number(json, "version", machine->version);
    det_json_text(json, "prefix", det_spec_prefix(spec));
    det_json_text(json, "initial", machine->states[machine->initial].name);
    det_json_text(json, "data", data ? data->name : NULL);
    put_states(json, machine, spec);
    put_events(json, machine, spec);
    put_effects(json, machine);
    put_timers(json, machine);
    put_functions(json, "guards", machine, CASE_GUARD);
    put_functions(json, "hooks", machine, CASE_HOOK);
    put_functions(json, "updates", machine, CASE_UPDATE);
    put_functions(json, "fills", machine, CASE_FILL);
    put_groups(json, machine, false);
    put_groups(json, machine, true);
    put_transitions(json, machine, spec, order);
    put_records(json, spec);
    det_assert(json->depth == depth);
    cli_transitions_free(machine, json->text.allocator, order);
}
