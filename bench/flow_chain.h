/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_chain.h - a flow that is a chain: a source, transforms, a sink; rows of 256 bytes. */
#ifndef BENCH_FLOW_CHAIN_H
#define BENCH_FLOW_CHAIN_H

#include <detent/flow.h>

#include "bench.h"

#define CHAIN_STAGES_MAX 102
#define CHAIN_ROW_SIZE   256

struct chain {
    /* Set by the caller. */
    unsigned stage_count; /* at least 2: source and sink */
    enum det_journal_durability durability;
    uint64_t row_count; /* that the source emits */
    bool is_endless;    /* the source does not end after them */
    bool is_ping;       /* it emits a row when the sink has got the one before */
    bool has_sums;      /* the stage before the sink sums by 1,000 keys, and emits at the end */
    uint32_t window;    /* 0: default */
    struct det_loop *loop;
    struct det_journal_threads *threads;

    struct det_flow flow;
    struct det_stage stages[CHAIN_STAGES_MAX];
    struct det_edge edges[CHAIN_STAGES_MAX - 1];
    char names[CHAIN_STAGES_MAX][8];
    char path[BENCH_PATH_MAX]; /* of the log; "": in memory */
    struct det_pipeline *pipeline;
    struct det_stage_call *source;
    uint64_t received, sum;
};

/* Opens the flow; its source waits for det_pipeline_run(). The chain must not move. Close it also
 * after a failure. */
DET_MUST_CHECK int chain_open(struct chain *chain, struct det_error *error);
/* Waits until all stages are ready; with a loop, turns it meanwhile, like the next one. */
DET_MUST_CHECK int chain_ready(struct chain *chain);
/* Runs it to its end. */
DET_MUST_CHECK int chain_run(struct chain *chain, struct det_error *error);
/* Turns the loop until the sink has got this many rows. */
DET_MUST_CHECK int chain_turn(struct chain *chain, uint64_t received);
/* Whether the sink has got each row once. */
bool chain_is_complete(const struct chain *chain);
void chain_close(struct chain *chain);
/* Ends a lap that could not continue. */
int chain_fail(struct bench_lap *lap, int code, const struct det_error *error);

#endif
