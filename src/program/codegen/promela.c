/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* promela.c - a definition for the model checker Spin: names become numbers, groups predicates,
 * and the table one step.
 *
 * A model includes the output and defines guards, hooks, actions and the environment itself, so it
 * checks the table that runs. */
#include <detent/tool/machine.h>

#include "base/assert.h"
#include "codegen/codegen.h"
#include "testing/case.h"
#include "testing/transition_index.h"

/* The columns of a step: a state, an event, and a guard within a guard. */
#define INDENT 4

struct writer {
    struct det_buffer *text;
    const struct det_spec *spec;
    const struct det_machine *machine;
    const char *prefix;
    unsigned depth;
};

static void begin_line(struct writer *writer)
{
    for (unsigned i = 0; i < writer->depth * INDENT; i++)
        det_buffer_append_char(writer->text, ' ');
}

static void put_line(struct writer *writer, const char *line)
{
    begin_line(writer);
    det_buffer_format(writer->text, "%s\n", line);
}

/* Appends a call of an inline of the model: actor_do_ask_permit(). */
static void put_call(struct writer *writer, const char *kind, const char *name)
{
    begin_line(writer);
    det_buffer_format(writer->text, "%s_%s_%s();\n", writer->machine->name, kind, name);
}

static void put_list(struct writer *writer, const char *kind, enum case_function function)
{
    const char *name;

    for (size_t i = 0; (name = case_function_name(writer->machine, function, i)); i++)
        det_buffer_format(writer->text, " *     %s_%s_%s()\n", writer->machine->name, kind, name);
}

static void put_head(struct writer *writer)
{
    const struct det_machine *machine = writer->machine;
    const char *name = machine->name;

    det_buffer_format(
        writer->text,
        "/* %s.pml - the machine %s for Spin, made by 'detent gen promela'.\n *\n"
        " * Include it after the macros of its guards; inlines of the rest may follow it. "
        "%s_step()\n"
        " * does what the table says and sets %s_unhandled where it says nothing. A model with\n"
        " * several machines defines %s_state and %s_unhandled itself.\n *\n"
        " * The model defines:\n",
        name, name, name, name, name, name);
    put_list(writer, "guard", CASE_GUARD);
    put_list(writer, "call", CASE_HOOK);
    put_list(writer, "set", CASE_UPDATE);
    put_list(writer, "do", CASE_EFFECT);
    for (unsigned i = 0; i < machine->timer_count; i++)
        det_buffer_format(
            writer->text, " *     %s_arm_%s(), %s_disarm_%s()\n", name, machine->timers[i].name,
            name, machine->timers[i].name);
    det_buffer_append_text(writer->text, " */\n");
}

static void put_names(struct writer *writer)
{
    const struct det_machine *machine = writer->machine;

    for (unsigned i = 0; i < machine->state_count; i++) {
        const struct det_timeout *timeout = &machine->states[i].timeout;

        det_buffer_format(
            writer->text, "#define %s_%s %u", writer->prefix,
            det_spec_state_c_name(writer->spec, i), i);
        if (timeout->after)
            det_buffer_format(
                writer->text, " /* in time: %s */", machine->events[timeout->event].name);
        det_buffer_append_char(writer->text, '\n');
    }
    det_buffer_append_char(writer->text, '\n');
    for (unsigned i = 0; i < machine->event_count; i++)
        det_buffer_format(
            writer->text, "#define %s_%s %u\n", writer->prefix,
            det_spec_event_c_name(writer->spec, i), i);
}

static void put_state_predicate(struct writer *writer, const struct det_group_def *group)
{
    const char *name = writer->machine->name;

    det_buffer_format(writer->text, "#define %s_is_%s() (", name, group->name);
    for (unsigned i = 0; i < group->member_count; i++)
        det_buffer_format(
            writer->text, "%s%s_state == %s_%s", i ? " || " : "", name, writer->prefix,
            det_spec_state_c_name(writer->spec, group->members[i]));
    det_buffer_append_text(writer->text, ")\n");
}

