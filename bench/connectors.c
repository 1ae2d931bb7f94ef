/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connectors.c - flows without C: a CSV file into a SQLite table, beside `.import` of sqlite3; a
 * file of JSON lines filtered, beside jq.
 *
 * Each is a process; the time is that from its start to its end. Ours writes each row to a log,
 * too: with "os" to the page cache, with "disk" it is synced before the row counts. sqlite3 and jq
 * begin again after a crash. Every result is read and its rows are counted. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define ROWS       200000
#define PERIOD     40 /* of the temperatures */
#define LIMIT      30 /* those above pass the filter */
#define WORD_MAX   (BENCH_PATH_MAX + 32)
#define MISSING    3 /* exit code of a script: the program is not installed */

#define CSV_PEER   "CSV to SQLite: sqlite3 .import"
#define JSONL_PEER "JSON lines, filter: jq"

enum format { CSV, JSONL };

/* Files with this many rows; 0: not yet written. */
static struct input {
    uint64_t rows;
    char path[BENCH_PATH_MAX];
} inputs[2];

static void write_row(FILE *file, enum format format, uint64_t number)
{
    unsigned celsius = (unsigned)(number % PERIOD);

    (void)fprintf(
        file,
        format == CSV ? "%llu,sensor-%u,%u.5,\"warm, but not too warm\"\n"
                      : "{\"number\": %llu, \"sensor\": \"sensor-%u\", \"celsius\": %u.5, "
                        "\"note\": \"warm, but not too warm\"}\n",
        (unsigned long long)number, (unsigned)(number % 1000), celsius);
}

static int prepare_input(enum format format, uint64_t rows, struct input **ret)
{
    static const char *const names[] = { "readings.csv", "readings.jsonl" };
    struct input *input = &inputs[format];
    bool is_written;
    FILE *file;

    *ret = input;
    if (input->rows == rows)
        return 0;
    if (bench_file_write(names[format], "", 0, input->path) < 0)
        return DET_ERR_IO;
    file = fopen(input->path, "we");
    if (!file)
        return DET_ERR_IO;
    if (format == CSV)
        (void)fputs("number,sensor,celsius,note\n", file);
    for (uint64_t i = 1; i <= rows; i++)
        write_row(file, format, i);
    is_written = !ferror(file);
    if (fclose(file) != 0 || !is_written)
        return DET_ERR_IO;
    input->rows = rows;
    return 0;
}

static int count_rows(const char *path, uint64_t *ret)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    int r = DET_ERR_IO;

    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(
            database, "select count(*) from readings where note like '%too warm'", -1, &statement,
            NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
        r = 0;
    }
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(database);
    return r;
}

static int count_lines(const char *path, uint64_t *ret)
{
    size_t size = 0;
    char *text = bench_file_read(path, &size);

    if (!text)
        return DET_ERR_IO;
    *ret = 0;
    for (const char *at = text; (at = memchr(at, '\n', size - (size_t)(at - text))) != NULL; at++)
        (*ret)++;
    free(text);
    return 0;
}

static int check_result(struct bench_lap *lap, enum format format, const char *path)
{
    uint64_t rows = 0, wanted = lap->operations;
    int r;

    if (format == JSONL) {
        wanted = lap->operations / PERIOD * (PERIOD - LIMIT);
        r = count_lines(path, &rows);
    } else {
        r = count_rows(path, &rows);
    }
    if (r < 0)
        return bench_lap_fail(lap, r, "the result cannot be read");
    if (rows != wanted)
        return bench_lap_fail(
            lap, DET_ERR_CORRUPT, "the result has %llu rows, not %llu", (unsigned long long)rows,
            (unsigned long long)wanted);
    return 0;
}

/* A folder for the result of one lap. */
static int prepare_folder(char *path)
{
    static unsigned count;
    char name[32];

    (void)snprintf(name, sizeof name, "flow-result-%u", ++count);
    return bench_folder_make(name, path);
}

static int measure_child(struct bench_lap *lap, const char *const *words)
{
    int code = 0, r;

    bench_lap_begin(lap);
    r = bench_child_run(words, NULL, &code);
    bench_lap_end(lap);
    if (r == DET_ERR_NOT_FOUND || code == MISSING)
        return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed");
    return r < 0 ? bench_lap_fail(lap, r, "%.100s ended with exit code %d", words[0], code) : 0;
}

struct method {
    enum format format;
    const char *durability;
};

