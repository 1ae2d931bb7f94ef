/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_section.c - a machine of detent.yaml, checked against its definition. */
#include <stdio.h>
#include <string.h>

#include <detent/tool/builder.h>
#include <detent/tool/machine.h>

#include "base/assert.h"
#include "config/config_internal.h"

#define NAMES_TEXT 200

static int take_effects(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_machine *machine = target;
    int r;

    (void)key;
    machine->effects = reader_array(reader, node, "'effects'", sizeof *machine->effects, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(
            r, config_take_effect(reader, item, &machine->effects[machine->effect_count++]));
    return r;
}

int config_take_machine(
    struct cli_reader *reader, const struct det_datum *node, struct config_machine *machine)
{
    static const struct config_key keys[] = {
        CONFIG_KEY("spec", config_take_text, offsetof(struct config_machine, spec)),
        CONFIG_KEY("effects", take_effects, 0),
        CONFIG_KEY("module", config_take_text, offsetof(struct config_machine, module)),
    };
    const struct det_datum *nodes[sizeof keys / sizeof *keys];
    int r = config_check_name(reader, node);

    machine->name = node->key;
    machine->node = node;
    r = reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a machine", keys), machine, nodes));
    machine->spec_node = nodes[0];
    machine->module_node = nodes[2];
    machine->is_served = nodes[1] || nodes[2];
    if (r == 0 && !machine->spec)
        machine->spec = det_arena_format(reader->arena, "%s.fsm", node->key);
    return r == 0 && !machine->spec ? reader_no_memory(reader, node) : r;
}

const char *config_unserved_text(
    const struct config_machine *machine, char target[CONFIG_UNSERVED_TEXT])
{
    det_assert(!machine->is_served);
    (void)snprintf(
        target, CONFIG_UNSERVED_TEXT,
        "machine '%.64s' is listed, but 'detent up' does not serve it: add 'effects' with a "
        "command for each of its effects, or write effects: {} if it has none",
        machine->name);
    return target;
}

/* Checks together with the definition. */

/* The event of an answer must be one that the effect lists. */
static int check_answer(
    struct cli_reader *reader, const struct det_machine *definition,
    const struct det_effect_def *effect, const struct config_answer *answer)
{
    const char *names[DET_LIST_MAX + 1];
    size_t count = 0;

    det_assert(effect->produces_count <= DET_LIST_MAX);
    for (; count < effect->produces_count && count < DET_LIST_MAX; count++) {
        names[count] = definition->events[effect->produces[count]].name;
        if (strcmp(names[count], answer->event) == 0)
            return 0;
    }
    if (strcmp(answer->event, CONFIG_NOTHING) == 0)
        return 0;
    if (det_machine_find_event(definition, answer->event) >= 0)
        return reader_fail(
            reader, answer->node, "EFFECT(%s) does not list '%s' among the events it produces",
            effect->name, answer->event);
    return reader_fail_near(
        reader, answer->node, answer->event, names, count,
        "'%s' is not an event that EFFECT(%s) lists", answer->event, effect->name);
}

static int check_effect(
    struct cli_reader *reader, const struct det_machine *definition,
    const struct config_effect *effect)
{
    const char *names[DET_EFFECTS_MAX];
    int index = det_machine_find_effect(definition, effect->name), r = 0;

    det_assert(definition->effect_count <= DET_EFFECTS_MAX);
    det_assert(index < (int)definition->effect_count);
    for (size_t i = 0; i < definition->effect_count; i++)
        names[i] = definition->effects[i].name;
    if (index < 0) {
        struct det_datum at = *effect->node;

        at.line = at.key_line;
        at.column = at.key_column;
        return reader_fail_near(
            reader, &at, effect->name, names, definition->effect_count, "%s has no effect '%s'",
            definition->name, effect->name);
    }
    for (size_t i = 0; i < effect->answer_count; i++)
        r = reader_both(
            r, check_answer(reader, definition, &definition->effects[index], &effect->answers[i]));
    return r;
}

static bool is_listed(const struct config_machine *machine, const char *effect)
{
    for (size_t i = 0; i < machine->effect_count; i++) {
        if (strcmp(machine->effects[i].name, effect) == 0)
            return true;
    }
    return false;
}

static void add_name(char *names, const char *kind, const char *name)
{
    size_t used = strlen(names);

    det_assert(used < NAMES_TEXT);
    snprintf(names + used, NAMES_TEXT - used, "%s%s%s", used ? ", " : "", kind, name);
}

/* Functions that only a C program can provide. */
static int check_functions(
    struct cli_reader *reader, const struct config_machine *machine,
    const struct det_machine *definition)
{
    const struct det_datum *node = machine->spec_node ? machine->spec_node : machine->node;
    const struct det_guard_def *guard;
    const struct det_update_def *update;
    const struct det_hook_def *hook;
    const struct det_fill_def *fill;
    char names[NAMES_TEXT] = "";

    for (size_t i = 0; (guard = det_machine_guard_at(definition, i)); i++)
        add_name(names, "guard ", guard->name);
    for (size_t i = 0; (hook = det_machine_hook_at(definition, i)); i++)
        add_name(names, "hook ", hook->name);
    for (size_t i = 0; (update = det_machine_update_at(definition, i)); i++)
        add_name(names, "update ", update->name);
    for (size_t i = 0; (fill = det_machine_fill_at(definition, i)); i++)
        add_name(names, "fill ", fill->name);
    if (!names[0])
        return 0;
    return reader_fail(
        reader, node,
        "%s has functions in C (%s), but no module provides them: name one that does "
        "(docs/modules.md), serve it from your own program, or write the definition without",
        machine->name, names);
}

int config_check_machine(
    const struct config_machine *machine, const struct det_machine *definition,
    struct cli_problems *problems)
{
    struct cli_reader reader = { .problems = problems };
    int r = 0;

    if (strcmp(machine->name, definition->name) != 0)
        return reader_fail_key(
            &reader, machine->node, "%s defines '%s', and this file calls it '%s'", machine->spec,
            definition->name, machine->name);
    for (size_t i = 0; i < machine->effect_count && reader_can_continue(&reader, r); i++)
        r = reader_both(r, check_effect(&reader, definition, &machine->effects[i]));
    if (machine->module)
        return r;
    for (size_t i = 0; machine->is_served && i < definition->effect_count; i++) {
        if (!is_listed(machine, definition->effects[i].name))
            r = reader_both(
                r, reader_fail_key(
                       &reader, machine->node,
                       "'%s' has no effect '%s' here, and its definition "
                       "asks for it",
                       machine->name, definition->effects[i].name));
    }
    return machine->is_served ? reader_both(r, check_functions(&reader, machine, definition)) : r;
}
