/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* call_life.c - a call from its match to its answer. */
#include <detent/driver/loop.h>
#include <stdarg.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/store.h"

struct status {
    int code;
    unsigned status;
};

/* Other errors are 500: the outcome is unknown. */
static const struct status statuses[] = {
    { DET_ERR_INVALID, 400 },
    { DET_ERR_MALFORMED, 400 },
    { DET_ERR_TRUNCATED, 400 },
    { DET_ERR_UNKNOWN_FIELD, 400 },
    { DET_ERR_DUPLICATE_FIELD, 400 },
    { DET_ERR_MISSING_FIELD, 400 },
    { DET_ERR_TYPE, 400 },
    { DET_ERR_RANGE, 400 },
    { DET_ERR_OVERFLOW, 400 },
    { DET_ERR_NOT_FOUND, 404 },
    { DET_ERR_EXISTS, 409 },
    { DET_ERR_CONFLICT, 409 },
    { DET_ERR_UNHANDLED, 422 },
    { DET_ERR_REFUSED, 422 },
    { DET_ERR_STOPPED, 422 },
    { DET_ERR_ACTION_FAILED, 422 },
    { DET_ERR_UNBOUND, 501 },
    { DET_ERR_UNSUPPORTED, 501 },
    { DET_ERR_LOCKED, 423 },
    { DET_ERR_LOCK_LOST, 423 },
    { DET_ERR_LIMIT, 422 },
    { DET_ERR_BUSY, 503 },
    { DET_ERR_CONTENTION, 503 },
    { DET_ERR_CLOSED, 503 },
    { DET_ERR_NO_MEMORY, 503 },
    { DET_ERR_READ_ONLY, 503 },
    { DET_ERR_CANCELLED, 503 },
    { DET_ERR_TIMEOUT, 504 },
    { DET_ERR_NO_SPACE, 507 },
    { DET_ERR_VERSION, 409 },
    { DET_ERR_DEFINITION, 422 },
};

static unsigned status_of(int code)
{
    det_assert(code < 0);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].code == code)
            return statuses[i].status;
    }
    return 500;
}

static const char *copy_header(
    struct api_call *call, const struct http_request *request, const char *name, bool *has_failed)
{
    const char *value = http_header(request, name);
    const char *copy = value ? det_arena_copy(&call->arena, value) : NULL;

    *has_failed |= value && !copy;
    return copy;
}

/* A malformed traceparent is ignored, as the W3C requires. */
static const struct det_trace_context *read_trace(
    struct api_call *call, const struct http_request *request)
{
    const char *value = http_header(request, "traceparent");
    struct det_trace_context *trace = value ? det_arena_alloc(&call->arena, sizeof *trace) : NULL;

    return trace && det_trace_parse(value, strlen(value), trace) == 0 ? trace : NULL;
}

static void close_call(struct api_call *call)
{
    struct api *api = call->api;

    /* No list and no thread has it. */
    det_assert(det_list_is_empty(&call->lane_node) && det_list_is_empty(&call->held_node));
    det_assert(!call->reader && call->decoded <= atomic_load(&api->decoded));
    det_assert(api->calls > 0);
    api->calls--;
    det_list_remove(&call->late_node);
    api_call_release_store(call);
    atomic_fetch_sub(&api->decoded, call->decoded);
    det_json_writer_deinit(&call->json);
    det_json_writer_deinit(&call->scratch);
    det_arena_deinit(&call->arena);
    DET_DELETE(api->allocator, call);
}

bool api_is_read(const struct api_route *route)
{
    return (route->scope == TOKENS_READ || route->scope == TOKENS_METRICS) &&
           route->method != HTTP_DELETE;
}

/* The client no longer waits for the answer. */
static void leave_call(struct api_call *call)
{
    det_assert(call->exchange && call->api->calls > 0);
    call->exchange = NULL;
    det_list_remove(&call->late_node);
    if (api_unhold(call) || api_lane_leave(call))
        api_finish(call);
}

static void on_gone(void *user)
{
    leave_call(user);
}

/* Deadlines. The list is ordered by deadline, so only its first call is checked. */

static struct api_call *late_call(struct det_list *node)
{
    return DET_CONTAINER(node, struct api_call, late_node);
}

static void arm_deadline(struct api *api)
{
    struct det_list *first = api->late.calls.next;

    api->late.is_set =
        first != &api->late.calls &&
        det_loop_timer_set(api->loop, &api->late.timer, late_call(first)->late_at) == 0;
}

