/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_peers.c - rows of 256 bytes appended to streams of Redis and NATS JetStream.
 *
 * Redis: XADD by redis-benchmark over a Unix socket, which measures from its first request to its
 * last answer. NATS: a client in Go, peers/nats. Both keep their files in the folder of this
 * run. */
#include "log_peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_limit.h"
#include "server.h"

#define PATH_MAX_TEXT (BENCH_PATH_MAX + 64)

/* The second line of its report begins with the command and the requests per second:
 * "XADD rows * data xxx","181818.19","0.512",... */
static int read_redis(struct bench_lap *lap, const char *text)
{
    const char *line = strchr(text, '\n');
    const char *field = line ? strstr(line, "\",\"") : NULL;
    double per_second = field ? strtod(field + 3, NULL) : 0;

    if (per_second <= 0)
        return bench_lap_fail(lap, DET_ERR_MALFORMED, "the report of redis-benchmark is not valid");
    lap->nanoseconds = 1e9 / per_second * (double)lap->operations;
    return 0;
}

static int load_redis(struct bench_lap *lap, const struct log_redis *redis, const char *socket)
{
    char count[24], data[LOG_ROW_SIZE + 1];
    const char *words[] = { "redis-benchmark",
                            "-s",
                            socket,
                            "-c",
                            redis->clients,
                            "-P",
                            redis->pipeline,
                            "-n",
                            count,
                            "--csv",
                            "XADD",
                            "rows",
                            "*",
                            "data",
                            data,
                            NULL };
    struct det_buffer output;
    int r;

    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    memset(data, 'x', LOG_ROW_SIZE);
    data[LOG_ROW_SIZE] = '\0';
    det_buffer_init(&output, NULL);
    r = bench_child_run(words, &output, NULL);
    if (r < 0)
        r = bench_lap_fail(lap, r, "redis-benchmark failed");
    else
        r = read_redis(lap, det_buffer_text(&output));
    det_buffer_deinit(&output);
    return r;
}

static int fail_to_start(struct bench_lap *lap, int code, const char *name)
{
    if (code == DET_ERR_UNSUPPORTED)
        return bench_lap_fail(lap, code, "not installed");
    return bench_lap_fail(lap, code, "%s does not start", name);
}

int log_peer_redis(struct bench_lap *lap)
{
    const struct log_redis *redis = lap->argument;
    struct bench_server server = { 0 };
    char socket[PATH_MAX_TEXT];
    /* Its log is not rewritten while it is measured. */
    const char *words[] = { "redis-server",
                            "--port",
                            "0",
                            "--unixsocket",
                            socket,
                            "--dir",
                            server.folder,
                            "--save",
                            "",
                            "--appendonly",
                            "yes",
                            "--appendfsync",
                            redis->sync,
                            "--auto-aof-rewrite-percentage",
                            "0",
                            NULL };
    int r;

    r = bench_server_folder(&server, "redis");
    if (r < 0)
        return bench_lap_fail(lap, r, "no folder for its files");
    (void)snprintf(socket, sizeof socket, "%s/socket", server.folder);
    r = bench_server_start(&server, words, 0, socket);
    r = r < 0 ? fail_to_start(lap, r, "redis-server") : load_redis(lap, redis, socket);
    bench_server_stop(&server);
    return r;
}

static int write_nats_config(const struct bench_server *server, bool is_synced, char *path)
{
    FILE *file;
    bool is_written;

    (void)snprintf(path, PATH_MAX_TEXT, "%s/nats.conf", server->folder);
    file = fopen(path, "we");
    if (!file)
        return DET_ERR_IO;
    is_written = fprintf(
                     file, "jetstream { store_dir: \"%s\"\n%s}\n", server->folder,
                     is_synced ? "sync_interval: always\n" : "") > 0;
    return fclose(file) == 0 && is_written ? 0 : DET_ERR_IO;
}

static int load_nats(struct bench_lap *lap, unsigned port)
{
    const struct log_nats *nats = lap->argument;
    char url[64], count[24];
    const char *words[] = { BENCH_NATS, url, count, nats->in_flight, NULL };

    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%u", port);
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, words);
}

int log_peer_nats(struct bench_lap *lap)
{
    const struct log_nats *nats = lap->argument;
    struct bench_server server = { 0 };
    unsigned port = bench_server_port();
    char config[PATH_MAX_TEXT], port_text[16];
    const char *words[] = { "nats-server", "-a", "127.0.0.1", "-p", port_text, "-c", config, NULL };
    int r;

    r = bench_server_folder(&server, "nats");
    if (r == 0)
        r = write_nats_config(&server, nats->is_synced, config);
    if (r < 0)
        return bench_lap_fail(lap, r, "no folder for its files");
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    r = bench_server_start(&server, words, port, NULL);
    if (r == DET_ERR_CLOSED && nats->is_synced)
        r = bench_lap_fail(
            lap, DET_ERR_UNSUPPORTED, "this nats-server does not sync before it answers");
    else if (r < 0)
        r = fail_to_start(lap, r, "nats-server");
    else
        r = load_nats(lap, port);
    bench_server_stop(&server);
    return r;
}
