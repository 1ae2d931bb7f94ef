/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_server.c - the HTTP server of `detent up`: opens, listens, closes.
 *
 *     open ---> serving (a thread with its own loop) ---close---> draining ---> closed
 *                                                         | answers pending calls for at most
 *                                                         | CLOSE_SPAN, then writes the rest
 *                                                         | for at most WRITE_SPAN
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
#include "api/flow_stream.h"
#include "base/assert.h"
#include "base/memory.h"
#include "config/socket_place.h"
#include "daemon/descriptor_budget.h"
#include "daemon/machines.h"
#include "daemon/slots.h"
#include "http/tls_stream.h"
#include "inspect/store_internal.h"
#include "os/os.h"

#define CLOSE_SPAN (5 * DET_SECOND)
#define WRITE_SPAN (250 * DET_MILLISECOND)

/* Listening. */

/* The daemon keeps its sockets open while the API is closed, so that clients wait instead of being
 * refused. */
static int listen_copy(void *server, int listening, struct det_error *reterr)
{
    int descriptor = fcntl(listening, F_DUPFD_CLOEXEC, 0), r;

    if (descriptor < 0)
        return det_error_set(reterr, DET_ERR_IO, "out of file descriptors");
    r = http_listen_given(server, descriptor, NULL, reterr);
    if (r < 0)
        close(descriptor);
    return r;
}

static int listen_all(const struct api *api, struct http_server *server, struct det_error *reterr)
{
    return up_run_sockets_each(api->up, api->http.socket != NULL, listen_copy, server, reterr);
}

/* Opens them once: printed codes stay valid as long as the daemon runs. */
static int open_tokens(struct up *up, struct det_error *reterr)
{
    char folder[DET_PATH_MAX + sizeof SOCKET_FOLDER + 1];
    const struct tokens_options options = {
        .allocator = up_allocator(up),
        .world = up_world(up),
        .folder = folder,
        .problem = up_tokens_problem,
        .changed = up_tokens_changed,
        .user = up,
    };

    if (up_api_place(up)->tokens)
        return 0;
    snprintf(folder, sizeof folder, "%s/" SOCKET_FOLDER, up_folder(up));
    return tokens_open(&options, &up_api_place(up)->tokens, reterr);
}

static int prepare_api(struct up *up, struct det_error *reterr)
{
    int r;

    r = up_run_sockets_bind(up, reterr);
    if (r == 0)
        r = http_tls_try(up_allocator(up), &up_config(up)->http.tls, reterr);
    return r < 0 ? r : open_tokens(up, reterr);
}

/* An address that listens on all interfaces is shown as 127.0.0.1. */
void api_note_address(struct api *api)
{
    const char *scheme = api->http.tls.certificate ? "https" : "http";
    const char *address;

    api->browser_url = NULL;
    for (size_t i = 0; (address = http_listener_address(api->server, i)); i++) {
        const char *port = strrchr(address, ':');

        if (strchr(address, '/') || !port)
            continue;
        if (strncmp(address, "0.0.0.0:", 8) == 0)
            snprintf(
                api->browser_url_text, sizeof api->browser_url_text, "%s://127.0.0.1%s", scheme,
                port);
        else
            snprintf(
                api->browser_url_text, sizeof api->browser_url_text, "%s://%s", scheme, address);
        api->browser_url = api->browser_url_text;
        return;
    }
}

/* Closes the servers when all calls are answered, or the time is over. On the http thread. Clients
 * that neither send nor read are not waited for: anyone could delay the shutdown. */
static void check_closed(void *argument)
{
    struct api *api = argument;
    det_time now = det_loop_now(api->loop);
    bool is_over;
    int r;

    /* It was armed a moment ago, and no other timer was armed since. */
    r = det_loop_timer_set(api->loop, &api->end.grace_timer, now + 10 * DET_MILLISECOND);
    det_assert(r == 0);
    if (api->calls)
        api->end.write_by = now + WRITE_SPAN;
    is_over = !api->calls && (now >= api->end.write_by || !api_connections(api));
    if (!is_over && now < api->end.close_by)
        return;
    det_loop_timer_cancel(api->loop, &api->end.grace_timer);
    api_old_servers_close(api, true);
    http_server_close(api->server);
    api->server = NULL;
    det_loop_post(up_loop(api->up), &api->end.closed_post);
}

