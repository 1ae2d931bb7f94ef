/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exec_sink.c - the sink `exec`: rows as JSON lines on the standard input of a command.
 *
 * With `acknowledge: exit` a command runs for each batch: exit code 0 means that all of it is done,
 * 65 that it will never be. With `acknowledge: echo` one command runs as long as the flow, and
 * answers each line with a line, in order: "ok", or "reject" and a reason. At least once: what was
 * not acknowledged is sent again, to a new process. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "connectors/exec_child.h"
#include "connectors/rejections.h"
#include "connectors/row_json.h"
#include "connectors/settings.h"
#include "os/os.h"

#define REC_SPEC "connectors/exec_sink.rec"
#include <detent/rec/declare.h>

#define BATCH      1000
#define BATCH_MAX  100000
#define BODY_LARGE 4194304
#define TIMEOUT    DET_MINUTE
#define RETRY_FOR  DET_MINUTE
#define PAUSE_MIN  (100 * DET_MILLISECOND)
#define PAUSE_MAX  (10 * DET_SECOND)
/* "data error" of <sysexits.h>: the same input will fail again. */
#define EXIT_REJECT 65

struct kept {
    size_t begin; /* of its line */
    struct det_row_info row;
};

struct exec_sink {
    struct exec_child child;
    struct exec_sink_settings settings;
    struct columns columns;
    struct rejections rejections;
    struct det_buffer lines;
    struct kept *rows;
    size_t count, capacity;
    size_t done; /* ECHO: rows that were answered */
    det_time timeout, retry_for;
    char folder[DET_PATH_MAX];
    const char *argv[65];
    char text[DET_ERROR_TEXT_MAX]; /* why the last attempt failed */
};

static int read_settings(
    struct exec_sink *sink, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct exec_sink_settings *value = &sink->settings;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, exec_sink_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = settings_need(
        &settings, "argv", value->argv_count ? value->argv[0] : "", "argv: [./load, --quiet]",
        reterr);
    if (r == 0 && value->batch > BATCH_MAX)
        r = settings_fail_key(&settings, "batch", reterr, "at most %d rows", BATCH_MAX);
    if (r == 0)
        r = settings_duration(
            &settings, "timeout", value->timeout, TIMEOUT, &sink->timeout, reterr);
    if (r == 0)
        r = settings_duration(
            &settings, "retry_for", value->retry_for, RETRY_FOR, &sink->retry_for, reterr);
    if (r == 0 && *value->folder)
        r = settings_path(&settings, "folder", value->folder, folder, sink->folder, reterr);
    else if (r == 0 && folder)
        (void)det_text_copy(sink->folder, sizeof sink->folder, folder);
    settings_close(&settings);
    sink->capacity = value->batch ? value->batch : BATCH;
    for (uint32_t i = 0; i < value->argv_count; i++)
        sink->argv[i] = value->argv[i];
    return r;
}

static int exec_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct exec_sink *sink = DET_NEW(NULL, struct exec_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(sink, stage, NULL, folder, reterr);
    DET_DELETE(NULL, sink);
    return r;
}

static void free_sink(struct exec_sink *sink, const struct det_allocator *allocator)
{
    exec_child_deinit(&sink->child);
    columns_deinit(&sink->columns);
    rejections_deinit(&sink->rejections);
    det_buffer_deinit(&sink->lines);
    if (sink->rows)
        DET_DELETE_ARRAY(allocator, sink->rows, sink->capacity);
    DET_DELETE(allocator, sink);
}

