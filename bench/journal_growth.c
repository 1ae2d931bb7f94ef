/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_growth.c - reads of a journal, and what rows, opening and reading cost in a large one. */
#include <stdio.h>

#include "log_journal.h"
#include "log_limit.h"

#define SIZES      3
#define STREAMS    10
#define LARGE      10000000
#define OPENS      50
#define SCANNED    1000000

#define APPEND_FEW "append 1,000 rows"
#define OPEN_FEW   "open a journal of 1,000 rows"
#define SCAN_LIMIT "scan of a file in C"
#define SEEK_FEW   "seek in a journal of 1,000 rows"

static const uint64_t sizes[SIZES] = { 1000, 100000, LARGE };
/* Journals of these sizes; "": not yet made. */
static char urls[SIZES][LOG_URL_MAX];

/* A journal for scans, which stays open between the laps. */
struct scanned {
    enum det_journal_durability durability;
    bool has_streams;
    struct det_journal *journal; /* NULL: not yet made */
    uint64_t rows;
};
static struct scanned on_disk = { DET_JOURNAL_OS, false, NULL, 0 };
static struct scanned in_streams = { DET_JOURNAL_OS, true, NULL, 0 };
static struct scanned in_memory = { DET_JOURNAL_MEMORY, false, NULL, 0 };

static const struct log_append groups = { .group = LOG_GROUP_MAX };
static const struct log_append many_streams = { .group = LOG_GROUP_MAX, .streams = STREAMS };

static int run_append(struct bench_lap *lap)
{
    const struct det_journal_options options = { .durability = DET_JOURNAL_OS };
    struct det_error error = { .code = 0 };
    struct det_journal *journal = NULL;
    char url[LOG_URL_MAX];
    int r;

    r = log_journal_open(&options, url, &journal, &error);
    if (r < 0)
        return log_journal_fail(lap, r, &error);
    bench_lap_begin(lap);
    r = log_journal_append(journal, &groups, lap->operations, &error);
    bench_lap_end(lap);
    lap->operations = det_journal_end(journal);
    det_journal_close(journal);
    log_journal_remove(url);
    return r < 0 ? log_journal_fail(lap, r, &error) : 0;
}

/* Makes the journal of this size; with --quick, whose laps are shorter, a fiftieth of it. */
static int prepare(const struct bench_lap *lap, size_t which, struct det_error *error)
{
    const struct det_journal_options options = { .durability = DET_JOURNAL_OS };
    uint64_t count = lap->operations < OPENS ? sizes[which] / 50 : sizes[which];
    struct det_journal *journal = NULL;
    int r;

    if (urls[which][0])
        return 0;
    r = log_journal_open(&options, urls[which], &journal, error);
    if (r == 0)
        r = log_journal_append(journal, &groups, count, error);
    det_journal_close(journal);
    return r;
}

static int run_open(struct bench_lap *lap)
{
    const struct det_journal_options options = { .durability = DET_JOURNAL_OS, .must_exist = true };
    const size_t *which = lap->argument;
    struct det_error error = { .code = 0 };
    int r;

    r = prepare(lap, *which, &error);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        struct det_journal *journal = NULL;

        r = det_journal_open(urls[*which], &options, &journal, &error);
        det_journal_close(journal);
    }
    bench_lap_end(lap);
    return r < 0 ? log_journal_fail(lap, r, &error) : 0;
}

static int read_at(struct det_journal *journal, uint64_t position, struct det_error *error)
{
    const struct det_journal_reader_options options = { .from = position };
    struct det_journal_reader *reader = NULL;
    struct det_journal_row row;
    int r;

    r = det_journal_reader_open(journal, &options, &reader, error);
    if (r == 0)
        r = det_journal_reader_next(reader, &row, error);
    if (r == 1)
        r = row.position == position ? 0 : DET_ERR_CORRUPT;
    det_journal_reader_close(reader);
    return r;
}

static int run_seek(struct bench_lap *lap)
{
    const struct det_journal_options options = { .durability = DET_JOURNAL_OS, .must_exist = true };
    const size_t *which = lap->argument;
    struct det_error error = { .code = 0 };
    struct det_journal *journal = NULL;
    uint64_t seed = 1;
    int r;

    r = prepare(lap, *which, &error);
    if (r == 0)
        r = det_journal_open(urls[*which], &options, &journal, &error);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = read_at(journal, 1 + bench_random(&seed) % det_journal_end(journal), &error);
    bench_lap_end(lap);
    det_journal_close(journal);
    return r < 0 ? log_journal_fail(lap, r, &error) : 0;
}

