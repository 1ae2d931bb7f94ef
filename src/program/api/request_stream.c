/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_stream.c - requests to the daemon with an answer in parts, between two loops.
 *
 *     open --release (daemon)--> released --end (http)--> freed
 *       \--cancel (http)--> cancelled --cancel (daemon): release--> released --end--> freed
 *
 * Invariants
 *   1. The request belongs to the daemon's loop; everything else, except the atomic counts, to the
 *      http thread.
 *   2. The stream is freed on the http thread, after it was released and every pending cancel and
 *      wake has come back. */
#include <detent/driver/loop.h>

#include "api/request_stream.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

struct request_stream {
    struct up_request request; /* first */
    struct det_json_writer json;
    struct request_stream_options options;
    struct det_post start, cancel, end, wake;
    atomic_size_t in_flight, unread;
    atomic_bool is_gone;
    bool is_released;  /* on the daemon's loop */
    bool is_cancelled; /* these are of the http thread */
    bool has_cancelled, has_ended, is_waking;
    struct det_error error; /* written before it is released */
};

struct part {
    struct det_post post;
    struct request_stream *stream;
    size_t size;
    char text[];
};

static struct request_stream *stream_of(struct up_request *request)
{
    return (struct request_stream *)(void *)request;
}

static void free_if_over(struct request_stream *stream)
{
    if (!stream->has_ended || (stream->is_cancelled && !stream->has_cancelled) || stream->is_waking)
        return;
    /* Every part was posted before the end. */
    det_assert(stream->is_released && atomic_load(&stream->in_flight) == 0);
    det_assert(stream->options.api->streams > 0);
    stream->options.api->streams--;
    det_json_writer_deinit(&stream->json);
    det_arena_deinit(&stream->options.arena_take);
    DET_DELETE(stream->options.api->allocator, stream);
}

/* On the http thread. */

static void take_part(void *argument)
{
    struct part *part = argument;
    struct request_stream *stream = part->stream;

    det_assert(!stream->has_ended && atomic_load(&stream->in_flight) >= part->size);
    atomic_fetch_sub(&stream->in_flight, part->size);
    if (!stream->is_cancelled)
        atomic_store(
            &stream->unread, stream->options.on_part(stream->options.user, part->text, part->size));
    det_free(stream->options.api->allocator, part, sizeof *part + part->size + 1);
}

static void take_end(void *argument)
{
    struct request_stream *stream = argument;

    det_assert(stream->is_released && !stream->has_ended);
    stream->has_ended = true;
    if (!stream->is_cancelled)
        stream->options.on_end(stream->options.user, &stream->error);
    free_if_over(stream);
}

static void take_cancelled(void *argument)
{
    struct request_stream *stream = argument;

    det_assert(stream->is_cancelled && !stream->has_cancelled);
    stream->has_cancelled = true;
    free_if_over(stream);
}

static void take_woken(void *argument)
{
    struct request_stream *stream = argument;

    det_assert(stream->is_waking);
    stream->is_waking = false;
    free_if_over(stream);
}

/* On the daemon's loop. */

/* No memory for a part: sends no more parts, and ends with an error. */
static void lose_part(struct request_stream *stream)
{
    det_error_set(&stream->error, DET_ERR_NO_MEMORY, "out of memory");
    atomic_store(&stream->is_gone, true);
}

static void send_part(struct request_stream *stream, struct det_view text)
{
    const struct det_allocator *allocator = stream->options.api->allocator;
    struct part *part = det_alloc(allocator, sizeof *part + text.size + 1);

    if (!part) {
        lose_part(stream);
        return;
    }
    part->post = (struct det_post){ .run = take_part, .argument = part };
    part->stream = stream;
    part->size = text.size;
    memcpy(part->text, text.data, text.size);
    part->text[text.size] = '\0';
    atomic_fetch_add(&stream->in_flight, text.size);
    det_loop_post(stream->options.api->loop, &part->post);
}

static void on_request_part(struct up_request *request)
{
    struct request_stream *stream = stream_of(request);

    if (det_buffer_status(&stream->json.text) < 0)
        lose_part(stream);
    else if (!atomic_load(&stream->is_gone))
        send_part(stream, det_view_of(det_buffer_text(&stream->json.text), stream->json.text.size));
    det_json_writer_clear(&stream->json);
}

static size_t count_waiting(const struct up_request *request)
{
    const struct request_stream *stream = (const struct request_stream *)(const void *)request;

    return atomic_load(&stream->in_flight) + atomic_load(&stream->unread);
}

static void on_finished(struct up_request *request)
{
    struct request_stream *stream = stream_of(request);

    det_assert(!stream->is_released);
    /* A request with a single answer sends it as the last part. */
    if (request->error.code < 0)
        stream->error = request->error;
    else if (stream->json.text.size || det_buffer_status(&stream->json.text) < 0)
        on_request_part(request);
    stream->is_released = true;
    det_loop_post(stream->options.api->loop, &stream->end);
}

static const struct up_request_ops stream_ops = { on_request_part, count_waiting, on_finished };

static void run_start(void *argument)
{
    struct request_stream *stream = argument;
    struct up *up = stream->options.api->up;

    up_request_open(up, &stream->request);
    stream->options.run(up, &stream->request, stream->options.arguments);
}

static void run_cancel(void *argument)
{
    struct request_stream *stream = argument;

    if (!stream->is_released)
        up_request_abandon(&stream->request);
    stream->cancel = (struct det_post){ .run = take_cancelled, .argument = stream };
    det_loop_post(stream->options.api->loop, &stream->cancel);
}

/* Wakes the daemon's loop, whose turn continues the producers. */
static void run_wake(void *argument)
{
    struct request_stream *stream = argument;

    stream->wake = (struct det_post){ .run = take_woken, .argument = stream };
    det_loop_post(stream->options.api->loop, &stream->wake);
}

/* On the http thread. */

struct request_stream *request_stream_open(const struct request_stream_options *options)
{
    struct request_stream *stream = DET_NEW(options->api->allocator, struct request_stream);

    det_assert(options->run && options->on_part && options->on_end);
    if (!stream) {
        struct det_arena unused = options->arena_take;

        det_arena_deinit(&unused);
        return NULL;
    }
    options->api->streams++;
    det_json_writer_init(&stream->json, options->api->allocator);
    stream->request = (struct up_request){ .ops = &stream_ops, .json = &stream->json };
    stream->options = *options;
    stream->start = (struct det_post){ .run = run_start, .argument = stream };
    stream->cancel = (struct det_post){ .run = run_cancel, .argument = stream };
    stream->end = (struct det_post){ .run = take_end, .argument = stream };
    up_post(options->api->up, &stream->start);
    return stream;
}

void request_stream_cancel(struct request_stream *stream)
{
    det_assert(!stream->is_cancelled && !stream->has_ended);
    stream->is_cancelled = true;
    atomic_store(&stream->is_gone, true);
    up_post(stream->options.api->up, &stream->cancel);
}

void request_stream_drained(struct request_stream *stream, size_t unread)
{
    atomic_store(&stream->unread, unread);
    if (stream->is_waking || stream->has_ended)
        return;
    stream->is_waking = true;
    stream->wake = (struct det_post){ .run = run_wake, .argument = stream };
    up_post(stream->options.api->up, &stream->wake);
}
