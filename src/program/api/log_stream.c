/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_stream.c - task lines and events, as a list or as Server-Sent Events. */
#include <string.h>

#include "api/api_internal.h"
#include "api/request_stream.h"
#include "api/stream_feed.h"
#include "base/assert.h"
#include "daemon/daemon.h"
#include "daemon/lookups.h"

#define LINES_DEFAULT 100
#define LINES_MAX     10000

/* The request of a client. */
struct wanted {
    bool is_of_events, follows;
    uint64_t after; /* of events */
    uint64_t lines; /* number of newest lines */
    struct up_names names;
};

static void run_wanted(struct up *up, struct up_request *request, void *arguments)
{
    const struct wanted *wanted = arguments;

    if (wanted->is_of_events)
        up_follow_events(up, request, wanted->after, wanted->follows);
    else
        up_follow_lines(up, request, &wanted->names, (size_t)wanted->lines, wanted->follows);
}

/* Following. */

struct following {
    struct api_feed feed;          /* first */
    struct request_stream *stream; /* NULL: it has ended */
    const char *event;
};

static struct following *following_of(struct api_feed *feed)
{
    return (struct following *)(void *)feed;
}

static void on_drained(struct api_feed *feed)
{
    if (following_of(feed)->stream)
        request_stream_drained(following_of(feed)->stream, 0);
}

static void on_over(struct api_feed *feed)
{
    if (following_of(feed)->stream)
        request_stream_cancel(following_of(feed)->stream);
}

static size_t on_part(void *user, const char *text, size_t size)
{
    struct following *following = user;

    (void)api_feed_publish(&following->feed, following->event, text, size);
    return api_feed_waiting(&following->feed);
}

static void on_end(void *user, const struct det_error *error)
{
    struct following *following = user;

    det_assert(following->stream);
    following->stream = NULL;
    if (error->code < 0)
        api_feed_drop(&following->feed, det_error_text(error->code));
    else
        api_feed_end(&following->feed);
}

static void follow_wanted(
    struct api_call *call, struct det_arena *arena_take, struct wanted *wanted)
{
    static const struct api_feed_ops ops = { .drained = on_drained, .over = on_over };
    struct following *following = det_arena_alloc(&call->arena, sizeof *following);

    if (!following)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    if (!call->exchange || !following || !api_feed_begin(&following->feed, call, &ops)) {
        det_arena_deinit(arena_take);
        api_finish(call);
        return;
    }
    following->event = wanted->is_of_events ? "task" : "line";
    following->stream = request_stream_open(&(struct request_stream_options){
        .api = call->api,
        .run = run_wanted,
        .arguments = wanted,
        .arena_take = *arena_take,
        .on_part = on_part,
        .on_end = on_end,
        .user = following,
    });
    if (!following->stream)
        api_feed_drop(&following->feed, "out of memory");
}

/* Lists. */

static void end_items(struct api_call *call)
{
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
    api_finish(call);
}

static void begin_items(struct api_call *call)
{
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
}

/* Chooses the arena of `wanted`: a stream may outlive its call. */
static struct det_arena *arena_of(struct api_call *call, bool follows, struct det_arena *own)
{
    det_arena_init(own, call->api->allocator);
    return follows ? own : &call->arena;
}

static void fail_call(struct api_call *call, struct det_arena *arena_take)
{
    if (!call->status)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    det_arena_deinit(arena_take);
    api_finish(call);
}

/* Lines of all or several tasks. */

/* Splits "a,b" into names. False: no memory. */
static bool split_names(struct det_arena *arena, const char *text, struct up_names *ret)
{
    size_t room = 1, count = 0;
    char *rest = det_arena_copy(arena, text);
    const char **items;

    for (const char *at = text; *at; at++)
        room += *at == ',';
    items = det_arena_array(arena, room, sizeof *items);
    if (!rest || !items)
        return false;
    for (char *name; (name = strsep(&rest, ","));) {
        if (*name)
            items[count++] = name;
    }
    *ret = (struct up_names){ .items = items, .count = count };
    return true;
}

