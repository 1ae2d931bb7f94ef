/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* c_flow.c - C around a flow: the two includes that make its tables, and a typed stub for each
 * function of a stage without a connector. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "codegen/codegen.h"
#include "flow/spec.h"

/* The functions of a stage, by what comes after its name. */
enum role {
    ROLE_OPEN,
    ROLE_BEGIN,
    ROLE_MAIN, /* has the name of the stage */
    ROLE_RESULT,
    ROLE_FLUSH,
    ROLE_ACKNOWLEDGED,
    ROLE_DRAIN,
    ROLE_CLOSE,
    ROLE_COUNT
};

static const char *const suffixes[ROLE_COUNT] = {
    [ROLE_OPEN] = "_open",     [ROLE_BEGIN] = "_begin", [ROLE_MAIN] = "",
    [ROLE_RESULT] = "_result", [ROLE_FLUSH] = "_flush", [ROLE_ACKNOWLEDGED] = "_acknowledged",
    [ROLE_DRAIN] = "_drain",   [ROLE_CLOSE] = "_close",
};

/* The option that a function depends on; DET_FLOW_EXTRA_COUNT: none. */
static const enum det_flow_extra options[ROLE_COUNT] = {
    [ROLE_OPEN] = DET_FLOW_EXTRA_OPENS,     [ROLE_BEGIN] = DET_FLOW_EXTRA_BEGINS,
    [ROLE_MAIN] = DET_FLOW_EXTRA_COUNT,     [ROLE_RESULT] = DET_FLOW_EXTRA_STATE,
    [ROLE_FLUSH] = DET_FLOW_EXTRA_BUFFERED, [ROLE_ACKNOWLEDGED] = DET_FLOW_EXTRA_ACKNOWLEDGES,
    [ROLE_DRAIN] = DET_FLOW_EXTRA_DRAINS,   [ROLE_CLOSE] = DET_FLOW_EXTRA_OPENS,
};

static bool has_role(const struct det_flow_spec *spec, size_t stage, unsigned role)
{
    if (spec->stages[stage].use)
        return false;
    return options[role] == DET_FLOW_EXTRA_COUNT || spec->read[stage].options[options[role]];
}

size_t gen_flow_stub_count(const struct det_flow_spec *spec)
{
    size_t count = 0;

    for (size_t i = 0; i < spec->flow.stage_count; i++) {
        for (unsigned role = 0; role < ROLE_COUNT; role++)
            count += has_role(spec, i, role);
    }
    return count;
}

void gen_flow_stubs_list(
    const struct det_flow_spec *spec, struct gen_stub *ret, struct gen_flow_name *names)
{
    size_t count = 0;

    for (size_t i = 0; i < spec->flow.stage_count; i++) {
        for (unsigned role = 0; role < ROLE_COUNT; role++) {
            if (!has_role(spec, i, role))
                continue;
            (void)snprintf(
                names[count].text, sizeof names[count].text, "%s%s", spec->stages[i].name,
                suffixes[role]);
            ret[count] = (struct gen_stub){ .kind = role, .index = i, .name = names[count].text };
            count++;
        }
    }
    det_assert(count == gen_flow_stub_count(spec));
}

/* A parameter with a record, or nothing without one. */
static void put_parameter(
    struct det_buffer *buffer, const char *constant, struct det_record_ref ref, const char *name)
{
    const struct det_record *record = det_record_of(ref);

    if (record)
        det_buffer_format(buffer, ", %sstruct %s *%s", constant, record->name, name);
}

static void put_unused(struct det_buffer *buffer, struct det_record_ref ref, const char *name)
{
    if (det_record_of(ref))
        det_buffer_format(buffer, "    (void)%s;\n", name);
}

/* What the function makes, as a comment above it. */
static void put_comment(struct det_buffer *buffer, const struct det_stage *stage, unsigned role)
{
    const struct det_record *out = det_record_of(stage->out);

    det_buffer_append_char(buffer, '\n');
    if (!out || (role != ROLE_MAIN && role != ROLE_RESULT) ||
        (role == ROLE_MAIN && stage->kind == DET_STAGE_STATEFUL))
        return;
    det_buffer_format(
        buffer, "/* Makes records: %s_emit(call, (struct %s){ ... }). */\n", stage->name,
        out->name);
}

static void put_main(struct det_buffer *buffer, const struct det_stage *stage)
{
    det_buffer_format(buffer, "static int %s(struct det_stage_call *call", stage->name);
    put_parameter(buffer, "", stage->cursor, "cursor");
    put_parameter(buffer, "", stage->state, "state");
    put_parameter(buffer, "const ", stage->reference, "reference");
    put_parameter(buffer, "const ", stage->in, "in");
    det_buffer_append_text(buffer, ")\n{\n");
    put_unused(buffer, stage->cursor, "cursor");
    put_unused(buffer, stage->state, "state");
    put_unused(buffer, stage->reference, "reference");
    put_unused(buffer, stage->in, "in");
    det_buffer_format(
        buffer,
        "    return det_stage_fail(call, DET_ERR_UNSUPPORTED, \"%s is not written yet\");\n}\n",
        stage->name);
}

static void put_other(
    struct det_buffer *buffer, const struct det_stage *stage, const struct gen_stub *stub)
{
    bool is_void = stub->kind == ROLE_CLOSE || stub->kind == ROLE_ACKNOWLEDGED;
    bool has_cursor = stub->kind == ROLE_BEGIN || stub->kind == ROLE_FLUSH;

    det_buffer_format(
        buffer, "static %s %s(struct det_stage_call *call", is_void ? "void" : "int", stub->name);
    if (has_cursor)
        put_parameter(buffer, "", stage->cursor, "cursor");
    if (stub->kind == ROLE_RESULT)
        put_parameter(buffer, "", stage->state, "state");
    det_buffer_append_text(
        buffer, stub->kind == ROLE_ACKNOWLEDGED ? ", uint64_t sequence)\n{\n" : ")\n{\n");
    det_buffer_append_text(buffer, "    (void)call;\n");
    if (has_cursor)
        put_unused(buffer, stage->cursor, "cursor");
    if (stub->kind == ROLE_RESULT)
        put_unused(buffer, stage->state, "state");
    if (stub->kind == ROLE_ACKNOWLEDGED)
        det_buffer_append_text(buffer, "    (void)sequence;\n");
    det_buffer_append_text(buffer, is_void ? "}\n" : "    return 0;\n}\n");
}

void gen_flow_stub_append(
    struct det_buffer *buffer, const struct det_flow_spec *spec, const struct gen_stub *stub)
{
    const struct det_stage *stage = &spec->stages[stub->index];

    det_assert(stub->kind < ROLE_COUNT && stub->index < spec->flow.stage_count);
    put_comment(buffer, stage, stub->kind);
    if (stub->kind == ROLE_MAIN)
        put_main(buffer, stage);
    else
        put_other(buffer, stage, stub);
}

void gen_flow_source(
    struct det_buffer *buffer, const struct det_flow_spec *spec, const struct gen_stub *stubs,
    size_t count)
{
    const char *stem;
    size_t size = gen_stem(det_flow_spec_file(spec, 0), &stem);

    det_buffer_format(
        buffer,
        "/* %.*s.c - the tables of the flow, checked by the compiler, and the functions of its\n"
        " * stages. */\n#include \"%.*s.h\"\n\n"
        "#define FLOW_SPEC \"%s\"\n#include <detent/flow/define.h>\n",
        (int)size, stem, (int)size, stem, stem);
    for (size_t i = 0; i < count; i++)
        gen_flow_stub_append(buffer, spec, &stubs[i]);
}
