/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effects.c - effects in memory, in a SQLite file and on PostgreSQL: 64 senders submit events whose
 * transitions each request an effect, a C function that returns at once; the pool of the runtime
 * runs it.
 *
 * One operation is a send, the run of its effect, and the commit that records its end; with an
 * answer, that commit has the event of the answer too. The lap ends when the last of these commits
 * is done. It fails unless each effect ran exactly once: the runtime recorded as many ends as
 * sends, and the function was called equally often. */
#include <stdio.h>
#include <stdlib.h>

#include "book.h"
#include "lib/postgres.h"

/* Enough instances that none has DET_EFFECTS_PENDING effects, even if all sends precede the first
 * effect. */
#define INSTANCES 2048
#define SENDERS   64
#define MANY      20000
#define FEWER     10000 /* for stores on a server */

enum place { IN_MEMORY, ON_SQLITE, ON_POSTGRES, PLACES };

struct setup {
    enum place place;
    bool has_answer;
};

static struct det_test_postgres *server;
static struct book books[PLACES];

static int check_once(
    struct bench_lap *lap, struct book *book, uint64_t runs_before,
    const struct det_runtime_counts *before)
{
    struct det_runtime_counts after;
    uint64_t runs = atomic_load(&book->effect_runs) - runs_before, done;

    det_runtime_counts(book->runtime, &after);
    done = after.effects_done - before->effects_done;
    if (runs == lap->operations && done == lap->operations)
        return 0;
    return bench_lap_fail(
        lap, DET_ERR_CORRUPT, "%llu effects were requested, %llu runs began, %llu ended well",
        (unsigned long long)lap->operations, (unsigned long long)runs, (unsigned long long)done);
}

static int run_effects(struct bench_lap *lap)
{
    const struct setup *setup = lap->argument;
    struct book *book = &books[setup->place];
    struct det_runtime_counts before;
    uint64_t runs = atomic_load(&book->effect_runs);
    int r;

    if (!book->runtime)
        return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "PostgreSQL is not installed");
    det_runtime_counts(book->runtime, &before);
    bench_lap_begin(lap);
    r = book_effects(book, SENDERS, lap->operations, setup->has_answer);
    bench_lap_end(lap);
    if (r < 0)
        return bench_lap_fail(lap, r, "%s", det_error_text(r));
    return check_once(lap, book, runs, &before);
}

static int open_book(enum place place, const char *url, struct det_error *reterr)
{
    int r = book_open(
        &books[place], url, &(struct det_store_options){ 0 }, &(struct det_runtime_options){ 0 },
        INSTANCES, reterr);

    return r < 0 ? r : book_fill(&books[place]);
}

static int open_sqlite(struct det_error *reterr)
{
    char path[BENCH_PATH_MAX], url[BENCH_PATH_MAX + 16];
    int r = bench_file_write("effects.db", "", 0, path);

    if (r < 0)
        return r;
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    return open_book(ON_SQLITE, url, reterr);
}

static int open_postgres(struct det_error *reterr)
{
    char *url = det_test_postgres_url(server, NULL);
    int r = open_book(ON_POSTGRES, url, reterr);

    free(url);
    return r;
}

static void close_effects(void)
{
    for (size_t i = 0; i < PLACES; i++)
        book_close(&books[i]);
    if (server)
        det_test_postgres_close(server);
    server = NULL;
}

static int open_effects(char *note)
{
    struct det_error error = { .code = 0 };
    int r;

    if (det_test_postgres_is_installed())
        server = det_test_postgres_open();
    r = open_book(IN_MEMORY, "memory:", &error);
    if (r == 0)
        r = open_sqlite(&error);
    if (r == 0 && server)
        r = open_postgres(&error);
    if (r < 0) {
        (void)snprintf(note, BENCH_NOTE_MAX, "%.150s", error.code ? error.text : det_error_text(r));
        close_effects();
    }
    return r;
}

static const struct setup memory = { IN_MEMORY, false }, memory_answer = { IN_MEMORY, true };
static const struct setup sqlite = { ON_SQLITE, false }, sqlite_answer = { ON_SQLITE, true };
static const struct setup postgres = { ON_POSTGRES, false },
                          postgres_answer = { ON_POSTGRES, true };

#define MEMORY        "memory"
#define MEMORY_ANSWER "memory, with an answer"

static const struct bench_case cases[] = {
    { MEMORY, BENCH_OURS, run_effects, &memory, MANY, .against = "" },
    { "SQLite", BENCH_OURS, run_effects, &sqlite, MANY, .against = MEMORY },
    { "PostgreSQL", BENCH_OURS, run_effects, &postgres, FEWER, .against = MEMORY },
    { MEMORY_ANSWER, BENCH_OURS, run_effects, &memory_answer, MANY, .against = "" },
    { "SQLite, with an answer", BENCH_OURS, run_effects, &sqlite_answer, MANY,
      .against = MEMORY_ANSWER },
    { "PostgreSQL, with an answer", BENCH_OURS, run_effects, &postgres_answer, FEWER,
      .against = MEMORY_ANSWER },
};

extern const struct bench bench_effects;
const struct bench bench_effects = {
    .title = "effects: requested by a send of 64 senders, run, and their end recorded",
    .operation = "effect",
    .has_processor = true,
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_effects,
    .close = close_effects,
};