/* The call is still in use, so the refusal is made without it. */
static void end_late_call(struct api_call *call)
{
    struct http_exchange *exchange = call->exchange;
    bool is_read = api_is_read(call->route);

    leave_call(call);
    api_refuse(
        exchange, 504, det_error_name(DET_ERR_TIMEOUT),
        is_read
            ? "the request took longer than http.limits.request_time"
            : "the request took longer than http.limits.request_time and may still take effect; "
              "retry with the same Idempotency-Key, or check the result");
}

static void on_late(void *argument)
{
    struct api *api = argument;
    det_time now = det_loop_now(api->loop);
    struct det_list *first;

    while ((first = api->late.calls.next) != &api->late.calls) {
        struct api_call *call = late_call(first);

        if (call->late_at > now)
            break;
        end_late_call(call);
    }
    arm_deadline(api);
}

/* The timer is armed for the first call; when it fires, it is armed for the first call then. A
 * reload may shorten the time, so a new call may belong before older ones. */
static void await_answer(struct api_call *call)
{
    struct api *api = call->api;
    struct det_list *place = &api->late.calls;

    det_assert(call->exchange && det_list_is_empty(&call->late_node));
    call->late_at = det_loop_now(api->loop) + api->http.request_time;
    while (place->previous != &api->late.calls &&
           late_call(place->previous)->late_at > call->late_at)
        place = place->previous;
    det_list_insert_before(place, &call->late_node);
    if (!api->late.is_set || api->late.calls.next == &call->late_node)
        arm_deadline(api);
}

void api_calls_open(struct api *api)
{
    det_list_init(&api->late.calls);
    det_list_init(&api->guesses.list);
    det_list_init(&api->pause.held);
    det_list_init(&api->pause.held_jobs);
    api->late.timer = (struct det_timer){ .run = on_late, .argument = api };
}

void api_call_streams(struct api_call *call)
{
    det_list_remove(&call->late_node);
    api_call_release_store(call);
}

struct api_call *api_call_open(
    struct api *api, struct http_exchange *exchange, const struct api_route *route,
    const char *const *parameters, const struct url *url, struct det_arena *arena_take)
{
    const struct http_request *request = http_request(exchange);
    struct api_call *call = DET_NEW(api->allocator, struct api_call);
    bool has_failed = false;
    char *body;

    det_assert(det_loop_is_mine(api->loop) && route && route->run);
    if (!call) {
        det_arena_deinit(arena_take);
        return NULL;
    }
    api->calls++;
    det_list_init(&call->lane_node);
    det_list_init(&call->held_node);
    det_list_init(&call->late_node);
    call->api = api;
    call->route = route;
    call->arena = *arena_take;
    call->url = *url;
    memcpy(call->parameters, parameters, sizeof call->parameters);
    det_json_writer_init(&call->json, api->allocator);
    det_json_writer_init(&call->scratch, api->allocator);
    call->key = copy_header(call, request, "idempotency-key", &has_failed);
    call->trace = read_trace(call, request);
    (void)det_text_copy(
        call->who, sizeof call->who, ((const struct api_note *)http_note(exchange))->who);
    if (api_is_audited(route)) {
        call->action = api_action(&call->arena, exchange);
        has_failed |= !call->action;
    }
    call->peer = det_arena_copy(&call->arena, request->peer);
    has_failed |= !call->peer;
    body = request->body_size ? det_arena_copy_n(&call->arena, request->body, request->body_size)
                              : NULL;
    has_failed |= request->body_size && !body;
    call->body = det_view_of(body ? body : "", request->body_size);
    if (has_failed) {
        close_call(call);
        return NULL;
    }
    call->exchange = exchange;
    http_keep(exchange, on_gone, NULL, call);
    await_answer(call);
    return call;
}

static bool delay_answer(struct api_call *call)
{
    return call->wrong_code &&
           api_keep_back(call->api, call->exchange, call->wait, call->wrong_code);
}

void api_finish(struct api_call *call)
{
    struct det_buffer *text = &call->json.text;
    static const struct http_header later = { "retry-after", "1" };
    struct http_answer answer = { .headers = &later };

    if (det_buffer_status(text) < 0)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    if (det_buffer_status(text) < 0) /* No memory for the error either. */
        answer.status = 503;
    else
        answer.status = call->status ? call->status : 200;
    answer.body = det_buffer_text(text);
    answer.body_size = text->size;
    answer.type = call->type ? call->type : "application/json";
    answer.header_count = answer.status == 503;
    answer.close_wanted = call->wrong_code;
    if (call->action)
        api_audit(call->api, call->action, answer.status);
    if (call->exchange && !delay_answer(call))
        http_answer(call->exchange, &answer);
    close_call(call);
}

