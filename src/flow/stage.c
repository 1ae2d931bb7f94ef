/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage.c - the life that stages of all kinds share: open and close on the pool, the end of the
 * output, and reports to the pipeline. The order is in the .fsm of each kind, in stages/. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"
#include "flow/stage_machine.h"

const struct det_stage_kind_def *det_stage_kind_of(enum det_stage_kind kind)
{
    static const struct det_stage_kind_def *const kinds[DET_STAGE_KINDS] = {
        [DET_STAGE_SOURCE] = &det_source_kind,     [DET_STAGE_TRANSFORM] = &det_transform_kind,
        [DET_STAGE_STATEFUL] = &det_stateful_kind, [DET_STAGE_JOIN] = &det_join_kind,
        [DET_STAGE_SINK] = &det_sink_kind,
    };

    return kinds[kind];
}

const struct det_machine *det_stage_machine(enum det_stage_kind kind)
{
    return det_stage_kind_of(kind)->component->machine;
}

/* Rows that are written while the disk syncs those before them. The ring has memory for as many as
 * its readers lag. */
#define WINDOW 16384u

/* A wake from another thread, now on the loop. */
static void wake_on_loop(void *argument)
{
    struct det_flow_stage *stage = argument;

    atomic_store(&stage->wake_posted, false);
    stage->is_woken = true;
    det_component_wake(&stage->component);
}

static int open_streams(struct det_flow_stage *stage, struct det_error *reterr)
{
    struct det_journal *journal = stage->pipeline->journal;
    char name[DET_JOURNAL_NAME_MAX + 16];
    int r;

    r = det_journal_stream(journal, stage->spec->name, &stage->stream, reterr);
    if (r < 0)
        return r;
    (void)snprintf(name, sizeof name, "%s.errors", stage->spec->name);
    r = det_journal_stream(journal, name, &stage->error_stream, reterr);
    if (r < 0)
        return r;
    (void)snprintf(name, sizeof name, "%s.state", stage->spec->name);
    return det_journal_stream(journal, name, &stage->state_stream, reterr);
}

static int open_cursor(struct det_flow_stage *stage)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct det_stage_cursor *cursor = &stage->cursor;

    if (!cursor->record)
        return 0;
    cursor->max = det_record_encoded_max(cursor->record);
    cursor->value = det_alloc_zero(allocator, cursor->record->size);
    cursor->kept = det_alloc(allocator, cursor->max);
    cursor->next = det_alloc(allocator, cursor->max);
    return cursor->value && cursor->kept && cursor->next ? 0 : DET_ERR_NO_MEMORY;
}

static void close_cursor(struct det_flow_stage *stage)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct det_stage_cursor *cursor = &stage->cursor;

    if (!cursor->record)
        return;
    if (cursor->value)
        det_free(allocator, cursor->value, cursor->record->size);
    if (cursor->kept)
        det_free(allocator, cursor->kept, cursor->max);
    if (cursor->next)
        det_free(allocator, cursor->next, cursor->max);
}

/* Rows that fit the window: its own, that of the pipeline, or 16,384 within 4 MiB. */
static uint32_t window_of(const struct det_flow_stage *stage)
{
    uint32_t window = stage->spec->window ? stage->spec->window : stage->pipeline->options.window;
    size_t fit = ((size_t)4 << 20) / (stage->out->size + sizeof(struct det_slot));

    if (window == 0)
        window = fit < WINDOW ? (uint32_t)(fit < 16 ? 16 : fit) : WINDOW;
    return window < DET_PIPELINE_WINDOW_MAX ? window : DET_PIPELINE_WINDOW_MAX;
}

static int open_outputs(struct det_flow_stage *stage)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct det_ring *ring = stage->out ? &stage->ring : NULL;

    if (stage->out) {
        int r = det_ring_init(ring, allocator, stage->out->size, window_of(stage));

        if (r < 0)
            return r;
        stage->out_max = det_record_encoded_max(stage->out);
    }
    det_flow_turn_init(&stage->turn, allocator, ring, stage->out ? stage->out->size : 1);
    return 0;
}

bool det_stage_needs_pool(const struct det_flow_stage *stage)
{
    return stage->functions.open || stage->functions.close || (stage->flags & DET_STAGE_ASYNC);
}

static int open_pool_part(struct det_flow_stage *stage)
{
    struct det_world *world = stage->pipeline->world;
    int r;

    if (!det_stage_needs_pool(stage))
        return 0;
    r = det_mutex_open(world, &stage->pool.mutex);
    if (r == 0)
        r = det_condition_open(world, &stage->pool.changed);
    if (r == 0)
        r = det_flow_job_open(stage, 0, &stage->pool.life);
    return r;
}

