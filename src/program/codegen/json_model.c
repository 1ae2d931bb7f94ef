/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_model.c - a definition as JSON: what the rows come to once lists and overrides are resolved.
 */
#include "codegen/codegen.h"
#include "store/row.h"
#include "terminal/input.h"
#include "testing/case.h"
#include "testing/trace_file.h"
#include "testing/transition_index.h"

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* jansson refuses NULL quietly, and the whole is then NULL: one test at the end is enough. */
static json_t *names_of_events(
    const struct det_machine *machine, const uint16_t *ids, unsigned count)
{
    json_t *names = json_array();

    for (unsigned i = 0; i < count; i++)
        json_array_append_new(names, json_string(machine->events[ids[i]].name));
    return names;
}

static json_t *timeout_json(const struct det_machine *machine, const struct det_timeout *timeout)
{
    if (!timeout || !timeout->after)
        return json_null();
    return json_pack(
        "{s:I, s:s, s:o}", "after_ms", (json_int_t)(timeout->after / DET_MILLISECOND), "event",
        machine->events[timeout->event].name, "fill",
        text_or_null(timeout->fill ? timeout->fill->name : NULL));
}

static json_t *states_json(const struct det_machine *machine, const struct det_spec *spec)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < machine->state_count; i++) {
        const struct det_state_def *def = &machine->states[i];

        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "name", def->name, "c_name",
                text_or_null(det_spec_state_c_name(spec, i)), "initial",
                (def->flags & DET_STATE_INITIAL) != 0, "final", (def->flags & DET_STATE_FINAL) != 0,
                "health", text_or_null(det_state_health_name(def->flags)), "entry",
                text_or_null(def->entry ? def->entry->name : NULL), "exit",
                text_or_null(def->exit ? def->exit->name : NULL), "timeout",
                timeout_json(machine, &def->timeout)));
    }
    return list;
}

static json_t *events_json(const struct det_machine *machine, const struct det_spec *spec)
{
    static const char *const policies[] = { "error", "ignore", "defer", "dead_letter" };
    json_t *list = json_array();

    for (unsigned i = 0; i < machine->event_count; i++) {
        const struct det_event_def *def = &machine->events[i];
        const struct det_record *payload = det_record_of(def->payload);

        json_array_append_new(
            list, json_pack(
                      "{s:s, s:o, s:b, s:s, s:o}", "name", def->name, "c_name",
                      text_or_null(det_spec_event_c_name(spec, i)), "internal", def->is_internal,
                      "unhandled", policies[def->unhandled], "payload",
                      text_or_null(payload ? payload->name : NULL)));
    }
    return list;
}

static json_t *effects_json(const struct det_machine *machine)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < machine->effect_count; i++)
        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:o}", "name", machine->effects[i].name, "produces",
                names_of_events(
                    machine, machine->effects[i].produces, machine->effects[i].produces_count)));
    return list;
}

static json_t *timers_json(const struct det_machine *machine)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < machine->timer_count; i++)
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:o}", "name", machine->timers[i].name, "timeout",
                      timeout_json(machine, &machine->timers[i].timeout)));
    return list;
}

static json_t *functions_json(const struct det_machine *machine, enum case_function function)
{
    json_t *list = json_array();
    const char *name;

    for (size_t i = 0; (name = case_function_name(machine, function, i)); i++)
        json_array_append_new(list, json_string(name));
    return list;
}

static json_t *groups_json(const struct det_machine *machine, bool is_of_events)
{
    const struct det_group_def *groups = is_of_events ? machine->event_groups : machine->groups;
    unsigned count = is_of_events ? machine->event_group_count : machine->group_count;
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++) {
        json_t *members = json_array();

        for (unsigned k = 0; k < groups[i].member_count; k++)
            json_array_append_new(
                members, json_string(
                             is_of_events ? machine->events[groups[i].members[k]].name
                                          : machine->states[groups[i].members[k]].name));
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "name", groups[i].name, "members", members));
    }
    return list;
}

static json_t *keeps_json(const struct det_transition_more *more)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < more->keep_count; i++)
        json_array_append_new(list, json_string(more->keeps[i].name));
    return list;
}

static json_t *things_json(
    const struct det_machine *machine, const uint16_t *ids, unsigned count, bool is_of_timers)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++)
        json_array_append_new(
            list, json_string(
                      is_of_timers ? machine->timers[ids[i]].name : machine->effects[ids[i]].name));
    return list;
}

static void add_more(
    json_t *object, const struct det_machine *machine, const struct det_transition_more *more)
{
    if (more->guard)
        json_object_set_new(object, "if", json_string(more->guard->name));
    if (more->hook)
        json_object_set_new(object, "call", json_string(more->hook->name));
    if (more->update)
        json_object_set_new(object, "set", json_string(more->update->name));
    if (more->keep_count)
        json_object_set_new(object, "keep", keeps_json(more));
    if (more->effect_count)
        json_object_set_new(
            object, "do", things_json(machine, more->effects, more->effect_count, false));
    if (more->arm_count)
        json_object_set_new(object, "arm", things_json(machine, more->arms, more->arm_count, true));
    if (more->disarm_count)
        json_object_set_new(
            object, "disarm", things_json(machine, more->disarms, more->disarm_count, true));
    if (more->within)
        json_object_set_new(object, "within", timeout_json(machine, more->within));
    if (more->reason)
        json_object_set_new(object, "reason", json_string(more->reason));
}

