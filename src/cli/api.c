/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.c - the HTTP server of `detent up`: opens, listens, takes requests, closes.
 *
 *     open ---> serving (a thread with a loop of its own) ---close---> draining ---> closed
 *                                                               | calls on their way are answered
 *                                                               | at most CLOSE_SPAN */
#include "cli/api.h"

#include <string.h>

#include "base/memory.h"
#include "cli/api_counts.h"
#include "cli/api_parts.h"
#include "cli/store_parts.h"
#include "cli/up_machines.h"
#include "cli/up_observe.h"
#include "console/assets.h"
#include "os/os.h"

#define POOL_THREADS 4
#define CLOSE_SPAN   (5 * DET_SECOND)
#define PORT         7788
#define PORTS        10

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
    const struct up *up = api->up;
    size_t count = 0;

    for (size_t i = 0; up->machines && i < up->file.config.machine_count; i++)
        count += up->machines->specs[i] != NULL;
    return count;
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

static void refuse(
    struct http_exchange *exchange, unsigned status, const char *code, const char *text)
{
    char body[512];
    int size =
        snprintf(body, sizeof body, "{\"error\":{\"code\":\"%s\",\"text\":\"%s\"}}", code, text);

    http_answer(
        exchange, &(struct http_answer){ .status = status,
                                         .type = "application/json",
                                         .body = body,
                                         .body_size = (size_t)size });
}

