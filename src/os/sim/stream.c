/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream.c - the pipes and sockets of simulated programs. */
#include "os/sim/stream.h"

#include <string.h>

#define PIPE_SIZE 65536

void det_sim_stream_init(
    struct det_sim_stream *stream, const struct det_allocator *allocator, bool is_open)
{
    det_buffer_init(&stream->bytes, allocator);
    det_list_init(&stream->writers);
    stream->is_open = is_open;
}

void det_sim_stream_deinit(struct det_sim_stream *stream)
{
    det_buffer_deinit(&stream->bytes);
}

/* 0 when there is room for `size` bytes. */
static int wait_for_room(struct det_sim *sim, struct det_sim_stream *stream, size_t size)
{
    int r = 0;

    while (r == 0 && PIPE_SIZE - det_sim_stream_size(stream) < size)
        r = det_schedule_wait(sim, &stream->writers, WAIT_PROCESS, DET_NEVER);
    return r;
}

static int append(struct det_sim *sim, struct det_sim_stream *stream, const void *data, size_t size)
{
    int r;

    det_buffer_append(&stream->bytes, data, size);
    r = det_buffer_status(&stream->bytes);
    stream->bytes.error = 0;
    if (r == 0)
        det_sim_trace(sim, TRACE_PROCESS, det_sim_stream_size(stream), size);
    return r;
}

int det_sim_stream_write(
    struct det_sim *sim, struct det_sim_stream *stream, const char *data, size_t size)
{
    int r = 0;

    while (stream->is_open && size && r == 0) {
        size_t part, room;

        r = wait_for_room(sim, stream, 1);
        if (r < 0)
            break;
        room = PIPE_SIZE - det_sim_stream_size(stream);
        part = size < room ? size : room;
        r = append(sim, stream, data, part);
        data += part;
        size -= part;
        det_sim_pollers_tell(sim);
    }
    return r;
}

int det_sim_stream_send(
    struct det_sim *sim, struct det_sim_stream *stream, const char *message, size_t size)
{
    int r;

    if (!stream->is_open)
        return 0;
    if (size > PIPE_SIZE / 2)
        return DET_ERR_LIMIT;
    r = wait_for_room(sim, stream, sizeof size + size);
    if (r == 0)
        r = append(sim, stream, &size, sizeof size);
    if (r < 0)
        return r;
    r = append(sim, stream, message, size);
    if (r < 0)
        /* Half a message must not be there. */
        stream->bytes.data[stream->bytes.size -= sizeof size] = '\0';
    det_sim_pollers_tell(sim);
    return r;
}

static void take(struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size)
{
    struct det_buffer *bytes = &stream->bytes;

    if (target)
        memcpy(target, bytes->data + stream->taken, size);
    stream->taken += size;
    if (stream->taken > bytes->size / 2) {
        bytes->size -= stream->taken;
        memmove(bytes->data, bytes->data + stream->taken, bytes->size + 1); /* with the final 0 */
        stream->taken = 0;
    }
    det_schedule_wake_all(sim, &stream->writers);
}

size_t det_sim_stream_read(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size)
{
    if (size > det_sim_stream_size(stream))
        size = det_sim_stream_size(stream);
    if (size)
        take(sim, stream, target, size);
    return size;
}

size_t det_sim_stream_receive(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size)
{
    while (det_sim_stream_size(stream)) {
        size_t length;

        take(sim, stream, (char *)&length, sizeof length);
        if (length && length <= size) {
            take(sim, stream, target, length);
            return length;
        }
        take(sim, stream, NULL, length);
    }
    return 0;
}
