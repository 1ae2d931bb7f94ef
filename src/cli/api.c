/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.c - takes the requests of the HTTP API: who may, which route, what is refused. */
#include "cli/api.h"

#include <string.h>

#include "base/memory.h"
#include "cli/api_counts.h"
#include "cli/api_parts.h"
#include "cli/store_parts.h"
#include "cli/up_machines.h"
#include "cli/up_observe.h"
#include "cli/up_verbs.h"
#include "console/assets.h"
#include "os/os.h"

struct det_runtime *api_runtime(const struct api *api)
{
    return api->up->machines->runtime;
}

const struct det_machine *api_find_served(const struct api *api, const char *name)
{
    return api->up->machines ? up_machines_find(api->up->machines, name) : NULL;
}

size_t api_served_count(const struct api *api)
{
    return up_machines_count(api->up);
}

bool api_served(struct api_call *call, const char *name, const struct det_machine **ret)
{
    *ret = api_find_served(call->api, name);
    if (!*ret)
        api_fail(
            call, DET_ERR_NOT_FOUND,
            "no machine '%.60s' is served here; GET /v1/machines lists those that are", name);
    return *ret != NULL;
}

/* Requests. */

static void refuse_with(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text,
    const struct http_header *header)
{
    struct http_header headers[API_HEADERS + 1];
    char body[512];
    int size =
        snprintf(body, sizeof body, "{\"error\":{\"code\":\"%s\",\"text\":\"%s\"}}", code, text);

    memcpy(headers, api_headers, sizeof *headers * API_HEADERS);
    if (header)
        headers[API_HEADERS] = *header;
    http_answer(
        exchange, &(struct http_answer){ .status = status,
                                         .type = "application/json",
                                         .headers = headers,
                                         .header_count = API_HEADERS + (header != NULL),
                                         .body = body,
                                         .body_size = (size_t)size });
}

static void refuse(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text)
{
    refuse_with(exchange, status, code, text, NULL);
}

static void run_call(struct api_call *call)
{
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

/* The query, and the parameters of the path, decoded. */
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
    struct api *api, struct http_exchange *exchange, const struct api_route *route,
    const char **parameters)
{
    const char *unknown;
    struct api_call *call;
    struct det_arena arena;
    struct url url;
    int r;

    det_arena_init(&arena, api->allocator);
    r = read_target(&url, &arena, http_request(exchange), parameters);
    if (r < 0) {
        det_arena_deinit(&arena);
        refuse(
            exchange, r == DET_ERR_NO_MEMORY ? 503 : 400, det_error_name(r),
            r == DET_ERR_NO_MEMORY ? "there is no memory left"
                                   : "the path or the query is not well formed");
        return;
    }
    call = api_call_open(api, exchange, route, parameters, &url, &arena);
    if (!call) {
        refuse(exchange, 503, "NO_MEMORY", "there is no memory left");
        return;
    }
    unknown = api_unknown_query(route, &call->url);
    if (unknown) {
        api_fail(call, DET_ERR_INVALID, "the query has no '%.60s' here", unknown);
        api_finish(call);
        return;
    }
    run_call(call);
}

static void refuse_method(struct http_exchange *exchange)
{
    char allow[64];
    const struct http_header header = { "allow", allow };

    api_methods(http_request(exchange)->path, allow, sizeof allow);
    refuse_with(
        exchange, 405, "UNSUPPORTED",
        "this method is not for this path; /v1/openapi.yaml lists what is", &header);
}

/* Most paths have nothing that could be wrong with them. */
static bool is_well_formed(const struct api *api, const char *path)
{
    struct det_arena arena;
    struct url url;
    int r;

    if (!strpbrk(path, "%.") && !strstr(path, "//"))
        return true;
    det_arena_init(&arena, api->allocator);
    r = url_read(&url, &arena, path, "");
    det_arena_deinit(&arena);
    return r == 0;
}

/* Whoever guesses tokens waits for each answer. */
struct guess {
    struct api *api;
    struct http_exchange *exchange; /* NULL: it went away */
    struct det_timer timer;
};

static void end_guess(void *argument)
{
    struct guess *guess = argument;
    const struct http_header header = { "www-authenticate", "Bearer" };

    if (guess->exchange)
        refuse_with(guess->exchange, 401, "REFUSED", tokens_verdict_text(TOKENS_UNKNOWN), &header);
    guess->api->calls--;
    DET_DELETE(guess->api->allocator, guess);
}

static void leave_guess(void *user)
{
    struct guess *guess = user;

    guess->exchange = NULL;
}

