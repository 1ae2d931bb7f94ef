/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_routes.c - definitions as JSON and as diagrams; traces and diagrams of instances. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/memory.h"
#include "codegen/codegen.h"
#include "codegen/svg.h"
#include "daemon/machines.h"
#include "testing/trace_file.h"

/* The spec of a machine that the reader has loaded. */
static struct det_spec *spec_of(const struct api_call *call, const char *name)
{
    struct store_machine *machine = call->reader->store.machines;

    while (strcmp(machine->name, name) != 0)
        machine = machine->next;
    return machine->spec;
}

/* Findings. */

static const char *severity_name(enum det_severity severity)
{
    switch (severity) {
    case DET_SEVERITY_INFO:
        return "note";
    case DET_SEVERITY_WARNING:
        return "warning";
    case DET_SEVERITY_BROKEN:
        return "error";
    }
    return "error";
}

static void write_findings(struct det_json_writer *json, const struct det_spec *spec)
{
    const struct det_diagnostics *findings = det_spec_diagnostics(spec);

    det_json_open(json, "findings", '[');
    for (size_t i = 0; i < findings->count; i++) {
        const struct det_diagnostic *item = &findings->items[i];

        det_json_open(json, NULL, '{');
        det_json_number(json, "line", item->place.line);
        det_json_number(json, "column", item->place.column);
        det_json_text(json, "severity", severity_name(item->severity));
        det_json_text(json, "rule", det_rule_id(item->rule));
        det_json_text(json, "text", item->text);
        det_json_text(json, "hint", item->hint);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void write_definition(
    struct det_json_writer *json, const char *key, struct det_spec *spec,
    const struct det_spec *served)
{
    det_json_open(json, key, '{');
    gen_json(json, spec);
    det_json_bool(json, "served", served != NULL);
    write_findings(json, served ? served : spec);
    det_json_close(json, '}');
}

/* Findings of a served machine are those of its file: the store keeps a formatted spec with other
 * line numbers. */
void api_get_machine(struct api_call *call)
{
    const struct up_machines *machines = up_machines(call->api->up);
    const char *name = call->parameters[0];
    const struct det_spec *served;
    struct det_machine *machine;
    struct det_spec *stored;

    if (!api_reader_take(call) || !api_reader_machine(call, name, &machine))
        return;
    stored = spec_of(call, name);
    served = machines ? up_machines_spec(machines, name) : NULL;
    write_definition(&call->json, NULL, stored, served);
}

/* Diagrams. */

bool api_read_format(struct api_call *call, enum api_format *ret)
{
    static const char *const names[] = { "mermaid", "dot", "svg" };
    const char *text = api_query(call, "format");

    *ret = API_FORMAT_MERMAID;
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum api_format)i;
            return true;
        }
    }
    if (text)
        api_fail(call, DET_ERR_INVALID, "'format' must be mermaid, dot or svg");
    return !text;
}

/* A drawing of something that is not in the store. */
static int draw_without_store(struct api_call *call, const char *text, size_t size)
{
    struct cli cli = { .allocator = call->api->allocator, .world = call->api->world };
    char *talk = NULL;
    size_t talk_size;
    int code;

    cli.out = cli.err = open_memstream(&talk, &talk_size);
    if (!cli.err) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        return CLI_FAILURE;
    }
    code = svg_of_dot(&cli, text, size, &call->is_left, &call->json.text);
    fclose(cli.err);
    free(talk);
    return code;
}

void api_write_drawing(struct api_call *call, enum api_format format, const char *text, size_t size)
{
    static const char *const types[] = { "text/vnd.mermaid; charset=utf-8",
                                         "text/vnd.graphviz; charset=utf-8", "image/svg+xml" };
    int code = CLI_OK;

    if (format == API_FORMAT_SVG && !call->reader)
        code = draw_without_store(call, text, size);
    else if (format == API_FORMAT_SVG)
        code = svg_of_dot(&call->reader->cli, text, size, &call->is_left, &call->json.text);
    else
        det_buffer_append(&call->json.text, text, size);
    call->type = types[format];
    if (code == CLI_NOT_FOUND)
        api_fail(
            call, DET_ERR_UNSUPPORTED,
            "the program 'dot' is missing: install graphviz, or request another format");
    else if (code != CLI_OK && call->reader)
        api_fail_reader(call, code);
    else if (code != CLI_OK && !call->status)
        api_fail(call, DET_ERR_IO, "the program 'dot' has failed");
}

static void write_diagram(
    struct api_call *call, const struct det_machine *machine, const struct det_draw_trace *trace,
    enum api_format format)
{
    const struct det_draw_options options = {
        .drawing = format == API_FORMAT_MERMAID ? DET_DRAW_MERMAID_STATE : DET_DRAW_DOT,
        .trace = trace,
    };
    struct det_error error = { 0 };
    int64_t size = det_draw(machine, &options, NULL, 0, &error);
    char *text = size < 0 ? NULL : det_arena_alloc(&call->arena, (size_t)size + 1);

