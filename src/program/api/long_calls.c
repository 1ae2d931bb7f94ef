/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* long_calls.c - calls that may be answered late: when a task, a group, a job or all of `up` has
 * come to its end, or when a reload is done. http.limits.request_time does not hold for them; a
 * call whose client goes away is given up.
 *
 *     open --the verb has answered---------------> finished
 *       \--its client went away: cancelled-------> finished */
#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "api/stream_feed.h"
#include "api/verb_stream.h"

#define FLAGS 2 /* of a body */

struct waiting {
    struct api_feed feed; /* first; of a submission that waits */
    struct api_call *call;
    struct stream *stream; /* NULL: it has ended */
    bool is_feed;          /* the client gets events */
    bool shall_feed;       /* from the first part on */
    bool is_submission;
};

static void on_gone(void *user)
{
    struct waiting *waiting = user;
    struct api_call *call = waiting->call;

    stream_cancel(waiting->stream);
    call->exchange = NULL;
    if (call->deed)
        call->deed->outcome = AUDIT_UNKNOWN;
    api_fail(call, DET_ERR_CANCELLED, "the client went away");
    api_finish(call);
}

/* The feed of a submission. */

static void on_drained(struct api_feed *feed)
{
    (void)feed;
}

static void on_over(struct api_feed *feed)
{
    struct waiting *waiting = (struct waiting *)(void *)feed;

    if (waiting->stream)
        stream_cancel(waiting->stream);
    api_finish(waiting->call);
}

static const struct api_feed_ops feed_ops = { on_drained, on_over };

/* The first part says that the job was taken: from here on it is a stream. */
static void take_event(struct waiting *waiting, const char *text, size_t size)
{
    struct api_call *call = waiting->call;
    const char *name = waiting->is_feed ? "end" : "submitted";

    if (!waiting->is_feed) {
        waiting->is_feed = api_feed_begin(&waiting->feed, call, &feed_ops);
        if (!waiting->is_feed) {
            stream_cancel(waiting->stream);
            api_finish(call);
            return;
        }
    }
    (void)api_feed_tell(&waiting->feed, name, text, size);
}

static size_t on_part(void *user, const char *text, size_t size)
{
    struct waiting *waiting = user;
    struct api_call *call = waiting->call;

    if (waiting->shall_feed) {
        take_event(waiting, text, size);
        return 0;
    }
    /* A file that is refused is an answer like any other. */
    if (call->route->run == api_reload && call->deed && strstr(text, "\"is_right\":false"))
        call->deed->code = det_error_name(DET_ERR_INVALID);
    if (waiting->is_submission)
        call->status = strstr(text, "\"state\":\"") ? 200 : 201;
    det_json_raw(&call->json, NULL, text, size);
    return 0;
}

static void end_feed(struct waiting *waiting, const struct det_error *error)
{
    struct det_json_writer *json = &waiting->call->aside;

    if (error->code < 0) {
        det_json_open(json, NULL, '{');
        api_error_line(api_error_reader(waiting->call), json, error->code, error);
        det_json_close(json, '}');
        if (det_buffer_status(&json->text) == 0)
            (void)api_feed_tell(
                &waiting->feed, "error", det_buffer_text(&json->text), json->text.size);
    }
    api_feed_end(&waiting->feed);
}

static void on_end(void *user, const struct det_error *error)
{
    struct waiting *waiting = user;
    struct api_call *call = waiting->call;

    waiting->stream = NULL;
    if (waiting->is_feed) {
        end_feed(waiting, error);
        return;
    }
    if (error->code < 0)
        api_fail_with(call, error->code, error);
    api_finish(call);
}

