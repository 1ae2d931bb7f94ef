/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http.c - a trivial answer over HTTP, beside a bare handler of libmicrohttpd.
 *
 * Each server has one thread with epoll in this process, and is asked by wrk with 64 connections of
 * one thread; so a machine of two cores is full. The bodies are the same, and both have a date. */
#ifdef BENCH_MICROHTTPD
#include <microhttpd.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "console/http.h"

#define REQUESTS   50000 /* about as many as come in a second, which is wrk's shortest time */
#define MICROHTTPD "libmicrohttpd, a bare handler"

static const char body[] = "{\"state\":\"charging\",\"sequence\":42}\n";

/* "  83042 requests in 1.00s, 12.35MB read" */
static int read_report(struct bench_lap *lap, const char *text)
{
    const char *at = strstr(text, " requests in ");
    unsigned long long requests;
    double seconds;

    if (!at || strstr(text, "Non-2xx") || strstr(text, "Socket errors"))
        return bench_lap_fail(lap, DET_ERR_IO, "wrk met errors");
    seconds = strtod(at + strlen(" requests in "), NULL);
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    requests = strtoull(at, NULL, 10);
    if (requests == 0 || seconds <= 0)
        return bench_lap_fail(lap, DET_ERR_MALFORMED, "wrk's report is not understood");
    lap->operations = requests;
    lap->nanoseconds = seconds * 1e9;
    return 0;
}

static int load(struct bench_lap *lap, unsigned port)
{
    char url[64], time[24];
    const char *words[] = { "wrk", "-t1", "-c64", "-d", time, url, NULL };
    struct det_buffer output;
    int r;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/instances/o-1", port);
    (void)snprintf(
        time, sizeof time, "%llus", (unsigned long long)(lap->operations / REQUESTS) + 1);
    det_buffer_init(&output, NULL);
    r = bench_child_run(words, &output, NULL);
    if (r == DET_ERR_NOT_FOUND)
        r = bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "wrk is not installed");
    else if (r < 0)
        r = bench_lap_fail(lap, r, "wrk failed");
    else
        r = read_report(lap, det_buffer_text(&output));
    det_buffer_deinit(&output);
    return r;
}

#ifdef BENCH_MICROHTTPD
static enum MHD_Result answer_bare(
    void *context, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
    struct MHD_Response *response;
    enum MHD_Result result;

    (void)context;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    (void)size;
    /* The first call is for the headers alone. */
    if (!*state) {
        *state = connection;
        return MHD_YES;
    }
    response = MHD_create_response_from_buffer(
        sizeof body - 1, (void *)(uintptr_t)body, MHD_RESPMEM_PERSISTENT);
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static int run_microhttpd(struct bench_lap *lap)
{
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer_bare, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *facts;
    int r;

    if (!daemon)
        return bench_lap_fail(lap, DET_ERR_IO, "it does not start");
    facts = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    r = load(lap, facts->port);
    MHD_stop_daemon(daemon);
    return r;
}
#else
static int run_microhttpd(struct bench_lap *lap)
{
    return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
}
#endif

static void answer_ours(void *context, struct http_exchange *exchange)
{
    (void)context;
    http_answer(
        exchange, &(struct http_answer){ .status = 200,
                                         .type = "application/json",
                                         .body = body,
                                         .body_size = sizeof body - 1 });
}

static int run_ours(struct bench_lap *lap)
{
    struct http_server *server = NULL;
    struct det_error error = { .text = "the loop failed" };
    DET_SCOPED(loop) loop = NULL;
    int r = det_loop_open(NULL, NULL, &loop);

    if (r == 0)
        r = http_server_open(
            &(struct http_options){ .loop = loop, .handle = answer_ours }, &server, &error);
    if (r == 0)
        r = http_listen(server, "127.0.0.1:0", NULL, &error);
    if (r == 0)
        r = det_loop_start(loop, "http");
    if (r < 0) {
        r = bench_lap_fail(lap, r, "%.150s", error.text);
    } else {
        r = load(
            lap, (unsigned)strtoul(strchr(http_listener_address(server, 0), ':') + 1, NULL, 10));
        det_loop_stop(loop);
    }
    http_server_close(server);
    return r;
}

static const struct bench_case cases[] = {
    { MICROHTTPD, BENCH_LIMIT, run_microhttpd, NULL, REQUESTS, .has_no_allocations = true },
    { "detent, a bare handler", BENCH_OURS, run_ours, NULL, REQUESTS, .has_no_allocations = true,
      .goals = { { BENCH_RATIO_MAX, 1.0, MICROHTTPD } } },
};

extern const struct bench bench_http;
const struct bench bench_http = {
    .title = "http: a trivial answer to 64 connections",
    .operation = "request",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
