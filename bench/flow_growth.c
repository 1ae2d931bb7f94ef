/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_growth.c - flows of 2 to 100 stages, 1 to 1,000 flows in a process, flows that wait. */
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>

#include "flow_chain.h"

#define FLOWS_MAX   1000
#define FEW_ROWS    100000 /* fewer: --quick */
#define QUICK       50
#define IDLE_MS     1000

#define STAGES_2    "memory: row of a stage, 2 stages"
#define MEMORY_1    "memory: row, 1 flow"
#define DISK_1      "disk: row, 1 flow"
#define DISK_HOPS_3 "disk: from source to sink, 3 stages"

struct method {
    enum det_journal_durability durability;
    unsigned stages, flows;
};

/* Flows on one loop, with common threads for their journals. */
struct crowd {
    struct det_loop *loop;
    struct det_journal_threads *threads;
    struct chain *chains;
    unsigned count;
};

static int crowd_open(
    struct crowd *crowd, const struct method *method, const struct chain *pattern,
    struct det_error *error)
{
    int r;

    crowd->chains = calloc(method->flows, sizeof *crowd->chains);
    if (!crowd->chains)
        return DET_ERR_NO_MEMORY;
    r = det_loop_open(NULL, NULL, &crowd->loop);
    if (r == 0 && method->durability != DET_JOURNAL_MEMORY)
        r = det_journal_threads_open(NULL, NULL, 0, &crowd->threads, error);
    while (r == 0 && crowd->count < method->flows) {
        struct chain *chain = &crowd->chains[crowd->count++];

        *chain = *pattern;
        chain->stage_count = method->stages;
        chain->durability = method->durability;
        chain->loop = crowd->loop;
        chain->threads = crowd->threads;
        r = chain_open(chain, error);
    }
    for (unsigned i = 0; i < crowd->count && r == 0; i++)
        r = chain_ready(&crowd->chains[i]);
    return r;
}

static void crowd_close(struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++)
        chain_close(&crowd->chains[i]);
    det_loop_close(crowd->loop);
    det_journal_threads_close(crowd->threads);
    free(crowd->chains);
}

static int crowd_start(struct crowd *crowd)
{
    int r = 0;

    for (unsigned i = 0; i < crowd->count && r == 0; i++)
        r = det_pipeline_run(crowd->chains[i].pipeline);
    return r;
}

static int crowd_finish(struct crowd *crowd, struct det_error *error)
{
    int r = 0;

    for (unsigned i = 0; i < crowd->count && r == 0; i++)
        r = chain_run(&crowd->chains[i], error);
    return r;
}

/* With --quick fewer flows. */
static struct method fit_method(const struct bench_lap *lap)
{
    struct method method = *(const struct method *)lap->argument;

    if (lap->operations < FEW_ROWS && method.flows > QUICK)
        method.flows /= QUICK;
    return method;
}

static int run_crowd(struct bench_lap *lap)
{
    const struct method method = fit_method(lap);
    struct chain pattern = { .row_count = (lap->operations + method.flows - 1) / method.flows };
    struct crowd crowd = { 0 };
    struct det_error error = { .code = 0 };
    int r;

    r = crowd_open(&crowd, &method, &pattern, &error);
    bench_lap_begin(lap);
    if (r == 0)
        r = crowd_start(&crowd);
    if (r == 0)
        r = crowd_finish(&crowd, &error);
    bench_lap_end(lap);
    lap->operations = pattern.row_count * method.flows;
    for (unsigned i = 0; i < crowd.count && r == 0; i++)
        r = chain_is_complete(&crowd.chains[i]) ? 0 : DET_ERR_CORRUPT;
    crowd_close(&crowd);
    return r < 0 ? chain_fail(lap, r, &error) : 0;
}

/* One operation is a row that a stage has appended: the sink appends none. */
static int run_stages(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    uint64_t rows = lap->operations / (method->stages - 1) + 1;
    int r;

    lap->operations = rows;
    r = run_crowd(lap);
    lap->operations = rows * (method->stages - 1);
    return r;
}

/* Rows one at a time: each is emitted when the sink has got the one before. */
static int measure_ping(struct bench_lap *lap, struct chain *chain)
{
    int r;

    r = det_pipeline_run(chain->pipeline);
    if (r == 0)
        r = chain_turn(chain, 1);
    bench_lap_begin(lap);
    if (r == 0)
        r = chain_turn(chain, lap->operations + 1);
    bench_lap_end(lap);
    return r;
}

static int run_ping(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    struct chain pattern = { .row_count = lap->operations + 1,
                             .is_endless = true,
                             .is_ping = true };
    struct crowd crowd = { 0 };
    struct det_error error = { .code = 0 };
    int r;

    r = crowd_open(&crowd, method, &pattern, &error);
    if (r == 0)
        r = measure_ping(lap, &crowd.chains[0]);
    crowd_close(&crowd);
    return r < 0 ? chain_fail(lap, r, &error) : 0;
}

/* One operation is one stage after the source. */
static int run_hops(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    uint64_t rows = lap->operations / (method->stages - 1) + 1;
    int r;

    lap->operations = rows;
    r = run_ping(lap);
    lap->operations = rows * (method->stages - 1);
    return r;
}

