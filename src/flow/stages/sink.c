/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sink.c - sinks: the functions that sink.fsm names.
 *
 *     acknowledged rows -> deliver() for each -> flush(), if it is buffered -> the receipt: one
 *     PROGRESS row with the inputs and the cursor, and a row of the errors for each failure
 *
 * A crash between deliver() and the receipt delivers the rows again. */
#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

#define FSM_LOCAL
#define FSM_SPEC "flow/stages/sink.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "flow/stages/sink.fsm"
#include <detent/fsm/define.h>

#define STAGE flow_sink
#include "flow/stages/stage_actions.h"

/* Rows and bytes of rows between two flushes on the pool. */
#define FLUSH_ROWS  2048
#define FLUSH_BYTES 4194304

static bool is_buffered(const struct det_flow_stage *stage)
{
    return (stage->flags & DET_STAGE_BUFFERED) && stage->functions.flush;
}

/* A flush often is a sync of a disk or an exchange with a server, so it is for many rows. */
static uint32_t rows_of_job(const struct det_flow_stage *stage)
{
    size_t fit = FLUSH_BYTES / stage->in->size;

    if (!is_buffered(stage) || fit < DET_TURN_ROWS)
        return DET_TURN_ROWS;
    return fit < FLUSH_ROWS ? (uint32_t)fit : FLUSH_ROWS;
}

static int open_sink(struct det_flow_stage *stage, struct det_error *reterr)
{
    if (!(stage->flags & DET_STAGE_ASYNC))
        return 0;
    if (det_stage_open_jobs(stage, 1, rows_of_job(stage)) < 0)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "out of memory for sink %s", stage->spec->name);
    return 0;
}

/* ---- on the loop or on the pool: the same calls */

/* 0: delivered, or rejected; else the failure of the stage, in the call. */
static int deliver_row(struct det_flow_call *call, const struct det_slot *slot, const void *value)
{
    struct det_flow_stage *stage = call->stage;
    struct det_flow_turn_mark mark = det_flow_turn_mark(call->turn);
    int r;

    if (slot->kind != DET_SLOT_ROW)
        return 0;
    det_flow_call_begin(call, slot, value, stage->in);
    r = stage->functions.deliver(&call->base, stage->cursor.value, value);
    if (r == DET_ERR_CANCELLED && atomic_load(&stage->pool.is_cancelled))
        return r;
    return r < 0 ? det_flow_call_end(call, r, &mark) : 0;
}

/* A call that is not about one row; it may reject several. A negative result is the failure of the
 * stage, and in the call. */
static int call_about_all(
    struct det_flow_call *call, int (*function)(struct det_stage_call *call, void *cursor))
{
    int r;

    det_flow_call_begin(call, NULL, NULL, NULL);
    call->rejects_at_once = true;
    r = function(&call->base, call->stage->cursor.value);
    call->rejects_at_once = false;
    if (r >= 0)
        return 0;
    if (!call->is_failed && !call->is_rejected)
        (void)det_text_copy(call->text, sizeof call->text, det_error_text(r));
    call->is_failed = true;
    call->code = r;
    return r;
}

static int flush_rows(struct det_flow_call *call)
{
    const struct det_flow_stage *stage = call->stage;

    return is_buffered(stage) ? call_about_all(call, stage->functions.flush) : 0;
}

/* ---- on the loop */

static int deliver_rows(struct det_flow_stage *stage, struct det_flow_edge *edge, uint64_t count)
{
    const struct det_ring *ring = &edge->from->ring;
    int r = 0;

    for (uint64_t i = 0; i < count && r == 0; i++) {
        const struct det_slot *slot = det_ring_slot(ring, edge->taken.sequence + 1);

        r = deliver_row(&stage->call, slot, det_ring_value(ring, slot->sequence));
        if (r == 0)
            r = det_edge_take(edge, slot);
    }
    return r;
}

/* What was delivered before a failure has its receipt. */
static int fail_after_receipt(struct det_flow_stage *stage, int r)
{
    if (!is_buffered(stage) || flush_rows(&stage->call) == 0)
        (void)det_stage_commit(stage);
    return r;
}

static int run_on_loop(struct det_flow_stage *stage)
{
    struct det_flow_edge *edge;
    uint64_t count;
    int r;

    det_stage_begin_turn(stage);
    edge = det_stage_next_input(stage, true, &count);
    if (!edge)
        return DET_DIRECTIVE_CONTINUE;
    r = deliver_rows(stage, edge, count < DET_TURN_ROWS ? count : DET_TURN_ROWS);
    if (r < 0)
        return fail_after_receipt(stage, det_stage_fail_by(stage, &stage->call, r));
    r = flush_rows(&stage->call);
    if (r < 0)
        return det_stage_fail_by(stage, &stage->call, r);
    r = det_stage_commit(stage);
    return r <= 0 ? r : DET_DIRECTIVE_AGAIN;
}

/* ---- on the pool */

static int deliver_in_job(struct det_flow_job *job)
{
    int r = 0;

    job->call.base.now = det_world_now(job->call.base.world, DET_CLOCK_WALL);
    while (job->done < job->count) {
        r = deliver_row(
            &job->call, &job->slots[job->done], job->values + job->done * job->value_size);
        if (r < 0)
            return r;
        job->done++;
    }
    return flush_rows(&job->call);
}

