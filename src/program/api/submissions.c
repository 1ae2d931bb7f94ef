/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submissions.c - submits jobs. A submission that waits for the end of its job is answered with
 * Server-Sent Events once the job is admitted.
 *
 *     open --the job is admitted-------------------> answered, finished
 *       |\--and the client waits--> feed --its end--> finished
 *       |\--refused---------------------------------> failed, finished
 *       \--the client disconnects: cancelled--------> finished
 *
 * http.limits.request_time does not apply: the store of a durable slot may be slow. */
#include <string.h>

#include "api/api_internal.h"
#include "api/request_stream.h"
#include "api/stream_feed.h"
#include "base/assert.h"
#include "daemon/slots.h"

#define KEYS "run name admission folder environment timeout_ns retries new_slot wait"

/* The body. Its values are in `arena`, since the request may outlive its call. */

struct reader {
    struct det_arena *arena;
    const struct det_json_value *body;
    struct up_submission *submission;
    struct det_error *reterr;
};

static int no_memory(struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
}

static int fail_member(const struct reader *reader, const char *key, const char *wanted)
{
    return det_error_set(
        reader->reterr, DET_ERR_INVALID, "'%s' of a submission must be %s", key, wanted);
}

/* A missing member leaves `ret` unchanged. */

static int read_text(const struct reader *reader, const char *key, const char **ret)
{
    const struct det_json_value *value = det_json_get(reader->body, key);

    if (!value)
        return 0;
    *ret = det_json_value_text(value);
    return *ret && **ret ? 0 : fail_member(reader, key, "a text that is not empty");
}

static int read_flag(const struct reader *reader, const char *key, bool *ret)
{
    const struct det_json_value *value = det_json_get(reader->body, key);

    if (!value)
        return 0;
    *ret = det_json_is(value, DET_JSON_TRUE);
    return *ret || det_json_is(value, DET_JSON_FALSE) ? 0
                                                      : fail_member(reader, key, "true or false");
}

static int read_count(const struct reader *reader, const char *key, int64_t *ret)
{
    const struct det_json_value *value = det_json_get(reader->body, key);

    if (!value)
        return 0;
    if (det_json_value_i64(value, ret) < 0 || *ret < 0)
        return fail_member(reader, key, "a whole number from 0");
    return 0;
}

static int read_run(const struct reader *reader)
{
    const struct det_json_value *run = det_json_get(reader->body, "run");
    size_t count = 0;
    const char **argv;

    if (!run)
        return 0;
    if (!det_json_is(run, DET_JSON_ARRAY))
        return fail_member(reader, "run", "an array of texts");
    argv = det_arena_array(reader->arena, (size_t)run->count + 1, sizeof *argv);
    if (!argv)
        return no_memory(reader->reterr);
    DET_JSON_EACH (word, run) {
        argv[count] = det_json_value_text(word);
        if (!argv[count++])
            return fail_member(reader, "run", "an array of texts");
    }
    argv[count] = NULL;
    reader->submission->argv = argv;
    return 0;
}

static bool is_variable_name(struct det_view name)
{
    return name.size && !memchr(name.data, '=', name.size) && !memchr(name.data, '\0', name.size);
}

static int read_environment(const struct reader *reader)
{
    static const char wanted[] = "a mapping from names to texts";
    const struct det_json_value *mapping = det_json_get(reader->body, "environment");
    struct up_variable *variables;
    size_t count = 0;

    if (!mapping)
        return 0;
    if (!det_json_is(mapping, DET_JSON_OBJECT))
        return fail_member(reader, "environment", wanted);
    variables = det_arena_array(reader->arena, (size_t)mapping->count + 1, sizeof *variables);
    if (!variables)
        return no_memory(reader->reterr);
    DET_JSON_EACH (value, mapping) {
        struct up_variable *variable = &variables[count++];

        variable->value = det_json_value_text(value);
        if (!variable->value || !is_variable_name(value->key))
            return fail_member(reader, "environment", wanted);
        variable->name = det_arena_copy_n(reader->arena, value->key.data, value->key.size);
        if (!variable->name)
            return no_memory(reader->reterr);
    }
    reader->submission->environment = variables;
    reader->submission->environment_count = count;
    return 0;
}