static bool is_api(const struct url *url)
{
    static const char *const own[] = { "v1", "livez", "readyz", "metrics" };

    for (size_t i = 0; url->segment_count && i < sizeof own / sizeof *own; i++) {
        if (strcmp(url->segments[0], own[i]) == 0)
            return true;
    }
    return false;
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

static void handle_api(
    struct api *api, struct http_exchange *exchange, const struct url *url,
    struct det_arena *arena_take)
{
    const char *parameters[API_PARAMETERS_MAX] = { NULL };
    const struct api_route *route;
    const char *unknown;
    struct api_call *call;
    unsigned status;

    route = api_match(http_request(exchange), url, parameters, &status);
    if (!route) {
        refuse(
            exchange, status, status == 405 ? "UNSUPPORTED" : "NOT_FOUND",
            status == 405 ? "this method is not for this path; /v1/openapi.yaml lists what is"
                          : "there is nothing here; /v1/openapi.yaml lists what there is");
        det_arena_deinit(arena_take);
        return;
    }
    call = api_call_open(api, exchange, route, parameters, url, arena_take);
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

static void handle(void *context, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    struct api *api = context;
    struct det_arena arena;
    struct url url;
    int r;

    det_arena_init(&arena, api->allocator);
    r = url_read(&url, &arena, request->path, request->query);
    if (r == 0 && is_api(&url)) {
        handle_api(api, exchange, &url, &arena);
        return;
    }
    if (r == 0)
        assets_answer(exchange, request->path);
    else if (r == DET_ERR_NO_MEMORY)
        refuse(exchange, 503, "NO_MEMORY", "there is no memory left");
    else
        refuse(exchange, 400, "MALFORMED", "the path or the query is not well formed");
    det_arena_deinit(&arena);
}

/* What the guard says of a request, in words that stay until the next one. */
static unsigned put_verdict(const struct guard_verdict *verdict, struct http_answer *ret)
{
    static char body[512], wait[24];
    static struct http_header headers[2];
    size_t count = 0;
    int size;

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

static unsigned admit(void *context, const struct http_request *request, struct http_answer *ret)
{
    struct api *api = context;
    const char *parameters[API_PARAMETERS_MAX];
    const struct api_route *route;
    struct guard_verdict verdict;
    struct det_arena arena;
    unsigned needed = GUARD_PUBLIC, status;
    struct url url;

    det_arena_init(&arena, api->allocator);
    if (url_read(&url, &arena, request->path, request->query) == 0 && is_api(&url)) {
        route = api_match(request, &url, parameters, &status);
        /* Who has no token does not learn what there is. */
        needed = route ? route->scope : TOKENS_ALL;
    }
    det_arena_deinit(&arena);
    guard_check(&api->guard, request, needed, det_loop_now(api->loop), &verdict);
    return verdict.status ? put_verdict(&verdict, ret) : 0;
}

/* A route by its pattern; what is none of them is a file of the console, or nothing. */
static const char *route_of(struct api *api, const struct http_request *request)
{
    const char *parameters[API_PARAMETERS_MAX];
    const struct api_route *route = NULL;
    const char *name = "refused";
    struct det_arena arena;
    unsigned status;
    struct url url;

    if (!request)
        return name;
    det_arena_init(&arena, api->allocator);
    if (url_read(&url, &arena, request->path, request->query) == 0) {
        route = is_api(&url) ? api_match(request, &url, parameters, &status) : NULL;
        name = route ? route->pattern : is_api(&url) ? "unknown" : "console";
    }
    det_arena_deinit(&arena);
    return name;
}

static const char *method_of(const struct http_request *request)
{
    static const char *const names[] = { "GET",   "HEAD",   "POST",    "PUT",
                                         "PATCH", "DELETE", "OPTIONS", "other" };

    return request ? names[request->method] : "none";
}

static void count_request(void *context, const struct http_done *done)
{
    struct api *api = context;
    struct det_metrics *metrics = api->up->observe->metrics;
    const char *route = route_of(api, done->request);
    char status[12];

    snprintf(status, sizeof status, "%u", done->status);
    det_series_count(
        det_metrics_series(
            metrics, DET_METRIC_HTTP_REQUESTS,
            (const char *const[]){ route, method_of(done->request), status }),
        1);
    det_series_observe(
        det_metrics_series(metrics, DET_METRIC_HTTP_DURATION, (const char *const[]){ route }),
        done->span);
}

/* Opening and closing. */

/* Whether nobody has said where to listen. */
static bool is_anywhere(const struct up *up)
{
    const struct config_http *config = &up->file.config.http;

    return !up->options->is_serving && !up->sockets.is_given && !config->listen_node &&
           config->listen[0] && !config->listen[1] &&
           strcmp(config->listen[0], CONFIG_HTTP_LISTEN) == 0;
}

/* Another project may be there already: one of the next ports then, or any. */
static int bind_anywhere(struct up *up, struct det_error *reterr)
{
    char text[32];
    const char *const listen[] = { text, NULL };
    const struct config_http config = { .listen = listen };
    int r = DET_ERR_EXISTS;

    for (unsigned i = 0; r == DET_ERR_EXISTS && i <= PORTS; i++) {
        snprintf(text, sizeof text, "127.0.0.1:%u", i < PORTS ? PORT + i : 0);
        r = serve_sockets_bind(&up->sockets, &config, reterr);
    }
    return r;
}

static int listen_all(struct api *api, struct det_error *reterr)
{
    struct up *up = api->up;
    const struct config_http *config = &up->file.config.http;
    int r = 0;

    if (up->sockets.count == 0)
        r = is_anywhere(up) ? bind_anywhere(up, reterr)
                            : serve_sockets_bind(&up->sockets, config, reterr);
    for (size_t i = 0; r == 0 && i < up->sockets.count; i++) {
        int descriptor = serve_socket_copy(&up->sockets.items[i]);

        r = descriptor < 0 ? det_error_set(reterr, DET_ERR_IO, "there is no descriptor left")
                           : http_listen_given(api->server, descriptor, NULL, reterr);
        if (r < 0 && descriptor >= 0)
            close(descriptor);
    }
    if (r < 0 || !config->socket)
        return r;
    return http_listen_path(api->server, config->socket, 0600, NULL, reterr);
}

static int open_tokens(struct api *api, struct det_error *reterr)
{
    struct tokens_options options = {
        .allocator = api->allocator,
        .world = api->world,
        .folder = det_arena_format(&api->up->file.arena, "%s/%s", api->up->project, SOCKET_FOLDER),
    };

    if (!options.folder)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    return tokens_open(&options, &api->tokens, reterr);
}

static int open_parts(struct api *api, struct det_error *reterr)
{
    const struct config_http *config = &api->up->file.config.http;
    struct http_options options = {
        .allocator = api->allocator,
        .limits = config->limits,
        .tls = config->tls.certificate ? &config->tls : NULL,
        .handle = handle,
        .admit = admit,
        .done = count_request,
        .context = api,
    };
    int r;

    r = open_tokens(api, reterr);
    if (r < 0)
        return r;
    api->guard = (struct guard){ .hosts = config->hosts,
                                 .tokens = api->tokens,
                                 .rate = config->rate == CONFIG_UNLIMITED ? 0 : config->rate };
    r = det_mutex_open(api->world, &api->lock);
    if (r == 0)
        r = det_pool_open(api->world, api->allocator, POOL_THREADS, &api->pool);
    if (r == 0)
        r = det_loop_open(api->world, api->allocator, &api->loop);
    if (r < 0)
        return det_error_set(reterr, r, "the HTTP API cannot be opened: %s", det_error_text(r));
    r = api_events_open(api, reterr);
    if (r == 0)
        r = api_counts_open(api, reterr);
    if (r < 0)
        return r;
    options.loop = api->loop;
    r = http_server_open(&options, &api->server, reterr);
    if (r == 0)
        r = listen_all(api, reterr);
    if (r == 0 && api_rates_open(api) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0)
        r = det_loop_start(api->loop, "http");
    api->has_started = r == 0;
    return r;
}

/* On the loop of `up` again. */
static void end_renew(void *argument)
{
    struct api *api = argument;

    if (api->renew_result < 0)
        up_note_failure(
            api->up, UP_NAME, "the certificate stays as it was: %s", api->renew_error.text);
    api->is_renewing = false;
}

static void renew(void *argument)
{
    struct api *api = argument;

    api->renew_error = (struct det_error){ 0 };
    api->renew_result =
        http_server_renew(api->server, &api->up->file.config.http.tls, &api->renew_error);
    api->renew_post = (struct det_post){ .run = end_renew, .argument = api };
    det_loop_post(api->up->loop, &api->renew_post);
}

void api_renew(struct up *up)
{
    struct api *api = up->api;

    if (!api || !api->server || api->is_renewing || !up->file.config.http.tls.certificate)
        return;
    api->is_renewing = true;
    api->renew_post = (struct det_post){ .run = renew, .argument = api };
    det_loop_post(api->loop, &api->renew_post);
}

int api_open(struct up *up, struct det_error *reterr)
{
    struct api *api = DET_NEW(up->output.outer->allocator, struct api);

    if (!api)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    up->api = api;
    api->up = up;
    api->allocator = up->output.outer->allocator;
    api->world = up->output.outer->world;
    if (up->machines || up->store) {
        api->address = up_store_address(up);
        api->url = api->address ? store_url_shown(&up->file.arena, api->address) : NULL;
        if (!api->url)
            return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    }
    return open_parts(api, reterr);
}

/* On the http thread: the last call is answered, or nobody waits for it any longer. */
static void look_whether_over(void *argument)
{
    struct api *api = argument;
    bool is_over = api->calls == 0 && http_server_connections(api->server) == 0;

    if (is_over || det_loop_now(api->loop) >= api->close_by) {
        http_server_close(api->server);
        api->server = NULL;
        det_loop_post(api->up->loop, &api->closed_post);
        return;
    }
    if (det_loop_timer_set(
            api->loop, &api->patience, det_loop_now(api->loop) + 10 * DET_MILLISECOND) < 0)
        api->close_by = 0; /* Without memory the next one who posts ends it. */
}

static void begin_close(void *argument)
{
    struct api *api = argument;

    api->close_by = det_loop_now(api->loop) + CLOSE_SPAN;
    api->patience = (struct det_timer){ .run = look_whether_over, .argument = api };
    api_events_end(api);
    http_server_drain(api->server);
    look_whether_over(api);
}

/* On the loop of `up`: the post itself is what is waited for, since it is freed with the API. */
static void end_close(void *argument)
{
    struct api *api = argument;

    atomic_store(&api->is_closed, true);
}

void api_close(struct up *up)
{
    struct api *api = up->api;

    if (!api)
        return;
    if (api->has_started) {
        api->post = (struct det_post){ .run = begin_close, .argument = api };
        api->closed_post = (struct det_post){ .run = end_close, .argument = api };
        det_loop_post(api->loop, &api->post);
        while (!atomic_load(&api->is_closed)) {
            if (det_loop_turn(up->loop, DET_NEVER) < 0)
                break;
        }
        up_errands_over(up);
        det_loop_stop(api->loop);
    }
    if (api->pool)
        det_pool_close(api->pool);
    /* What the runtime and `up` have is given back, and ours. */
    while (api->calls) {
        (void)det_loop_turn(up->loop, 0);
        (void)det_loop_turn(api->loop, det_loop_now(api->loop) + 10 * DET_MILLISECOND);
    }
    api_readers_close(api);
    http_server_close(api->server);
    api->server = NULL;
}

void api_free(struct up *up)
{
    struct api *api = up->api;

    if (!api)
        return;
    up->api = NULL;
    api_events_close(api);
    api_counts_close(api);
    det_loop_close(api->loop);
    det_mutex_close(api->world, api->lock);
    tokens_close(api->tokens);
    DET_DELETE(api->allocator, api);
}

void api_say(struct up *up)
{
    struct api *api = up->api;
    char code[TOKENS_CODE_SIZE + 1];
    const char *address;

    for (size_t i = 0; api && (address = http_listener_address(api->server, i)); i++) {
        if (strchr(address, '/'))
            continue;
        tokens_code_new(api->tokens, code);
        cli_say(
            up->cli, "Console: %s://%s/#code=%s\n",
            up->file.config.http.tls.certificate ? "https" : "http", address, code);
        break;
    }
}