static void ask(struct api_call *call, const char *verb, json_t *arguments_take, bool shall_feed)
{
    struct waiting *waiting = det_arena_alloc(&call->arena, sizeof *waiting);

    if (waiting) {
        *waiting = (struct waiting){ .call = call,
                                     .shall_feed = shall_feed,
                                     .is_submission = strcmp(verb, "submit") == 0 };
        waiting->stream = stream_open(&(struct stream_options){ .api = call->api,
                                                                .verb = verb,
                                                                .arguments_take = arguments_take,
                                                                .on_part = on_part,
                                                                .on_end = on_end,
                                                                .user = waiting });
    } else {
        json_decref(arguments_take);
    }
    if (!waiting || !waiting->stream) {
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        api_finish(call);
        return;
    }
    api_call_streams(call);
    http_keep(call->exchange, on_gone, NULL, waiting);
}

/* Bodies. */

static bool put(json_t *arguments, const char *key, json_t *value_take)
{
    return json_object_set_new(arguments, key, value_take) == 0;
}

/* Members of the body that are booleans. */
static bool read_flags(struct api_call *call, const char *const *keys, json_t *arguments)
{
    struct det_json_object *members;
    bool has_room = true;
    char all[32] = "";

    for (size_t i = 0; i < FLAGS && keys[i]; i++)
        (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", keys[i]);
    members = api_body(call, all);
    for (size_t i = 0; members && has_room && i < FLAGS && keys[i]; i++) {
        if (det_json_object_find(members, keys[i]))
            has_room =
                put(arguments, keys[i], json_boolean(det_json_object_bool(members, keys[i])));
    }
    return members && has_room && api_body_is_right(call, members);
}

static void ask_with_flags(
    struct api_call *call, const char *verb, const char *name, const char *const keys[FLAGS])
{
    json_t *arguments = json_object();

    if (!read_flags(call, keys, arguments) ||
        (name && !put(arguments, "name", json_string(name)))) {
        json_decref(arguments);
        if (!call->status)
            api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        api_finish(call);
        return;
    }
    ask(call, verb, arguments, false);
}

void api_order(struct api_call *call)
{
    bool is_stop = strcmp(call->parameters[1], "stop") == 0;

    ask_with_flags(
        call, call->parameters[1], call->parameters[0],
        (const char *const[FLAGS]){ "wait", is_stop ? "purge" : NULL });
}

void api_stop_all(struct api_call *call)
{
    ask_with_flags(call, "stop", NULL, (const char *const[FLAGS]){ "wait" });
}

void api_drain_all(struct api_call *call)
{
    ask_with_flags(call, "drain", NULL, (const char *const[FLAGS]){ "wait" });
}

void api_reload(struct api_call *call)
{
    ask_with_flags(call, "reload", NULL, (const char *const[FLAGS]){ "plan" });
}

/* A small tree does no harm. */
static json_t *read_tree(struct api_call *call)
{
    json_error_t error;
    json_t *body = json_loadb(call->body.data, call->body.size, JSON_REJECT_DUPLICATES, &error);

    if (json_is_object(body))
        return body;
    json_decref(body);
    api_fail(call, DET_ERR_MALFORMED, "the body is not a JSON object: %.120s", error.text);
    return NULL;
}

/* The key stands in the header: a durable slot keeps it as the name of the job. */
void api_submit(struct api_call *call)
{
    json_t *body = read_tree(call), *value;
    bool shall_wait = json_is_true(json_object_get(body, "wait"));
    const char *slot = call->parameters[0]; /* NULL: one of its own */
    const char *key;

    json_object_foreach(body, key, value)
    {
        if (!api_is_listed(
                "run name admission folder environment timeout_ns retries new_slot wait",
                det_view_text(key)))
            api_fail(call, DET_ERR_UNKNOWN_FIELD, "a submission has no '%.60s'", key);
    }
    if (!call->status && ((slot && !put(body, "slot", json_string(slot))) ||
                          (call->key && !put(body, "key", json_string(call->key)))))
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    if (call->status) {
        json_decref(body);
        api_finish(call);
        return;
    }
    ask(call, "submit", body, shall_wait);
}

/* Its slot has its name, and nobody else is in it. */
void api_submit_alone(struct api_call *call)
{
    api_submit(call);
}
