/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_ingest_source.c - the rows that clients send by POST. A client gets 200 when its rows are
 * acknowledged by the journal, never before.
 *
 *     HTTP thread                 loop of the pipeline                    HTTP thread
 *     handle() --> queued --next(): emitted--> emitted --acknowledged()--> answered --> 200
 *
 * Checks in this order: 413 size, 401 secret, 503 draining, 400 JSON, 400 rows, 503 queue.
 *
 * Invariants
 *   1. A request is in exactly one of the lists queued, emitted and answered; the mutex guards
 * them.
 *   2. `exchange` belongs to the HTTP thread: NULL when its client has gone. Rows of a client that
 *      has gone are emitted anyway.
 *   3. `rows` counts the rows of queued and emitted; it is at most queue_max. */
#include <stdio.h>
#include <string.h>

#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/http_ingest.h"
#include "os/os.h"
#include "json/writer.h"

#define ROWS_MAX 4096 /* of one turn */
#define WINDOW   (5 * DET_MINUTE)

struct ingest;

struct request {
    struct det_list link;
    struct ingest *ingest;
    struct http_exchange *exchange;
    struct ingest_rows rows;
    uint32_t emitted;
    uint64_t last; /* sequence of its last row */
};

struct ingest {
    struct http_ingest_settings settings;
    struct det_stage_call *call; /* of open() */
    const struct det_allocator *allocator;
    struct det_world *world;
    const struct det_record *record;
    unsigned flags; /* enum det_text_flags */
    struct ingest_guard guard;
    struct det_loop *loop;
    struct http_server *server;
    struct det_mutex *mutex;
    struct det_list queued, emitted, answered;
    uint32_t rows;
    bool is_draining;
    bool is_posted;
    struct det_post post;
    bool is_started;
};

static int check_settings(
    struct ingest *ingest, const struct settings *settings, struct det_error *reterr)
{
    struct http_ingest_settings *value = &ingest->settings;
    bool has_secret = *value->secret_file || *value->secret_environment;
    int r;

    r = settings_need(settings, "listen", value->listen, "{listen: \"127.0.0.1:8090\"}", reterr);
    if (r < 0)
        return r;
    if (*value->path && *value->path != '/')
        return settings_fail_key(settings, "path", reterr, "path must begin with /");
    if (value->auth != HTTP_INGEST_NONE && !has_secret)
        return settings_fail_key(
            settings, "auth", reterr,
            "the secret is missing: add secret_file, or secret_environment");
    if (value->auth == HTTP_INGEST_NONE && has_secret)
        return settings_fail(
            settings, NULL, reterr, "a secret needs auth: add auth: bearer, api_key or hmac");
    if (*value->secret_file && *value->secret_environment)
        return settings_fail_key(
            settings, "secret_file", reterr, "set secret_file or secret_environment, not both");
    if (value->auth == HTTP_INGEST_NONE && strncmp(value->listen, "127.", 4) != 0 &&
        strncmp(value->listen, "localhost:", 10) != 0 && strncmp(value->listen, "[::1]:", 6) != 0)
        return settings_fail_key(
            settings, "listen", reterr,
            "listen is reachable from other machines: add auth, or use 127.0.0.1");
    if (value->body_max > (16u << 20) || value->batch_max > 100000)
        return settings_fail(
            settings, NULL, reterr, "body_max is at most 16777216, and batch_max 100000");
    return settings_duration(
        settings, "replay_window", value->replay_window, WINDOW, &ingest->guard.window, reterr);
}

static int read_settings(
    struct ingest *ingest, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, bool reads_secret, struct det_error *reterr)
{
    struct http_ingest_settings *value = &ingest->settings;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, http_ingest_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = check_settings(ingest, &settings, reterr);
    if (r == 0 && reads_secret && value->auth != HTTP_INGEST_NONE)
        r = settings_secret(
            &settings, value->secret_file, value->secret_environment, folder, ingest->guard.secret,
            reterr);
    settings_close(&settings);
    ingest->guard.auth = value->auth;
    if (!*value->path)
        (void)det_text_copy(value->path, sizeof value->path, "/");
    value->body_max = value->body_max ? value->body_max : 1u << 20;
    value->batch_max = value->batch_max ? value->batch_max : 1000;
    value->queue_max = value->queue_max ? value->queue_max : 10000;
    ingest->record = stage_out(stage);
    ingest->flags = (value->strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                    (value->partial ? (unsigned)DET_TEXT_PARTIAL : 0u);
    return r;
}

static int http_ingest_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct ingest *ingest = DET_NEW(NULL, struct ingest);
    int r;

