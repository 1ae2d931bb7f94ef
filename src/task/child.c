/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child.c - a process on a loop, over the operations of a world: three streams and an end, each a
 * watched descriptor. child.h has the invariants. */
#include <detent/driver/loop.h>

#include "task/child.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "task/lines.h"

#define READ_SIZE         16384
#define READS_PER_TURN    4
#define MESSAGES_PER_TURN 16
#define LAST_READS        64 /* after the end: as much as the largest pipe holds, 1 MiB */
#define BYTES_PER_SECOND  (UINT64_C(16) << 20)
#define NOTIFY_MAX        4096
#define LINE_STREAMS      2

/* The argument of a watch: its child and its stream. */
struct source {
    struct det_child *child;
    enum det_process_stream stream;
    struct det_watch watch;
};

struct det_child {
    struct det_loop *loop;
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_child_events events;
    struct det_process *process; /* NULL after its end */
    int stop_signal;
    struct det_watch end_watch;
    struct source sources[DET_PROCESS_STREAMS];
    struct det_throttle throttle;
    struct det_lines *lines; /* LINE_STREAMS of them; NULL: no listener */
};

_Static_assert(
    (int)DET_STREAM_OUTPUT == (int)DET_PROCESS_OUTPUT &&
        (int)DET_STREAM_ERROR == (int)DET_PROCESS_ERROR,
    "the streams of lines are the first of a process");

/* Splits bytes into lines: passes on lines within the limit, and counts the others. */
static void take_bytes(
    struct det_child *child, enum det_process_stream stream, const char *data, size_t size)
{
    det_lines_feed_within(
        &child->lines[stream], &child->throttle, data, size, det_loop_now(child->loop));
}

/* A message consists of lines, each of which is a notification. */
static void take_message(struct det_child *child, char *text, size_t size)
{
    char *next;

    text[size] = '\0';
    /* Bytes after a 0 are not text. */
    for (char *line = text; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (*line && child->events.on_notify)
            child->events.on_notify(child->events.user, line);
    }
}

/* Reads at most `reads` times. False if the stream has ended or failed. */
static bool read_lines(struct det_child *child, enum det_process_stream stream, int reads)
{
    char data[READ_SIZE];

    while (reads-- > 0) {
        int64_t count = child->world->ops->process_read(
            child->world, child->process, stream, data, sizeof data);

        if (count == DET_ERR_BUSY)
            return true;
        if (count <= 0)
            return false;
        take_bytes(child, stream, data, (size_t)count);
        /* A short read: the pipe is empty now, and the next turn continues. */
        if ((size_t)count < sizeof data)
            return true;
    }
    return true;
}

static bool read_messages(struct det_child *child, int reads)
{
    char text[NOTIFY_MAX + 1];

    while (reads-- > 0) {
        int64_t count = child->world->ops->process_read(
            child->world, child->process, DET_PROCESS_NOTIFY, text, NOTIFY_MAX);

        if (count == DET_ERR_BUSY)
            return true;
        if (count <= 0)
            return false;
        take_message(child, text, (size_t)count);
    }
    return true;
}

static void on_source(void *argument, unsigned events)
{
    struct source *source = argument;
    struct det_child *child = source->child;
    bool goes_on;

    (void)events;
    if (source->stream == DET_PROCESS_NOTIFY)
        goes_on = read_messages(child, MESSAGES_PER_TURN);
    else
        goes_on = read_lines(child, source->stream, READS_PER_TURN);
    if (!goes_on)
        det_loop_unwatch(child->loop, &source->watch);
}

/* Reads the rest after the end of the process. */
static void read_rest(struct det_child *child)
{
    for (int i = 0; i < DET_PROCESS_STREAMS; i++) {
        struct source *source = &child->sources[i];

        if (det_watch_is_set(&source->watch) && source->stream == DET_PROCESS_NOTIFY)
            (void)read_messages(child, MESSAGES_PER_TURN);
        else if (det_watch_is_set(&source->watch))
            (void)read_lines(child, source->stream, LAST_READS);
        det_loop_unwatch(child->loop, &source->watch);
    }
    for (int i = 0; child->lines && i < LINE_STREAMS; i++)
        det_lines_end(&child->lines[i]);
}

static void release_process(struct det_child *child)
{
    det_loop_unwatch(child->loop, &child->end_watch);
    for (int i = 0; i < DET_PROCESS_STREAMS; i++)
        det_loop_unwatch(child->loop, &child->sources[i].watch);
    child->world->ops->process_close(child->world, child->process);
    child->process = NULL;
}

static void on_ended(void *argument, unsigned events)
{
    struct det_child *child = argument;
    struct det_process_end end;
    int r;

    (void)events;
    r = child->world->ops->process_wait(child->world, child->process, 0, &end);
    if (r == DET_ERR_TIMEOUT)
        return;
    if (r < 0)
        end = (struct det_process_end){ .code = -1 };
    read_rest(child);
    release_process(child);
    /* The callback may close the child, which must not be accessed afterwards. */
    child->events.on_end(child->events.user, &end);
}