/* Arms the timer now: moving an armed timer needs no memory, and closing must not fail. */
static int reserve_timer(struct api *api)
{
    api->end.grace_timer = (struct det_timer){ .run = check_closed, .argument = api };
    return det_loop_timer_set(api->loop, &api->end.grace_timer, DET_NEVER);
}

/* Headers of every answer: browsers must not cache, sniff or frame it. */
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

    up_descriptors_clamp(up_config(api->up), &options.limits);
    r = http_server_open(&options, ret, reterr);
    return r < 0 ? r : listen_all(api, *ret, reterr);
}

int api_copy_settings(struct api *api, struct det_error *reterr)
{
    struct up *up = api->up;
    bool has_store = up_machines(up) || up_slots_store(up) || up_shared_store(up);

    api->http = up_config(up)->http;
    api->source.address = has_store ? up_store_address(up) : NULL;
    api->source.url =
        api->source.address ? store_url_shown(up_config_arena(up), api->source.address) : NULL;
    api->guard.hosts = api->http.hosts;
    api->guard.rate = api->http.rate == CONFIG_UNLIMITED ? 0 : api->http.rate;
    if (has_store && !api->source.url)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    return 0;
}

static int open_parts(struct api *api, struct det_error *reterr)
{
    int r;

    r = open_tokens(api->up, reterr);
    if (r < 0)
        return r;
    api->tokens = up_api_place(api->up)->tokens;
    api->guard.tokens = api->tokens;
    r = guard_init(&api->guard, api->allocator, api->world, GUARD_BUCKETS);
    if (r == 0)
        r = det_mutex_open(api->world, &api->source.lock);
    if (r == 0)
        r = api_lanes_open(api);
    if (r == 0)
        r = det_loop_open(api->world, api->allocator, &api->loop);
    if (r < 0)
        return det_error_set(reterr, r, "cannot open the HTTP API: %s", det_error_text(r));
    r = api_events_open(api, reterr);
    if (r == 0)
        r = api_deltas_open(api, reterr);
    if (r == 0)
        r = api_flows_open(api, reterr);
    if (r == 0)
        r = api_counts_open(api, reterr);
    if (r == 0)
        r = up_run_sockets_bind(api->up, reterr);
    if (r == 0)
        r = api_server_open(api, &api->server, reterr);
    if (r == 0)
        api_note_address(api);
    if (r == 0 && (api_rates_open(api) < 0 || reserve_timer(api) < 0))
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
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

static bool has_new_files(const struct up *up)
{
    struct api_stamp stamps[API_TLS_FILES];

    if (!up_api(up))
        return false;
    read_stamps(&up_api(up)->http.tls, stamps);
    return memcmp(stamps, up_api(up)->stamps, sizeof stamps) != 0;
}

/* On the daemon's loop again. */
static void end_renewal(void *argument)
{
    struct api *api = argument;

    if (api->renewal.result < 0)
        up_note_failure(
            api->up, UP_NAME, "cannot reload the certificate; the old one stays in use: %s",
            api->renewal.error.text);
    api->renewal.is_running = false;
}

static void renew_certificate(void *argument)
{
    struct api *api = argument;

    api->renewal.error = (struct det_error){ 0 };
    api->renewal.result = http_server_renew(api->server, &api->http.tls, &api->renewal.error);
    api->renewal.post = (struct det_post){ .run = end_renewal, .argument = api };
    det_loop_post(up_loop(api->up), &api->renewal.post);
}

static void renew_files(struct up *up)
{
    struct api *api = up_api(up);

    if (!api || !api->server || api->renewal.is_running || !api->http.tls.certificate)
        return;
    api->renewal.is_running = true;
    read_stamps(&api->http.tls, api->stamps);
    api->renewal.post = (struct det_post){ .run = renew_certificate, .argument = api };
    det_loop_post(api->loop, &api->renewal.post);
}

/* Sets the API that receives api_notice(). */
static void set_listener(struct up *up, struct api *api)
{
    struct det_world *world = up_world(up);

    det_mutex_lock(world, up_api_place(up)->listener_lock);
    up_api_place(up)->listener = api;
    det_mutex_unlock(world, up_api_place(up)->listener_lock);
}

static int open_api(struct up *up, struct det_error *reterr)
{
    struct api *api = DET_NEW(up_allocator(up), struct api);
    int r;

    det_assert(!up_api(up));
    if (!api)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    up_api_place(up)->api = api;
    api->up = up;
    api->allocator = up_allocator(up);
    api->world = up_world(up);
    api_calls_open(api);
    r = api_copy_settings(api, reterr);
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

    api->end.close_by = det_loop_now(api->loop) + CLOSE_SPAN;
    api->end.write_by = det_loop_now(api->loop) + WRITE_SPAN;
    api_guesses_end(api);
    api_held_end(api);
    api_events_end(api);
    http_server_drain(api->server);
    for (size_t i = 0; i < API_OLD_SERVERS && api->old_servers[i]; i++)
        http_server_drain(api->old_servers[i]);
    check_closed(api);
}

/* On the daemon's loop. The flag is set by this post, because the post is freed with the API. */
static void end_close(void *argument)
{
    struct api *api = argument;

    atomic_store(&api->end.is_closed, true);
}

static void close_api(struct up *up)
{
    struct api *api = up_api(up);

    if (!api)
        return;
    if (api->has_started) {
        api->end.post = (struct det_post){ .run = begin_close, .argument = api };
        api->end.closed_post = (struct det_post){ .run = end_close, .argument = api };
        det_loop_post(api->loop, &api->end.post);
        while (!atomic_load(&api->end.is_closed)) {
            if (det_loop_turn(up_loop(up), DET_NEVER) < 0)
                break;
        }
        up_requests_close(up);
        det_loop_stop(api->loop);
    }
    api_lanes_close(api); /* Later jobs are dropped. */
    api_held_end(api);
    /* Waits until the runtime, the daemon and the http loop have returned all calls. */
    while (api->calls || api->streams) {
        (void)det_loop_turn(up_loop(up), 0);
        (void)det_loop_turn(api->loop, det_loop_now(api->loop) + 10 * DET_MILLISECOND);
    }
    api_readers_close(api);
    api_old_servers_close(api, true);
    http_server_close(api->server);
    api->server = NULL;
}

static void free_api(struct up *up, struct api *api)
{
    det_assert(api->calls == 0 && api->streams == 0 && !api->server);
    set_listener(up, NULL);
    up_api_place(up)->api = NULL;
    /* Runs pending posts, which use the parts below. */
    det_loop_close(api->loop);
    api_events_close(api);
    api_deltas_close(api);
    api_flows_close(api);
    api_counts_close(api);
    guard_deinit(&api->guard);
    det_mutex_close(api->world, api->source.lock);
    DET_DELETE(api->allocator, api);
}

static void free_front(struct up *up)
{
    if (up_api(up))
        free_api(up, up_api(up));
    tokens_close(up_api_place(up)->tokens);
    up_api_place(up)->tokens = NULL;
}

static const char *first_address(const struct up *up)
{
    const struct api *api = up_api(up);

    return api ? api->browser_url : NULL;
}

/* Makes a link with a one-time code. False: there is no address for browsers. */
static bool make_link(const struct up *up, char *target, size_t size)
{
    const struct api *api = up_api(up);
    char code[TOKENS_CODE_SIZE + 1];

    if (!first_address(up))
        return false;
    tokens_code_new(api->tokens, code);
    snprintf(target, size, "%s/#code=%s", api->browser_url, code);
    return true;
}

static void print_link(struct up *up)
{
    char link[UP_LINK_TEXT];

    if (make_link(up, link, sizeof link))
        cli_print_error(up_cli(up), "Console: %s\n", link);
}

const struct up_front api_front = {
    .prepare = prepare_api,
    .open = open_api,
    .pause = api_pause,
    .resume = api_resume,
    .close = close_api,
    .free = free_front,
    .renew = renew_files,
    .has_new_files = has_new_files,
    .print = print_link,
    .address = first_address,
    .notice = api_notice,
    .notice_flow = api_notice_flow,
    .console_link = make_link,
};