static int exec_open(struct det_stage_call *call)
{
    struct exec_sink *sink = DET_NEW(call->allocator, struct exec_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    exec_child_init(&sink->child, call);
    det_buffer_init(&sink->lines, call->allocator);
    rejections_init(&sink->rejections, call->allocator);
    r = read_settings(sink, call->stage, call->allocator, call->folder, &error);
    if (r < 0)
        r = settings_refuse(call, &error);
    if (r == 0)
        r = columns_init(
            &sink->columns, call->allocator, det_record_of(call->stage->in), COLUMNS_NESTED);
    if (r == 0) {
        sink->rows = DET_NEW_ARRAY(call->allocator, sink->capacity, struct kept);
        r = sink->rows ? 0 : DET_ERR_NO_MEMORY;
    }
    if (r < 0)
        free_sink(sink, call->allocator);
    else
        call->self = sink;
    return r;
}

/* The flow has stopped: a command that reads its input to the end may finish its work. */
static void exec_close(struct det_stage_call *call)
{
    struct exec_sink *sink = call->self;
    struct det_process_end end;

    sink->child.call = call;
    if (sink->child.process)
        (void)exec_child_finish(
            &sink->child, det_world_now(sink->child.world, DET_CLOCK_MONOTONIC) + DET_SECOND, &end);
    free_sink(sink, call->allocator);
    call->self = NULL;
}

enum attempt { ATTEMPT_DONE, ATTEMPT_CANCELLED, ATTEMPT_FAILED, ATTEMPT_REJECTED, ATTEMPT_FATAL };

static det_time deadline_of(const struct exec_sink *sink)
{
    return det_world_now(sink->child.world, DET_CLOCK_MONOTONIC) + sink->timeout;
}

static enum attempt start_child(struct exec_sink *sink)
{
    struct det_error error = { 0 };
    int r;

    r = exec_child_start(&sink->child, sink->argv, *sink->folder ? sink->folder : NULL, &error);
    if (r == 0)
        return ATTEMPT_DONE;
    snprintf(sink->text, sizeof sink->text, "cannot start: %.250s", error.text);
    return r == DET_ERR_LIMIT || r == DET_ERR_NO_MEMORY ? ATTEMPT_FAILED : ATTEMPT_FATAL;
}

static void explain_end(struct exec_sink *sink, const struct det_process_end *end)
{
    if (end->signal)
        snprintf(sink->text, sizeof sink->text, "was ended by signal %d", end->signal);
    else
        snprintf(
            sink->text, sizeof sink->text, "ended with exit code %d%s%s", end->code,
            *sink->child.error ? ": " : "", sink->child.error);
}

/* Explains why the command is useless, and kills it. */
static enum attempt fail_child(struct exec_sink *sink, int r)
{
    struct det_process_end end = { 0 };

    if (r == DET_ERR_CLOSED && sink->child.process)
        r = exec_child_finish(&sink->child, deadline_of(sink), &end);
    if (r == DET_ERR_CANCELLED) {
        exec_child_kill(&sink->child);
        return ATTEMPT_CANCELLED;
    }
    if (r < 0)
        snprintf(
            sink->text, sizeof sink->text, "%s",
            r == DET_ERR_TIMEOUT ? "does not go on: its timeout is over" : det_error_text(r));
    else
        explain_end(sink, &end);
    exec_child_kill(&sink->child);
    return ATTEMPT_FAILED;
}

/* Runs a command for the whole batch; what it writes is dropped. */
static enum attempt run_batch(struct exec_sink *sink)
{
    size_t sent = 0;
    struct det_process_end end = { 0 };
    enum attempt attempt = start_child(sink);
    int64_t count = 0;
    int r;

    if (attempt != ATTEMPT_DONE)
        return attempt;
    while (sent < sink->lines.size && count >= 0) {
        count = exec_child_exchange(
            &sink->child, sink->lines.data + sent, sink->lines.size - sent, deadline_of(sink));
        sent += count > 0 ? (size_t)count : 0;
        det_buffer_clear(&sink->child.output);
    }
    /* A command may end without reading everything: its exit code counts. */
    if (count < 0 && count != DET_ERR_CLOSED)
        return fail_child(sink, (int)count);
    r = exec_child_finish(&sink->child, deadline_of(sink), &end);
    if (r == 0 && end.code == 0)
        return ATTEMPT_DONE;
    if (r < 0)
        return fail_child(sink, r);
    explain_end(sink, &end);
    return end.code == EXIT_REJECT ? ATTEMPT_REJECTED : ATTEMPT_FAILED;
}

/* False: no memory; `text` of the sink says so. */
static bool reject_row(struct exec_sink *sink, size_t index, const char *text)
{
    if (rejections_add(&sink->rejections, &sink->rows[index].row, DET_REJECT_PERMANENT, text) == 0)
        return true;
    snprintf(sink->text, sizeof sink->text, "has rejected a row; out of memory");
    return false;
}

/* Takes the answers that are complete. */
static enum attempt take_answers(struct exec_sink *sink, size_t sent)
{
    struct det_buffer *output = &sink->child.output;
    char *end;

    while (output->size > 0 && (end = memchr(output->data, '\n', output->size))) {
        size_t size = (size_t)(end - output->data) + 1;
        const char *text = output->data;

        *end = 0;
        if (sink->done == sink->count || sink->rows[sink->done].begin >= sent) {
            snprintf(sink->text, sizeof sink->text, "answers more lines than it has got");
            return ATTEMPT_FATAL;
        }
        if (strncmp(text, "reject", 6) == 0) {
            if (!reject_row(sink, sink->done, text[6] ? text + 7 : "rejected by the command"))
                return ATTEMPT_FAILED;
        } else if (strcmp(text, "ok") != 0) {
            snprintf(
                sink->text, sizeof sink->text,
                "answers a line that is neither 'ok' nor 'reject REASON'");
            return ATTEMPT_FATAL;
        }
        sink->done++;
        det_buffer_drop(output, size);
    }
    return ATTEMPT_DONE;
}

/* Sends the rows that were not answered, and waits for their answers. */
static enum attempt echo_batch(struct exec_sink *sink)
{
    size_t sent = sink->rows[sink->done].begin;
    enum attempt attempt = sink->child.process ? ATTEMPT_DONE : start_child(sink);

    while (attempt == ATTEMPT_DONE && sink->done < sink->count) {
        int64_t count = exec_child_exchange(
            &sink->child, sink->lines.data + sent, sink->lines.size - sent, deadline_of(sink));

        sent += count > 0 ? (size_t)count : 0;
        attempt = take_answers(sink, sent);
        if (attempt == ATTEMPT_DONE && count < 0 && sink->done < sink->count)
            attempt = fail_child(sink, (int)count);
    }
    if (attempt != ATTEMPT_DONE)
        exec_child_kill(&sink->child);
    return attempt;
}

static int settle(struct exec_sink *sink, enum attempt attempt)
{
    switch (attempt) {
    case ATTEMPT_REJECTED:
        for (size_t i = 0; i < sink->count; i++)
            if (!reject_row(sink, i, sink->text))
                return det_stage_fail(
                    sink->child.call, DET_ERR_NO_MEMORY, "%s %s", sink->settings.argv[0],
                    sink->text);
        return 0;
    case ATTEMPT_DONE:
        return 0;
    case ATTEMPT_CANCELLED:
        return DET_ERR_CANCELLED;
    case ATTEMPT_FAILED:
    case ATTEMPT_FATAL:
        break;
    }
    return det_stage_fail(
        sink->child.call, attempt == ATTEMPT_FATAL ? DET_ERR_INVALID : DET_ERR_IO,
        "%s %s; correct the command, then resume the flow", sink->settings.argv[0], sink->text);
}

static int send_batch(struct exec_sink *sink)
{
    struct det_world *world = sink->child.world;
    det_time begin = det_world_now(world, DET_CLOCK_MONOTONIC), pause = PAUSE_MIN;
    int r = det_buffer_status(&sink->lines);

    if (r < 0)
        return det_stage_fail(sink->child.call, r, "%s: out of memory", sink->settings.argv[0]);
    for (;;) {
        enum attempt attempt =
            sink->settings.acknowledge == EXEC_BY_ECHO ? echo_batch(sink) : run_batch(sink);
        det_time now = det_world_now(world, DET_CLOCK_MONOTONIC);

        if (attempt != ATTEMPT_FAILED || now + pause - begin > sink->retry_for) {
            r = settle(sink, attempt);
            break;
        }
        if (det_stage_wait(sink->child.call, now + pause) == DET_ERR_CANCELLED)
            return DET_ERR_CANCELLED;
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
    if (r < 0)
        return r;
    det_buffer_clear(&sink->lines);
    sink->count = sink->done = 0;
    return 0;
}

static int exec_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct exec_sink *sink = call->self;

    (void)cursor;
    sink->child.call = call;
    det_assert(sink->count < sink->capacity);
    sink->rows[sink->count++] = (struct kept){ .begin = sink->lines.size, .row = call->row };
    row_json(call, &sink->columns, sink->settings.key_field, in, &sink->lines);
    det_buffer_append_char(&sink->lines, '\n');
    if (sink->count == sink->capacity || sink->lines.size >= BODY_LARGE)
        return send_batch(sink);
    return 0;
}

static int exec_flush(struct det_stage_call *call, void *cursor)
{
    struct exec_sink *sink = call->self;
    int r;

    (void)cursor;
    sink->child.call = call;
    r = sink->count > 0 ? send_batch(sink) : 0;
    return r < 0 ? r : rejections_report(&sink->rejections, call);
}

const struct det_connector exec_sink = {
    .name = "exec",
    .about = "rows as JSON lines to a command, acknowledged by its exit or its answers",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = exec_open,
                   .close = exec_close,
                   .deliver = exec_deliver,
                   .flush = exec_flush },
    .check = exec_check,
};