static int watch_source(struct det_child *child, enum det_process_stream stream)
{
    struct source *source = &child->sources[stream];

    *source = (struct source){ .child = child, .stream = stream };
    source->watch.descriptor =
        child->world->ops->process_stream(child->world, child->process, stream);
    source->watch.run = on_source;
    source->watch.argument = source;
    if (source->watch.descriptor < 0)
        return 0;
    return det_loop_watch(child->loop, &source->watch, DET_POLL_READ);
}

static int watch_all(struct det_child *child)
{
    int r = 0;

    for (int i = 0; i < DET_PROCESS_STREAMS && r == 0; i++)
        r = watch_source(child, (enum det_process_stream)i);
    if (r < 0)
        return r;
    child->end_watch = (struct det_watch){
        .run = on_ended,
        .argument = child,
        .descriptor = child->world->ops->process_descriptor(child->world, child->process),
    };
    return det_loop_watch(child->loop, &child->end_watch, DET_POLL_READ);
}

static int start_process(
    struct det_child *child, const struct det_process_spec *spec, struct det_error *reterr)
{
    const struct det_process_options options = {
        .argv = spec->argv,
        .environment = spec->environment,
        .folder = spec->folder,
        .user = spec->user,
        .limits = spec->limits,
        .limit_count = spec->limit_count,
        .input = -1,
        .output = -1,
        .error = -1,
        .new_group = true,
        .has_streams = child->events.on_line != NULL,
        .has_notify = spec->has_notify,
        .ends_with_us = spec->ends_with_us,
    };
    int r;

    r = child->world->ops->process_start(child->world, &options, &child->process, reterr);
    if (r < 0)
        return r;
    r = watch_all(child);
    if (r == 0)
        return 0;
    (void)child->world->ops->process_kill(child->world, child->process, DET_PROCESS_SIGKILL);
    release_process(child);
    return det_error_set(
        reterr, r, "cannot start \"%.64s\": cannot watch its pipes or exit: %s", spec->argv[0],
        det_error_text(r));
}

static int open_lines(struct det_child *child)
{
    if (!child->events.on_line)
        return 0;
    child->lines = DET_NEW_ARRAY(child->allocator, LINE_STREAMS, struct det_lines);
    if (!child->lines)
        return DET_ERR_NO_MEMORY;
    for (int i = 0; i < LINE_STREAMS; i++) {
        child->lines[i].stream = (enum det_stream)i;
        child->lines[i].on_line = child->events.on_line;
        child->lines[i].user = child->events.user;
    }
    return 0;
}

static struct det_child *new_child(
    struct det_loop *loop, const struct det_allocator *allocator,
    const struct det_process_spec *spec, const struct det_child_events *events)
{
    struct det_child *child = DET_NEW(allocator, struct det_child);

    if (!child)
        return NULL;
    child->loop = loop;
    child->world = det_loop_world(loop);
    child->allocator = allocator;
    child->events = *events;
    child->stop_signal = spec->stop_signal ? spec->stop_signal : DET_PROCESS_SIGTERM;
    det_throttle_init(
        &child->throttle,
        spec->bytes_per_second_max ? spec->bytes_per_second_max : BYTES_PER_SECOND,
        det_loop_now(loop));
    if (open_lines(child) < 0) {
        det_child_close(child);
        return NULL;
    }
    return child;
}

int det_child_start(
    struct det_loop *loop, const struct det_allocator *allocator,
    const struct det_process_spec *spec, const struct det_child_events *events,
    struct det_child **ret, struct det_error *reterr)
{
    struct det_child *child;
    int r;

    det_assert(events->on_end);
    if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "cannot start a process without a program; name one in argv[0]");
    child = new_child(loop, allocator, spec, events);
    if (!child)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "cannot start \"%.64s\": no memory", spec->argv[0]);
    r = start_process(child, spec, reterr);
    if (r < 0) {
        det_child_close(child);
        return r;
    }
    *ret = child;
    return 0;
}

int det_child_signal(struct det_child *child, int signal)
{
    if (!child->process)
        return DET_ERR_NOT_FOUND;
    return child->world->ops->process_kill(child->world, child->process, signal);
}

int det_child_stop(struct det_child *child)
{
    int r;

    r = det_child_signal(child, child->stop_signal);
    if (r < 0)
        return r;
    return det_child_signal(child, DET_PROCESS_SIGCONT);
}

int det_child_kill(struct det_child *child)
{
    return det_child_signal(child, DET_PROCESS_SIGKILL);
}

int64_t det_child_number(const struct det_child *child)
{
    return child->process ? child->world->ops->process_number(child->world, child->process) : 0;
}

static bool contains(const int *codes, size_t count, int code)
{
    for (size_t i = 0; i < count; i++)
        if (codes[i] == code)
            return true;
    return false;
}

int det_child_verdict(const struct det_process_spec *spec, const struct det_process_end *end)
{
    if (end->signal || end->code < 0)
        return 0;
    if (contains(spec->fatal_codes, spec->fatal_code_count, end->code))
        return -1;
    return end->code == 0 || contains(spec->success_codes, spec->success_code_count, end->code);
}

void det_child_close(struct det_child *child)
{
    if (!child)
        return;
    if (child->process) {
        (void)det_child_kill(child);
        release_process(child);
    }
    if (child->lines)
        DET_DELETE_ARRAY(child->allocator, child->lines, LINE_STREAMS);
    DET_DELETE(child->allocator, child);
}
