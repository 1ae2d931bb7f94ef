/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_file.c - writes and reads traces. */
#include <detent/tool/machine.h>

#include "testing/trace_file.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/row.h"
#include "terminal/input.h"
#include "json/reader.h"
#include "json/writer.h"

/* A payload is shown up to this size; what is longer is cut by the drawing anyway. */
#define DETAIL_MAX 512

/* An object at the end of the lines, which the writer borrows until end_line(). */
static void begin_line(
    struct cli_trace_writer *writer, struct det_json_writer *json, const char *type)
{
    *json = (struct det_json_writer){ .text = writer->lines };
    det_json_open(json, NULL, '{');
    det_json_text(json, "type", type);
}

static void end_line(struct cli_trace_writer *writer, struct det_json_writer *json)
{
    det_json_close(json, '}');
    det_assert(json->depth == 0);
    det_buffer_append_char(&json->text, '\n');
    writer->lines = json->text;
}

void cli_trace_run(
    struct cli_trace_writer *writer, const struct det_machine *machine, const char *run)
{
    struct det_json_writer json;

    if (!writer->is_wanted)
        return;
    begin_line(writer, &json, "run");
    det_json_number(&json, "version", 1);
    det_json_text(&json, "machine", machine->name);
    det_json_number(&json, "machine_version", machine->version);
    det_json_text(&json, "run", run);
    det_json_text(&json, "initial", machine->states[machine->initial].name);
    end_line(writer, &json);
}

/* The payload for eyes, or NULL. A cut one ends in dots. */
static const char *detail_of(const struct det_note *note, char *target)
{
    const struct det_event_def *event = &note->machine->events[note->event];
    const struct det_record *payload = det_record_of(event->payload);
    char whole[DETAIL_MAX + 1];
    size_t size;

    if (!payload)
        return NULL;
    size = det_record_print(
        payload, (const char *)note->event_value + event->payload_offset, 0, whole, sizeof whole);
    det_text_copy(target, DETAIL_MAX - 3, whole);
    if (size >= DETAIL_MAX - 3)
        memcpy(target + strlen(target), "...", 4);
    return target;
}

void cli_trace_step(struct cli_trace_writer *writer, const struct det_note *note)
{
    const struct det_machine *machine = note->machine;
    struct det_json_writer json;
    char detail[DETAIL_MAX];
    const char *shown;

    /* A manual stop has no event; an ignored, deferred or dead event is not a step. */
    if (!writer->is_wanted || note->event == UINT16_MAX || note->outcome > DET_OUTCOME_STOP)
        return;
    shown = detail_of(note, detail);
    begin_line(writer, &json, "step");
    det_json_number(&json, "sequence", note->sequence);
    det_json_text(&json, "from", machine->states[note->from].name);
    det_json_text(&json, "event", machine->events[note->event].name);
    det_json_text(&json, "to", machine->states[note->to].name);
    det_json_text(&json, "outcome", det_outcome_name(note->outcome));
    det_json_bool(&json, "timeout", note->is_timeout);
    det_json_time(&json, "at", note->at);
    if (shown)
        det_json_text(&json, "detail", shown);
    end_line(writer, &json);
}

int cli_trace_save(struct cli *cli, const struct cli_trace_writer *writer, const char *path)
{
    if (det_buffer_status(&writer->lines) == DET_ERR_LIMIT) {
        cli_report_error(cli, "the trace is larger than %d MiB", CLI_TRACE_SIZE_MAX / 1048576);
        return CLI_FAILURE;
    }
    if (det_buffer_status(&writer->lines) < 0)
        return cli_no_memory(cli);
    return cli_write_to(cli, path, det_buffer_text(&writer->lines), writer->lines.size);
}