static void keep_back(struct api *api, struct http_exchange *exchange)
{
    struct guess *guess = DET_NEW(api->allocator, struct guess);

    if (!guess) {
        refuse(exchange, 401, "REFUSED", tokens_verdict_text(TOKENS_UNKNOWN));
        return;
    }
    api->calls++;
    *guess = (struct guess){ .api = api, .exchange = exchange };
    guess->timer = (struct det_timer){ .run = end_guess, .argument = guess };
    http_keep(exchange, leave_guess, NULL, guess);
    if (det_loop_timer_set(api->loop, &guess->timer, det_loop_now(api->loop) + api->guess_wait) < 0)
        end_guess(guess);
}

void api_handle(void *context, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    const char *parameters[API_PARAMETERS_MAX] = { NULL };
    struct api *api = context;
    const struct api_route *route;
    unsigned status;

    if (api->guess == request) {
        api->guess = NULL;
        keep_back(api, exchange);
        return;
    }
    if (!is_well_formed(context, request->path)) {
        refuse(exchange, 400, "MALFORMED", "the path is not well formed");
        return;
    }
    if (!api_is_ours(request->path)) {
        assets_answer(exchange, request->path);
        return;
    }
    route = api_match(request, parameters, &status);
    if (route)
        handle_route(context, exchange, route, parameters);
    else if (status == 405)
        refuse_method(exchange);
    else
        refuse(
            exchange, 404, "NOT_FOUND",
            "there is nothing here; /v1/openapi.yaml lists what there is");
}

/* What the guard says of a request, in words that stay until the next one. */
static unsigned put_verdict(const struct guard_verdict *verdict, struct http_answer *ret)
{
    static char body[512], wait[24];
    static struct http_header headers[API_HEADERS + 2];
    size_t count = API_HEADERS;
    int size;

    memcpy(headers, api_headers, sizeof *headers * API_HEADERS);
    size = snprintf(
        body, sizeof body, "{\"error\":{\"code\":\"%s\",\"text\":\"%s\"}}", verdict->code,
        verdict->text);
    if (verdict->status == 401)
        headers[count++] = (struct http_header){ "www-authenticate", "Bearer" };
    if (verdict->wait) {
        snprintf(
            wait, sizeof wait, "%lld", (long long)((verdict->wait + DET_SECOND - 1) / DET_SECOND));
        headers[count++] = (struct http_header){ "retry-after", wait };
    }
    *ret = (struct http_answer){ .status = verdict->status,
                                 .type = "application/json",
                                 .headers = headers,
                                 .header_count = count,
                                 .body = body,
                                 .body_size = (size_t)size };
    return verdict->status;
}

static bool is_safe(const struct http_request *request)
{
    return (request->method == HTTP_GET || request->method == HTTP_HEAD) &&
           !http_header(request, "content-length") && !http_header(request, "transfer-encoding");
}

unsigned api_admit(void *context, const struct http_request *request, struct http_answer *ret)
{
    struct api *api = context;
    const char *parameters[API_PARAMETERS_MAX];
    const struct api_route *route;
    struct guard_verdict verdict;
    unsigned needed = GUARD_PUBLIC, status;

    if (api_is_ours(request->path)) {
        route = api_match(request, parameters, &status);
        /* Who has no token does not learn what there is. */
        needed = route ? route->scope : TOKENS_ALL;
    }
    guard_check(&api->guard, request, needed, det_loop_now(api->loop), &verdict);
    if (verdict.status == 401 && verdict.wait && is_safe(request)) {
        /* api_handle() comes at once, and keeps the answer back. */
        api->guess = request;
        api->guess_wait = verdict.wait;
        return 0;
    }
    return verdict.status ? put_verdict(&verdict, ret) : 0;
}

/* A route by its pattern; what is none of them is a file of the console, or nothing. */
static const char *route_of(const struct http_request *request)
{
    const char *parameters[API_PARAMETERS_MAX];
    const struct api_route *route;
    unsigned status;

    if (!request)
        return "refused";
    if (!api_is_ours(request->path))
        return "console";
    route = api_match(request, parameters, &status);
    return route ? route->pattern : "unknown";
}

static const char *method_of(const struct http_request *request)
{
    static const char *const names[] = { "GET",   "HEAD",   "POST",    "PUT",
                                         "PATCH", "DELETE", "OPTIONS", "other" };

    return request ? names[request->method] : "none";
}

/* Routes and methods are told apart by where their names stand. */
static void look_up(
    struct api *api, struct api_seen *seen, const char *route, const char *method, unsigned status)
{
    struct det_metrics *metrics = api->up->observe->metrics;
    char text[12];

    snprintf(text, sizeof text, "%u", status);
    *seen = (struct api_seen){
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
    struct api *api = context;
    const char *route = route_of(done->request), *method = method_of(done->request);
    size_t place = ((uintptr_t)route / 8 + (uintptr_t)method / 8 + done->status) % API_SEEN;
    struct api_seen *seen = &api->seen[place];

    if (seen->route != route || seen->method != method || seen->status != done->status)
        look_up(api, seen, route, method, done->status);
    det_series_count(seen->requests, 1);
    det_series_observe(seen->duration, done->span);
}