    if (size >= 0 && !text)
        size = DET_ERR_NO_MEMORY;
    if (size >= 0)
        size = det_draw(machine, &options, text, (size_t)size + 1, &error);
    if (size < 0)
        api_fail_with(call, (int)size, &error);
    else
        api_write_drawing(call, format, text, (size_t)size);
}

void api_get_diagram(struct api_call *call)
{
    struct det_machine *machine;
    enum api_format format;

    if (api_read_format(call, &format) && api_reader_take(call) &&
        api_reader_machine(call, call->parameters[0], &machine))
        write_diagram(call, machine, NULL, format);
}

/* Traces. */

struct run {
    struct api_call *call;
    const struct instance *instance;
    struct det_buffer steps; /* struct det_draw_step */
    struct cli_trace_writer writer;
};

/* A cancel has no event and is not a step. */
static int take_step(void *context, const struct det_store_event *row)
{
    struct run *run = context;
    const struct det_machine *machine = run->instance->machine;
    const struct det_draw_step step = {
        .sequence = row->sequence,
        .from = row->from,
        .to = row->to,
        .event = row->event,
        .outcome = row->outcome,
        .is_timeout = row->is_timeout,
        .at = row->at,
    };
    const struct det_note note = {
        .machine = machine,
        .instance = run->instance->id,
        .sequence = row->sequence,
        .visit = row->visit,
        .from = row->from,
        .to = row->to,
        .event = row->event,
        .outcome = row->outcome,
        .is_timeout = row->is_timeout,
        .at = row->at,
        .event_value = row->value,
    };

    if (row->event == UINT16_MAX || row->outcome > DET_OUTCOME_STOP)
        return 0;
    det_buffer_append(&run->steps, &step, sizeof step);
    cli_trace_step(&run->writer, &note);
    return det_buffer_status(&run->steps);
}

static int take_steps(struct run *run, const struct instance *instance)
{
    const struct cli_store *store = instance->store;

    run->instance = instance;
    det_buffer_init(&run->steps, run->call->api->allocator);
    det_buffer_init(&run->writer.lines, run->call->api->allocator);
    cli_trace_run(&run->writer, instance->machine, instance->id);
    return store->ops->events(store->store, instance->loaded.instance, 0, take_step, run);
}

static void close_run(struct run *run)
{
    det_buffer_deinit(&run->steps);
    det_buffer_deinit(&run->writer.lines);
}

void api_get_trace(struct api_call *call)
{
    struct run run = { .call = call, .writer = { .is_wanted = true } };
    struct instance instance;
    int r;

    if (!api_reader_take(call) || !api_reader_instance(call, &instance))
        return;
    r = take_steps(&run, &instance);
    if (r == 0)
        r = det_buffer_status(&run.writer.lines);
    det_buffer_append(&call->json.text, det_buffer_text(&run.writer.lines), run.writer.lines.size);
    call->type = "application/jsonl; charset=utf-8";
    close_run(&run);
    instance_close(&instance);
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

void api_get_instance_diagram(struct api_call *call)
{
    struct run run = { .call = call };
    struct instance instance;
    enum api_format format;
    int r;

    if (!api_read_format(call, &format) || !api_reader_take(call) ||
        !api_reader_instance(call, &instance))
        return;
    r = take_steps(&run, &instance);
    if (r == 0) {
        const struct det_draw_step *steps = (const struct det_draw_step *)(void *)run.steps.data;
        const struct det_draw_trace trace = {
            .instance = instance.id,
            .initial = run.steps.size ? steps[0].from : instance.loaded.head.state,
            .current = instance.loaded.head.state,
            .steps = steps,
            .step_count = run.steps.size / sizeof *steps,
        };

        write_diagram(call, instance.machine, &trace, format);
    }
    close_run(&run);
    instance_close(&instance);
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Checking a definition without storing it. */

static void write_dot(struct api_call *call, const struct det_machine *machine)
{
    const struct det_draw_options options = { .drawing = DET_DRAW_DOT };
    int64_t size = det_draw(machine, &options, NULL, 0, NULL);
    char *text = size < 0 ? NULL : det_arena_alloc(&call->arena, (size_t)size + 1);

    if (text && det_draw(machine, &options, text, (size_t)size + 1, NULL) < 0)
        text = NULL;
    det_json_text(&call->json, "dot", text);
}

void api_check_definition(struct api_call *call)
{
    struct det_spec_options options = { .allocator = call->api->allocator };
    struct det_json_object *members = api_body(call, "spec");
    const char *text = members ? det_json_object_text(members, "spec") : NULL;
    struct det_spec *spec;
    struct det_machine *machine;

    if (!members || !api_body_is_right(call, members))
        return;
    if (det_spec_read("definition.fsm", text, strlen(text), &options, &spec) < 0) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        return;
    }
    machine = det_spec_machine(spec);
    det_json_open(&call->json, NULL, '{');
    if (machine) {
        write_definition(&call->json, "machine", spec, NULL);
        write_dot(call, machine);
    } else {
        det_json_text(&call->json, "machine", NULL);
        det_json_text(&call->json, "dot", NULL);
    }
    write_findings(&call->json, spec);
    det_json_close(&call->json, '}');
    det_spec_close(spec);
}