    if (!ingest)
        return DET_ERR_NO_MEMORY;
    r = read_settings(ingest, stage, NULL, folder, false, reterr);
    DET_DELETE(NULL, ingest);
    return r;
}

/* ---- the HTTP thread */

static void free_request(struct request *request)
{
    const struct det_allocator *allocator = request->ingest->allocator;

    ingest_rows_free(&request->rows, allocator);
    DET_DELETE(allocator, request);
}

static void refuse(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text)
{
    static const struct http_header retry = { "Retry-After", "1" };
    char body[HTTP_ERROR_BODY];
    struct http_answer answer = { .status = status,
                                  .type = "application/json",
                                  .headers = status == 503 ? &retry : NULL,
                                  .header_count = status == 503,
                                  .body = body };

    answer.body_size = http_error_body(body, code, text);
    http_answer(exchange, &answer);
}

static unsigned refuse_early(
    struct http_answer *ret, char body[HTTP_ERROR_BODY], unsigned status, const char *code,
    const char *text)
{
    static const struct http_header retry = { "Retry-After", "1" };
    static const struct http_header allow = { "Allow", "POST" };

    ret->type = "application/json";
    ret->headers = status == 503 ? &retry : status == 405 ? &allow : NULL;
    ret->header_count = ret->headers != NULL;
    ret->body = body;
    ret->body_size = http_error_body(body, code, text);
    return status;
}

/* Before the body is read. */
static unsigned admit(void *context, struct http_exchange *exchange, struct http_answer *ret)
{
    static _Thread_local char body[HTTP_ERROR_BODY];
    struct ingest *ingest = context;
    const struct http_request *request = http_request(exchange);
    bool is_draining;

    if (strcmp(request->path, ingest->settings.path) != 0)
        return refuse_early(ret, body, 404, "NOT_FOUND", "there is nothing at this path");
    if (request->method != HTTP_POST)
        return refuse_early(ret, body, 405, "UNSUPPORTED", "send rows by POST");
    if (!ingest_admits(&ingest->guard, request))
        return refuse_early(ret, body, 401, "UNAUTHORIZED", "the secret is missing or wrong");
    det_mutex_lock(ingest->world, ingest->mutex);
    is_draining = ingest->is_draining;
    det_mutex_unlock(ingest->world, ingest->mutex);
    if (is_draining)
        return refuse_early(ret, body, 503, "CLOSED", "the flow is stopping; send again later");
    return 0;
}

static void forget_exchange(void *user)
{
    ((struct request *)user)->exchange = NULL;
}

/* Queues the rows, unless there are too many. */
static bool queue_request(struct ingest *ingest, struct request *request)
{
    bool has_room;

    det_mutex_lock(ingest->world, ingest->mutex);
    has_room =
        !ingest->is_draining && request->rows.count <= ingest->settings.queue_max - ingest->rows;
    if (has_room) {
        ingest->rows += request->rows.count;
        det_list_append(&ingest->queued, &request->link);
    }
    det_mutex_unlock(ingest->world, ingest->mutex);
    return has_room;
}

static int read_rows(
    struct ingest *ingest, const struct http_request *received, struct request *request,
    struct det_error *reterr)
{
    return ingest_rows_read(
        &request->rows, ingest->allocator, ingest->record, ingest->flags,
        det_view_of(received->body, received->body_size), ingest->settings.batch_max, reterr);
}

