/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.c - receives requests: authorizes them, finds their routes, refuses the others. */
#include <detent/driver/loop.h>

#include "api/api.h"

#include <string.h>

#include "api/api_internal.h"
#include "api/assets.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/machines.h"
#include "daemon/telemetry.h"
#include "store/store.h"

/* At most this many 401 answers are delayed. One more is sent at once and its connection is closed,
 * so each further guess costs a new connection. */
#define GUESSES_MAX 256

struct det_runtime *api_runtime(const struct api *api)
{
    return up_machines(api->up)->runtime;
}

const struct det_machine *api_find_served(const struct api *api, const char *name)
{
    return up_machines(api->up) ? up_machines_find(up_machines(api->up), name) : NULL;
}

bool api_served(struct api_call *call, const char *name, const struct det_machine **ret)
{
    *ret = api_find_served(call->api, name);
    if (!*ret)
        api_fail(
            call, DET_ERR_NOT_FOUND,
            "this detent does not serve the machine '%.60s'; add it to detent.yaml", name);
    return *ret != NULL;
}

/* Refusals. */

struct refusal {
    struct http_answer answer;
    struct http_header headers[2];
    char body[HTTP_ERROR_BODY], wait[24];
};

static void add_header(struct refusal *refusal, const char *name, const char *value)
{
    refusal->headers[refusal->answer.header_count++] = (struct http_header){ name, value };
}

static void make_refusal(struct refusal *ret, unsigned status, const char *code, const char *text)
{
    ret->answer = (struct http_answer){ .status = status,
                                        .type = "application/json",
                                        .headers = ret->headers,
                                        .body = ret->body,
                                        .body_size = http_error_body(ret->body, code, text) };
    if (status == 401)
        add_header(ret, "www-authenticate", "Bearer");
}

void api_refuse(struct http_exchange *exchange, unsigned status, const char *code, const char *text)
{
    struct refusal refusal;

    make_refusal(&refusal, status, code, text);
    http_answer(exchange, &refusal.answer);
}

static void refuse_method(struct http_exchange *exchange)
{
    struct refusal refusal;
    char allow[64];

    api_methods(http_request(exchange)->path, allow, sizeof allow);
    make_refusal(
        &refusal, 405, "UNSUPPORTED",
        "this path does not support the method; /v1/openapi.yaml lists all operations");
    add_header(&refusal, "allow", allow);
    http_answer(exchange, &refusal.answer);
}

/* Delayed answers to wrong tokens. */

struct guess {
    struct det_list node;
    struct api *api;
    struct http_exchange *exchange;
    struct det_timer timer;
    char text[sizeof((struct guard_verdict *)0)->text];
};

static void free_guess(struct guess *guess)
{
    struct api *api = guess->api;

    det_list_remove(&guess->node);
    det_loop_timer_cancel(api->loop, &guess->timer);
    api->calls--;
    api->guesses.count--;
    DET_DELETE(api->allocator, guess);
}

static void end_guess(void *argument)
{
    struct guess *guess = argument;

    api_refuse(guess->exchange, 401, "REFUSED", guess->text);
    free_guess(guess);
}

static void drop_guess(void *user)
{
    free_guess(user);
}

void api_guesses_end(struct api *api)
{
    while (!det_list_is_empty(&api->guesses.list))
        end_guess(DET_CONTAINER(api->guesses.list.next, struct guess, node));
}

bool api_keep_back(struct api *api, struct http_exchange *exchange, det_time wait, const char *text)
{
    bool has_room = api->guesses.count < GUESSES_MAX && !api->end.close_by;
    struct guess *guess = has_room ? DET_NEW(api->allocator, struct guess) : NULL;

    if (!guess)
        return false;
    guess->api = api;
    guess->exchange = exchange;
    guess->timer = (struct det_timer){ .run = end_guess, .argument = guess };
    snprintf(guess->text, sizeof guess->text, "%s", text);
    if (det_loop_timer_set(api->loop, &guess->timer, det_loop_now(api->loop) + wait) < 0) {
        DET_DELETE(api->allocator, guess);
        return false;
    }
    det_list_init(&guess->node);
    det_list_append(&api->guesses.list, &guess->node);
    api->calls++;
    api->guesses.count++;
    http_keep(exchange, drop_guess, NULL, guess);
    return true;
}

/* After the headers. */

/* Turns the verdict of the guard into an answer that is valid until the next call. */
static unsigned write_verdict(const struct guard_verdict *verdict, struct http_answer *ret)
{
    static struct refusal refusal;

    make_refusal(&refusal, verdict->status, verdict->code, verdict->text);
    if (verdict->wait) {
        snprintf(
            refusal.wait, sizeof refusal.wait, "%lld",
            (long long)((verdict->wait + DET_SECOND - 1) / DET_SECOND));
        add_header(&refusal, "retry-after", refusal.wait);
    }
    *ret = refusal.answer;
    /* It could not be delayed. */
    ret->close_wanted = verdict->status == 401 && verdict->wait;
    return verdict->status;
}

static void note_route(struct api_note *note, const struct http_request *request)
{
    note->label = "console";
    if (!api_is_ours(request->path))
        return;
    note->route = api_match(request, &note->status);
    note->label = note->route ? note->route->pattern : "unknown";
}

/* A client without a token must not learn which paths exist. */
static unsigned needed_for(const struct api_note *note)
{
    if (note->route)
        return note->route->scope;
    return note->status ? TOKENS_ALL | GUARD_ABSENT : GUARD_PUBLIC;
}

