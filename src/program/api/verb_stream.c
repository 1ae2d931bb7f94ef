/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verb_stream.c - verbs that go on, between two loops.
 *
 *     open --release (up)--> released --end (http)--> freed
 *       \--cancel (http)--> cancelled --cancel (up): on_gone, release--> released --end--> freed
 *
 * Invariants
 *   1. The call is of the loop of `up`, all else but the counts of the http thread.
 *   2. It is freed on the http thread, when it was released, and a cancel that is on its way has
 *      come through. */
#include <detent/driver/loop.h>

#include "api/verb_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "daemon/verbs.h"

struct stream {
    struct up_errand errand;
    struct stream_options options;
    struct det_post start, cancel, end, wake;
    atomic_size_t on_their_way, unread;
    atomic_bool is_gone;
    bool is_released;  /* of `up` */
    bool is_cancelled; /* the rest is of the http thread */
    bool has_cancelled, has_ended, is_waking;
    struct det_error error; /* written before it is released */
};

struct part {
    struct det_post post;
    struct stream *stream;
    size_t size;
    char text[];
};

static struct stream *stream_of(struct socket_call *call)
{
    return (struct stream *)(void *)call;
}

static void free_if_over(struct stream *stream)
{
    if (!stream->has_ended || (stream->is_cancelled && !stream->has_cancelled) || stream->is_waking)
        return;
    stream->options.api->streams--;
    json_decref(stream->options.arguments_take);
    DET_DELETE(stream->options.api->allocator, stream);
}

/* On the http thread. */

static void take_part(void *argument)
{
    struct part *part = argument;
    struct stream *stream = part->stream;

    atomic_fetch_sub(&stream->on_their_way, part->size);
    if (!stream->is_cancelled)
        atomic_store(
            &stream->unread, stream->options.on_part(stream->options.user, part->text, part->size));
    det_free(stream->options.api->allocator, part, sizeof *part + part->size + 1);
}

static void take_end(void *argument)
{
    struct stream *stream = argument;

    stream->has_ended = true;
    if (!stream->is_cancelled)
        stream->options.on_end(stream->options.user, &stream->error);
    free_if_over(stream);
}

static void take_cancelled(void *argument)
{
    struct stream *stream = argument;

    stream->has_cancelled = true;
    free_if_over(stream);
}

static void take_woken(void *argument)
{
    struct stream *stream = argument;

    stream->is_waking = false;
    free_if_over(stream);
}

/* On the loop of `up`. */

/* There was no memory for a part: nothing more is sent, and the end says so. */
static void lose_part(struct stream *stream)
{
    det_error_set(&stream->error, DET_ERR_NO_MEMORY, "there is no memory left");
    atomic_store(&stream->is_gone, true);
}

static void send_part(struct stream *stream, const char *text)
{
    const struct det_allocator *allocator = stream->options.api->allocator;
    size_t size = strlen(text);
    struct part *part = det_alloc(allocator, sizeof *part + size + 1);

    if (!part) {
        lose_part(stream);
        return;
    }
    part->post = (struct det_post){ .run = take_part, .argument = part };
    part->stream = stream;
    part->size = size;
    memcpy(part->text, text, size + 1);
    atomic_fetch_add(&stream->on_their_way, size);
    det_loop_post(stream->options.api->loop, &part->post);
}

static void put_part(struct socket_call *call, const char *key, json_t *value_take)
{
    struct stream *stream = stream_of(call);

    if (strcmp(key, "error") == 0) {
        const char *text = json_string_value(json_object_get(value_take, "text"));
        const char *name = json_string_value(json_object_get(value_take, "code"));

        det_error_set(
            &stream->error, name ? socket_error_code(name) : DET_ERR_NO_MEMORY, "%s",
            text ? text : "there is no memory left");
    } else if (strcmp(key, "data") == 0) {
        char *text = value_take ? json_dumps(value_take, JSON_COMPACT) : NULL;

        if (text)
            send_part(stream, text);
        else
            lose_part(stream);
        free(text);
    }
    json_decref(value_take);
}

static size_t waiting(const struct socket_call *call)
{
    const struct stream *stream = (const struct stream *)(const void *)call;

    return atomic_load(&stream->on_their_way) + atomic_load(&stream->unread);
}

static bool is_gone(const struct socket_call *call)
{
    const struct stream *stream = (const struct stream *)(const void *)call;

    return atomic_load(&stream->is_gone);
}

static void release(struct socket_call *call)
{
    struct stream *stream = stream_of(call);

    stream->is_released = true;
    det_list_remove(&stream->errand.node);
    det_loop_post(stream->options.api->loop, &stream->end);
}

static const struct socket_call_ops stream_ops = { put_part, waiting, is_gone, release };

static void run_start(void *argument)
{
    struct stream *stream = argument;

    up_run_errand(
        stream->options.api->up, &stream->errand, stream->options.verb,
        stream->options.arguments_take);
}

static void run_cancel(void *argument)
{
    struct stream *stream = argument;

    if (!stream->is_released) {
        if (stream->errand.call.on_gone)
            stream->errand.call.on_gone(stream->errand.call.user);
        release(&stream->errand.call);
    }
    stream->cancel = (struct det_post){ .run = take_cancelled, .argument = stream };
    det_loop_post(stream->options.api->loop, &stream->cancel);
}

/* A turn of the loop of `up` lets its followers go on. */
static void run_wake(void *argument)
{
    struct stream *stream = argument;

    stream->wake = (struct det_post){ .run = take_woken, .argument = stream };
    det_loop_post(stream->options.api->loop, &stream->wake);
}

/* On the http thread. */

struct stream *stream_open(const struct stream_options *options)
{
    struct stream *stream = DET_NEW(options->api->allocator, struct stream);

    if (!stream || !options->arguments_take) {
        json_decref(options->arguments_take);
        if (stream)
            DET_DELETE(options->api->allocator, stream);
        return NULL;
    }
    options->api->streams++;
    stream->errand.call.ops = &stream_ops;
    stream->options = *options;
    stream->start = (struct det_post){ .run = run_start, .argument = stream };
    stream->cancel = (struct det_post){ .run = run_cancel, .argument = stream };
    stream->end = (struct det_post){ .run = take_end, .argument = stream };
    det_loop_post(options->api->up->loop, &stream->start);
    return stream;
}

void stream_cancel(struct stream *stream)
{
    stream->is_cancelled = true;
    atomic_store(&stream->is_gone, true);
    det_loop_post(stream->options.api->up->loop, &stream->cancel);
}

void stream_drained(struct stream *stream, size_t unread)
{
    atomic_store(&stream->unread, unread);
    if (stream->is_waking || stream->has_ended)
        return;
    stream->is_waking = true;
    stream->wake = (struct det_post){ .run = run_wake, .argument = stream };
    det_loop_post(stream->options.api->up->loop, &stream->wake);
}
