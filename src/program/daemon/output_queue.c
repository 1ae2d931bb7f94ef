/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_queue.c - output that does not block the loop. */
#include "daemon/output_queue.h"

#include <detent/driver/loop.h>
#include <detent/driver/world.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "base/assert.h"

static uint64_t count_lines(const char *data, size_t size)
{
    uint64_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += data[i] == '\n';
    return count;
}

/* Out of memory, the text is lost and counted. */
static ssize_t append_text(void *cookie, const char *data, size_t size)
{
    struct up_output *output = cookie;

    if (output->cli.out_error) {
        output->lost += count_lines(data, size);
        return (ssize_t)size;
    }
    if (output->is_torn)
        det_buffer_append_char(&output->buffer, '\n');
    output->is_torn = false;
    det_buffer_append(&output->buffer, data, size);
    if (det_buffer_status(&output->buffer) < 0) {
        det_buffer_clear(&output->buffer);
        output->sent = 0;
        output->cli.has_failed = true;
    }
    return (ssize_t)size;
}

static size_t waiting_size(const struct up_output *output)
{
    det_assert(output->sent <= output->buffer.size);
    return output->buffer.size - output->sent;
}

/* The reader has read or is gone: the flush after this turn finds out. */
static void on_writable(void *argument, unsigned events)
{
    struct up_output *output = argument;

    (void)events;
    det_loop_unwatch(output->loop, &output->watch);
}

int up_output_open(struct up_output *output, struct cli *cli)
{
    det_assert(cli->out);
    *output = (struct up_output){ .cli = *cli, .outer = cli, .limit = UP_OUTPUT_MAX };
    det_buffer_init(&output->buffer, cli->allocator);
    output->cli.out = fopencookie(output, "w", (cookie_io_functions_t){ .write = append_text });
    output->watch.run = on_writable;
    output->watch.argument = output;
    output->watch.descriptor = fileno(cli->out);
    return output->cli.out ? 0 : DET_ERR_NO_MEMORY;
}

void up_output_attach(struct up_output *output, struct det_loop *loop)
{
    det_assert(!loop || !output->loop);
    output->loop = loop;
}

static void drop_sent(struct up_output *output)
{
    if (output->sent <= output->buffer.size / 2)
        return;
    det_buffer_drop(&output->buffer, output->sent);
    output->sent = 0;
}

static void fail_output(struct up_output *output, int cause)
{
    det_assert(cause != 0);
    output->cli.out_error = output->outer->out_error = cause;
    output->lost += count_lines(output->buffer.data + output->sent, waiting_size(output));
    output->is_torn = output->sent > 0 && output->buffer.data[output->sent - 1] != '\n';
    det_buffer_clear(&output->buffer);
    output->sent = 0;
}

/* Writes everything; may block. */
static void write_all(struct up_output *output)
{
    if (waiting_size(output) == 0)
        return;
    cli_write(output->outer, output->buffer.data + output->sent, waiting_size(output));
    cli_flush(output->outer);
    if (output->outer->out_error)
        output->lost += count_lines(output->buffer.data + output->sent, waiting_size(output));
    det_buffer_clear(&output->buffer);
    output->sent = 0;
    output->cli.out_error = output->outer->out_error;
}

static bool is_writable(const struct up_output *output)
{
    struct pollfd look = { .fd = output->watch.descriptor, .events = POLLOUT };

    return poll(&look, 1, 0) != 0;
}

static void write_some(struct up_output *output)
{
    size_t size = waiting_size(output) < PIPE_BUF ? waiting_size(output) : PIPE_BUF;
    ssize_t count = write(output->watch.descriptor, output->buffer.data + output->sent, size);

    if (count < 0 && errno != EINTR && errno != EAGAIN)
        fail_output(output, errno);
    output->sent += count > 0 ? (size_t)count : 0;
    det_assert(output->sent <= output->buffer.size);
}

void up_output_flush(struct up_output *output)
{
    det_assert(!output->loop || det_loop_is_mine(output->loop));
    (void)fflush(output->cli.out);
    if (output->watch.descriptor < 0 || !output->loop) {
        write_all(output);
        return;
    }
    while (waiting_size(output) > 0 && is_writable(output))
        write_some(output);
    drop_sent(output);
    /* A descriptor that cannot be watched is written to directly. */
    if (waiting_size(output) > 0 && !det_watch_is_set(&output->watch) &&
        det_loop_watch(output->loop, &output->watch, DET_POLL_WRITE) < 0)
        write_all(output);
}

void up_output_close(struct up_output *output)
{
    if (output->loop)
        det_loop_unwatch(output->loop, &output->watch);
    (void)fclose(output->cli.out);
    write_all(output);
    det_buffer_deinit(&output->buffer);
    output->outer->has_failed = output->outer->has_failed || output->cli.has_failed;
}

uint64_t up_output_forgive(struct up_output *output)
{
    uint64_t lost = output->lost;

    output->lost = 0;
    output->cli.out_error = 0;
    cli_clear_output_error(output->outer);
    return lost;
}

bool up_output_has_room(struct up_output *output)
{
    bool has_room = waiting_size(output) < output->limit;

    output->hidden += !has_room;
    return has_room;
}

uint64_t up_output_take_hidden(struct up_output *output, bool is_last)
{
    uint64_t hidden = is_last || waiting_size(output) < output->limit / 2 ? output->hidden : 0;

    if (hidden)
        output->hidden = 0;
    return hidden;
}
