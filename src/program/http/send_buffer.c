/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* send_buffer.c - the output of a connection: a buffer that the server lends, followed by static
 * data that is sent in place. */
#include "base/assert.h"
#include "http/http_internal.h"

#define SPARE_MAX 65536 /* a larger one is not worth keeping */

size_t http_output_size(const struct http_connection *connection)
{
    return connection->output.size - connection->output_sent + connection->tail_size;
}

bool http_output_waits(const struct http_connection *connection)
{
    return http_output_size(connection) > 0;
}

struct det_buffer *http_output(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    det_assert(connection->tail_size == 0);
    if (!connection->output.data) {
        connection->output = server->spare;
        det_buffer_init(&server->spare, server->options.allocator);
    }
    return &connection->output;
}

void http_output_release(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct det_buffer *output = &connection->output;

    connection->output_sent = 0;
    server->memory -= connection->counted;
    connection->counted = 0;
    if (!output->data)
        return;
    det_buffer_clear(output);
    if (server->spare.data || output->capacity > SPARE_MAX)
        det_buffer_deinit(output);
    else
        server->spare = *output;
    det_buffer_init(output, server->options.allocator);
}

/* `size` bytes were written, of the buffer first. */
static void consume_sent(struct http_connection *connection, size_t size)
{
    size_t left = connection->output.size - connection->output_sent;
    size_t first = size < left ? size : left;

    connection->output_sent += first;
    if (size > first) {
        connection->tail += size - first;
        connection->tail_size -= size - first;
    }
    connection->waits_moved += size;
}

static int64_t write_once(struct http_connection *connection)
{
    struct http_part parts[2];
    size_t left = connection->output.size - connection->output_sent, count = 0;

    if (left)
        parts[count++] =
            (struct http_part){ connection->output.data + connection->output_sent, left };
    if (connection->tail_size)
        parts[count++] = (struct http_part){ connection->tail, connection->tail_size };
    return connection->io->write(connection->stream, parts, count);
}

/* Pending output uses memory as long as its client likes. The connection that would use the last of
 * it is cut, not those before it. */
static void count_waiting(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    size_t capacity = connection->output.capacity;

    server->memory += capacity - connection->counted;
    connection->counted = capacity;
    if (server->memory > server->limits.memory_max)
        connection->is_broken = true;
}

/* If the buffer could not grow, a part of an answer is lost, and the rest is useless. */
void http_output_flush(struct http_connection *connection)
{
    int64_t size;

    if (det_buffer_status(&connection->output) < 0)
        connection->is_broken = true;
    if (connection->is_broken || !http_output_waits(connection))
        return;
    size = write_once(connection);
    if (size < 0 && size != DET_ERR_BUSY) {
        connection->is_broken = true;
        return;
    }
    if (!connection->is_waiting) {
        connection->waits_since = http_server_now(connection->server);
        connection->waits_moved = 0;
    }
    if (size > 0)
        consume_sent(connection, (size_t)size);
    connection->is_waiting = http_output_waits(connection);
    if (connection->is_waiting)
        count_waiting(connection);
    else
        http_output_release(connection);
}