int det_stage_open(struct det_flow_stage *stage, struct det_error *reterr)
{
    const struct det_stage_kind_def *kind = det_stage_kind_of(stage->spec->kind);
    int r;

    stage->wake_post.run = wake_on_loop;
    stage->wake_post.argument = stage;
    det_flow_call_init(&stage->call, stage, &stage->turn);
    stage->marks =
        DET_NEW_ARRAY(stage->pipeline->allocator, stage->input_count, struct det_input_mark);
    r = stage->marks ? 0 : DET_ERR_NO_MEMORY;
    if (r == 0)
        r = open_cursor(stage);
    if (r == 0)
        r = open_outputs(stage);
    if (r == 0)
        r = open_pool_part(stage);
    if (r < 0)
        return det_error_set(reterr, r, "stage %s: %s", stage->spec->name, det_error_text(r));
    r = open_streams(stage, reterr);
    if (r == 0 && kind->open)
        r = kind->open(stage, reterr);
    return r;
}

void det_stage_close(struct det_flow_stage *stage)
{
    const struct det_stage_kind_def *kind = det_stage_kind_of(stage->spec->kind);
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct det_world *world = stage->pipeline->world;

    if (kind->close)
        kind->close(stage);
    for (uint32_t i = 0; i < stage->pool.job_count; i++)
        det_flow_job_close(stage->pool.jobs[i]);
    DET_DELETE_ARRAY(allocator, stage->pool.jobs, stage->pool.job_count);
    det_flow_job_close(stage->pool.life);
    det_condition_close(world, stage->pool.changed);
    det_mutex_close(world, stage->pool.mutex);
    det_flow_turn_deinit(&stage->turn);
    det_ring_deinit(&stage->ring);
    close_cursor(stage);
    if (stage->marks)
        DET_DELETE_ARRAY(allocator, stage->marks, stage->input_count);
    if (stage->inputs)
        DET_DELETE_ARRAY(allocator, stage->inputs, stage->input_count);
    if (stage->outputs)
        DET_DELETE_ARRAY(allocator, stage->outputs, stage->output_count);
}

int det_stage_open_jobs(struct det_flow_stage *stage, uint32_t count, uint32_t inputs)
{
    struct det_stage_pool *pool = &stage->pool;
    int r = 0;

    pool->jobs = DET_NEW_ARRAY(stage->pipeline->allocator, count, struct det_flow_job *);
    if (!pool->jobs)
        return DET_ERR_NO_MEMORY;
    pool->job_count = count;
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = det_flow_job_open(stage, inputs, &pool->jobs[i]);
    return r;
}

/* ---- open and close on the pool */

static int run_open(struct det_flow_job *job)
{
    det_flow_call_begin(&job->call, NULL, NULL, NULL);
    return job->call.stage->functions.open(&job->call.base);
}

static int run_close(struct det_flow_job *job)
{
    det_flow_call_begin(&job->call, NULL, NULL, NULL);
    job->call.stage->functions.close(&job->call.base);
    return 0;
}

void det_stage_start_opening(struct det_flow_stage *stage)
{
    if (stage->functions.open)
        det_flow_job_submit(stage->pool.life, run_open);
}

static void share_self(struct det_flow_stage *stage)
{
    void *self = stage->pool.life->call.base.self;

    stage->call.base.self = self;
    for (uint32_t i = 0; i < stage->pool.job_count; i++)
        stage->pool.jobs[i]->call.base.self = self;
}

/* Takes the result of open(). */
static int finish_open(struct det_flow_stage *stage)
{
    struct det_flow_job *job = stage->pool.life;

    job->phase = DET_JOB_FREE;
    if (job->result < 0 && job->call.is_failed)
        return det_component_fail(&stage->component, job->result, "%s", job->call.text);
    if (job->result < 0)
        return det_component_fail(
            &stage->component, job->result, "open: %s",
            job->call.is_rejected ? job->call.text : det_error_text(job->result));
    stage->is_open = true;
    share_self(stage);
    return 1;
}

int det_stage_opening(struct det_flow_stage *stage)
{
    if (!stage->functions.open) {
        stage->is_open = true;
        return 1;
    }
    return stage->pool.life->phase == DET_JOB_DONE ? finish_open(stage) : 0;
}

static bool has_running_job(const struct det_flow_stage *stage)
{
    const struct det_stage_pool *pool = &stage->pool;

    for (uint32_t i = 0; i < pool->job_count; i++) {
        if (pool->jobs[i]->phase == DET_JOB_RUNNING)
            return true;
    }
    return pool->life && pool->life->phase == DET_JOB_RUNNING;
}

int det_stage_closing(struct det_flow_stage *stage)
{
    struct det_flow_job *life = stage->pool.life;

    if (has_running_job(stage))
        return 0;
    if (life && life->phase == DET_JOB_DONE && life->run == run_open)
        (void)finish_open(stage);
    if (life && life->phase == DET_JOB_DONE)
        return 1;
    if (!stage->is_open || !stage->functions.close)
        return 1;
    stage->is_open = false;
    det_flow_job_submit(life, run_close);
    return 0;
}

void det_stage_interrupt(struct det_flow_stage *stage)
{
    det_stage_cancel(stage);
}