static json_t *transition_json(
    const struct det_machine *machine, const struct cli_way *way, const struct det_spec *spec)
{
    const struct det_transition *transition = way->transition;
    struct det_place place = det_spec_row_place(spec, transition->row);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I}", "from", machine->states[way->state].name, "event",
        machine->events[way->event].name, "outcome", det_row_outcome_name(transition->outcome),
        "to", machine->states[transition->to].name, "file",
        place.file ? cli_json_text(place.file) : json_null(), "line", (json_int_t)place.line);

    if (object && way->is_else)
        json_object_set_new(object, "else", json_true());
    if (object && transition->more)
        add_more(object, machine, transition->more);
    return object;
}

static json_t *transitions_json(
    const struct det_machine *machine, const struct det_spec *spec, const size_t *order)
{
    json_t *list = json_array();

    for (size_t i = 0; i < cli_ways_count(machine); i++) {
        struct cli_way way = cli_way_at(machine, order[i]);

        if (way.transition->outcome != DET_UNHANDLED)
            json_array_append_new(list, transition_json(machine, &way, spec));
    }
    return list;
}

static json_t *values_json(const struct det_enum *enumeration)
{
    json_t *list = json_array();

    for (size_t i = 0; i < enumeration->value_count; i++)
        json_array_append_new(list, json_string(enumeration->values[i].name));
    return list;
}

static json_t *field_json(const struct det_field *field)
{
    static const char *const kinds[] = { "u",   "i",     "f64",    "bool",  "time",
                                         "str", "bytes", "one_of", "nested" };
    const struct det_record *record = det_record_of(field->record);
    const struct det_enum *enumeration = det_enum_of(field->enumeration);
    json_t *object;

    if (field->kind == DET_KIND_UNSIGNED || field->kind == DET_KIND_SIGNED)
        object = json_pack(
            "{s:s, s:o}", "name", field->name, "type",
            json_sprintf("%s%u", kinds[field->kind], field->size * 8));
    else
        object = json_pack("{s:s, s:s}", "name", field->name, "type", kinds[field->kind]);
    if (!object)
        return NULL;
    if (field->capacity)
        json_object_set_new(object, "capacity", json_integer(field->capacity));
    if (record)
        json_object_set_new(object, "of", json_string(record->name));
    if (enumeration) {
        json_object_set_new(object, "of", json_string(enumeration->name));
        json_object_set_new(object, "values", values_json(enumeration));
    }
    if (field->flags & DET_FIELD_SENSITIVE)
        json_object_set_new(object, "sensitive", json_true());
    if (field->flags & DET_FIELD_OPTIONAL)
        json_object_set_new(object, "optional", json_true());
    if (field->flags & DET_FIELD_ARRAY)
        json_object_set_new(object, "most", json_integer(field->count_max));
    if (field->since > 1)
        json_object_set_new(object, "since", json_integer(field->since));
    return object;
}

static json_t *records_json(const struct det_spec *spec)
{
    json_t *list = json_array();
    const struct det_record *record;

    for (size_t i = 0; (record = det_spec_record(spec, i)); i++) {
        json_t *fields = json_array();

        for (size_t k = 0; k < record->field_count; k++)
            json_array_append_new(fields, field_json(&record->fields[k]));
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:I, s:o}", "name", record->name, "version",
                      (json_int_t)record->version, "fields", fields));
    }
    return list;
}

static json_t *machine_json(struct det_spec *spec, const size_t *order)
{
    const struct det_machine *machine = det_spec_machine(spec);
    const struct det_record *data = det_record_of(machine->data);

    return json_pack(
        "{s:s, s:s, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "type", "machine", "name", machine->name, "version", (json_int_t)machine->version, "prefix",
        text_or_null(det_spec_prefix(spec)), "initial", machine->states[machine->initial].name,
        "data", text_or_null(data ? data->name : NULL), "states", states_json(machine, spec),
        "events", events_json(machine, spec), "effects", effects_json(machine), "timers",
        timers_json(machine), "guards", functions_json(machine, CASE_GUARD), "hooks",
        functions_json(machine, CASE_HOOK), "updates", functions_json(machine, CASE_UPDATE),
        "fills", functions_json(machine, CASE_FILL), "groups", groups_json(machine, false),
        "event_groups", groups_json(machine, true), "transitions",
        transitions_json(machine, spec, order), "records", records_json(spec));
}

json_t *gen_json(struct det_spec *spec, const struct det_allocator *allocator)
{
    const struct det_machine *machine = det_spec_machine(spec);
    size_t *order = cli_ways_in_order(machine, allocator);
    json_t *object = order ? machine_json(spec, order) : NULL;

    cli_ways_free(machine, allocator, order);
    return object;
}
