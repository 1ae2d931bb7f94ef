/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* c_source.c - C around a definition: the two includes that make it a machine, and typed stubs. */
#include <ctype.h>
#include <string.h>

#include "base/assert.h"
#include "codegen/codegen.h"
#include "flow/spec.h"
#include "terminal/input.h"

size_t gen_stem(const char *path, const char **ret)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    *ret = name;
    return dot && dot != name ? (size_t)(dot - name) : strlen(name);
}

static void put_guard(struct det_buffer *buffer, const char *name, size_t size)
{
    det_assert(size > 0 && size <= strlen(name));
    for (size_t i = 0; i < size; i++)
        det_buffer_append_char(
            buffer, isalnum((unsigned char)name[i]) ? (char)toupper((unsigned char)name[i]) : '_');
    det_buffer_append_text(buffer, "_H");
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The path relative to the folder of the spec, which is on the include path. */
static const char *seen_from(const struct det_spec *spec, const char *path)
{
    const char *file = det_spec_file(spec, 0);
    size_t folder = (size_t)(file_name(file) - file);

    return strncmp(path, file, folder) == 0 ? path + folder : path;
}

void gen_records(struct det_buffer *buffer, const struct det_spec *spec, const char *path)
{
    const char *stem;
    size_t size = gen_stem(path, &stem);

    det_buffer_format(
        buffer, "/* %.*s.h - the records in %s as C sees them. */\n#ifndef ", (int)size, stem,
        seen_from(spec, path));
    put_guard(buffer, stem, size);
    det_buffer_append_text(buffer, "\n#define ");
    put_guard(buffer, stem, size);
    det_buffer_format(
        buffer, "\n\n#define REC_SPEC \"%s\"\n#include <detent/rec/declare.h>\n\n#endif\n",
        seen_from(spec, path));
}

/* The records a machine USES are declared before it. */
static void put_uses(struct det_buffer *buffer, const struct det_spec *spec)
{
    const char *path;
    bool has_any = false;

    for (size_t i = 1; (path = det_spec_file(spec, i)); i++) {
        const char *stem;
        size_t size = gen_stem(path, &stem);

        if (!cli_has_suffix(path, CLI_RECORDS_SUFFIX))
            continue;
        det_buffer_format(buffer, "#include \"%.*s.h\"\n", (int)size, stem);
        has_any = true;
    }
    if (has_any)
        det_buffer_append_char(buffer, '\n');
}

/* A header that declares a machine or a flow; `language` is its folder of templates. */
static void put_header(
    struct det_buffer *buffer, const struct det_spec *spec, const char *what, const char *headers,
    const char *language)
{
    const char *file = file_name(det_spec_file(spec, 0));
    const char *stem;
    size_t size = gen_stem(file, &stem);
    bool is_flow = strcmp(language, "flow") == 0;

    det_buffer_format(
        buffer, "/* %.*s.h - the %s in %s as C sees it. */\n#ifndef ", (int)size, stem, what, file);
    put_guard(buffer, stem, size);
    det_buffer_append_text(buffer, "\n#define ");
    put_guard(buffer, stem, size);
    det_buffer_format(buffer, "\n\n#include <detent/%s.h>\n\n", headers);
    put_uses(buffer, spec);
    det_buffer_format(
        buffer, "#define %s_SPEC \"%s\"\n#include <detent/%s/declare.h>\n\n#endif\n",
        is_flow ? "FLOW" : "FSM", file, language);
}

void gen_header(struct det_buffer *buffer, const struct det_spec *spec)
{
    put_header(buffer, spec, "machine", "detent", "fsm");
}

void gen_flow_header(struct det_buffer *buffer, const struct det_flow_spec *spec)
{
    put_header(buffer, spec->text, "flow", "flow", "flow");
}

void gen_flow_records(struct det_buffer *buffer, const struct det_flow_spec *spec, const char *path)
{
    gen_records(buffer, spec->text, path);
}

/* Names in stubs. */
struct names {
    const char *data, *machine;
};

static void put_stub(
    struct det_buffer *buffer, enum case_function function, const char *name, struct names names)
{
    switch (function) {
    case CASE_GUARD:
        det_buffer_format(
            buffer,
            "\nstatic bool %s(const struct det_move *move, const struct %s *data,\n"
            "    const struct %s_event *event)\n{\n"
            "    (void)move;\n    (void)data;\n    (void)event;\n    return true;\n}\n",
            name, names.data, names.machine);
        break;
    case CASE_HOOK:
        det_buffer_format(
            buffer,
            "\n/* A negative number refuses the transition. */\n"
            "static int %s(const struct det_move *move, const struct %s *data,\n"
            "    const struct %s_event *event)\n{\n"
            "    (void)move;\n    (void)data;\n    (void)event;\n    return 0;\n}\n",
            name, names.data, names.machine);
        break;
    case CASE_UPDATE:
        det_buffer_format(
            buffer,
            "\nstatic void %s(struct %s *data, const struct %s_event *event)\n{\n"
            "    (void)data;\n    (void)event;\n}\n",
            name, names.data, names.machine);
        break;
    case CASE_FILL:
        det_buffer_format(
            buffer,
            "\nstatic void %s(const struct det_move *move, const struct %s *data,\n"
            "    struct %s_event *event)\n{\n"
            "    (void)move;\n    (void)data;\n    (void)event;\n}\n",
            name, names.data, names.machine);
        break;
    case CASE_EFFECT: /* put_effect() */
    case CASE_FUNCTION_COUNT:
        break;
    }
}

/* Prints the events that an effect may return, as a comment above its stub. */
static void put_products(
    struct det_buffer *buffer, const struct det_machine *machine, const struct det_effect_def *def)
{
    det_buffer_append_text(buffer, "\n/* Runs at least once, each time with the same call->key.");
    for (unsigned i = 0; i < def->produces_count; i++)
        det_buffer_format(
            buffer, "%s %s_%s()", i ? " or" : "\n * May answer", machine->name,
            machine->events[def->produces[i]].name);
    det_buffer_append_text(
        buffer, def->produces_count ? " in *ret with DET_EFFECT_PRODUCED. */\n" : " */\n");
}

/* The stub of an effect that may answer fails: if it succeeded, the machine would wait for ever. */
static void put_effect(
    struct det_buffer *buffer, const struct det_machine *machine, const struct det_effect_def *def,
    struct names names)
{
    put_products(buffer, machine, def);
    det_buffer_format(
        buffer,
        "static int %s(struct det_effect_call *call, const struct %s *data,\n"
        "    const struct %s_event *event, struct %s_event *ret)\n{\n"
        "    (void)call;\n    (void)data;\n    (void)event;\n    (void)ret;\n",
        def->name, names.data, names.machine, names.machine);
    if (def->produces_count)
        det_buffer_format(
            buffer,
            "    /* Fails until it is written. Do the work, then set *ret to the answer, as in\n"
            "     * *ret = %s_%s(...), and return DET_EFFECT_PRODUCED; DET_EFFECT_DONE if there is "
            "none. */\n"
            "    return DET_ERR_UNSUPPORTED;\n}\n",
            machine->name, machine->events[def->produces[0]].name);
    else
        det_buffer_append_text(buffer, "    return DET_EFFECT_DONE;\n}\n");
}

void gen_stub_append(struct det_buffer *buffer, struct det_spec *spec, const struct gen_stub *stub)
{
    const struct det_machine *machine = det_spec_machine(spec);
    const struct det_record *data = det_record_of(machine->data);
    struct names names = { data ? data->name : "det_empty", machine->name };

    det_assert(stub->kind < GEN_KINDS && stub->name);
    det_assert(stub->kind != CASE_EFFECT || stub->index < machine->effect_count);
    if (det_spec_context(spec))
        gen_component_stub_put(buffer, spec, stub);
    else if (stub->kind == CASE_EFFECT)
        put_effect(buffer, machine, &machine->effects[stub->index], names);
    else
        put_stub(buffer, (enum case_function)stub->kind, stub->name, names);
}

/* Returns the name of a function by its kind, or NULL after the last one. */
static const char *function_name(struct det_spec *spec, unsigned kind, size_t index)
{
    if (kind < CASE_FUNCTION_COUNT)
        return case_function_name(det_spec_machine(spec), (enum case_function)kind, index);
    return det_spec_function(spec, (enum det_spec_role)(kind - CASE_FUNCTION_COUNT), index);
}

void gen_source(struct det_buffer *buffer, struct det_spec *spec)
{
    const char *file = file_name(det_spec_file(spec, 0));
    const char *stem;
    size_t size = gen_stem(file, &stem);

    det_buffer_format(
        buffer,
        "/* %.*s.c - the tables of the machine, checked by the compiler, and the functions it\n"
        " * names. */\n#include \"%.*s.h\"\n\n",
        (int)size, stem, (int)size, stem);
    if (det_spec_context(spec))
        gen_component_context(buffer, spec);
    det_buffer_format(buffer, "#define FSM_SPEC \"%s\"\n#include <detent/fsm/define.h>\n", file);
    for (unsigned i = 0; i < GEN_KINDS; i++) {
        struct gen_stub stub = { .kind = i };

        for (; (stub.name = function_name(spec, i, stub.index)); stub.index++)
            gen_stub_append(buffer, spec, &stub);
    }
}

size_t gen_stub_count(struct det_spec *spec)
{
    size_t count = 0;

    for (unsigned i = 0; i < GEN_KINDS; i++) {
        for (size_t k = 0; function_name(spec, i, k); k++)
            count++;
    }
    return count;
}

void gen_stubs_list(struct det_spec *spec, struct gen_stub *ret)
{
    const struct gen_stub *first = ret;

    for (unsigned i = 0; i < GEN_KINDS; i++) {
        struct gen_stub stub = { .kind = i };

        for (; (stub.name = function_name(spec, i, stub.index)); stub.index++)
            *ret++ = stub;
    }
    det_assert((size_t)(ret - first) == gen_stub_count(spec));
}

struct search {
    struct gen_stub *stubs;
    size_t count;
};

static void note_function(void *context, struct det_view name)
{
    const struct search *search = context;

    for (size_t i = 0; i < search->count; i++) {
        if (det_view_is(name, search->stubs[i].name))
            search->stubs[i].is_there = true;
    }
}

void gen_stubs_find(struct gen_stub *stubs, size_t count, struct det_view text)
{
    struct search search = { stubs, count };

    gen_functions(text, note_function, &search);
}