static void put_event_predicate(struct writer *writer, const struct det_group_def *group)
{
    det_buffer_format(
        writer->text, "#define %s_event_is_%s(event) (", writer->machine->name, group->name);
    for (unsigned i = 0; i < group->member_count; i++)
        det_buffer_format(
            writer->text, "%s(event) == %s_%s", i ? " || " : "", writer->prefix,
            det_spec_event_c_name(writer->spec, group->members[i]));
    det_buffer_append_text(writer->text, ")\n");
}

static void put_predicates(struct writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(writer->text, '\n');
    for (unsigned i = 0; i < machine->group_count; i++)
        put_state_predicate(writer, &machine->groups[i]);
    for (unsigned i = 0; i < machine->event_group_count; i++)
        put_event_predicate(writer, &machine->event_groups[i]);
    if (machine->group_count || machine->event_group_count)
        det_buffer_append_char(writer->text, '\n');
}

static bool has_stop(const struct det_machine *machine)
{
    for (size_t i = 0; i < cli_transitions_count(machine); i++) {
        if (cli_transition_at(machine, i).transition->outcome == DET_OUTCOME_STOP)
            return true;
    }
    return false;
}

static void put_variable(
    struct writer *writer, const char *type, const char *name, const char *value)
{
    const char *machine = writer->machine->name;

    det_buffer_format(
        writer->text, "#ifndef %s_%s\n%s %s_%s = %s;\n#endif\n", machine, name, type, machine, name,
        value);
}

static void put_variables(struct writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_format(
        writer->text, "#ifndef %s_state\n%s %s_state = %s_%s;\n#endif\n", machine->name,
        machine->state_count > UINT8_MAX ? "short" : "byte", machine->name, writer->prefix,
        det_spec_state_c_name(writer->spec, machine->initial));
    put_variable(writer, "bool", "unhandled", "false");
    if (has_stop(machine))
        put_variable(writer, "bool", "stopped", "false");
}

static void put_hook(struct writer *writer, const struct det_hook_def *hook)
{
    if (hook)
        put_call(writer, "call", hook->name);
}

static void put_move(struct writer *writer, const struct det_transition *transition)
{
    begin_line(writer);
    det_buffer_format(
        writer->text, "%s_state = %s_%s;\n", writer->machine->name, writer->prefix,
        det_spec_state_c_name(writer->spec, transition->to));
}

static void put_actions(struct writer *writer, const struct det_transition_more *more)
{
    const struct det_machine *machine = writer->machine;

    if (more->update)
        put_call(writer, "set", more->update->name);
    for (unsigned i = 0; i < more->disarm_count; i++)
        put_call(writer, "disarm", machine->timers[more->disarms[i]].name);
    for (unsigned i = 0; i < more->arm_count; i++)
        put_call(writer, "arm", machine->timers[more->arms[i]].name);
    for (unsigned i = 0; i < more->effect_count; i++)
        put_call(writer, "do", machine->effects[more->effects[i]].name);
}

/* Exit, the transition's own hook, the move, entry, and then the actions. Promela needs a statement
 * even if there is nothing to do. */
static void put_transition(
    struct writer *writer, unsigned from, const struct det_transition *transition)
{
    const struct det_state_def *states = writer->machine->states;
    size_t before = writer->text->size;
    bool is_goto = transition->outcome == DET_OUTCOME_GOTO;

    if (transition->outcome != DET_OUTCOME_STAY)
        put_hook(writer, states[from].exit);
    if (transition->more)
        put_hook(writer, transition->more->hook);
    if (is_goto) {
        put_move(writer, transition);
        put_hook(writer, states[transition->to].entry);
    }
    if (transition->outcome == DET_OUTCOME_STOP) {
        begin_line(writer);
        det_buffer_format(writer->text, "%s_stopped = true;\n", writer->machine->name);
    }
    if (transition->more)
        put_actions(writer, transition->more);
    if (writer->text->size == before)
        put_line(writer, "skip;");
    det_assert(writer->text->size > before || det_buffer_status(writer->text) < 0);
}

/* The table has no row, or all guards forbade it. */
static void put_unhandled(struct writer *writer)
{
    begin_line(writer);
    det_buffer_format(writer->text, "%s_unhandled = true;\n", writer->machine->name);
}

static const char *guard_of(const struct det_transition *transition)
{
    return transition && transition->more && transition->more->guard ? transition->more->guard->name
                                                                     : NULL;
}

