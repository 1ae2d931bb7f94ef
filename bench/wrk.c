/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* wrk.c - measures a server by wrk; and the limit, a bare handler of libmicrohttpd. */
#include "wrk.h"

#ifdef BENCH_MICROHTTPD
#include <microhttpd.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

const char wrk_body[] = "{\"state\":\"charging\",\"sequence\":42}\n";

/* "  83042 requests in 1.00s, 12.35MB read" */
static int read_report(struct bench_lap *lap, const char *text)
{
    const char *at = strstr(text, " requests in ");
    unsigned long long requests;
    double seconds;

    if (!at || strstr(text, "Non-2xx") || strstr(text, "Socket errors"))
        return bench_lap_fail(lap, DET_ERR_IO, "wrk reported errors");
    seconds = strtod(at + strlen(" requests in "), NULL);
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    requests = strtoull(at, NULL, 10);
    if (requests == 0 || seconds <= 0)
        return bench_lap_fail(lap, DET_ERR_MALFORMED, "wrk's report is not valid");
    lap->operations = requests;
    lap->nanoseconds = seconds * 1e9;
    return 0;
}

int wrk_load(struct bench_lap *lap, const char *url, const char *script)
{
    char time[24];
    const char *words[] = { "wrk",  "-t1", "-c64", "-d", time, url, script ? "-s" : NULL,
                            script, NULL };
    struct det_buffer output;
    int r;

    (void)snprintf(
        time, sizeof time, "%llus", (unsigned long long)(lap->operations / WRK_REQUESTS) + 1);
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
    /* The first call has only the headers. */
    if (!*state) {
        *state = connection;
        return MHD_YES;
    }
    response = MHD_create_response_from_buffer(
        sizeof wrk_body - 1, (void *)(uintptr_t)wrk_body, MHD_RESPMEM_PERSISTENT);
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

int wrk_bare(struct bench_lap *lap)
{
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer_bare, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *facts;
    char url[64];
    int r;

    if (!daemon)
        return bench_lap_fail(lap, DET_ERR_IO, "it does not start");
    facts = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/instances/o-1", facts->port);
    r = wrk_load(lap, url, NULL);
    MHD_stop_daemon(daemon);
    return r;
}
#else
int wrk_bare(struct bench_lap *lap)
{
    return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
}
#endif
