/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exec_child.c - a command with pipes to its standard streams. */
#include "connectors/exec_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/escape.h"
#include "base/text.h"
#include "os/os.h"

#define LOOK_MS    50
#define OUTPUT_MAX 1048576
#define CHUNK      65536
#define GRACE      DET_SECOND

void exec_child_init(struct exec_child *child, struct det_stage_call *call)
{
    *child =
        (struct exec_child){ .call = call, .world = det_world_or_real(call->world), .input = -1 };
    det_buffer_init(&child->output, call->allocator);
    child->output.limit = OUTPUT_MAX;
}

static void close_input(struct exec_child *child)
{
    if (child->input >= 0)
        (void)close(child->input);
    child->input = -1;
}

void exec_child_kill(struct exec_child *child)
{
    const struct det_world_ops *ops = child->world->ops;
    struct det_process_end end;

    close_input(child);
    if (!child->process)
        return;
    (void)ops->process_kill(child->world, child->process, DET_PROCESS_SIGTERM);
    (void)ops->process_kill(child->world, child->process, DET_PROCESS_SIGCONT);
    if (ops->process_wait(
            child->world, child->process, det_world_now(child->world, DET_CLOCK_MONOTONIC) + GRACE,
            &end) == DET_ERR_TIMEOUT)
        (void)ops->process_kill(child->world, child->process, DET_PROCESS_SIGKILL);
    ops->process_close(child->world, child->process);
    child->process = NULL;
}

void exec_child_deinit(struct exec_child *child)
{
    exec_child_kill(child);
    det_buffer_deinit(&child->output);
}

int exec_child_start(
    struct exec_child *child, const char *const *argv, const char *folder, struct det_error *reterr)
{
    struct det_process_options options = { .argv = argv,
                                           .folder = folder,
                                           .output = -1,
                                           .error = -1,
                                           .new_group = true,
                                           .has_streams = true,
                                           .ends_with_us = true };
    int ends[2], r;

    det_assert(!child->process && child->input < 0);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return det_error_set(
            reterr, det_errno_is_shortage(errno) ? DET_ERR_LIMIT : DET_ERR_IO,
            "cannot open a pipe: %s", strerrordesc_np(errno));
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    options.input = ends[0];
    r = child->world->ops->process_start(child->world, &options, &child->process, reterr);
    (void)close(ends[0]);
    child->input = ends[1];
    child->error[0] = 0;
    child->output_has_ended = child->error_has_ended = false;
    det_buffer_clear(&child->output);
    if (r < 0)
        close_input(child);
    return r;
}

/* 1: something was read; 0: nothing now, or the end of the stream. */
static int read_output(struct exec_child *child)
{
    char *target = det_buffer_extend(&child->output, CHUNK);
    size_t before = child->output.size - (target ? CHUNK : 0);
    int64_t count;

    if (!target)
        return det_buffer_status(&child->output);
    count = child->world->ops->process_read(
        child->world, child->process, DET_PROCESS_OUTPUT, target, CHUNK);
    child->output.size = before + (count > 0 ? (size_t)count : 0);
    child->output.data[child->output.size] = 0;
    if (count == 0)
        child->output_has_ended = true;
    return count > 0 ? 1 : count == 0 || count == DET_ERR_BUSY ? 0 : (int)count;
}

/* Keeps the end of what it says, as printable ASCII. */
static int read_error(struct exec_child *child)
{
    char text[EXEC_CHILD_ERROR];
    int64_t count = child->world->ops->process_read(
        child->world, child->process, DET_PROCESS_ERROR, text, sizeof text - 1);
    size_t used, drop;

    if (count == 0)
        child->error_has_ended = true;
    if (count <= 0)
        return 0;
    used = strlen(child->error);
    drop = used + (size_t)count >= sizeof child->error
               ? used + (size_t)count - sizeof child->error + 1
               : 0;
    memmove(child->error, child->error + drop, used - drop + 1);
    used -= drop;
    for (int64_t i = 0; i < count; i++)
        child->error[used++] = (char)(text[i] >= ' ' && text[i] < 0x7f ? text[i] : ' ');
    child->error[used] = 0;
    return 1;
}

static void trim_error(struct exec_child *child)
{
    size_t used = strlen(child->error);

    while (used > 0 && child->error[used - 1] == ' ')
        child->error[--used] = 0;
}

static int read_streams(struct exec_child *child)
{
    int r, read = 0;

    do {
        r = child->output_has_ended ? 0 : read_output(child);
        read += r > 0;
    } while (r > 0);
    while (!child->error_has_ended && read_error(child) > 0)
        read++;
    return r < 0 ? r : read;
}

static int64_t write_some(struct exec_child *child, const char *data, size_t size)
{
    ssize_t count = write(child->input, data, size < CHUNK ? size : CHUNK);

    if (count >= 0)
        return count;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    return errno == EPIPE ? DET_ERR_CLOSED : DET_ERR_IO;
}

/* 0; DET_ERR_CANCELLED; DET_ERR_TIMEOUT. */
static int wait_streams(struct exec_child *child, bool is_writing, det_time deadline)
{
    const struct det_world_ops *ops = child->world->ops;
    struct pollfd entries[3] = { { .fd = -1, .events = POLLIN },
                                 { .fd = -1, .events = POLLIN },
                                 { .fd = -1 } };

    if (!child->error_has_ended)
        entries[0].fd = ops->process_stream(child->world, child->process, DET_PROCESS_ERROR);
    entries[1].fd = child->output_has_ended
                        ? ops->process_descriptor(child->world, child->process)
                        : ops->process_stream(child->world, child->process, DET_PROCESS_OUTPUT);
    if (is_writing)
        entries[2] = (struct pollfd){ .fd = child->input, .events = POLLOUT };
    (void)poll(entries, 3, LOOK_MS);
    if (det_stage_is_cancelled(child->call))
        return DET_ERR_CANCELLED;
    return det_world_now(child->world, DET_CLOCK_MONOTONIC) >= deadline ? DET_ERR_TIMEOUT : 0;
}

int64_t exec_child_exchange(
    struct exec_child *child, const char *data, size_t size, det_time deadline)
{
    bool is_writing = size > 0;

    det_assert(child->process);
    for (;;) {
        int64_t written = is_writing ? write_some(child, data, size) : 0;
        int r = read_streams(child);

        if (r < 0)
            return r;
        if (written != 0 || r > 0)
            return written;
        if (child->output_has_ended && !is_writing)
            return DET_ERR_CLOSED;
        r = wait_streams(child, is_writing, deadline);
        if (r < 0)
            return r;
    }
}

int exec_child_finish(struct exec_child *child, det_time deadline, struct det_process_end *ret)
{
    const struct det_world_ops *ops = child->world->ops;
    int r;

    det_assert(child->process);
    close_input(child);
    do {
        r = read_streams(child);
        if (r >= 0)
            r = ops->process_wait(child->world, child->process, 0, ret);
        if (r == DET_ERR_TIMEOUT)
            r = wait_streams(child, false, deadline) < 0
                    ? (det_stage_is_cancelled(child->call) ? DET_ERR_CANCELLED : DET_ERR_LIMIT)
                    : DET_ERR_TIMEOUT;
    } while (r == DET_ERR_TIMEOUT);
    if (r == 0) {
        (void)read_streams(child);
        trim_error(child);
        ops->process_close(child->world, child->process);
        child->process = NULL;
        return 0;
    }
    exec_child_kill(child);
    return r == DET_ERR_LIMIT ? DET_ERR_TIMEOUT : r;
}
