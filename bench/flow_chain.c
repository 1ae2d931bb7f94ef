/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_chain.c - a flow that is a chain: a source, transforms, a sink; rows of 256 bytes. */
#include "flow_chain.h"

#include <stdio.h>
#include <string.h>

#define REC_SPEC "row.rec"
#include <detent/rec/declare.h>

#define BATCH     64
#define KEPT      (UINT64_C(128) << 20)
#define KEYS      1000
#define KEYS_TEXT "1000"
#define FILLED    238 /* bytes of the text: the row is encoded into about 256 */

/* The source. */
static int open_source(struct det_stage_call *call)
{
    struct chain *chain = call->user;

    chain->source = call;
    return 0;
}

static int emit_next(struct det_stage_call *call, struct row_cursor *cursor)
{
    struct row row = { .number = ++cursor->emitted };

    memset(row.text, 'x', FILLED);
    return det_stage_emit(call, &row);
}

static int emit_some(struct det_stage_call *call, void *argument)
{
    const struct chain *chain = call->user;
    struct row_cursor *cursor = argument;
    uint64_t left = chain->row_count - cursor->emitted, limit = chain->is_ping ? 1 : BATCH;
    int r = 0;

    if (left == 0)
        return chain->is_endless ? DET_SOURCE_IDLE : DET_SOURCE_DONE;
    for (uint64_t i = 0; i < limit && i < left && r == 0; i++)
        r = emit_next(call, cursor);
    if (r < 0)
        return r;
    return chain->is_ping ? DET_SOURCE_IDLE : DET_SOURCE_MORE;
}

/* A transform. */
static int add_one(struct det_stage_call *call, const void *in)
{
    struct row row = *(const struct row *)in;

    row.number++;
    return det_stage_emit(call, &row);
}

/* The stage with a state for each key. */
static int add_up(struct det_stage_call *call, void *state, const void *in)
{
    struct row_sum *sum = state;

    (void)call;
    sum->count++;
    sum->sum += ((const struct row *)in)->number;
    return 0;
}

static int emit_sum(struct det_stage_call *call, void *state)
{
    const struct row row = { .number = ((const struct row_sum *)state)->sum };

    return det_stage_emit(call, &row);
}

/* The sink. */
static int receive(struct det_stage_call *call, void *cursor, const void *in)
{
    struct chain *chain = call->user;

    (void)cursor;
    chain->received++;
    chain->sum += ((const struct row *)in)->number;
    if (chain->is_ping)
        det_stage_wake(chain->source);
    return 0;
}

static const struct det_stage_functions source_functions = { .open = open_source,
                                                             .next = emit_some };
static const struct det_stage_functions transform_functions = { .process = add_one };
static const struct det_stage_functions sum_functions = { .accumulate = add_up, .emit = emit_sum };
static const struct det_stage_functions sink_functions = { .deliver = receive };

static void describe_sums(struct det_stage *stage)
{
    stage->kind = DET_STAGE_STATEFUL;
    stage->state.get = row_sum_record;
    stage->key = "number % " KEYS_TEXT;
    stage->functions = &sum_functions;
}

static void describe(struct chain *chain)
{
    const struct det_record_ref row = { .get = row_record };

    for (unsigned i = 0; i < chain->stage_count; i++) {
        struct det_stage *stage = &chain->stages[i];
        bool is_first = i == 0, is_last = i + 1 == chain->stage_count;

        (void)snprintf(chain->names[i], sizeof chain->names[i], "s%u", i);
        *stage = (struct det_stage){ .name = chain->names[i], .kind = DET_STAGE_TRANSFORM };
        stage->functions = &transform_functions;
        if (chain->has_sums && i + 2 == chain->stage_count)
            describe_sums(stage);
        if (is_first) {
            stage->kind = DET_STAGE_SOURCE;
            stage->flags = chain->is_endless ? DET_STAGE_INFINITE : 0;
            stage->cursor.get = row_cursor_record;
            stage->functions = &source_functions;
        } else {
            stage->in = row;
            chain->edges[i - 1] = (struct det_edge){ (uint16_t)(i - 1), (uint16_t)i, 0 };
        }
        if (is_last) {
            stage->kind = DET_STAGE_SINK;
            stage->functions = &sink_functions;
        } else {
            stage->out = row;
        }
    }
    chain->flow = (struct det_flow){
        .name = "chain",
        .stages = chain->stages,
        .edges = chain->edges,
        .stage_count = (uint16_t)chain->stage_count,
        .edge_count = (uint16_t)(chain->stage_count - 1),
    };
}