static int run_flow(struct bench_lap *lap)
{
    static const char *const specs[] = { BENCH_FLOWS "/csv_to_sqlite.flow",
                                         BENCH_FLOWS "/jsonl_filter.flow" };
    static const char *const sinks[] = { "write_readings", "write_warm" };
    const struct method *method = lap->argument;
    char folder[BENCH_PATH_MAX], state[WORD_MAX], result[WORD_MAX];
    char from[WORD_MAX + 32], to[WORD_MAX + 32];
    const char *words[] = { BENCH_PROGRAM,
                            "flow",
                            "run",
                            specs[method->format],
                            "--durability",
                            method->durability,
                            "--state",
                            state,

                            from,

                            to,
                            NULL };
    struct input *input;
    int r;

    r = prepare_input(method->format, lap->operations, &input);
    if (r == 0)
        r = prepare_folder(folder);
    if (r < 0)
        return bench_lap_fail(lap, r, "the input cannot be written");
    (void)snprintf(state, sizeof state, "%s/state", folder);
    (void)snprintf(result, sizeof result, "%s/result", folder);
    (void)snprintf(from, sizeof from, "read_readings.path=%s", input->path);
    (void)snprintf(to, sizeof to, "%s.path=%s", sinks[method->format], result);
    r = measure_child(lap, words);
    if (r == 0)
        r = check_result(lap, method->format, result);
    bench_folder_remove(folder);
    return r;
}

static int run_sqlite(struct bench_lap *lap)
{
    char folder[BENCH_PATH_MAX], result[WORD_MAX], import[WORD_MAX + 32];
    const char *words[] = { "sqlite3",
                            result,
                            "create table readings"
                            "(number integer, sensor text, celsius real, note text)",
                            ".mode csv",
                            import,
                            NULL };
    struct input *input;
    int r;

    r = prepare_input(CSV, lap->operations, &input);
    if (r == 0)
        r = prepare_folder(folder);
    if (r < 0)
        return bench_lap_fail(lap, r, "the input cannot be written");
    (void)snprintf(result, sizeof result, "%s/result", folder);
    (void)snprintf(import, sizeof import, ".import --skip 1 %s readings", input->path);
    r = measure_child(lap, words);
    if (r == 0)
        r = check_result(lap, CSV, result);
    bench_folder_remove(folder);
    return r;
}

static int run_jq(struct bench_lap *lap)
{
    char folder[BENCH_PATH_MAX], result[WORD_MAX];
    const char *words[] = { "sh",
                            "-c",
                            "command -v jq >/dev/null || exit 3\n"
                            "exec jq -c 'select(.celsius > 30)' \"$0\" >\"$1\"",
                            NULL,
                            result,
                            NULL };
    struct input *input;
    int r;

    r = prepare_input(JSONL, lap->operations, &input);
    if (r == 0)
        r = prepare_folder(folder);
    if (r < 0)
        return bench_lap_fail(lap, r, "the input cannot be written");
    words[3] = input->path;
    (void)snprintf(result, sizeof result, "%s/result", folder);
    r = measure_child(lap, words);
    if (r == 0)
        r = check_result(lap, JSONL, result);
    bench_folder_remove(folder);
    return r;
}

static const struct method csv_os = { CSV, "os" }, csv_disk = { CSV, "disk" };
static const struct method jsonl_os = { JSONL, "os" }, jsonl_disk = { JSONL, "disk" };

#define OURS(method) BENCH_OURS, run_flow, &(method), ROWS, .has_no_allocations = true
#define PEER(run)    BENCH_PEER, run, NULL, ROWS, .against = "", .has_no_allocations = true

static const struct bench_case cases[] = {
    { CSV_PEER, PEER(run_sqlite) },
    { "CSV to SQLite: a flow, os", OURS(csv_os), .against = CSV_PEER },
    { "CSV to SQLite: a flow, disk", OURS(csv_disk), .against = CSV_PEER },
    { JSONL_PEER, PEER(run_jq) },
    { "JSON lines, filter: a flow, os", OURS(jsonl_os), .against = JSONL_PEER,
      .goals = { { BENCH_AHEAD_OF, 0, JSONL_PEER } } },
    { "JSON lines, filter: a flow, disk", OURS(jsonl_disk), .against = JSONL_PEER,
      .goals = { { BENCH_AHEAD_OF, 0, JSONL_PEER } } },
};

static void forget_inputs(void)
{
    memset(inputs, 0, sizeof inputs);
}

extern const struct bench bench_connectors;
const struct bench bench_connectors = {
    .title = "connectors: flows without C",
    .operation = "row",
    .rounds = 5,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .close = forget_inputs,
};
