/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_server.c - the HTTP server of `detent up`: opens, listens, closes.
 *
 *     open ---> serving (a thread with a loop of its own) ---close---> draining ---> closed
 *                                                               | calls on their way are answered,
 *                                                               | at most CLOSE_SPAN, and then
 *                                                               | written, at most WRITE_SPAN
 *
 * A reload pauses and resumes it: api_pause.c. */
#include <detent/driver/loop.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api_internal.h"
#include "api/counts.h"
#include "base/assert.h"
#include "base/memory.h"
#include "daemon/descriptor_budget.h"
#include "daemon/machines.h"
#include "daemon/verbs.h"
#include "http/tls_stream.h"
#include "inspect/store_internal.h"
#include "os/os.h"

#define CLOSE_SPAN (5 * DET_SECOND)
#define WRITE_SPAN (250 * DET_MILLISECOND)
#define PORT       7788
#define PORTS      10

/* Listening. */

/* Whether nobody has said where to listen. */
static bool is_anywhere(const struct up *up)
{
    const struct config_http *config = &up->file.config.http;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets the environment here */
    const char *variable = getenv("DETENT_LISTEN");

    return !up->options->is_serving && !up->sockets.is_given && !config->listen_node &&
           config->listen[0] && !up->options->listen && !(variable && *variable);
}

/* The refusal of the first port names who has it; what to do about it is left out. */
static void note_move(struct up *up, const char *refusal)
{
    const char *end = strstr(refusal, "; stop that one");
    const char *port = strrchr(up->sockets.items[0].text, ':');

    up_note(
        up, UP_NAME, "%.*s: listens on %s", end ? (int)(end - refusal) : (int)strlen(refusal),
        refusal, port ? port + 1 : up->sockets.items[0].text);
}

/* Another project may be there already: one of the next ports then, or any. */
static int bind_anywhere(struct up *up, struct det_error *reterr)
{
    char text[32];
    const char *const listen[] = { text, NULL };
    const struct config_http config = { .listen = listen };
    struct det_error first = { 0 };
    int r = DET_ERR_EXISTS;

    for (unsigned i = 0; r == DET_ERR_EXISTS && i <= PORTS; i++) {
        snprintf(text, sizeof text, "127.0.0.1:%u", i < PORTS ? PORT + i : 0);
        r = serve_sockets_bind(&up->sockets, &config, i == 0 ? &first : reterr);
    }
    if (r == 0 && first.code)
        note_move(up, first.text);
    else if (r < 0 && first.code == r)
        *reterr = first;
    return r;
}

/* Sockets stay open while the API does not listen: who comes then waits for the next one. */
static int listen_copy(struct http_server *server, int listening, struct det_error *reterr)
{
    int descriptor = fcntl(listening, F_DUPFD_CLOEXEC, 0), r;

    if (descriptor < 0)
        return det_error_set(reterr, DET_ERR_IO, "there is no descriptor left");
    r = http_listen_given(server, descriptor, NULL, reterr);
    if (r < 0)
        close(descriptor);
    return r;
}

int api_bind(struct up *up, struct det_error *reterr)
{
    const struct config_http *config = &up->file.config.http;
    int r = 0;

    /* Once: where it listens stays the same, be it nowhere. */
    if (!up->has_sockets && up->sockets.count == 0)
        r = is_anywhere(up) ? bind_anywhere(up, reterr)
                            : serve_sockets_bind(&up->sockets, config, reterr);
    up->has_sockets = true;
    return r < 0 ? r : serve_local_bind(&up->local, config->socket, reterr);
}

static int listen_all(const struct api *api, struct http_server *server, struct det_error *reterr)
{
    const struct up *up = api->up;
    int r = listen_copy(server, up->door.descriptor, reterr);

    for (size_t i = 0; r == 0 && i < up->sockets.count; i++)
        r = listen_copy(server, up->sockets.items[i].descriptor, reterr);
    return r < 0 || !api->http.socket ? r : listen_copy(server, up->local.descriptor, reterr);
}

/* Once: codes that were printed are good for as long as `up` runs. */
static int open_tokens(struct up *up, struct det_error *reterr)
{
    char folder[DET_PATH_MAX + sizeof SOCKET_FOLDER + 1];
    const struct tokens_options options = {
        .allocator = up->output.outer->allocator,
        .world = up->output.outer->world,
        .folder = folder,
        .trouble = up_tokens_trouble,
        .changed = up_tokens_changed,
        .user = up,
    };

    if (up->tokens)
        return 0;
    snprintf(folder, sizeof folder, "%s/" SOCKET_FOLDER, up->project);
    return tokens_open(&options, &up->tokens, reterr);
}

