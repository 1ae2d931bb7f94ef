/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_queue.c - output that never keeps the loop waiting. */
#include "daemon/output_queue.h"

#include <detent/driver/loop.h>
#include <detent/driver/world.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

static uint64_t count_lines(const char *data, size_t size)
{
    uint64_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += data[i] == '\n';
    return count;
}

/* Without memory the text is lost, and the run knows. */
static ssize_t take(void *cookie, const char *data, size_t size)
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

static size_t waiting(const struct up_output *output)
{
    return output->buffer.size - output->sent;
}

/* The reader has something to read, or is gone: the flush behind this turn sees which. */
static void on_writable(void *argument, unsigned events)
{
    struct up_output *output = argument;

    (void)events;
    det_loop_unwatch(output->loop, &output->watch);
}

int up_output_open(struct up_output *output, struct cli *cli)
{
    *output = (struct up_output){ .cli = *cli, .outer = cli, .limit = UP_OUTPUT_MAX };
    det_buffer_init(&output->buffer, cli->allocator);
    output->cli.out = fopencookie(output, "w", (cookie_io_functions_t){ .write = take });
    output->watch.run = on_writable;
    output->watch.argument = output;
    output->watch.descriptor = fileno(cli->out);
    return output->cli.out ? 0 : DET_ERR_NO_MEMORY;
}

void up_output_attach(struct up_output *output, struct det_loop *loop)
{
    output->loop = loop;
}

static void drop_sent(struct up_output *output)
{
    if (output->sent <= output->buffer.size / 2)
        return;
    det_buffer_drop(&output->buffer, output->sent);
    output->sent = 0;
}

static void fail(struct up_output *output, int cause)
{
    output->cli.out_error = output->outer->out_error = cause;
    output->lost += count_lines(output->buffer.data + output->sent, waiting(output));
    output->is_torn = output->sent > 0 && output->buffer.data[output->sent - 1] != '\n';
    det_buffer_clear(&output->buffer);
    output->sent = 0;
}

/* All at once, which may wait. */
static void write_all(struct up_output *output)
{
    if (waiting(output) == 0)
        return;
    cli_write(output->outer, output->buffer.data + output->sent, waiting(output));
    cli_flush(output->outer);
    if (output->outer->out_error)
        output->lost += count_lines(output->buffer.data + output->sent, waiting(output));
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
    size_t size = waiting(output) < PIPE_BUF ? waiting(output) : PIPE_BUF;
    ssize_t count = write(output->watch.descriptor, output->buffer.data + output->sent, size);

    if (count < 0 && errno != EINTR && errno != EAGAIN)
        fail(output, errno);
    output->sent += count > 0 ? (size_t)count : 0;
}

void up_output_flush(struct up_output *output)
{
    (void)fflush(output->cli.out);
    if (output->watch.descriptor < 0 || !output->loop) {
        write_all(output);
        return;
    }
    while (waiting(output) > 0 && is_writable(output))
        write_some(output);
    drop_sent(output);
    /* What cannot be watched is written the old way. */
    if (waiting(output) > 0 && output->watch.events == 0 &&
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
    output->cli.out_error = output->outer->out_error = 0;
    return lost;
}

bool up_output_has_room(struct up_output *output)
{
    bool has_room = waiting(output) < output->limit;

    output->hidden += !has_room;
    return has_room;
}

uint64_t up_output_take_hidden(struct up_output *output, bool is_last)
{
    uint64_t hidden = is_last || waiting(output) < output->limit / 2 ? output->hidden : 0;

    if (hidden)
        output->hidden = 0;
    return hidden;
}