static void answer_request(struct request *request)
{
    struct det_json_writer json;
    struct http_answer answer = { .status = 200, .type = "application/json" };

    if (!request->exchange)
        return;
    det_json_writer_init(&json, request->ingest->allocator);
    det_json_open(&json, NULL, '{');
    det_json_number(&json, "accepted", request->rows.count);
    det_json_number(&json, "rejected", request->rows.rejected);
    if (request->rows.rejected)
        det_json_text(&json, "error", request->rows.first_error);
    det_json_close(&json, '}');
    det_buffer_append_char(&json.text, '\n');
    if (det_buffer_status(&json.text) == 0) {
        answer.body = json.text.data;
        answer.body_size = json.text.size;
    }
    http_answer(request->exchange, &answer);
    det_json_writer_deinit(&json);
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct ingest *ingest = context;
    const struct http_request *received = http_request(exchange);
    struct request *request;
    struct det_error error = { 0 };
    int r;

    if (!ingest_is_signed(&ingest->guard, received, det_world_now(ingest->world, DET_CLOCK_WALL))) {
        refuse(exchange, 401, "UNAUTHORIZED", "the signature is wrong or too old");
        return;
    }
    if (ingest->guard.auth != HTTP_INGEST_NONE)
        http_vouch(exchange);
    request = DET_NEW(ingest->allocator, struct request);
    if (!request) {
        refuse(exchange, 503, "NO_MEMORY", "out of memory; send again later");
        return;
    }
    request->ingest = ingest;
    request->exchange = exchange;
    r = read_rows(ingest, received, request, &error);
    if (r < 0)
        refuse(exchange, r == DET_ERR_NO_MEMORY ? 503 : 400, det_error_name(r), error.text);
    else if (request->rows.count == 0 && request->rows.rejected)
        refuse(exchange, 400, "INVALID", request->rows.first_error);
    else if (request->rows.count == 0)
        answer_request(request);
    else if (!queue_request(ingest, request))
        refuse(exchange, 503, "BUSY", "too many rows wait; send again later");
    else {
        http_keep(exchange, forget_exchange, NULL, request);
        det_stage_wake(ingest->call);
        return;
    }
    free_request(request);
}

static struct request *take_first(struct ingest *ingest, struct det_list *list)
{
    struct det_list *link;

    det_mutex_lock(ingest->world, ingest->mutex);
    link = det_list_take(list);
    det_mutex_unlock(ingest->world, ingest->mutex);
    return link ? DET_CONTAINER(link, struct request, link) : NULL;
}

/* The posted message: rows of some requests were acknowledged. */
static void answer_all(void *argument)
{
    struct ingest *ingest = argument;
    struct request *request;

    det_mutex_lock(ingest->world, ingest->mutex);
    ingest->is_posted = false;
    det_mutex_unlock(ingest->world, ingest->mutex);
    while ((request = take_first(ingest, &ingest->answered))) {
        answer_request(request);
        free_request(request);
    }
}

/* ---- open and close, on a pool */

static void free_ingest(struct ingest *ingest)
{
    struct det_list *const lists[] = { &ingest->queued, &ingest->emitted, &ingest->answered };

    if (ingest->is_started)
        det_loop_stop(ingest->loop);
    if (ingest->server) {
        answer_all(ingest);
        (void)det_loop_turn(ingest->loop, 0);
    }
    http_server_close(ingest->server);
    if (ingest->loop)
        det_loop_close(ingest->loop);
    for (size_t i = 0; i < 3 && ingest->mutex; i++) {
        struct request *request;

        while ((request = take_first(ingest, lists[i])))
            free_request(request);
    }
    det_mutex_close(ingest->world, ingest->mutex);
    explicit_bzero(ingest->guard.secret, sizeof ingest->guard.secret);
    DET_DELETE(ingest->allocator, ingest);
}

static void http_ingest_close(struct det_stage_call *call)
{
    free_ingest(call->self);
}

static int start_server(struct ingest *ingest, struct det_error *reterr)
{
    struct http_options options = { .allocator = ingest->allocator,
                                    .limits.body_max = ingest->settings.body_max,
                                    .handle = handle,
                                    .admit = admit,
                                    .context = ingest };
    int r;

    r = det_mutex_open(ingest->world, &ingest->mutex);
    if (r == 0)
        r = det_loop_open(ingest->world, ingest->allocator, &ingest->loop);
    if (r < 0)
        return det_error_set(reterr, r, "a loop cannot be opened: %s", det_error_text(r));
    options.loop = ingest->loop;
    r = http_server_open(&options, &ingest->server, reterr);
    if (r == 0)
        r = http_listen(ingest->server, ingest->settings.listen, NULL, reterr);
    if (r < 0)
        return r;
    r = det_loop_start(ingest->loop, "ingest");
    if (r < 0)
        return det_error_set(reterr, r, "no thread for the server: %s", det_error_text(r));
    ingest->is_started = true;
    return 0;
}

static int http_ingest_open(struct det_stage_call *call)
{
    struct ingest *ingest = DET_NEW(call->allocator, struct ingest);
    struct det_error error = { 0 };
    int r;

    if (!ingest)
        return DET_ERR_NO_MEMORY;
    ingest->call = call;
    ingest->allocator = call->allocator;
    ingest->world = det_world_or_real(call->world);
    ingest->post.run = answer_all;
    ingest->post.argument = ingest;
    det_list_init(&ingest->queued);
    det_list_init(&ingest->emitted);
    det_list_init(&ingest->answered);
    r = read_settings(ingest, call->stage, call->allocator, call->folder, true, &error);
    if (r == 0)
        r = start_server(ingest, &error);
    if (r < 0) {
        free_ingest(ingest);
        error.code = r;
        return settings_refuse(call, &error);
    }
    call->self = ingest;
    return 0;
}

