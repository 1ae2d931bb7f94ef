/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* c_component.c - C around a component: its context, and typed stubs that get it. */
#include "base/assert.h"
#include "codegen/codegen.h"

/* The parameters and result of a function. */
struct shape {
    const char *comment;
    const char *result;
    bool is_const; /* of the context */
    bool has_event, has_ret, has_end;
    const char *answer;
};

static const struct shape shapes[GEN_KINDS] = {
    [CASE_GUARD] = { "", "bool", true, true, false, false, "true" },
    [CASE_HOOK] = { "/* A negative error is a failure of the component. */\n", "int", false, true,
                    false, false, "0" },
    [CASE_EFFECT] = { "", "int", false, true, true, false, "DET_EFFECT_DONE" },
    [CASE_FUNCTION_COUNT +
        DET_SPEC_DISPATCH] = { "/* DET_DIRECTIVE_CONTINUE waits for a wake or an event; "
                               "DET_DIRECTIVE_TRANSITION sends *ret. */\n",
                               "int", false, false, true, false, "DET_DIRECTIVE_CONTINUE" },
    [CASE_FUNCTION_COUNT + DET_SPEC_COMPLETION] = { "/* Runs exactly once, at the end. */\n", "int",
                                                    false, false, false, true, "0" },
    [CASE_FUNCTION_COUNT + DET_SPEC_INVARIANT] = { "", "bool", true, false, false, false, "true" },
};

void gen_component_context(struct det_buffer *buffer, const struct det_spec *spec)
{
    const char *handler = det_spec_handler(spec);

    det_buffer_format(
        buffer, "/* The state of the component: add your fields. */\nstruct %s {\n",
        det_spec_context(spec));
    det_buffer_append_text(buffer, "    struct det_component component;\n");
    if (handler)
        det_buffer_format(buffer, "    const struct %s *handler;\n", handler);
    det_buffer_append_text(buffer, "};\n\n");
}

static void put_parameters(
    struct det_buffer *buffer, const struct shape *shape, const char *context, const char *machine)
{
    det_buffer_format(buffer, "%sstruct %s *context", shape->is_const ? "const " : "", context);
    if (shape->has_event)
        det_buffer_format(buffer, ",\n    const struct %s_event *event", machine);
    if (shape->has_ret)
        det_buffer_format(buffer, ", struct %s_event *ret", machine);
    if (shape->has_end)
        det_buffer_append_text(buffer, ", const struct det_component_end *end");
}

/* Prints the events that an action may return, as a comment above its stub. */
static void put_products(
    struct det_buffer *buffer, const struct det_machine *machine, const struct det_effect_def *def)
{
    for (unsigned i = 0; i < def->produces_count; i++)
        det_buffer_format(
            buffer, "%s %s_%s()", i ? " or" : "/* May answer", machine->name,
            machine->events[def->produces[i]].name);
    det_buffer_append_text(
        buffer, def->produces_count ? " in *ret with DET_EFFECT_PRODUCED. */\n" : "");
}

void gen_component_stub_put(
    struct det_buffer *buffer, struct det_spec *spec, const struct gen_stub *stub)
{
    const struct det_machine *machine = det_spec_machine(spec);
    const struct shape *shape = &shapes[stub->kind];

    /* A component has no updates and no fills. */
    det_assert(stub->kind < GEN_KINDS && shape->result);
    det_assert(stub->kind != CASE_EFFECT || stub->index < machine->effect_count);
    det_buffer_format(buffer, "\n%s", shape->comment);
    if (stub->kind == CASE_EFFECT)
        put_products(buffer, machine, &machine->effects[stub->index]);
    det_buffer_format(buffer, "static %s %s(", shape->result, stub->name);
    put_parameters(buffer, shape, det_spec_context(spec), machine->name);
    det_buffer_append_text(buffer, ")\n{\n    (void)context;\n");
    if (shape->has_event)
        det_buffer_append_text(buffer, "    (void)event;\n");
    if (shape->has_ret)
        det_buffer_append_text(buffer, "    (void)ret;\n");
    if (shape->has_end)
        det_buffer_append_text(buffer, "    (void)end;\n");
    det_buffer_format(buffer, "    return %s;\n}\n", shape->answer);
}