unsigned api_admit(void *context, struct http_exchange *exchange, struct http_answer *ret)
{
    const struct http_request *request = http_request(exchange);
    struct api_note *note = http_note(exchange);
    struct guard_verdict verdict;
    struct api *api = context;

    note_route(note, request);
    guard_check(&api->guard, request, needed_for(note), det_loop_now(api->loop), &verdict);
    memcpy(note->who, verdict.id, sizeof note->who);
    if (verdict.id[0])
        http_vouch(exchange);
    if (!verdict.status)
        return 0;
    if (verdict.status == 401 && verdict.wait &&
        api_keep_back(api, exchange, verdict.wait, verdict.text))
        return HTTP_LATER;
    return write_verdict(&verdict, ret);
}

/* After the body. */

static void run_call(void *argument)
{
    struct api_call *call = argument;

    call->has_begun = true;
    switch (call->route->mode) {
    case API_INLINE:
        call->route->run(call);
        api_finish(call);
        break;
    case API_POOL:
        api_defer(call, call->route->run);
        break;
    case API_OWN:
        call->route->run(call);
        break;
    }
}

static void refuse_target(struct http_exchange *exchange, int code)
{
    if (code == DET_ERR_NO_MEMORY)
        api_refuse(exchange, 503, "NO_MEMORY", "out of memory");
    else
        api_refuse(exchange, 400, det_error_name(code), "malformed path or query");
}

/* Decodes the query and the parameters of the path. */
static int read_target(
    struct url *url, struct det_arena *arena, const struct http_request *request,
    const char **parameters)
{
    int r = url_read(url, arena, "/", request->query);

    for (size_t i = 0; r == 0 && i < API_PARAMETERS_MAX && parameters[i]; i++)
        r = url_read_segment(arena, parameters[i], &parameters[i]);
    return r;
}

static void handle_route(
    struct api *api, struct http_exchange *exchange, const struct api_route *route)
{
    const char *parameters[API_PARAMETERS_MAX] = { NULL }, *unknown;
    struct api_call *call;
    struct det_arena arena;
    struct url url;
    int r;

    api_parameters(route, http_request(exchange)->path, parameters);
    det_arena_init(&arena, api->allocator);
    r = read_target(&url, &arena, http_request(exchange), parameters);
    if (r < 0) {
        det_arena_deinit(&arena);
        refuse_target(exchange, r);
        return;
    }
    call = api_call_open(api, exchange, route, parameters, &url, &arena);
    if (!call) {
        api_refuse(exchange, 503, "NO_MEMORY", "out of memory");
        return;
    }
    unknown = api_unknown_query(route, &call->url);
    if (unknown)
        api_fail(call, DET_ERR_INVALID, "unknown query parameter '%.60s'", unknown);
    else if (call->key && !api_takes_key(route))
        api_fail(
            call, DET_ERR_INVALID,
            "this operation does not support Idempotency-Key; check the result before you retry");
    else if (call->key && route->method != HTTP_GET && !det_store_id_is_valid(call->key))
        api_fail(
            call, DET_ERR_INVALID,
            "an Idempotency-Key must have 1 to 128 characters of A-Z a-z 0-9 . _ : -");
    if (call->status)
        api_finish(call);
    else
        api_enter(call, run_call, call);
}

/* Most paths need no check. */
static int check_path(const struct api *api, const char *path)
{
    struct det_arena arena;
    struct url url;
    int r;

    if (!strpbrk(path, "%.") && !strstr(path, "//"))
        return 0;
    det_arena_init(&arena, api->allocator);
    r = url_read(&url, &arena, path, "");
    det_arena_deinit(&arena);
    return r;
}

void api_handle(void *context, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    const struct api_note *note = http_note(exchange);
    int r = check_path(context, request->path);

    if (r < 0)
        refuse_target(exchange, r);
    else if (note->route)
        handle_route(context, exchange, note->route);
    else if (note->status == 405)
        refuse_method(exchange);
    else if (note->status)
        api_refuse(
            exchange, 404, "NOT_FOUND", "no such path; /v1/openapi.yaml lists all operations");
    else
        assets_answer(exchange, request->path);
}

/* After the answer. */

/* Compares routes and methods by address: their names are constants. */
static void find_series(
    struct api *api, struct api_series *series, const char *route, const char *method,
    unsigned status)
{
    struct det_metrics *metrics = up_observe(api->up)->metrics;
    char text[12];

    snprintf(text, sizeof text, "%u", status);
    *series = (struct api_series){
        .route = route,
        .method = method,
        .status = status,
        .requests = det_metrics_series(
            metrics, DET_METRIC_HTTP_REQUESTS, (const char *const[]){ route, method, text }),
        .duration =
            det_metrics_series(metrics, DET_METRIC_HTTP_DURATION, (const char *const[]){ route }),
    };
}

void api_count_request(void *context, const struct http_done *done)
{
    const struct api_note *note = done->note;
    const char *route = note ? note->label : "refused";
    const char *method = done->request ? api_method_name(done->request->method) : "none";
    struct api *api = context;
    size_t place = ((uintptr_t)route / 8 + (uintptr_t)method / 8 + done->status) % API_SERIES_CACHE;
    struct api_series *series = &api->series_cache[place];

    if (series->route != route || series->method != method || series->status != done->status)
        find_series(api, series, route, method, done->status);
    api_audit_refusal(api, done);
    det_series_count(series->requests, 1);
    if (!done->is_stream)
        det_series_observe(series->duration, done->span);
}
