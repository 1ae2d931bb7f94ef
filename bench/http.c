/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http.c - a trivial answer over HTTP, beside a bare handler of libmicrohttpd.
 *
 * Each server has one thread with epoll in this process, and wrk sends requests by 64 connections
 * of one thread; so a machine of two cores is full. The bodies are the same, and both have a
 * date. */
#include <stdio.h>

#include "http/http.h"
#include "wrk.h"

static void answer_ours(void *context, struct http_exchange *exchange)
{
    (void)context;
    http_answer(
        exchange, &(struct http_answer){ .status = 200,
                                         .type = "application/json",
                                         .body = wrk_body,
                                         .body_size = sizeof wrk_body - 1 });
}

static int run_ours(struct bench_lap *lap)
{
    struct http_server *server = NULL;
    struct det_error error = { .text = "the loop failed" };
    DET_SCOPED(loop) loop = NULL;
    char url[128];
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
        (void)snprintf(
            url, sizeof url, "http://%s/v1/instances/o-1", http_listener_address(server, 0));
        r = wrk_load(lap, url, NULL);
        det_loop_stop(loop);
    }
    http_server_close(server);
    return r;
}

static const struct bench_case cases[] = {
    { WRK_BARE, BENCH_LIMIT, wrk_bare, NULL, WRK_REQUESTS, .has_no_allocations = true },
    { "detent, a bare handler", BENCH_OURS, run_ours, NULL, WRK_REQUESTS,
      .has_no_allocations = true, .goals = { { BENCH_RATIO_MAX, 1.0, WRK_BARE } } },
};

extern const struct bench bench_http;
const struct bench bench_http = {
    .title = "a trivial answer to 64 connections",
    .operation = "request",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
