/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite.c - durable sends to instances in a SQLite file, beside the same rows in hand-written SQL.
 *
 * The limit writes the rows that ours writes, in batches with as many rows as ours has senders.
 * Ours finds the instance, reads the definition, changes the data, encodes, hashes, and notifies
 * each sender once its event is on the disk.
 *
 * The senders are that many concurrent submitted sends; 64 threads that wait, each for its own
 * send, are shown because many programs work like this. */
#include <stdio.h>
#include <string.h>

#include "book.h"
#include "raw_sqlite.h"

#define INSTANCES 1024
#define SENDERS   64
#define MANY      20000
#define SINGLE    400

static struct book book;
static struct raw_sqlite raw;
static uint64_t seed = 5;

static int run_raw(struct bench_lap *lap)
{
    const unsigned *batch = lap->argument;
    int r = 0;

    lap->operations = (lap->operations + *batch - 1) / *batch * *batch;
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i += *batch)
        r = raw_sqlite_write(&raw, *batch);
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", sqlite3_errmsg(raw.database)) : 0;
}

static int end_lap(struct bench_lap *lap, int r)
{
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

static int run_single(struct bench_lap *lap)
{
    bench_lap_begin(lap);
    return end_lap(lap, book_single(&book, lap->operations, &seed));
}

static int run_submitted(struct bench_lap *lap)
{
    const unsigned *senders = lap->argument;

    bench_lap_begin(lap);
    return end_lap(lap, book_submit(&book, *senders, lap->operations));
}

static int run_blocked(struct bench_lap *lap)
{
    const unsigned *senders = lap->argument;

    bench_lap_begin(lap);
    return end_lap(lap, book_block(&book, *senders, lap->operations));
}

/* Opens a store with all instances, each with an event, in its own file. */
static int make_store(const char *name, char *path, struct det_error *reterr)
{
    char url[BENCH_PATH_MAX + 16];
    int r = bench_file_write(name, "", 0, path);

    if (r < 0)
        return r;
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    r = book_open(
        &book, url, &(struct det_store_options){ 0 }, &(struct det_runtime_options){ 0 }, INSTANCES,
        reterr);
    if (r == 0)
        r = book_fill(&book);
    return r < 0 ? r : book_submit(&book, SENDERS, SENDERS);
}

static void close_sqlite(void)
{
    raw_sqlite_close(&raw);
    book_close(&book);
}

static int open_sqlite(char *note)
{
    struct det_error error = { .code = 0 };
    char path[BENCH_PATH_MAX];
    int r = make_store("raw.db", path, &error);

    book_close(&book);
    if (r == 0)
        r = raw_sqlite_open(&raw, path, note);
    if (r == 0)
        r = make_store("ours.db", path, &error);
    if (r < 0) {
        if (error.code)
            (void)snprintf(note, BENCH_NOTE_MAX, "%.150s", error.text);
        close_sqlite();
    }
    return r;
}

static const unsigned one = 1, many = SENDERS;

#define RAW_SINGLE  "hand-written SQL, one at a time"
#define RAW_MANY    "hand-written SQL, 64 in a transaction"
#define OURS_SINGLE "one sender"

static const struct bench_case cases[] = {
    { RAW_SINGLE, BENCH_LIMIT, run_raw, &one, SINGLE, .against = NULL },
    { OURS_SINGLE, BENCH_OURS, run_single, NULL, SINGLE,
      .goals = { { BENCH_RATIO_MAX, 1 / 0.85, NULL } } },
    { RAW_MANY, BENCH_LIMIT, run_raw, &many, MANY, .against = "" },
    { "64 senders", BENCH_OURS, run_submitted, &many, MANY, .against = RAW_MANY,
      .goals = { { BENCH_RATIO_MAX, 1.25, NULL }, { BENCH_AHEAD_OF, 10, OURS_SINGLE } } },
    { "64 threads that wait", BENCH_OURS, run_blocked, &many, MANY, .against = RAW_MANY },
};

extern const struct bench bench_sqlite;
const struct bench bench_sqlite = {
    .title = "durable sends to a SQLite file, each on the disk when it is answered",
    .operation = "send",
    .has_processor = true,
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_sqlite,
    .close = close_sqlite,
};
