/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres.c - durable sends to instances in PostgreSQL, beside the same rows by one prepared
 * statement that takes them as arrays.
 *
 * The server is the bench's own cluster, with fsync, reached by a socket. The limit writes in
 * batches with as many rows as ours has senders, on one connection. Ours has submitted sends,
 * executed by two threads as by default, so that one half is computed while the other is written.
 * In the comparison with DBOS each has its fastest number of concurrent operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"
#include "lib/postgres.h"
#include "raw_postgres.h"

#define INSTANCES 1024
#define FIRST     64

static struct det_test_postgres *server;
static struct book book;
static struct raw_postgres raw;

static int run_raw(struct bench_lap *lap)
{
    const unsigned *batch = lap->argument;
    int r = 0;

    lap->operations = (lap->operations + *batch - 1) / *batch * *batch;
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i += *batch)
        r = raw_postgres_write(&raw, *batch);
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", PQerrorMessage(raw.connection)) : 0;
}

static int run_ours(struct bench_lap *lap)
{
    const unsigned *senders = lap->argument;
    uint64_t seed = 7;
    int r;

    bench_lap_begin(lap);
    if (*senders == 1)
        r = book_single(&book, lap->operations, &seed);
    else
        r = book_submit(&book, *senders, lap->operations);
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

/* A peer program, and the number of its concurrent operations. */
struct peer {
    const char *script, *at_once;
};

/* Runs a peer program on the same server: a workflow, or a job. */
static int run_peer(struct bench_lap *lap)
{
    const struct peer *peer = lap->argument;
    char url[BENCH_PATH_MAX], count[24];
    const char *words[] = { "node", "--no-deprecation", peer->script, url,
                            count,  peer->at_once,      NULL };

    (void)snprintf(
        url, sizeof url, "postgresql://postgres@localhost/postgres?host=%s",
        det_test_postgres_host(server));
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, words);
}

/* Opens a store in its own schema, with all instances; free() the URL. */
static int make_store(char **ret_url, struct det_error *reterr)
{
    char *url = det_test_postgres_url(server, NULL);
    int r = book_open(
        &book, url, &(struct det_store_options){ 0 }, &(struct det_runtime_options){ 0 }, INSTANCES,
        reterr);

    if (r == 0)
        r = book_fill(&book);
    if (r == 0)
        r = book_submit(&book, FIRST, FIRST);
    *ret_url = url;
    return r;
}

static int open_raw(const char *url, char *note)
{
    const char *found = strstr(url, "schema=");
    char schema[64] = "detent";

    if (found)
        (void)snprintf(schema, sizeof schema, "%.*s", (int)strcspn(found + 7, "&"), found + 7);
    return raw_postgres_open(&raw, det_test_postgres_conninfo(server), schema, note);
}

static void close_postgres(void)
{
    raw_postgres_close(&raw);
    book_close(&book);
    if (server)
        det_test_postgres_close(server);
    server = NULL;
}

static int open_postgres(char *note)
{
    struct det_error error = { .code = 0 };
    char *url = NULL;
    int r;

    if (!det_test_postgres_is_installed()) {
        (void)snprintf(note, BENCH_NOTE_MAX, "PostgreSQL is not installed");
        return DET_ERR_UNSUPPORTED;
    }
    server = det_test_postgres_open();
    r = make_store(&url, &error);
    book_close(&book);
    if (r == 0)
        r = open_raw(url, note);
    free(url);
    url = NULL;
    if (r == 0)
        r = make_store(&url, &error);
    free(url);
    if (r < 0) {
        if (error.code)
            (void)snprintf(note, BENCH_NOTE_MAX, "%.150s", error.text);
        close_postgres();
    }
    return r;
}

static const unsigned one = 1, some = 8, many = 32, most = 256;
static const struct peer dbos = { BENCH_PEERS "/dbos.cjs", "32,128,256" };
static const struct peer pg_boss = { BENCH_PEERS "/pg_boss.cjs", "32" };

#define RAW_ONE  "hand-written arrays, 1 in a statement"
#define RAW_SOME "hand-written arrays, 8 in a statement"
#define RAW_MANY "hand-written arrays, 32 in a statement"
#define COMMON   .has_no_allocations = true
#define DBOS     "DBOS transact, a workflow, best of 32, 128, 256 at once"
#define GOAL     .goals = { { BENCH_RATIO_MAX, 1.25, NULL } }

static const struct bench_case cases[] = {
    { RAW_ONE, BENCH_LIMIT, run_raw, &one, 300, COMMON },
    { "1 sender", BENCH_OURS, run_ours, &one, 300, COMMON, GOAL },
    { RAW_SOME, BENCH_LIMIT, run_raw, &some, 2000, COMMON, .against = "" },
    { "8 senders", BENCH_OURS, run_ours, &some, 2000, COMMON, .against = RAW_SOME, GOAL },
    { RAW_MANY, BENCH_LIMIT, run_raw, &many, 6400, COMMON, .against = "" },
    { "32 senders", BENCH_OURS, run_ours, &many, 6400, COMMON, .against = RAW_MANY, GOAL },
    { "256 senders, beside DBOS at its best", BENCH_OURS, run_ours, &most, 12800, COMMON,
      .against = RAW_MANY, .goals = { { BENCH_AHEAD_OF, 100, DBOS } } },
    { DBOS, BENCH_PEER, run_peer, &dbos, 600, COMMON, .against = RAW_MANY },
    { "pg-boss, a job, 32 at once", BENCH_PEER, run_peer, &pg_boss, 400, COMMON,
      .against = RAW_MANY },
};

extern const struct bench bench_postgres;
const struct bench bench_postgres = {
    .title = "durable sends to PostgreSQL, each on the disk when it is answered",
    .operation = "send",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_postgres,
    .close = close_postgres,
};