int chain_open(struct chain *chain, struct det_error *error)
{
    static unsigned count;
    char name[32], url[BENCH_PATH_MAX + 8];
    struct det_pipeline_options options = {
        .durability = chain->durability,
        .loop = chain->loop,
        .user = chain,
        .waits_for_run = true,
        .retain_size = KEPT,
        .window = chain->window,
        .journal_threads = chain->threads,
    };
    int r;

    describe(chain);
    if (chain->durability != DET_JOURNAL_MEMORY) {
        (void)snprintf(name, sizeof name, "flow-%u", ++count);
        r = bench_folder_make(name, chain->path);
        if (r < 0)
            return det_error_set(error, r, "the folder cannot be created");
        (void)snprintf(url, sizeof url, "file:%s", chain->path);
        options.journal = url;
    }
    return det_pipeline_open(&chain->flow, &options, &chain->pipeline, error);
}

static int turn_until(struct chain *chain, enum det_pipeline_state state)
{
    int r = 0;

    while (r >= 0 && det_pipeline_state(chain->pipeline) < state)
        r = det_loop_turn(chain->loop, DET_NEVER);
    return r < 0 ? r : 0;
}

static int reach(struct chain *chain, enum det_pipeline_state state)
{
    if (chain->loop)
        return turn_until(chain, state);
    return det_pipeline_wait_state(chain->pipeline, state, DET_NEVER);
}

int chain_ready(struct chain *chain)
{
    return reach(chain, DET_PIPELINE_READY);
}

int chain_run(struct chain *chain, struct det_error *error)
{
    struct det_pipeline_end end;
    int r;

    r = det_pipeline_run(chain->pipeline);
    if (r == 0)
        r = reach(chain, DET_PIPELINE_DRAINED);
    if (r == 0)
        r = det_pipeline_wait(chain->pipeline, chain->loop ? 0 : DET_NEVER, &end);
    if (r == 0 && end.outcome != DET_PIPELINE_COMPLETED)
        r = det_error_set(error, end.code < 0 ? end.code : DET_ERR_IO, "%s", end.reason);
    return r;
}

int chain_turn(struct chain *chain, uint64_t received)
{
    int r = 0;

    while (r >= 0 && chain->received < received)
        r = det_loop_turn(chain->loop, DET_NEVER);
    return r < 0 ? r : 0;
}

bool chain_is_complete(const struct chain *chain)
{
    /* Each transform has added 1 to each of the numbers from 1 on. */
    uint64_t n = chain->row_count, keys = n < KEYS ? n : KEYS;
    uint64_t added = n * (chain->stage_count - 2 - chain->has_sums);

    return chain->received == (chain->has_sums ? keys : n) && chain->sum == n * (n + 1) / 2 + added;
}

void chain_close(struct chain *chain)
{
    det_pipeline_close(chain->pipeline);
    chain->pipeline = NULL;
    if (chain->path[0])
        bench_folder_remove(chain->path);
    chain->path[0] = '\0';
}

int chain_fail(struct bench_lap *lap, int code, const struct det_error *error)
{
    return bench_lap_fail(
        lap, code, "%.150s", error->code < 0 ? error->text : det_error_text(code));
}
