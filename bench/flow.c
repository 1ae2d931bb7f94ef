/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow.c - rows of 256 bytes through a source, transforms and a sink; each stage but the sink
 * appends its rows to the log, and the sink gets rows that have the durability of the flow.
 *
 * The time is that from the start of the sources to the end of the flow. */
#include <stdio.h>

#include "flow_chain.h"

#define MANY        102

#define MEMORY_PEER "memory: ObzenFlow, 3 stages"
#define DISK_PEER   "os: ObzenFlow, 3 stages"

struct method {
    enum det_journal_durability durability;
    unsigned stages;
    bool has_sums;
    uint32_t window; /* 0: default */
};

static int run_chain(struct bench_lap *lap, const struct method *method, uint64_t rows)
{
    struct chain chain = {
        .stage_count = method->stages,
        .durability = method->durability,
        .row_count = rows,
        .has_sums = method->has_sums,
        .window = method->window,
    };
    struct det_error error = { .code = 0 };
    int r;

    r = chain_open(&chain, &error);
    if (r == 0)
        r = chain_ready(&chain);
    bench_lap_begin(lap);
    if (r == 0)
        r = chain_run(&chain, &error);
    bench_lap_end(lap);
    chain_close(&chain);
    if (r < 0)
        return chain_fail(lap, r, &error);
    return chain_is_complete(&chain) ? 0 : bench_lap_fail(lap, DET_ERR_CORRUPT, "rows are missing");
}

static int run_rows(struct bench_lap *lap)
{
    return run_chain(lap, lap->argument, lap->operations);
}

/* The difference of a long chain and a short one. */
static int run_further(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    const struct method few = { .durability = method->durability,
                                .stages = 2,
                                .window = method->window };
    unsigned stages = method->stages - few.stages;
    double time, processor;
    int r;

    r = run_chain(lap, &few, lap->operations);
    time = lap->nanoseconds;
    processor = lap->processor_ns;
    if (r == 0)
        r = run_chain(lap, method, lap->operations);
    if (r < 0)
        return r;
    lap->nanoseconds = (lap->nanoseconds - time) / stages;
    lap->processor_ns = (lap->processor_ns - processor) / stages;
    return lap->nanoseconds > 0 ? 0 : bench_lap_fail(lap, DET_ERR_RANGE, "the long one was faster");
}

static int run_obzenflow(struct bench_lap *lap)
{
    char count[24], folder[BENCH_PATH_MAX];
    const char *words[] = { BENCH_OBZENFLOW, lap->argument, count, folder, NULL };
    int r;

    r = bench_folder_make("obzenflow", folder);
    if (r < 0)
        return bench_lap_fail(lap, r, "no folder for its files");
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    r = bench_child_peer(lap, words);
    bench_folder_remove(folder);
    return r;
}

static const struct method memory_2 = { .durability = DET_JOURNAL_MEMORY, .stages = 2 };
static const struct method memory_3 = { .durability = DET_JOURNAL_MEMORY, .stages = 3 };
static const struct method memory_10 = { .durability = DET_JOURNAL_MEMORY, .stages = 10 };
static const struct method memory_many = { .durability = DET_JOURNAL_MEMORY, .stages = MANY };
static const struct method memory_sums = { .durability = DET_JOURNAL_MEMORY,
                                           .stages = 3,
                                           .has_sums = true };
static const struct method disk_sums = { .durability = DET_JOURNAL_DISK,
                                         .stages = 3,
                                         .has_sums = true };
static const struct method disk_narrow = { .durability = DET_JOURNAL_DISK,
                                           .stages = 3,
                                           .window = 1024 };
static const struct method os_3 = { .durability = DET_JOURNAL_OS, .stages = 3 };
static const struct method os_10 = { .durability = DET_JOURNAL_OS, .stages = 10 };
static const struct method disk_2 = { .durability = DET_JOURNAL_DISK, .stages = 2 };
static const struct method disk_3 = { .durability = DET_JOURNAL_DISK, .stages = 3 };
static const struct method disk_10 = { .durability = DET_JOURNAL_DISK, .stages = 10 };
static const struct method disk_many = { .durability = DET_JOURNAL_DISK, .stages = MANY };

#define OURS(method, count) BENCH_OURS, run_rows, &(method), count, CHAIN_ROW_SIZE
#define FURTHER(method) \
    BENCH_OURS, run_further, &(method), 20000, .against = "", .goals = { { BENCH_NS_MAX, 150 } }
#define AHEAD_OF(peer) .against = (peer), .goals = { { BENCH_AHEAD_OF, 0, peer } }
#define PEER(word) \
    BENCH_PEER, run_obzenflow, word, 5000, CHAIN_ROW_SIZE, .against = "", .has_no_allocations = true

static const struct bench_case cases[] = {
    { "memory: 2 stages", OURS(memory_2, 500000), .against = MEMORY_PEER },
    { "memory: 3 stages", OURS(memory_3, 500000), AHEAD_OF(MEMORY_PEER) },
    { "memory: 10 stages", OURS(memory_10, 100000), .against = MEMORY_PEER },
    { MEMORY_PEER, PEER("memory") },
    { "memory: 3 stages, sums of 1,000 keys", OURS(memory_sums, 500000), .against = MEMORY_PEER },
    { "memory: each further stage", FURTHER(memory_many) },
    { "os: 3 stages", OURS(os_3, 500000), AHEAD_OF(DISK_PEER) },
    { "os: 10 stages", OURS(os_10, 100000), .against = DISK_PEER },
    /* It writes to the page cache and never syncs. */
    { DISK_PEER, PEER("disk") },
    { "disk: 2 stages", OURS(disk_2, 500000), .against = DISK_PEER },
    { "disk: 3 stages", OURS(disk_3, 500000), .against = DISK_PEER,
      .goals = { { BENCH_NS_MAX, 1000 }, { BENCH_AHEAD_OF, 0, DISK_PEER } } },
    { "disk: 3 stages, window of 1,024 rows", OURS(disk_narrow, 500000), .against = DISK_PEER },
    { "disk: 3 stages, sums of 1,000 keys", OURS(disk_sums, 500000), .against = DISK_PEER },
    { "disk: 10 stages", OURS(disk_10, 100000), .against = DISK_PEER },
    { "disk: each further stage", FURTHER(disk_many) },
};

extern const struct bench bench_flow;
const struct bench bench_flow = {
    .title = "flow: rows of 256 bytes from source to sink",
    .operation = "row",
    .rounds = 7,
    .has_processor = true,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
