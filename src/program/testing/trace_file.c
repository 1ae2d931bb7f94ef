/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_file.c - writes and reads traces. */
#include "testing/trace_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "store/row.h"
#include "terminal/input.h"

/* A payload is shown up to this size; what is longer is cut by the drawing anyway. */
#define DETAIL_MAX 512

static void add_line(struct cli_trace_writer *writer, json_t *object_take)
{
    char *text = object_take ? json_dumps(object_take, JSON_ENSURE_ASCII) : NULL;

    json_decref(object_take);
    if (!text) {
        writer->lines.error = DET_ERR_NO_MEMORY;
        return;
    }
    det_buffer_append_text(&writer->lines, text);
    det_buffer_append_char(&writer->lines, '\n');
    free(text);
}

void cli_trace_run(
    struct cli_trace_writer *writer, const struct det_machine *machine, const char *run)
{
    if (writer->is_wanted)
        add_line(
            writer, json_pack(
                        "{s:s, s:i, s:s, s:I, s:o, s:s}", "type", "run", "version", 1, "machine",
                        machine->name, "machine_version", (json_int_t)machine->version, "run",
                        cli_json_text(run), "initial", machine->states[machine->initial].name));
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
    char at[DET_TIME_TEXT], detail[DETAIL_MAX];
    const char *shown;
    json_t *step;

    /* A stop by hand has no event; one that was put aside is no step yet. */
    if (!writer->is_wanted || note->event == UINT16_MAX || note->outcome > DET_STOP)
        return;
    shown = detail_of(note, detail);
    step = json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:s, s:b, s:s}", "type", "step", "sequence",
        (json_int_t)note->sequence, "from", machine->states[note->from].name, "event",
        machine->events[note->event].name, "to", machine->states[note->to].name, "outcome",
        det_row_outcome_name(note->outcome), "timeout", note->is_timeout, "at",
        det_format_time(note->at, at, sizeof at));
    if (step && shown && json_object_set_new(step, "detail", cli_json_text(shown)) < 0) {
        json_decref(step);
        step = NULL;
    }
    add_line(writer, step);
}

int cli_trace_save(struct cli *cli, const struct cli_trace_writer *writer, const char *path)
{
    if (det_buffer_status(&writer->lines) == DET_ERR_LIMIT) {
        cli_complain(cli, "the trace is larger than %d MiB", CLI_TRACE_SIZE_MAX / 1048576);
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
    struct det_trace_step *steps;
    size_t capacity;
    enum { BEFORE, INSIDE, BEHIND } where;
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
    struct reader *reader, const json_t *object, const char *member,
    int (*find)(const struct det_machine *machine, const char *name), uint16_t *ret)
{
    const char *name = json_string_value(json_object_get(object, member));
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
    struct reader *reader, const json_t *object, const char *name_key, const char *state_key)
{
    const char *name = json_string_value(json_object_get(object, name_key));
    const char *machine = json_string_value(json_object_get(object, "machine"));
    char *copy;
    int r;

    if (reader->where == INSIDE)
        reader->where = BEHIND;
    if (reader->where == BEHIND)
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
    return copy ? 0 : fail_at(reader, DET_ERR_NO_MEMORY, "no memory", "");
}

/* Room for one more step; the old array stays in the arena, which is bounded by the file. */
static struct det_trace_step *add_step(struct reader *reader)
{
    struct det_trace *trace = &reader->trace->trace;

    if (trace->step_count == reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : 64;
        struct det_trace_step *steps =
            det_arena_array(&reader->trace->arena, capacity, sizeof *steps);

        if (!steps)
            return NULL;
        if (trace->step_count)
            memcpy(steps, reader->steps, trace->step_count * sizeof *steps);
        trace->steps = reader->steps = steps;
        reader->capacity = capacity;
    }
    return &reader->steps[trace->step_count++];
}

static int read_names(struct reader *reader, const json_t *object, struct det_trace_step *step)
{
    const char *outcome = json_string_value(json_object_get(object, "outcome"));
    int found = outcome ? det_row_outcome_find(outcome) : -1;
    int r;

    if (found != DET_GOTO && found != DET_STAY && found != DET_STOP)
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

static int read_step(struct reader *reader, const json_t *object)
{
    const char *at = json_string_value(json_object_get(object, "at"));
    const char *detail = json_string_value(json_object_get(object, "detail"));
    struct det_trace_step *step;
    int r;

    if (reader->where != INSIDE)
        return 0;
    step = add_step(reader);
    if (!step)
        return fail_at(reader, DET_ERR_NO_MEMORY, "no memory", "");
    r = read_names(reader, object, step);
    if (r < 0)
        return r;
    if (!at || det_parse_time(det_view_text(at), &step->at) < 0)
        return fail_at(reader, DET_ERR_MALFORMED, "'at' is a time like 2026-01-31T10:00:00Z", "");
    step->sequence = (uint64_t)json_integer_value(json_object_get(object, "sequence"));
    step->is_timeout = json_is_true(json_object_get(object, "timeout"));
    reader->trace->trace.current = step->to;
    if (!detail)
        return 0;
    step->detail = det_arena_copy(&reader->trace->arena, detail);
    return step->detail ? 0 : fail_at(reader, DET_ERR_NO_MEMORY, "no memory", "");
}

/* Whether the event of a history is a step: a stop by hand has no event, and what was deferred or
 * given up led nowhere. */
static bool is_step(const json_t *object)
{
    const char *outcome = json_string_value(json_object_get(object, "outcome"));
    int found = outcome ? det_row_outcome_find(outcome) : -1;

    return json_is_string(json_object_get(object, "event")) &&
           (found == DET_GOTO || found == DET_STAY || found == DET_STOP);
}

static int read_history_event(struct reader *reader, json_t *object)
{
    const json_t *payload = json_object_get(object, "payload");
    char *text;
    int r = 0;

    if (!is_step(object))
        return 0;
    /* Only the last events were asked for, or are kept: the run begins with the first of them. */
    if (reader->where == BEFORE)
        r = read_run(reader, object, "id", "from");
    if (r < 0)
        return r;
    text = payload ? json_dumps(payload, JSON_COMPACT) : NULL;
    if (text && json_object_set_new(object, "detail", json_string(text)) < 0)
        r = fail_at(reader, DET_ERR_NO_MEMORY, "no memory", "");
    free(text);
    return r < 0 ? r : read_step(reader, object);
}

static int read_object(struct reader *reader, json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));

    if (!type)
        return 0;
    if (strcmp(type, "run") == 0)
        return read_run(reader, object, "run", "initial");
    if (strcmp(type, "step") == 0)
        return read_step(reader, object);
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
    json_error_t problem;
    json_t *object;
    int r;

    if (size > CLI_TRACE_LINE_MAX)
        return fail_at(reader, DET_ERR_LIMIT, "longer than 1 MiB", "");
    if (is_blank(text, size))
        return 0;
    object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    if (!object)
        return fail_at(reader, DET_ERR_MALFORMED, "not a JSON object", problem.text);
    r = read_object(reader, object);
    json_decref(object);
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