static void run_deferred(void *argument)
{
    struct api_call *call = argument;

    if (!api_is_read(call->route) || !atomic_load(&call->is_left))
        call->deferred(call);
    if (call->reader)
        api_reader_give(call->api, call->reader);
    call->reader = NULL;
}

static void finish_deferred(void *argument)
{
    struct api_call *call = argument;

    det_assert(!call->reader && det_list_is_empty(&call->lane_node));
    api_lane_done(call);
    if (call->job.is_dropped)
        api_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    if (call->then && !call->status)
        call->then(call);
    else
        api_finish(call);
}

void api_defer(struct api_call *call, void (*run)(struct api_call *call))
{
    /* The client may have left while the daemon was asked. */
    if (!call->exchange && api_is_read(call->route)) {
        api_finish(call);
        return;
    }
    if (call->api->pause.is_ending && call->api->pause.state == API_SERVING) {
        api_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
        api_finish(call);
        return;
    }
    det_assert(det_list_is_empty(&call->lane_node) && !call->reader);
    call->deferred = run;
    call->job = (struct det_job){
        .run = run_deferred, .done = finish_deferred, .argument = call, .loop = call->api->loop
    };
    if (api_lane_add(call))
        return;
    api_fail(call, DET_ERR_BUSY, "too many requests are waiting; retry later");
    api_finish(call);
}

/* Failing. */

void api_fail_with(struct api_call *call, int code, const struct det_error *error)
{
    det_assert(code < 0);
    det_json_writer_clear(&call->json);
    /* A key that was used for another request is an error of the client. */
    call->status = code == DET_ERR_CONFLICT && error->is_id_used ? 422 : status_of(code);
    call->type = NULL;
    det_json_open(&call->json, NULL, '{');
    api_error_line(api_error_reader(call), &call->json, code, error);
    det_json_close(&call->json, '}');
}

void api_fail(struct api_call *call, int code, const char *format, ...)
{
    struct det_error error = { .code = code };
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    api_fail_with(call, code, &error);
}

/* The query. */

const char *api_query(const struct api_call *call, const char *key)
{
    return url_value(&call->url, key);
}

bool api_query_number(
    struct api_call *call, const char *key, uint64_t least, uint64_t most, uint64_t *ret)
{
    const char *text = api_query(call, key);
    uint64_t number = 0;

    det_assert(least <= most);
    if (!text)
        return true;
    if (det_parse_u64(det_view_text(text), &number) < 0 || number < least || number > most) {
        api_fail(
            call, DET_ERR_INVALID, "'%s' must be a number from %llu to %llu", key,
            (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *ret = number;
    return true;
}

bool api_query_id(struct api_call *call, const char *key, const char **ret)
{
    const char *text = api_query(call, key);

    if (text && !det_store_id_is_valid(text)) {
        api_fail(
            call, DET_ERR_INVALID, "'%s' must have 1 to %d characters of A-Z a-z 0-9 . _ : -", key,
            DET_ID_MAX);
        return false;
    }
    *ret = text;
    return true;
}

bool api_page_is_full(const struct api_call *call)
{
    return call->json.text.size >= API_PAGE_BYTES;
}

bool api_query_limit(struct api_call *call, size_t *ret)
{
    uint64_t limit = API_LIMIT;
    bool is_right = api_query_number(call, "limit", 1, API_LIMIT_MAX, &limit);

    *ret = (size_t)limit;
    return is_right;
}

bool api_query_bool(struct api_call *call, const char *key, bool *ret)
{
    const char *text = api_query(call, key);

    if (!text)
        return true;
    *ret = strcmp(text, "true") == 0;
    if (*ret || strcmp(text, "false") == 0)
        return true;
    api_fail(call, DET_ERR_INVALID, "'%s' must be true or false", key);
    return false;
}

bool api_query_time(struct api_call *call, const char *key, det_time *ret)
{
    const char *text = api_query(call, key);

    if (!text || det_parse_time(det_view_text(text), ret) == 0)
        return true;
    api_fail(call, DET_ERR_INVALID, "'%s' must be a time such as 2026-01-31T10:00:00Z", key);
    return false;
}
