/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exec_source.c - a row for each line that a command writes to its standard output.
 *
 *     idle --next()--> running --end of its output--> ended --exit--> over, or idle after a delay
 *
 * The command gets DETENT_LINES, the number of lines that were read before, so that it can continue
 * after a restart. Its standard error is that of this process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/input.h"
#include "connectors/line_row.h"
#include "connectors/waker.h"
#include "os/os.h"

#define REC_SPEC "connectors/exec_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX  4096 /* of one turn */
#define DELAY     DET_SECOND
#define DELAY_MAX DET_MINUTE
#define STEADY    DET_MINUTE /* after this long a command has not failed at its start */
#define GRACE     (2 * DET_SECOND)

struct exec {
    struct exec_settings settings;
    char folder[DET_PATH_MAX];
    struct line_row line_row;
    struct input input;
    struct det_process *process; /* NULL: not running */
    int output;                  /* our end of its pipe; -1 */
    det_time delay, next_delay;
    det_time started_at;
    det_time starts_at; /* monotonic: not before */
};

static int read_settings(
    struct exec *exec, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct exec_settings *value = &exec->settings;
    struct settings settings;
    int r;

    r = settings_open(&settings, stage, allocator, exec_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = settings_need(
        &settings, "argv", value->argv_count ? value->argv[0] : "", "{argv: [seq, \"10\"]}",
        reterr);
    if (r == 0)
        r = settings_duration(&settings, "delay", value->delay, DELAY, &exec->delay, reterr);
    if (r == 0 && *value->folder)
        r = settings_path(&settings, "folder", value->folder, folder, exec->folder, reterr);
    else if (r == 0 && folder)
        (void)det_text_copy(exec->folder, sizeof exec->folder, folder);
    if (r == 0)
        r = line_row_init(&exec->line_row, &settings, value->as, value->field, allocator, reterr);
    exec->line_row.flags = (value->strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                           (value->partial ? (unsigned)DET_TEXT_PARTIAL : 0u);
    exec->next_delay = exec->delay;
    settings_close(&settings);
    return r;
}

static int exec_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct exec *exec = DET_NEW(NULL, struct exec);
    int r;

    if (!exec)
        return DET_ERR_NO_MEMORY;
    r = read_settings(exec, stage, NULL, folder, reterr);
    line_row_deinit(&exec->line_row);
    DET_DELETE(NULL, exec);
    return r;
}

static int exec_open(struct det_stage_call *call)
{
    struct exec *exec = DET_NEW(call->allocator, struct exec);
    struct det_error error;
    int r;

    if (!exec)
        return DET_ERR_NO_MEMORY;
    exec->output = -1;
    r = read_settings(exec, call->stage, call->allocator, call->folder, &error);
    if (r == 0) {
        call->self = exec;
        return 0;
    }
    line_row_deinit(&exec->line_row);
    DET_DELETE(call->allocator, exec);
    return settings_refuse(call, &error);
}

static void close_pipe(struct exec *exec)
{
    input_close(&exec->input);
    if (exec->output >= 0)
        (void)close(exec->output);
    exec->output = -1;
}

/* Ends the command and its group: first with SIGTERM. */
static void exec_close(struct det_stage_call *call)
{
    struct det_world *world = det_world_or_real(call->world);
    struct exec *exec = call->self;
    struct det_process_end end;

    close_pipe(exec);
    if (exec->process) {
        (void)world->ops->process_kill(world, exec->process, DET_PROCESS_SIGTERM);
        (void)world->ops->process_kill(world, exec->process, DET_PROCESS_SIGCONT);
        if (world->ops->process_wait(
                world, exec->process, det_world_now(world, DET_CLOCK_MONOTONIC) + GRACE, &end) ==
            DET_ERR_TIMEOUT)
            (void)world->ops->process_kill(world, exec->process, DET_PROCESS_SIGKILL);
        world->ops->process_close(world, exec->process);
    }
    line_row_deinit(&exec->line_row);
    DET_DELETE(call->allocator, exec);
}

/* Returns our environment with the number of lines; NULL: no memory. */
static const char **make_environment(
    const struct det_allocator *allocator, const char *lines, size_t *ret_count)
{
    size_t count = 0;
    const char **all;

    while (environ[count])
        count++;
    all = det_alloc_array(allocator, count + 2, sizeof *all);
    if (!all)
        return NULL;
    all[0] = lines;
    *ret_count = count + 2;
    for (size_t i = 0, to = 1; i < count; i++)
        if (strncmp(environ[i], "DETENT_LINES=", 13) != 0)
            all[to++] = environ[i];
    return all;
}

static int start_process(
    struct det_stage_call *call, struct exec *exec, int output, uint64_t lines,
    struct det_error *reterr)
{
    struct det_world *world = det_world_or_real(call->world);
    const char *argv[sizeof exec->settings.argv / sizeof *exec->settings.argv + 1] = { NULL };
    struct det_process_options options = { .argv = argv,
                                           .folder = *exec->folder ? exec->folder : NULL,
                                           .input = -1,
                                           .output = output,
                                           .error = STDERR_FILENO,
                                           .new_group = true,
                                           .ends_with_us = true };
    const char **environment;
    char variable[48];
    size_t count = 0;
    int r;

    for (uint32_t i = 0; i < exec->settings.argv_count; i++)
        argv[i] = exec->settings.argv[i];
    (void)snprintf(variable, sizeof variable, "DETENT_LINES=%llu", (unsigned long long)lines);
    environment = make_environment(call->allocator, variable, &count);
    if (!environment)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    options.environment = environment;
    r = world->ops->process_start(world, &options, &exec->process, reterr);
    DET_DELETE_ARRAY(call->allocator, environment, count);
    return r;
}

static int start_command(struct det_stage_call *call, struct exec *exec, struct exec_cursor *cursor)
{
    struct det_error error = { 0 };
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return det_stage_fail(
            call, DET_ERR_LIMIT, "no pipe for %.160s: %s", exec->settings.argv[0],
            strerrordesc_np(errno));
    exec->output = ends[0];
    r = start_process(call, exec, ends[1], cursor->lines, &error);
    (void)close(ends[1]);
    if (r == 0)
        r = input_open_pipe(
            &exec->input, call, exec->settings.argv[0], ends[0], DET_JOURNAL_ROW_MAX, &error);
    if (r < 0)
        return det_stage_fail(
            call, r, "%.160s cannot be started: %s", exec->settings.argv[0], error.text);
    cursor->starts++;
    exec->started_at = det_world_now(call->world, DET_CLOCK_MONOTONIC);
    return 0;
}

static const char *describe_end(const struct det_process_end *end, char target[64])
{
    if (end->signal)
        (void)snprintf(
            target, 64, "was ended by signal %d (%s)", end->signal, sigdescr_np(end->signal));
    else
        (void)snprintf(target, 64, "ended with exit code %d", end->code);
    return target;
}

/* The command has ended: the source too, or it is started again later. */
static int end_command(
    struct det_stage_call *call, struct exec *exec, const struct det_process_end *end)
{
    det_time now = det_world_now(call->world, DET_CLOCK_MONOTONIC);
    bool has_failed = end->code != 0;
    char text[64];

    if (!has_failed && exec->settings.restart != EXEC_ALWAYS)
        return DET_SOURCE_DONE;
    describe_end(end, text);
    if (exec->settings.restart == EXEC_NEVER)
        return det_stage_fail(
            call, DET_ERR_IO, "%.160s %s: correct it, or set restart", exec->settings.argv[0],
            text);
    if (has_failed)
        (void)det_stage_reject(
            call, DET_REJECT_REMOTE, "%.160s %s; it is started again", exec->settings.argv[0],
            text);
    if (now - exec->started_at > STEADY)
        exec->next_delay = exec->delay;
    exec->starts_at = now + exec->next_delay;
    exec->next_delay = 2 * exec->next_delay < DELAY_MAX ? 2 * exec->next_delay : DELAY_MAX;
    det_stage_wake_at(call, exec->starts_at);
    return DET_SOURCE_IDLE;
}

/* Its output has ended; it may still run. */
static int await_end(struct det_stage_call *call, struct exec *exec)
{
    struct det_world *world = det_world_or_real(call->world);
    struct det_process_end end = { -1, 0 };
    int r;

    r = world->ops->process_wait(world, exec->process, 0, &end);
    if (r == DET_ERR_TIMEOUT) {
        waker_arm(exec->input.waker, world->ops->process_descriptor(world, exec->process), POLLIN);
        return DET_SOURCE_IDLE;
    }
    world->ops->process_close(world, exec->process);
    exec->process = NULL;
    close_pipe(exec);
    return end_command(call, exec, &end);
}

static int read_lines(struct det_stage_call *call, struct exec *exec, struct exec_cursor *cursor)
{
    uint32_t room = det_stage_room(call);
    struct det_view line = { NULL, 0 };
    int r;

    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        r = input_line(&exec->input, true, &line);
        if (r == 0)
            return exec->input.is_ended ? await_end(call, exec) : DET_SOURCE_IDLE;
        cursor->lines++;
        if (r == DET_ERR_LIMIT)
            (void)det_stage_reject(
                call, DET_REJECT_DESERIALIZATION,
                "%.160s, line %llu: the line is longer than %d bytes", exec->input.name,
                (unsigned long long)cursor->lines, DET_JOURNAL_ROW_MAX);
        else if (r < 0)
            return det_stage_fail(
                call, r, "the output of %.160s cannot be read: %s", exec->input.name,
                det_error_text(r));
        r = r == 1 ? line_row_emit(call, &exec->line_row, line, exec->input.name, cursor->lines)
                   : 0;
        if (r < 0)
            return r;
    }
    return DET_SOURCE_MORE;
}

static int exec_next(struct det_stage_call *call, void *cursor)
{
    struct exec *exec = call->self;
    int r;

    if (!exec->process) {
        if (det_world_now(call->world, DET_CLOCK_MONOTONIC) < exec->starts_at) {
            det_stage_wake_at(call, exec->starts_at);
            return DET_SOURCE_IDLE;
        }
        r = start_command(call, exec, cursor);
        if (r < 0)
            return r;
    }
    return read_lines(call, exec, cursor);
}

const struct det_connector exec_source = {
    CONNECTOR_HEAD(exec, source),
    .cursor = { .get = exec_cursor_record },
    .functions = { .open = exec_open, .close = exec_close, .next = exec_next },
    .check = exec_check,
};