static int read_admission(const struct reader *reader)
{
    static const char *const words[] = {
        [DET_ADMIT_QUEUE] = "queue",
        [DET_ADMIT_REPLACE] = "replace",
        [DET_ADMIT_DROP_IF_RUNNING] = "drop",
        [DET_ADMIT_REPLACE_ALL] = "replace-all",
    };
    const char *word = words[DET_ADMIT_QUEUE];
    size_t i = 0;
    int r = read_text(reader, "admission", &word);

    if (r < 0)
        return r;
    while (i < sizeof words / sizeof *words && strcmp(words[i], word) != 0)
        i++;
    if (i == sizeof words / sizeof *words)
        return det_error_set(
            reader->reterr, DET_ERR_INVALID,
            "'admission' is one of queue, replace, drop, replace-all; not '%.100s'", word);
    if (!reader->submission->slot && i != DET_ADMIT_QUEUE)
        return det_error_set(reader->reterr, DET_ERR_INVALID, "'admission' needs a slot");
    reader->submission->admission = (enum det_admission)i;
    return 0;
}

static int read_members(const struct reader *reader)
{
    struct up_submission *submission = reader->submission;
    int64_t retries = 0;
    int r = read_run(reader);

    if (r == 0)
        r = read_environment(reader);
    if (r == 0)
        r = read_admission(reader);
    if (r == 0)
        r = read_text(reader, "name", &submission->name);
    if (r == 0)
        r = read_text(reader, "folder", &submission->folder);
    if (r == 0)
        r = read_count(reader, "timeout_ns", &submission->timeout);
    if (r == 0)
        r = read_count(reader, "retries", &retries);
    if (r == 0)
        r = read_flag(reader, "new_slot", &submission->creates_slot);
    if (r == 0)
        r = read_flag(reader, "wait", &submission->wait_wanted);
    submission->retries = (uint64_t)retries;
    return r;
}

/* Copies a text, which may be NULL. */
static int copy_text(
    struct det_arena *arena, const char *text, const char **ret, struct det_error *reterr)
{
    *ret = text ? det_arena_copy(arena, text) : NULL;
    return text && !*ret ? no_memory(reterr) : 0;
}

/* The Idempotency-Key becomes the name of the job in a durable slot. */
static int read_submission(
    struct det_arena *arena, const struct api_call *call, struct up_submission *submission,
    struct det_error *reterr)
{
    struct reader reader = { .arena = arena, .submission = submission, .reterr = reterr };
    struct det_json_object members;
    int r;

    r = det_json_read(arena, call->body, &reader.body, reterr);
    if (r == 0)
        r = api_object(&members, arena, reader.body, KEYS, reterr);
    /* Without a parameter the job gets its own slot. */
    if (r == 0)
        r = copy_text(arena, call->parameters[0], &submission->slot, reterr);
    if (r == 0)
        r = copy_text(arena, call->key, &submission->key, reterr);
    return r == 0 ? read_members(&reader) : r;
}

/* The call. */

struct submitting {
    struct api_feed feed; /* first */
    struct api_call *call;
    struct request_stream *stream; /* NULL: it has ended */
    const struct up_submission *submission;
    bool is_feed; /* the client gets events */
};

static void on_gone(void *user)
{
    struct submitting *submitting = user;
    struct api_call *call = submitting->call;

    request_stream_cancel(submitting->stream);
    call->exchange = NULL;
    if (call->action)
        call->action->outcome = AUDIT_UNKNOWN;
    api_fail(call, DET_ERR_CANCELLED, "the client has disconnected");
    api_finish(call);
}