static int make_scanned(struct scanned *scanned, uint64_t count, struct det_error *error)
{
    const struct det_journal_options options = { .durability = scanned->durability };
    int r;

    if (scanned->journal)
        return 0;
    r = log_journal_open(&options, NULL, &scanned->journal, error);
    if (r == 0)
        r = log_journal_append(
            scanned->journal, scanned->has_streams ? &many_streams : &groups, count, error);
    return r;
}

static int scan_rows(
    struct det_journal_reader *reader, uint64_t *ret_count, struct det_error *error)
{
    struct det_journal_row row;
    uint64_t sum = 0;
    int r;

    *ret_count = 0;
    while ((r = det_journal_reader_next(reader, &row, error)) == 1) {
        sum += row.position + row.size;
        (*ret_count)++;
    }
    bench_use(sum);
    return r;
}

/* One operation is a row of the log, also where only those of one stream are read. */
static int run_scan(struct bench_lap *lap)
{
    struct scanned *scanned = (struct scanned *)(uintptr_t)lap->argument;
    struct det_journal_reader_options options = { .from = 0 };
    struct det_journal_reader *reader = NULL;
    struct det_error error = { .code = 0 };
    uint64_t count = 0;
    int r;

    r = make_scanned(scanned, lap->operations, &error);
    if (r == 0 && scanned->has_streams) {
        options.one_stream = true;
        r = det_journal_stream(scanned->journal, "stream_3", &options.stream, &error);
    }
    if (r == 0)
        r = det_journal_reader_open(scanned->journal, &options, &reader, &error);
    bench_lap_begin(lap);
    if (r == 0)
        r = scan_rows(reader, &count, &error);
    bench_lap_end(lap);
    det_journal_reader_close(reader);
    if (r < 0)
        return log_journal_fail(lap, r, &error);
    if (count == 0)
        return bench_lap_fail(lap, DET_ERR_NOT_FOUND, "rows are missing");
    lap->operations = det_journal_end(scanned->journal);
    return 0;
}

static const size_t few = 0, more = 1, most = 2;

#define ROW         LOG_ROW_SIZE
#define FLAT(first) .against = (first), .goals = { { BENCH_RATIO_MAX, 2 } }

static const struct bench_case cases[] = {
    { SCAN_LIMIT, BENCH_LIMIT, log_limit_scan, NULL, SCANNED, ROW, .against = "" },
    { "scan of a file", BENCH_OURS, run_scan, &on_disk, SCANNED, ROW, .against = SCAN_LIMIT,
      .goals = { { BENCH_RATIO_MAX, 1 / 0.7 } } },
    { "scan of one stream of ten", BENCH_OURS, run_scan, &in_streams, SCANNED, ROW,
      .against = "scan of a file" },
    { "scan in memory", BENCH_OURS, run_scan, &in_memory, SCANNED, ROW, .against = SCAN_LIMIT },
    { APPEND_FEW, BENCH_OURS, run_append, NULL, 1000, ROW, .against = "" },
    { "append 100,000 rows", BENCH_OURS, run_append, NULL, 100000, ROW, FLAT(APPEND_FEW) },
    { "append 10,000,000 rows", BENCH_OURS, run_append, NULL, LARGE, ROW, FLAT(APPEND_FEW) },
    { OPEN_FEW, BENCH_OURS, run_open, &few, OPENS, .against = "" },
    { "open a journal of 100,000 rows", BENCH_OURS, run_open, &more, OPENS, .against = OPEN_FEW },
    { "open a journal of 10,000,000 rows", BENCH_OURS, run_open, &most, OPENS,
      .against = OPEN_FEW },
    { SEEK_FEW, BENCH_OURS, run_seek, &few, 1000, .against = "" },
    { "seek in a journal of 100,000 rows", BENCH_OURS, run_seek, &more, 1000, FLAT(SEEK_FEW) },
    { "seek in a journal of 10,000,000 rows", BENCH_OURS, run_seek, &most, 1000, FLAT(SEEK_FEW) },
};

static void close_scanned(struct scanned *scanned)
{
    det_journal_close(scanned->journal);
    scanned->journal = NULL;
}

static void close_files(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        log_journal_remove(urls[i]);
        urls[i][0] = '\0';
    }
    close_scanned(&on_disk);
    close_scanned(&in_streams);
    close_scanned(&in_memory);
    log_limit_close();
}

extern const struct bench bench_journal_growth;
const struct bench bench_journal_growth = {
    .title = "journal: reads, and large journals",
    .operation = "operation",
    .rounds = 3,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .close = close_files,
};
