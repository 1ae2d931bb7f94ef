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

/* Only threads of programs write; their waits without a deadline end only when woken. */
static void wait_for_room(struct det_sim *sim, struct det_sim_stream *stream, size_t size)
{
    while (PIPE_SIZE - det_sim_stream_size(stream) < size)
        (void)det_schedule_wait(sim, &stream->writers, WAIT_PROCESS, DET_NEVER);
}

/* Returns room at the end, or NULL without memory, in which case it clears the buffer's error. */
static char *extend_stream(struct det_sim *sim, struct det_sim_stream *stream, size_t size)
{
    char *target = det_buffer_extend(&stream->bytes, size);

    stream->bytes.error = 0;
    if (target)
        det_sim_trace(sim, TRACE_PROCESS, det_sim_stream_size(stream), size);
    return target;
}

int det_sim_stream_write(
    struct det_sim *sim, struct det_sim_stream *stream, const char *data, size_t size)
{
    while (stream->is_open && size) {
        size_t part, room;
        char *target;

        wait_for_room(sim, stream, 1);
        room = PIPE_SIZE - det_sim_stream_size(stream);
        part = size < room ? size : room;
        target = extend_stream(sim, stream, part);
        if (!target)
            return DET_ERR_NO_MEMORY;
        memcpy(target, data, part);
        data += part;
        size -= part;
        det_sim_pollers_notify(sim);
    }
    return 0;
}

int det_sim_stream_send(
    struct det_sim *sim, struct det_sim_stream *stream, const char *message, size_t size)
{
    char *target;

    if (!stream->is_open)
        return 0;
    if (size > PIPE_SIZE / 2)
        return DET_ERR_LIMIT;
    wait_for_room(sim, stream, sizeof size + size);
    target = extend_stream(sim, stream, sizeof size + size);
    if (!target)
        return DET_ERR_NO_MEMORY;
    memcpy(target, &size, sizeof size);
    memcpy(target + sizeof size, message, size);
    det_sim_pollers_notify(sim);
    return 0;
}

static void take_bytes(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size)
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
        take_bytes(sim, stream, target, size);
    return size;
}

size_t det_sim_stream_receive(
    struct det_sim *sim, struct det_sim_stream *stream, char *target, size_t size)
{
    while (det_sim_stream_size(stream)) {
        size_t length;

        take_bytes(sim, stream, (char *)&length, sizeof length);
        if (length && length <= size) {
            take_bytes(sim, stream, target, length);
            return length;
        }
        take_bytes(sim, stream, NULL, length);
    }
    return 0;
}