/* One operation is a flow that opens, and then waits for rows. */
static int run_open(struct bench_lap *lap)
{
    struct method method = *(const struct method *)lap->argument;
    struct chain pattern = { .is_endless = true };
    struct crowd crowd = { 0 };
    struct det_error error = { .code = 0 };
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    int r;

    method.flows = (unsigned)lap->operations;
    bench_lap_begin(lap);
    r = crowd_open(&crowd, &method, &pattern, &error);
    bench_lap_end(lap);
    lap->kept_bytes = (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before);
    crowd_close(&crowd);
    return r < 0 ? chain_fail(lap, r, &error) : 0;
}

/* Flows that wait for rows: processor time of one second, of all threads. */
static int run_idle(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    struct chain pattern = { .is_endless = true };
    struct crowd crowd = { 0 };
    struct det_error error = { .code = 0 };
    int r;

    r = crowd_open(&crowd, method, &pattern, &error);
    if (r == 0)
        r = crowd_start(&crowd);
    if (r == 0)
        r = det_loop_start(crowd.loop, "flows");
    if (r == 0) {
        (void)poll(NULL, 0, IDLE_MS / 5); /* until what starts has started */
        bench_lap_begin(lap);
        (void)poll(NULL, 0, IDLE_MS);
        bench_lap_end(lap);
        lap->nanoseconds = lap->processor_ns;
        det_loop_stop(crowd.loop);
    }
    crowd_close(&crowd);
    return r < 0 ? chain_fail(lap, r, &error) : 0;
}

#define MEMORY DET_JOURNAL_MEMORY
#define DISK   DET_JOURNAL_DISK

static const struct method memory_2 = { MEMORY, 2, 1 }, memory_3 = { MEMORY, 3, 1 };
static const struct method memory_10 = { MEMORY, 10, 1 }, memory_100 = { MEMORY, 100, 1 };
static const struct method flows_10 = { MEMORY, 3, 10 }, flows_100 = { MEMORY, 3, 100 };
static const struct method flows_1000 = { MEMORY, 3, FLOWS_MAX };
static const struct method disk_3 = { DISK, 3, 1 }, disk_10 = { DISK, 10, 1 };
static const struct method disk_100 = { DISK, 3, 100 }, disk_1000 = { DISK, 3, FLOWS_MAX };

#define CROWD(method, count) BENCH_OURS, run_crowd, &(method), count
#define STAGES(method)       BENCH_OURS, run_stages, &(method), 1000000
#define FLAT(first)          .against = (first), .goals = { { BENCH_RATIO_MAX, 2 } }
#define IDLE(method)                                                       \
    BENCH_OURS, run_idle, &(method), 1, .is_latency = true, .against = "", \
                                        .goals = { { BENCH_NS_MAX, 1e6 } }

static const struct bench_case cases[] = {
    { STAGES_2, STAGES(memory_2), .against = "" },
    { "memory: row of a stage, 10 stages", STAGES(memory_10), FLAT(STAGES_2) },
    { "memory: row of a stage, 100 stages", STAGES(memory_100), FLAT(STAGES_2) },
    { MEMORY_1, CROWD(memory_3, 1000000), .against = "" },
    { "memory: row, 10 flows", CROWD(flows_10, 1000000), FLAT(MEMORY_1) },
    { "memory: row, 100 flows", CROWD(flows_100, 1000000), FLAT(MEMORY_1) },
    { "memory: row, 1,000 flows", CROWD(flows_1000, 1000000), FLAT(MEMORY_1) },
    { DISK_1, CROWD(disk_3, 500000), .against = "" },
    { "disk: row, 100 flows", CROWD(disk_100, 500000), .against = DISK_1 },
    { "disk: row, 1,000 flows", CROWD(disk_1000, 500000), .against = DISK_1 },
    { "memory: open a flow of 3 stages", BENCH_OURS, run_open, &memory_3, FLOWS_MAX,
      .is_latency = true, .against = "", .goals = { { BENCH_BYTES_MAX, 262144 } } },
    { "disk: open a flow of 3 stages", BENCH_OURS, run_open, &disk_3, FLOWS_MAX, .is_latency = true,
      .against = "", .goals = { { BENCH_BYTES_MAX, 262144 } } },
    { "memory: hop of a single row", BENCH_OURS, run_hops, &memory_10, 100000, .is_latency = true,
      .against = "", .goals = { { BENCH_NS_MAX, 50000 } } },
    { DISK_HOPS_3, BENCH_OURS, run_ping, &disk_3, 1000, .is_latency = true, .against = "" },
    { "disk: from source to sink, 10 stages", BENCH_OURS, run_ping, &disk_10, 1000,
      .is_latency = true, FLAT(DISK_HOPS_3) },
    { "processor time of a second, 1 idle flow", IDLE(disk_3) },
    { "processor time of a second, 100 idle flows", IDLE(flows_100) },
};

extern const struct bench bench_flow_growth;
const struct bench bench_flow_growth = {
    .title = "flow: many stages, many flows, and flows that wait",
    .operation = "operation",
    .rounds = 3,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