int api_prepare(struct up *up, struct det_error *reterr)
{
    int r;

    r = api_bind(up, reterr);
    if (r == 0)
        r = http_tls_try(up->output.outer->allocator, &up->file.config.http.tls, reterr);
    return r < 0 ? r : open_tokens(up, reterr);
}

/* One that listens everywhere is reached here, too. */
void api_note_address(struct api *api)
{
    const char *scheme = api->http.tls.certificate ? "https" : "http";
    const char *address;

    api->shown = NULL;
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

/* On the http thread: the last call is answered, or nobody waits for it any longer. Who does not
 * send its request or read its answer is not waited for: anybody could hold it up. */
static void look_whether_over(void *argument)
{
    struct api *api = argument;
    det_time now = det_loop_now(api->loop);
    bool is_over;
    int r;

    /* It was set a moment ago, and nobody has set another one since. */
    r = det_loop_timer_set(api->loop, &api->patience, now + 10 * DET_MILLISECOND);
    det_assert(r == 0);
    if (api->calls)
        api->write_by = now + WRITE_SPAN;
    is_over = !api->calls && (now >= api->write_by || !api_connections(api));
    if (!is_over && now < api->close_by)
        return;
    det_loop_timer_cancel(api->loop, &api->patience);
    api_old_servers_close(api, true);
    http_server_close(api->server);
    api->server = NULL;
    det_loop_post(api->up->loop, &api->closed_post);
}

/* One that is set can be set again without memory: closing must not fail. */
static int reserve_timer(struct api *api)
{
    api->patience = (struct det_timer){ .run = look_whether_over, .argument = api };
    return det_loop_timer_set(api->loop, &api->patience, DET_NEVER);
}

/* What every answer says to browsers: nothing of it is kept, guessed or framed. */
static const struct http_header headers[] = {
    { "cache-control", "no-store" },
    { "x-content-type-options", "nosniff" },
    { "content-security-policy", "default-src 'none'; frame-ancestors 'none'" },
    { "cross-origin-resource-policy", "same-origin" },
    { "referrer-policy", "no-referrer" },
};

int api_server_open(struct api *api, struct http_server **ret, struct det_error *reterr)
{
    const struct config_http *config = &api->http;
    struct http_options options = {
        .allocator = api->allocator,
        .loop = api->loop,
        .limits = config->limits,
        .tls = config->tls.certificate ? &config->tls : NULL,
        .headers = headers,
        .header_count = sizeof headers / sizeof *headers,
        .handle = api_handle,
        .admit = api_admit,
        .done = api_count_request,
        .context = api,
    };
    int r;

    up_descriptors_clamp(&api->up->file.config, &options.limits);
    r = http_server_open(&options, ret, reterr);
    return r < 0 ? r : listen_all(api, *ret, reterr);
}

int api_learn(struct api *api, struct det_error *reterr)
{
    struct up *up = api->up;
    bool has_store = up->machines || up->store || up->shared;

    api->http = up->file.config.http;
    api->address = has_store ? up_store_address(up) : NULL;
    api->url = api->address ? store_url_shown(&up->file.arena, api->address) : NULL;
    api->guard.hosts = api->http.hosts;
    api->guard.rate = api->http.rate == CONFIG_UNLIMITED ? 0 : api->http.rate;
    if (has_store && !api->url)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    return 0;
}

static int open_parts(struct api *api, struct det_error *reterr)
{
    int r;

    r = open_tokens(api->up, reterr);
    if (r < 0)
        return r;
    api->tokens = api->up->tokens;
    api->guard.tokens = api->tokens;
    r = guard_init(&api->guard, api->allocator, api->world, GUARD_BUCKETS);
    if (r == 0)
        r = det_mutex_open(api->world, &api->lock);
    if (r == 0)
        r = api_lanes_open(api);
    if (r == 0)
        r = det_loop_open(api->world, api->allocator, &api->loop);
    if (r < 0)
        return det_error_set(reterr, r, "the HTTP API cannot be opened: %s", det_error_text(r));
    r = api_events_open(api, reterr);
    if (r == 0)
        r = api_deltas_open(api, reterr);
    if (r == 0)
        r = api_counts_open(api, reterr);
    if (r == 0)
        r = api_bind(api->up, reterr);
    if (r == 0)
        r = api_server_open(api, &api->server, reterr);
    if (r == 0)
        api_note_address(api);
    if (r == 0 && (api_rates_open(api) < 0 || reserve_timer(api) < 0))
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    if (r == 0)
        r = det_loop_start(api->loop, "http");
    api->has_started = r == 0;
    return r;
}

static void read_stamps(const struct http_tls *tls, struct api_stamp stamps[API_TLS_FILES])
{
    const char *const paths[API_TLS_FILES] = { tls->certificate, tls->key, tls->clients };
    struct stat status;

    memset(stamps, 0, sizeof *stamps * API_TLS_FILES);
    for (size_t i = 0; i < API_TLS_FILES; i++) {
        if (paths[i] && stat(paths[i], &status) == 0)
            stamps[i] = (struct api_stamp){
                .device = status.st_dev,
                .number = status.st_ino,
                .size = status.st_size,
                .changed = status.st_mtim.tv_sec * DET_SECOND + status.st_mtim.tv_nsec,
            };
    }
}

void api_take_stamps(struct api *api)
{
    read_stamps(&api->http.tls, api->stamps);
}

bool api_has_new_files(const struct up *up)
{
    struct api_stamp stamps[API_TLS_FILES];

    if (!up->api)
        return false;
    read_stamps(&up->api->http.tls, stamps);
    return memcmp(stamps, up->api->stamps, sizeof stamps) != 0;
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
    api->renew_result = http_server_renew(api->server, &api->http.tls, &api->renew_error);
    api->renew_post = (struct det_post){ .run = end_renew, .argument = api };
    det_loop_post(api->up->loop, &api->renew_post);
}

void api_renew(struct up *up)
{
    struct api *api = up->api;

    if (!api || !api->server || api->is_renewing || !api->http.tls.certificate)
        return;
    api->is_renewing = true;
    read_stamps(&api->http.tls, api->stamps);
    api->renew_post = (struct det_post){ .run = renew, .argument = api };
    det_loop_post(api->loop, &api->renew_post);
}

/* Who is told of commits from now on; nobody tells the one before any more. */
static void set_listener(struct up *up, struct api *api)
{
    struct det_world *world = up->output.outer->world;

    det_mutex_lock(world, up->listener_lock);
    up->listener = api;
    det_mutex_unlock(world, up->listener_lock);
}

int api_open(struct up *up, struct det_error *reterr)
{
    struct api *api = DET_NEW(up->output.outer->allocator, struct api);
    int r;

    if (!api)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    up->api = api;
    api->up = up;
    api->allocator = up->output.outer->allocator;
    api->world = up->output.outer->world;
    api_calls_open(api);
    r = api_learn(api, reterr);
    api_take_stamps(api);
    if (r == 0)
        r = open_parts(api, reterr);
    if (r == 0)
        set_listener(up, api);
    return r;
}

static void begin_close(void *argument)
{
    struct api *api = argument;

    api->close_by = det_loop_now(api->loop) + CLOSE_SPAN;
    api->write_by = det_loop_now(api->loop) + WRITE_SPAN;
    api_guesses_end(api);
    api_held_end(api);
    api_events_end(api);
    http_server_drain(api->server);
    for (size_t i = 0; i < API_OLD_SERVERS && api->old_servers[i]; i++)
        http_server_drain(api->old_servers[i]);
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
    api_lanes_close(api); /* Who wants one now is dropped. */
    api_held_end(api);
    /* What the runtime and `up` have is given back, and ours. */
    while (api->calls || api->streams) {
        (void)det_loop_turn(up->loop, 0);
        (void)det_loop_turn(api->loop, det_loop_now(api->loop) + 10 * DET_MILLISECOND);
    }
    api_readers_close(api);
    api_old_servers_close(api, true);
    http_server_close(api->server);
    api->server = NULL;
}

void api_free(struct up *up)
{
    struct api *api = up->api;

    if (!api)
        return;
    set_listener(up, NULL);
    up->api = NULL;
    /* What is posted still is about the parts that follow. */
    det_loop_close(api->loop);
    api_events_close(api);
    api_deltas_close(api);
    api_counts_close(api);
    guard_deinit(&api->guard);
    det_mutex_close(api->world, api->lock);
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
    char link[UP_LINK_TEXT];

    if (make_link(up, link, sizeof link))
        cli_say(up->cli, "Console: %s\n", link);
}

const struct up_front api_front = {
    .prepare = api_prepare,
    .open = api_open,
    .pause = api_pause,
    .resume = api_resume,
    .close = api_close,
    .free = api_free,
    .renew = api_renew,
    .has_new_files = api_has_new_files,
    .say = api_say,
    .address = api_address,
    .notice = api_notice,
    .console_link = make_link,
};