bool cli_trace_is_output(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* The steps of one run, as they are read. */
struct reader {
    const struct det_machine *machine;
    const char *run; /* wanted; NULL: the first */
    struct cli_trace *trace;
    struct det_draw_step *steps;
    size_t capacity;
    enum { BEFORE, INSIDE, AFTER } where;
    unsigned line;
    struct det_error *error;
};

static int fail_at(struct reader *reader, int code, const char *problem, const char *what)
{
    return det_error_set(
        reader->error, code, "line %u: %s%s%s", reader->line, problem, *what ? ": " : "", what);
}

/* A member that names a thing of the machine. */
static int find_name(
    struct reader *reader, const struct det_json_value *object, const char *member,
    int (*find)(const struct det_machine *machine, const char *name), uint16_t *ret)
{
    const char *name = det_json_get_text(object, member);
    int id;

    if (!name)
        return fail_at(reader, DET_ERR_MALFORMED, "a step needs a text", member);
    id = find(reader->machine, name);
    if (id < 0)
        return fail_at(reader, DET_ERR_INVALID, "this machine has no such state or event", name);
    *ret = (uint16_t)id;
    return 0;
}

/* `name_key` and `state_key` are the members with its name and its first state. */
static int read_run(
    struct reader *reader, const struct det_json_value *object, const char *name_key,
    const char *state_key)
{
    const char *name = det_json_get_text(object, name_key);
    const char *machine = det_json_get_text(object, "machine");
    char *copy;
    int r;

    if (reader->where == INSIDE)
        reader->where = AFTER;
    if (reader->where == AFTER)
        return 0;
    if (!name || !machine)
        return fail_at(reader, DET_ERR_MALFORMED, "a run needs the texts 'run' and 'machine'", "");
    if (reader->run && strcmp(name, reader->run) != 0)
        return 0;
    if (strcmp(machine, reader->machine->name) != 0)
        return fail_at(reader, DET_ERR_INVALID, "the trace is of another machine", machine);
    r = find_name(reader, object, state_key, det_machine_find_state, &reader->trace->trace.initial);
    if (r < 0)
        return r;
    copy = det_arena_copy(&reader->trace->arena, name);
    reader->trace->trace.instance = copy;
    reader->trace->trace.current = reader->trace->trace.initial;
    reader->where = INSIDE;
    return copy ? 0 : fail_at(reader, DET_ERR_NO_MEMORY, "out of memory", "");
}

/* Room for one more step; the old array stays in the arena, which is bounded by the file. */
static struct det_draw_step *add_step(struct reader *reader)
{
    struct det_draw_trace *trace = &reader->trace->trace;

    if (trace->step_count == reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : 64;
        struct det_draw_step *steps =
            det_arena_array(&reader->trace->arena, capacity, sizeof *steps);

        if (!steps)
            return NULL;
        if (trace->step_count)
            memcpy(steps, reader->steps, trace->step_count * sizeof *steps);
        trace->steps = reader->steps = steps;
        reader->capacity = capacity;
    }
    det_assert(trace->step_count < reader->capacity);
    return &reader->steps[trace->step_count++];
}

static int read_names(
    struct reader *reader, const struct det_json_value *object, struct det_draw_step *step)
{
    const char *outcome = det_json_get_text(object, "outcome");
    int found = outcome ? det_outcome_find(outcome) : -1;
    int r;

    if (found != DET_OUTCOME_GOTO && found != DET_OUTCOME_STAY && found != DET_OUTCOME_STOP)
        return fail_at(
            reader, DET_ERR_MALFORMED, "the outcome of a step is goto, stay or stop", "");
    step->outcome = (uint16_t)found;
    r = find_name(reader, object, "from", det_machine_find_state, &step->from);
    if (r == 0)
        r = find_name(reader, object, "to", det_machine_find_state, &step->to);
    if (r == 0)
        r = find_name(reader, object, "event", det_machine_find_event, &step->event);
    return r;
}

static int read_step(struct reader *reader, const struct det_json_value *object, const char *detail)
{
    const char *at = det_json_get_text(object, "at");
    struct det_draw_step *step;
    int r;

    if (reader->where != INSIDE)
        return 0;
    step = add_step(reader);
    if (!step)
        return fail_at(reader, DET_ERR_NO_MEMORY, "out of memory", "");
    r = read_names(reader, object, step);
    if (r < 0)
        return r;
    if (!at || det_parse_time(det_view_text(at), &step->at) < 0)
        return fail_at(reader, DET_ERR_MALFORMED, "'at' is a time like 2026-01-31T10:00:00Z", "");
    step->sequence = det_json_get_number(object, "sequence");
    step->is_timeout = det_json_get_bool(object, "timeout");
    reader->trace->trace.current = step->to;
    if (!detail)
        return 0;
    step->detail = det_arena_copy(&reader->trace->arena, detail);
    return step->detail ? 0 : fail_at(reader, DET_ERR_NO_MEMORY, "out of memory", "");
}

/* Returns true if the event of a history is a step: a manual stop has no event, and deferred events
 * and dead letters lead nowhere. */
static bool is_step(const struct det_json_value *object)
{
    const char *outcome = det_json_get_text(object, "outcome");
    int found = outcome ? det_outcome_find(outcome) : -1;

    return det_json_get_text(object, "event") &&
           (found == DET_OUTCOME_GOTO || found == DET_OUTCOME_STAY || found == DET_OUTCOME_STOP);
}

static int read_history_event(struct reader *reader, const struct det_json_value *object)
{
    const struct det_json_value *payload = det_json_get(object, "payload");
    struct det_json_writer json;
    int r = 0;

    if (!is_step(object))
        return 0;
    /* The output may have only the last events: the run begins with the first of them. */
    if (reader->where == BEFORE)
        r = read_run(reader, object, "id", "from");
    if (r < 0)
        return r;
    det_json_writer_init(&json, reader->trace->arena.allocator);
    if (payload)
        det_json_copy(&json, NULL, payload);
    if (det_buffer_status(&json.text) < 0)
        r = fail_at(reader, DET_ERR_NO_MEMORY, "out of memory", "");
    else
        r = read_step(reader, object, payload ? det_buffer_text(&json.text) : NULL);
    det_json_writer_deinit(&json);
    return r;
}

static int read_object(struct reader *reader, const struct det_json_value *object)
{
    const char *type = det_json_get_text(object, "type");

    if (!type)
        return 0;
    if (strcmp(type, "run") == 0)
        return read_run(reader, object, "run", "initial");
    if (strcmp(type, "step") == 0)
        return read_step(reader, object, det_json_get_text(object, "detail"));
    if (strcmp(type, "start") == 0)
        return read_run(reader, object, "id", "state");
    return strcmp(type, "event") == 0 ? read_history_event(reader, object) : 0;
}

static bool is_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

static int read_line(struct reader *reader, const char *text, size_t size)
{
    const struct det_json_value *object = NULL;
    struct det_error problem = { 0 };
    struct det_arena arena;
    int r;

    if (size > CLI_TRACE_LINE_MAX)
        return fail_at(reader, DET_ERR_LIMIT, "longer than 1 MiB", "");
    if (is_blank(text, size))
        return 0;
    det_arena_init(&arena, reader->trace->arena.allocator);
    r = det_json_read(&arena, det_view_of(text, size), &object, &problem);
    if (r == 0 && object->kind == DET_JSON_OBJECT)
        r = read_object(reader, object);
    else if (r == DET_ERR_NO_MEMORY)
        r = fail_at(reader, r, "out of memory", "");
    else
        r = fail_at(reader, DET_ERR_MALFORMED, "not a JSON object", problem.text);
    det_arena_deinit(&arena);
    return r;
}

static int read_lines(struct reader *reader, const char *text, size_t size)
{
    int r = 0;

    for (const char *end = text + size, *next; text < end && r == 0; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));

        next = newline ? newline + 1 : end;
        reader->line++;
        r = read_line(reader, text, (size_t)((newline ? newline : end) - text));
    }
    if (r == 0 && reader->where == BEFORE)
        r = reader->run
                ? det_error_set(
                      reader->error, DET_ERR_NOT_FOUND, "there is no run '%s' in the trace",
                      reader->run)
                : det_error_set(reader->error, DET_ERR_NOT_FOUND, "there is no run in the trace");
    return r;
}

int cli_trace_read(
    const struct det_machine *machine, struct det_view text, const char *run,
    const struct det_allocator *allocator, struct cli_trace *ret, struct det_error *reterr)
{
    struct reader reader = { .machine = machine, .run = run, .trace = ret, .error = reterr };
    int r;

    *ret = (struct cli_trace){ 0 };
    det_arena_init(&ret->arena, allocator);
    r = read_lines(&reader, text.data, text.size);
    if (r < 0)
        cli_trace_deinit(ret);
    return r;
}

void cli_trace_deinit(struct cli_trace *trace)
{
    det_arena_deinit(&trace->arena);
    *trace = (struct cli_trace){ 0 };
}