void api_get_lines(struct api_call *call)
{
    const char *names = api_query(call, "task");
    struct wanted *wanted = NULL;
    uint64_t lines = LINES_DEFAULT;
    bool follows = false;
    struct det_arena own, *arena;

    if (!api_query_number(call, "lines", 0, LINES_MAX, &lines) ||
        !api_query_bool(call, "follow", &follows)) {
        api_finish(call);
        return;
    }
    if (names && !names[strspn(names, ",")]) {
        api_fail(call, DET_ERR_INVALID, "'task' must be a comma-separated list of task names");
        api_finish(call);
        return;
    }
    arena = arena_of(call, follows, &own);
    wanted = det_arena_alloc(arena, sizeof *wanted);
    if (!wanted || (names && !split_names(arena, names, &wanted->names))) {
        fail_call(call, &own);
        return;
    }
    wanted->lines = lines;
    wanted->follows = follows;
    if (follows) {
        follow_wanted(call, &own, wanted);
        return;
    }
    begin_items(call);
    api_request(call, run_wanted, wanted, end_items);
}

/* Lines of one task. */

static void check_task(struct up *up, struct api_call *call)
{
    int r = up_has_task(up, call->parameters[0]);

    if (r == 0)
        api_fail_task(call);
    else if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

static struct wanted *want_task(struct api_call *call, struct det_arena *arena)
{
    struct wanted *wanted = det_arena_alloc(arena, sizeof *wanted);
    const char **items = det_arena_array(arena, 1, sizeof *items);

    if (!wanted || !items)
        return NULL;
    items[0] = det_arena_copy(arena, call->parameters[0]);
    wanted->names = (struct up_names){ .items = items, .count = 1 };
    wanted->lines = call->own_number;
    return items[0] ? wanted : NULL;
}

static void follow_task(struct api_call *call)
{
    struct det_arena own;
    struct wanted *wanted = want_task(call, arena_of(call, true, &own));

    if (!wanted) {
        fail_call(call, &own);
        return;
    }
    wanted->follows = true;
    follow_wanted(call, &own, wanted);
}

/* If there is no line, the task may not exist. */
static void end_lines(struct api_call *call)
{
    if (call->json.needs_comma)
        end_items(call);
    else
        api_on_daemon(call, check_task, end_items);
}

void api_get_logs(struct api_call *call)
{
    uint64_t lines = LINES_DEFAULT;
    struct wanted *wanted;
    bool follows = false;

    if (!api_query_number(call, "lines", 0, LINES_MAX, &lines) ||
        !api_query_bool(call, "follow", &follows)) {
        api_finish(call);
        return;
    }
    call->own_number = (unsigned)lines;
    if (follows) {
        api_on_daemon(call, check_task, follow_task);
        return;
    }
    wanted = want_task(call, &call->arena);
    if (!wanted) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    begin_items(call);
    api_request(call, run_wanted, wanted, end_lines);
}

/* Task events. */

void api_get_task_events(struct api_call *call)
{
    bool follows = false, is_new = false;
    struct det_arena own;
    struct wanted *wanted;
    uint64_t after = 0;

    if (!api_query_number(call, "after", 0, INT64_MAX, &after) ||
        !api_query_bool(call, "new", &is_new) || !api_query_bool(call, "follow", &follows)) {
        api_finish(call);
        return;
    }
    wanted = det_arena_alloc(arena_of(call, follows, &own), sizeof *wanted);
    if (!wanted) {
        fail_call(call, &own);
        return;
    }
    *wanted = (struct wanted){ .is_of_events = true,
                               .follows = follows,
                               .after = is_new ? UP_NEW_EVENTS : after };
    if (follows) {
        follow_wanted(call, &own, wanted);
        return;
    }
    begin_items(call);
    api_request(call, run_wanted, wanted, end_items);
}