/* ---- the loop of the pipeline */

/* Emits rows of a request. 1: all of them; 0: there is no more room. */
static int emit_rows(
    struct det_stage_call *call, struct request *request, uint32_t *room, uint64_t *sequence)
{
    int r;

    while (request->emitted < request->rows.count) {
        if (*room == 0)
            return 0;
        r = det_stage_emit(
            call, request->rows.rows + (size_t)request->emitted * request->rows.row_size);
        if (r == DET_ERR_NO_MEMORY)
            return r;
        det_assert(r == 0);
        request->emitted++;
        --*room;
        ++*sequence;
    }
    return 1;
}

static struct request *first_queued(struct ingest *ingest)
{
    struct det_list *link;

    det_mutex_lock(ingest->world, ingest->mutex);
    link = ingest->queued.next;
    det_mutex_unlock(ingest->world, ingest->mutex);
    return link == &ingest->queued ? NULL : DET_CONTAINER(link, struct request, link);
}

static void move_request(struct ingest *ingest, struct request *request, struct det_list *list)
{
    det_mutex_lock(ingest->world, ingest->mutex);
    det_list_remove(&request->link);
    det_list_append(list, &request->link);
    det_mutex_unlock(ingest->world, ingest->mutex);
}

static int http_ingest_next(struct det_stage_call *call, void *cursor_memory)
{
    struct http_ingest_cursor *cursor = cursor_memory;
    struct ingest *ingest = call->self;
    uint32_t room = det_stage_room(call);
    uint64_t sequence = call->row.sequence;
    struct request *request;
    int r;

    room = room < ROWS_MAX ? room : ROWS_MAX;
    while ((request = first_queued(ingest))) {
        uint32_t before = request->emitted;

        r = emit_rows(call, request, &room, &sequence);
        cursor->rows += request->emitted - before;
        if (r <= 0)
            return r < 0 ? r : DET_SOURCE_MORE;
        request->last = sequence;
        cursor->requests++;
        move_request(ingest, request, &ingest->emitted);
    }
    return DET_SOURCE_IDLE;
}

static void http_ingest_acknowledged(struct det_stage_call *call, uint64_t sequence)
{
    struct ingest *ingest = call->self;
    bool is_first = false;

    det_mutex_lock(ingest->world, ingest->mutex);
    while (!det_list_is_empty(&ingest->emitted)) {
        struct request *request = DET_CONTAINER(ingest->emitted.next, struct request, link);

        if (request->last > sequence)
            break;
        det_list_remove(&request->link);
        det_list_append(&ingest->answered, &request->link);
        det_assert(ingest->rows >= request->rows.count);
        ingest->rows -= request->rows.count;
        is_first = !ingest->is_posted;
        ingest->is_posted = true;
        if (is_first)
            det_loop_post(ingest->loop, &ingest->post);
    }
    det_mutex_unlock(ingest->world, ingest->mutex);
}

/* Rows that were received are emitted by next() before; others get 503 from now on. */
static int http_ingest_drain(struct det_stage_call *call)
{
    struct ingest *ingest = call->self;
    struct request *request;
    uint64_t sequence = call->row.sequence;
    uint32_t room = UINT32_MAX;
    int r;

    det_mutex_lock(ingest->world, ingest->mutex);
    ingest->is_draining = true;
    det_mutex_unlock(ingest->world, ingest->mutex);
    while ((request = first_queued(ingest))) {
        r = emit_rows(call, request, &room, &sequence);
        if (r < 0)
            return r;
        request->last = sequence;
        move_request(ingest, request, &ingest->emitted);
    }
    return 0;
}

const struct det_connector http_ingest_source = {
    CONNECTOR_HEAD(http_ingest, source),
    .flags = DET_STAGE_INFINITE,
    .cursor = { .get = http_ingest_cursor_record },
    .functions = { .open = http_ingest_open,
                   .close = http_ingest_close,
                   .next = http_ingest_next,
                   .acknowledged = http_ingest_acknowledged,
                   .drain = http_ingest_drain },
    .check = http_ingest_check,
};
