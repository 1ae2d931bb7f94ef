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
#include "cli/up_verbs.h"
#include "console/assets.h"
#include "os/os.h"

#define POOL_THREADS 4
#define CLOSE_SPAN   (5 * DET_SECOND)
#define PORT         7788
#define PORTS        10
#define LINK_TEXT    256

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
    if (unknown)
        api_fail(call, DET_ERR_INVALID, "the query has no '%.60s' here", unknown);
    else if (call->key && !api_takes_key(route))
        api_fail(
            call, DET_ERR_INVALID,
            "no Idempotency-Key is kept for this, and so it takes none: look first what happened");
    if (call->status)
        api_finish(call);
    else
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

static void handle(void *context, struct http_exchange *exchange)
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

static unsigned admit(void *context, const struct http_request *request, struct http_answer *ret)
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
        /* handle() comes at once, and keeps the answer back. */
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

static void count_request(void *context, const struct http_done *done)
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

/* One that listens everywhere is reached here, too. */
static void note_address(struct api *api)
{
    const char *scheme = api->up->file.config.http.tls.certificate ? "https" : "http";
    const char *address;

    for (size_t i = 0; (address = http_listener_address(api->server, i)); i++) {
        const char *port = strrchr(address, ':');

        if (strchr(address, '/') || !port)
            continue;
        if (strncmp(address, "0.0.0.0:", 8) == 0)
            snprintf(api->shown_text, sizeof api->shown_text, "%s://127.0.0.1%s", scheme, port);
        else
            snprintf(api->shown_text, sizeof api->shown_text, "%s://%s", scheme, address);
        api->shown = api->shown_text;
        return;
    }
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
    if (r == 0)
        note_address(api);
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
    while (api->calls || api->streams) {
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
    /* What is posted still is about the parts that follow. */
    det_loop_close(api->loop);
    api_events_close(api);
    api_counts_close(api);
    det_mutex_close(api->world, api->lock);
    tokens_close(api->tokens);
    DET_DELETE(api->allocator, api);
}

const char *api_address(const struct up *up)
{
    const struct api *api = up->api;

    return api ? api->shown : NULL;
}

/* A link with a code for one browser; false: there is nothing that it could lead to. */
static bool make_link(const struct up *up, char *target, size_t size)
{
    const struct api *api = up->api;
    char code[TOKENS_CODE_SIZE + 1];

    if (!api_address(up))
        return false;
    tokens_code_new(api->tokens, code);
    snprintf(target, size, "%s/#code=%s", api->shown, code);
    return true;
}

void api_say(struct up *up)
{
    char link[LINK_TEXT];

    if (make_link(up, link, sizeof link))
        cli_say(up->cli, "Console: %s\n", link);
}

void up_run_console(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument none[] = { { NULL, UP_TEXT } };
    char link[LINK_TEXT];

    if (!up_arguments_check(request, call, none))
        return;
    if (make_link(context, link, sizeof link))
        socket_call_answer(call, json_pack("{s:s, s:s}", "kind", "console", "url", link));
    else
        socket_call_fail(
            call, DET_ERR_NOT_FOUND,
            "it listens nowhere for browsers: see http.listen of " CONFIG_FILE_NAME);
}