/* Opens an option of a selection, or begins the selection with it. */
static void open_guard(struct writer *writer, const char *guard)
{
    put_line(writer, "if");
    begin_line(writer);
    det_buffer_format(writer->text, ":: (%s_guard_%s()) ->\n", writer->machine->name, guard);
    writer->depth++;
}

static void open_else(struct writer *writer)
{
    det_assert(writer->depth > 1);
    writer->depth--;
    put_line(writer, ":: else ->");
    writer->depth++;
}

static void close_selection(struct writer *writer)
{
    det_assert(writer->depth > 1);
    writer->depth--;
    put_line(writer, "fi;");
}

/* Each alternative is in the else of the previous one, so that they are tried in order. */
static void put_alternatives(struct writer *writer, unsigned state, unsigned event)
{
    const struct det_transition *edge = det_machine_step(writer->machine, state, event);
    const struct det_choice *choice = NULL;
    unsigned open = 0, depth = writer->depth;

    for (; guard_of(edge); open++) {
        open_guard(writer, guard_of(edge));
        put_transition(writer, state, edge);
        open_else(writer);
        choice = det_machine_choice(writer->machine, state, event, choice);
        edge = choice ? &choice->transition : NULL;
    }
    if (edge)
        put_transition(writer, state, edge);
    else
        put_unhandled(writer);
    for (; open > 0; open--)
        close_selection(writer);
    det_assert(writer->depth == depth);
}

/* An event without a row is handled by the else of all events, unless it is ignored. */
static bool has_answer(const struct writer *writer, unsigned state, unsigned event)
{
    return det_machine_step(writer->machine, state, event)->outcome != DET_OUTCOME_UNHANDLED ||
           writer->machine->events[event].unhandled == DET_UNHANDLED_IGNORE;
}

static void put_event(struct writer *writer, unsigned state, unsigned event)
{
    begin_line(writer);
    det_buffer_format(
        writer->text, ":: event == %s_%s ->\n", writer->prefix,
        det_spec_event_c_name(writer->spec, event));
    writer->depth++;
    if (det_machine_step(writer->machine, state, event)->outcome == DET_OUTCOME_UNHANDLED)
        put_line(writer, "skip;");
    else
        put_alternatives(writer, state, event);
    writer->depth--;
}

static void put_state(struct writer *writer, unsigned state)
{
    bool is_empty = true;

    begin_line(writer);
    det_buffer_format(
        writer->text, ":: %s_state == %s_%s ->\n", writer->machine->name, writer->prefix,
        det_spec_state_c_name(writer->spec, state));
    writer->depth++;
    for (unsigned event = 0; event < writer->machine->event_count; event++) {
        if (!has_answer(writer, state, event))
            continue;
        if (is_empty)
            put_line(writer, "if");
        is_empty = false;
        put_event(writer, state, event);
    }
    if (is_empty) {
        put_unhandled(writer);
    } else {
        writer->depth++;
        open_else(writer);
        put_unhandled(writer);
        close_selection(writer);
    }
    writer->depth--;
}

/* A stopped machine handles no event: if it can stop, a selection encloses that of the states. */
static void put_step(struct writer *writer)
{
    const struct det_machine *machine = writer->machine;
    bool may_stop = has_stop(machine);

    det_buffer_format(writer->text, "\ninline %s_step(event)\n{\n", machine->name);
    writer->depth = 1;
    put_line(writer, "if");
    if (may_stop) {
        begin_line(writer);
        det_buffer_format(writer->text, ":: %s_stopped ->\n", machine->name);
        writer->depth++;
        put_unhandled(writer);
        open_else(writer);
        put_line(writer, "if");
    }
    for (unsigned state = 0; state < machine->state_count; state++)
        put_state(writer, state);
    put_line(writer, "fi;");
    if (may_stop)
        close_selection(writer);
    det_assert(writer->depth == 1);
    det_buffer_append_text(writer->text, "}\n");
}

void gen_promela(struct det_buffer *buffer, struct det_spec *spec)
{
    struct writer writer = {
        .text = buffer,
        .spec = spec,
        .machine = det_spec_machine(spec),
        .prefix = det_spec_prefix(spec),
    };

    put_head(&writer);
    put_names(&writer);
    put_predicates(&writer);
    put_variables(&writer);
    put_step(&writer);
}
