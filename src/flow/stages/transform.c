/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* transform.c - transforms: the functions that transform.fsm names.
 *
 *     on the loop:   rows of one input -> process() for each -> one group
 *     asynchronous:  acknowledged rows -> jobs on the pool -> groups, in the order of the inputs
 *
 * The jobs of an asynchronous transform are a queue: given from its end, joined from its front. */
#include "base/assert.h"
#include "flow/flow_internal.h"

#define FSM_LOCAL
#define FSM_SPEC "flow/stages/transform.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "flow/stages/transform.fsm"
#include <detent/fsm/define.h>

#define STAGE flow_transform
#include "flow/stages/stage_actions.h"

/* Rows in a job, when there are enough for all jobs. */
#define JOB_ROWS 64

static int open_transform(struct det_flow_stage *stage, struct det_error *reterr)
{
    uint32_t count = stage->spec->concurrency ? stage->spec->concurrency : 1;

    if (!(stage->flags & DET_STAGE_ASYNC))
        return 0;
    if (det_stage_open_jobs(stage, count, JOB_ROWS) < 0)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "out of memory for transform %s", stage->spec->name);
    return 0;
}

/* ---- on the loop */

static int process_row(
    struct det_flow_stage *stage, struct det_flow_edge *edge, const struct det_slot *slot)
{
    struct det_flow_call *call = &stage->call;
    struct det_flow_turn_mark mark;
    const void *value;
    int r;

    if (slot->kind != DET_SLOT_ROW)
        return det_edge_take(edge, slot);
    mark = det_flow_turn_mark(&stage->turn);
    value = det_ring_value(&edge->from->ring, slot->sequence);
    det_flow_call_begin(call, slot, value, stage->in);
    r = stage->functions.process(&call->base, value);
    if (r < 0) {
        r = det_flow_call_end(call, r, &mark);
        if (r < 0)
            return det_stage_fail_by(stage, call, r);
    }
    return det_edge_take(edge, slot);
}

static bool is_full(const struct det_flow_turn *turn)
{
    return turn->size >= DET_TURN_BYTES || turn->outputs >= turn->reserved;
}

static int process_rows(struct det_flow_stage *stage, struct det_flow_edge *edge, uint64_t count)
{
    int r = 0;

    for (uint64_t i = 0; i < count && r == 0 && !is_full(&stage->turn); i++)
        r = process_row(stage, edge, det_ring_slot(&edge->from->ring, edge->taken.sequence + 1));
    return r;
}

static int run_on_loop(struct det_flow_stage *stage)
{
    struct det_flow_edge *edge;
    uint64_t count;
    int r;

    det_stage_begin_turn(stage);
    stage->is_blocked = stage->turn.reserved == 0;
    if (stage->is_blocked)
        return DET_DIRECTIVE_CONTINUE;
    edge = det_stage_next_input(stage, false, &count);
    if (!edge)
        return DET_DIRECTIVE_CONTINUE;
    r = process_rows(stage, edge, count < DET_TURN_ROWS ? count : DET_TURN_ROWS);
    if (r < 0)
        return r;
    r = det_stage_commit(stage);
    return r <= 0 ? r : DET_DIRECTIVE_AGAIN;
}

/* ---- on the pool */

/* Ends early when the outputs are enough for a turn. */
static int process_in_job(struct det_flow_job *job)
{
    struct det_flow_call *call = &job->call;
    const struct det_stage_functions *functions = &call->stage->functions;
    int r = 0;

    call->base.now = det_world_now(call->base.world, DET_CLOCK_WALL);
    for (; job->done < job->count && r == 0 && job->turn.size < DET_TURN_BYTES; job->done++) {
        const struct det_slot *slot = &job->slots[job->done];
        const void *value = job->values + job->done * job->value_size;
        struct det_flow_turn_mark mark = det_flow_turn_mark(&job->turn);

        if (slot->kind != DET_SLOT_ROW)
            continue;
        det_flow_call_begin(call, slot, value, call->stage->in);
        r = functions->process(&call->base, value);
        r = det_flow_call_end(call, r, &mark);
        if (r < 0)
            break;
    }
    return r;
}