static int take_job(struct det_flow_stage *stage, struct det_flow_job *job)
{
    int r;

    job->phase = DET_JOB_FREE;
    stage->pool.running = 0;
    if (job->result < 0 && is_buffered(stage))
        return det_stage_fail_by(stage, &job->call, job->result);
    det_stage_begin_turn(stage);
    r = det_flow_turn_take(&stage->turn, &job->turn, stage->stream);
    for (uint32_t i = 0; i < job->done && r == 0; i++)
        r = det_edge_take(job->edge, &job->slots[i]);
    if (r < 0)
        return r;
    r = det_stage_commit(stage);
    if (r < 0 || job->result == 0)
        return r;
    return det_stage_fail_by(stage, &job->call, job->result);
}

static int run_on_pool(struct det_flow_stage *stage)
{
    struct det_flow_job *job = stage->pool.jobs[0];
    struct det_flow_edge *edge;
    uint64_t count;
    int r;

    if (job->phase == DET_JOB_DONE) {
        r = take_job(stage, job);
        return r <= 0 ? r : DET_DIRECTIVE_AGAIN;
    }
    if (job->phase == DET_JOB_RUNNING)
        return DET_DIRECTIVE_CONTINUE;
    stage->waits_for_journal = false;
    edge = det_stage_next_input(stage, true, &count);
    if (!edge)
        return DET_DIRECTIVE_CONTINUE;
    det_flow_turn_begin(&job->turn);
    det_flow_job_give(job, edge, count < job->capacity ? count : job->capacity);
    stage->pool.running = 1;
    det_flow_job_submit(job, deliver_in_job);
    return DET_DIRECTIVE_CONTINUE;
}

/* ---- begin */

static int begin_in_job(struct det_flow_job *job)
{
    return call_about_all(&job->call, job->call.stage->functions.begin);
}

/* Before the first row of a run: 1: begin() was called, and its cursor is acknowledged. */
static int begin_sink(struct det_flow_stage *stage)
{
    bool is_async = stage->flags & DET_STAGE_ASYNC;
    struct det_flow_job *job = is_async ? stage->pool.jobs[0] : NULL;
    int r;

    if (!stage->functions.begin || !stage->cursor.record)
        return 1;
    if (stage->cursor.kept_size > 0) {
        stage->waits_for_journal =
            stage->last_position > det_journal_acknowledged(stage->pipeline->journal);
        return !stage->waits_for_journal;
    }
    if (is_async && job->phase == DET_JOB_FREE)
        det_flow_job_submit(job, begin_in_job);
    if (is_async && job->phase == DET_JOB_RUNNING)
        return 0;
    if (is_async)
        job->phase = DET_JOB_FREE;
    r = is_async ? job->result : call_about_all(&stage->call, stage->functions.begin);
    if (r < 0)
        return det_stage_fail_by(stage, is_async ? &job->call : &stage->call, r);
    det_stage_begin_turn(stage);
    r = det_stage_commit(stage);
    return r <= 0 ? r : begin_sink(stage);
}

/* ---- dispatch */

static int run_sink(struct det_flow_stage *stage, struct flow_sink_event *ret)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r > 0 && !stage->has_begun)
        r = begin_sink(stage);
    if (r <= 0)
        return r;
    stage->has_begun = true;
    if (det_stage_input_end(stage) == DET_END_NONE)
        return stage->flags & DET_STAGE_ASYNC ? run_on_pool(stage) : run_on_loop(stage);
    *ret = flow_sink_received_eof();
    return DET_DIRECTIVE_TRANSITION;
}

static int flush_in_job(struct det_flow_job *job)
{
    return flush_rows(&job->call);
}

/* The last flush of a buffered sink, for what it has kept; then the cursor. */
static int flush_sink(struct det_flow_stage *stage, struct flow_sink_event *ret)
{
    bool is_async = stage->flags & DET_STAGE_ASYNC;
    struct det_flow_job *job = is_async ? stage->pool.jobs[0] : NULL;
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (is_async && job->phase == DET_JOB_FREE)
        det_flow_job_submit(job, flush_in_job);
    if (is_async && job->phase == DET_JOB_RUNNING)
        return DET_DIRECTIVE_CONTINUE;
    if (is_async)
        job->phase = DET_JOB_FREE;
    r = is_async ? job->result : flush_rows(&stage->call);
    if (r < 0)
        return det_stage_fail_by(stage, is_async ? &job->call : &stage->call, r);
    *ret = flow_sink_flush_complete();
    return DET_DIRECTIVE_TRANSITION;
}

static int drain_output(struct det_flow_stage *stage, struct flow_sink_event *ret)
{
    int r;

    r = det_stage_finish(stage, det_stage_input_end(stage));
    if (r <= 0)
        return r;
    *ret = flow_sink_drain_complete();
    return DET_DIRECTIVE_TRANSITION;
}

const struct det_stage_kind_def det_sink_kind = {
    .component = &flow_sink_component,
    .open = open_sink,
    .request = request_stage,
};