void det_stage_cancel(struct det_flow_stage *stage)
{
    struct det_world *world = stage->pipeline->world;

    if (!stage->pool.mutex)
        return;
    det_mutex_lock(world, stage->pool.mutex);
    atomic_store(&stage->pool.is_cancelled, true);
    det_condition_broadcast(world, stage->pool.changed);
    det_mutex_unlock(world, stage->pool.mutex);
}

/* ---- the end of the output */

static int run_drain(struct det_flow_job *job)
{
    det_flow_call_begin(&job->call, NULL, NULL, NULL);
    return job->call.stage->functions.drain(&job->call.base);
}

/* A drain that fails is a failure of the stage. */
static int check_drain(struct det_flow_stage *stage, struct det_flow_call *call, int r)
{
    if (r >= 0)
        return 1;
    if (call->is_failed || call->is_rejected)
        return det_component_fail(&stage->component, r, "drain: %s", call->text);
    return det_component_fail(&stage->component, r, "drain: %s", det_error_text(r));
}

/* 1: drain() has returned, and its rows are in the turn. */
static int drain_on_pool(struct det_flow_stage *stage)
{
    struct det_flow_job *job = stage->pool.jobs[0];
    int r;

    if (job->phase == DET_JOB_FREE) {
        atomic_store(&stage->pool.is_cancelled, false);
        det_flow_turn_begin(&job->turn);
        det_flow_job_submit(job, run_drain);
    }
    if (job->phase == DET_JOB_RUNNING)
        return 0;
    job->phase = DET_JOB_FREE;
    r = check_drain(stage, &job->call, job->result);
    if (r < 0)
        return r;
    r = det_flow_turn_take(&stage->turn, &job->turn, stage->stream);
    return r < 0 ? r : 1;
}

static int drain_functions(struct det_flow_stage *stage)
{
    if (!stage->functions.drain)
        return 1;
    if (stage->flags & DET_STAGE_ASYNC)
        return drain_on_pool(stage);
    det_flow_call_begin(&stage->call, NULL, NULL, NULL);
    return check_drain(stage, &stage->call, stage->functions.drain(&stage->call.base));
}

int det_stage_finish(struct det_flow_stage *stage, enum det_end_kind end)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (stage->kept.end != DET_END_NONE || (stage->is_drained && !stage->out))
        return 1;
    det_stage_begin_turn(stage);
    r = stage->is_drained ? 1 : drain_functions(stage);
    if (r <= 0)
        return r;
    stage->is_drained = true;
    /* In the group of what drain() has emitted: a crash between them would emit it twice. */
    r = stage->out ? det_stage_write_end(stage, end) : 0;
    return r < 0 ? r : det_stage_commit(stage);
}

void det_stage_begin_turn(struct det_flow_stage *stage)
{
    det_flow_turn_begin(&stage->turn);
    stage->is_blocked = false;
    stage->waits_for_journal = false;
    stage->call.base.now = det_world_now(stage->pipeline->world, DET_CLOCK_WALL);
}

/* ---- reports */

static void report(struct det_flow_stage *stage, enum det_flow_fact_kind kind, const char *reason)
{
    det_facts_add(stage->pipeline, kind, stage, reason);
    det_pipeline_notice(stage->pipeline);
}

void det_stage_report_opened(struct det_flow_stage *stage)
{
    stage->pipeline->reports.opened++;
    det_pipeline_notice(stage->pipeline);
}

void det_stage_report_running(struct det_flow_stage *stage)
{
    stage->pipeline->reports.running++;
    report(stage, DET_FLOW_FACT_STAGE_RUNNING, "");
}

void det_stage_report_draining(struct det_flow_stage *stage)
{
    report(stage, DET_FLOW_FACT_STAGE_DRAINING, "");
}

void det_stage_report_completed(struct det_flow_stage *stage)
{
    stage->pipeline->reports.completed++;
    if (stage->spec->kind == DET_STAGE_SOURCE)
        stage->pipeline->reports.sources_ended++;
    report(stage, DET_FLOW_FACT_STAGE_COMPLETED, "");
}

void det_stage_report_cancelled(struct det_flow_stage *stage)
{
    report(stage, DET_FLOW_FACT_STAGE_CANCELLED, stage->pipeline->intent.reason);
}

void det_stage_note_failure(struct det_flow_stage *stage)
{
    const struct det_failure *failure = det_component_failure(&stage->component);

    stage->failure.code = failure->code;
    det_flow_reason(failure, stage->failure.text);
    atomic_store(&stage->shown.has_failed, true);
    det_stage_cancel(stage);
    if (!stage->pipeline->reports.failed)
        stage->pipeline->reports.failed = stage;
    report(stage, DET_FLOW_FACT_STAGE_FAILED, stage->failure.text);
}

void det_stage_report_ended(struct det_flow_stage *stage)
{
    stage->pipeline->reports.ended++;
    det_pipeline_notice(stage->pipeline);
}