static void on_drained(struct api_feed *feed)
{
    (void)feed;
}

static void on_over(struct api_feed *feed)
{
    struct submitting *submitting = (struct submitting *)(void *)feed;

    if (submitting->stream)
        request_stream_cancel(submitting->stream);
}

/* The first part reports the admission: the answer becomes a feed. */
static void send_part(struct submitting *submitting, const char *text, size_t size)
{
    static const struct api_feed_ops ops = { .drained = on_drained, .over = on_over };
    struct api_call *call = submitting->call;
    const char *name = submitting->is_feed ? "end" : "submitted";

    if (!submitting->is_feed) {
        submitting->is_feed = api_feed_begin(&submitting->feed, call, &ops);
        if (!submitting->is_feed) {
            request_stream_cancel(submitting->stream);
            api_finish(call);
            return;
        }
    }
    (void)api_feed_publish(&submitting->feed, name, text, size);
}

static size_t on_part(void *user, const char *text, size_t size)
{
    struct submitting *submitting = user;
    struct api_call *call = submitting->call;

    if (submitting->submission->wait_wanted) {
        send_part(submitting, text, size);
        return 0;
    }
    call->status = submitting->submission->is_repeated ? 200 : 201;
    det_json_raw(&call->json, NULL, text, size);
    return 0;
}

static void end_feed(struct submitting *submitting, const struct det_error *error)
{
    struct det_json_writer *json = &submitting->call->scratch;

    if (error->code < 0) {
        det_json_open(json, NULL, '{');
        api_error_line(api_error_reader(submitting->call), json, error->code, error);
        det_json_close(json, '}');
        if (det_buffer_status(&json->text) == 0)
            (void)api_feed_publish(
                &submitting->feed, "error", det_buffer_text(&json->text), json->text.size);
    }
    api_feed_end(&submitting->feed);
}

static void on_end(void *user, const struct det_error *error)
{
    struct submitting *submitting = user;
    struct api_call *call = submitting->call;

    det_assert(submitting->stream && submitting->submission);
    submitting->stream = NULL;
    if (submitting->is_feed) {
        end_feed(submitting, error);
        return;
    }
    if (error->code < 0)
        api_fail_with(call, error->code, error);
    api_finish(call);
}

static void run_submission(struct up *up, struct up_request *request, void *arguments)
{
    up_submit(up, request, arguments);
}

static int open_submission(
    struct api_call *call, struct det_arena *arena_take, struct up_submission *submission,
    struct det_error *reterr)
{
    struct submitting *submitting = det_arena_alloc(&call->arena, sizeof *submitting);

    if (!submitting) {
        det_arena_deinit(arena_take);
        return no_memory(reterr);
    }
    *submitting = (struct submitting){ .call = call, .submission = submission };
    submitting->stream = request_stream_open(&(struct request_stream_options){
        .api = call->api,
        .run = run_submission,
        .arguments = submission,
        .arena_take = *arena_take,
        .on_part = on_part,
        .on_end = on_end,
        .user = submitting,
    });
    if (!submitting->stream)
        return no_memory(reterr);
    api_call_streams(call);
    http_keep(call->exchange, on_gone, NULL, submitting);
    return 0;
}

void api_submit(struct api_call *call)
{
    struct det_error error = { 0 };
    struct up_submission *submission;
    struct det_arena arena;
    int r;

    det_arena_init(&arena, call->api->allocator);
    submission = det_arena_alloc(&arena, sizeof *submission);
    r = submission ? read_submission(&arena, call, submission, &error) : no_memory(&error);
    if (r < 0)
        det_arena_deinit(&arena);
    else
        r = open_submission(call, &arena, submission, &error);
    if (r < 0) {
        api_fail_with(call, r, &error);
        api_finish(call);
    }
}

/* The job gets its own slot, with its name. */
void api_submit_alone(struct api_call *call)
{
    api_submit(call);
}