static int join_job(struct det_flow_stage *stage, struct det_flow_job *job)
{
    int r;

    r = det_flow_turn_take(&stage->turn, &job->turn, stage->stream);
    for (; job->joined < job->done && r == 0; job->joined++)
        r = det_edge_take(job->edge, &job->slots[job->joined]);
    return r;
}

/* Joins a job of which only the first inputs were processed, and submits it again for the rest. It
 * stays at the front, so that the order is kept. */
static int join_part(struct det_flow_stage *stage, struct det_flow_job *job)
{
    int r = join_job(stage, job);

    if (r < 0)
        return r;
    det_flow_turn_begin(&job->turn);
    det_flow_job_submit(job, process_in_job);
    return 1;
}

/* Joins the jobs at the front that are done, into one group. 1: there were some. */
static int join_jobs(struct det_flow_stage *stage)
{
    struct det_stage_pool *pool = &stage->pool;
    int joined = 0, r = 0;

    while (r == 0 && pool->running > 0 && !is_full(&stage->turn)) {
        struct det_flow_job *job = pool->jobs[pool->first];

        if (job->phase != DET_JOB_DONE)
            break;
        job->phase = DET_JOB_FREE;
        if (job->result == 0 && job->done < job->count)
            return join_part(stage, job);
        pool->first = (pool->first + 1) % pool->job_count;
        pool->running--;
        joined = 1;
        r = job->result < 0 ? det_stage_fail_by(stage, &job->call, job->result)
                            : join_job(stage, job);
    }
    return r < 0 ? r : joined;
}

/* Gives rows to free jobs: as many jobs as can run at the same time, then as many rows. */
static void give_jobs(struct det_flow_stage *stage)
{
    struct det_stage_pool *pool = &stage->pool;

    while (pool->running < pool->job_count) {
        uint32_t number = (pool->first + pool->running) % pool->job_count;
        struct det_flow_job *job = pool->jobs[number];
        uint64_t count, share;
        struct det_flow_edge *edge = det_stage_next_input(stage, true, &count);

        if (!edge)
            return;
        share = (count + pool->job_count - 1) / pool->job_count;
        det_flow_turn_begin(&job->turn);
        det_flow_job_give(job, edge, share < JOB_ROWS ? share : JOB_ROWS);
        pool->running++;
        det_flow_job_submit(job, process_in_job);
    }
}

static int run_on_pool(struct det_flow_stage *stage)
{
    int r, joined;

    det_stage_begin_turn(stage);
    joined = join_jobs(stage);
    if (joined < 0)
        return joined;
    r = det_stage_commit(stage);
    if (r <= 0)
        return r;
    stage->is_blocked = det_ring_credit(&stage->ring) == 0;
    if (!stage->is_blocked)
        give_jobs(stage);
    return joined ? DET_DIRECTIVE_AGAIN : DET_DIRECTIVE_CONTINUE;
}

/* ---- dispatch */

static int run_transform(struct det_flow_stage *stage, struct flow_transform_event *ret)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (det_stage_input_end(stage) == DET_END_NONE)
        return stage->flags & DET_STAGE_ASYNC ? run_on_pool(stage) : run_on_loop(stage);
    *ret = flow_transform_received_eof();
    return DET_DIRECTIVE_TRANSITION;
}

static int drain_output(struct det_flow_stage *stage, struct flow_transform_event *ret)
{
    int r;

    r = det_stage_finish(stage, det_stage_input_end(stage));
    if (r <= 0)
        return r;
    *ret = flow_transform_drain_complete();
    return DET_DIRECTIVE_TRANSITION;
}

const struct det_stage_kind_def det_transform_kind = {
    .component = &flow_transform_component,
    .open = open_transform,
    .request = request_stage,
};
