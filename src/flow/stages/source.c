/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* source.c - sources: the functions that source.fsm names.
 *
 *     on the loop:   credit? -> next(), next(), ... -> one group: rows, errors, cursor
 *     asynchronous:  credit? -> a job on the pool: next() -> the group, on the loop
 *
 * A source is called when it has asked for it: after MORE at once, after IDLE when it is woken or
 * its time has come, after an error when a pause is over. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

#define FSM_LOCAL
#define FSM_SPEC "flow/stages/source.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "flow/stages/source.fsm"
#include <detent/fsm/define.h>

#define STAGE flow_source
#define STAGE_IS_SOURCE
#include "flow/stages/stage_actions.h"

/* After errors, one after the other. */
#define PAUSE_FIRST (100 * DET_MILLISECOND)
#define PAUSE_MAX   (10 * DET_SECOND)
/* Calls of an asynchronous next() in one job: as long as they do not block. */
#define BURST_SPAN (20 * DET_MICROSECOND)
#define BURST_MAX  DET_MILLISECOND
/* Groups that are not acknowledged; later ones are counted with the last. */
#define UNACKNOWLEDGED 64

struct source_group {
    uint64_t position, sequence;
};

struct flow_source {
    bool has_ended;    /* no more calls */
    bool is_idle;      /* until it is woken, or `due` */
    bool is_truncated; /* the flow has ended it */
    bool is_joined;    /* draining: the last next() on the pool has returned */
    det_time due;      /* monotonic */
    det_time pause;    /* of the last error */
    struct source_group groups[UNACKNOWLEDGED];
    uint32_t first, count;
};

static int open_source(struct det_flow_stage *stage, struct det_error *reterr)
{
    struct flow_source *source = DET_NEW(stage->pipeline->allocator, struct flow_source);
    int r = 0;

    stage->particular = source;
    if (source && (stage->flags & DET_STAGE_ASYNC))
        r = det_stage_open_jobs(stage, 1, 0);
    if (!source || r < 0)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "out of memory for source %s", stage->spec->name);
    return 0;
}

static void close_source(struct det_flow_stage *stage)
{
    if (stage->particular)
        DET_DELETE(stage->pipeline->allocator, (struct flow_source *)stage->particular);
}

/* ---- acknowledgements */

void det_source_note_group(struct det_flow_stage *stage)
{
    struct flow_source *source = stage->particular;
    struct source_group *last;

    if (!stage->functions.acknowledged)
        return;
    if (source->count < UNACKNOWLEDGED)
        source->count++;
    last = &source->groups[(source->first + source->count - 1) % UNACKNOWLEDGED];
    last->position = stage->last_position;
    last->sequence = stage->ring.written;
    det_source_acknowledge(stage);
}

void det_source_acknowledge(struct det_flow_stage *stage)
{
    struct flow_source *source = stage->particular;
    uint64_t position = det_journal_acknowledged(stage->pipeline->journal), sequence = 0;

    while (source->count > 0 && source->groups[source->first].position <= position) {
        sequence = source->groups[source->first].sequence;
        source->first = (source->first + 1) % UNACKNOWLEDGED;
        source->count--;
    }
    if (sequence > 0 && stage->is_open) {
        det_flow_call_begin(&stage->call, NULL, NULL, NULL);
        stage->functions.acknowledged(&stage->call.base, sequence);
    }
}

/* ---- calls of next() */

static void pause_source(struct det_flow_stage *stage)
{
    struct flow_source *source = stage->particular;

    source->pause = source->pause ? 2 * source->pause : PAUSE_FIRST;
    if (source->pause > PAUSE_MAX)
        source->pause = PAUSE_MAX;
    source->is_idle = true;
    stage->is_woken = false;
    source->due = det_add_time(det_loop_now(stage->pipeline->loop), source->pause);
}

/* Takes the result of next(). */
static void note_result(struct det_flow_stage *stage, const struct det_flow_call *call, int r)
{
    struct flow_source *source = stage->particular;

    if (r < 0) {
        pause_source(stage);
        return;
    }
    source->pause = 0;
    source->has_ended = r == DET_SOURCE_DONE;
    source->is_idle = r == DET_SOURCE_IDLE;
    source->due = call->wake_at;
}

/* One call. Its result, or for a negative one 0 after its row was added to the errors, or the
 * failure of the stage in the call. */
static int call_next(struct det_flow_stage *stage, struct det_flow_call *call, int *ret_failure)
{
    int r;

    det_flow_call_begin(call, NULL, NULL, NULL);
    call->wake_at = DET_NEVER;
    r = stage->functions.next(&call->base, stage->cursor.value);
    *ret_failure = det_flow_call_end(call, r, NULL);
    return r;
}

static bool is_full(const struct det_flow_turn *turn)
{
    return turn->count >= DET_TURN_ROWS || turn->size >= DET_TURN_BYTES ||
           turn->outputs >= turn->room;
}

/* Until it is woken, or its time has come. */
static int park_source(struct det_flow_stage *stage)
{
    const struct flow_source *source = stage->particular;

    if (source->due == DET_NEVER)
        return DET_DIRECTIVE_CONTINUE;
    return det_component_wake_at(&stage->component, source->due);
}

/* True if it is to be called now; else the stage parks until it is. */
static int is_due(struct det_flow_stage *stage, bool *ret)
{
    struct flow_source *source = stage->particular;

    *ret = !source->is_idle || source->due <= det_loop_now(stage->pipeline->loop) ||
           (stage->is_woken && source->pause == 0);
    return *ret ? 0 : park_source(stage);
}

/* Begins a turn if there is credit. */
static bool begin_source_turn(struct det_flow_stage *stage)
{
    det_stage_begin_turn(stage);
    stage->is_blocked = stage->turn.room == 0;
    return !stage->is_blocked;
}

static int run_on_loop(struct det_flow_stage *stage)
{
    struct flow_source *source = stage->particular;
    int r = DET_SOURCE_MORE, failure = 0;

    stage->is_woken = false;
    while (r == DET_SOURCE_MORE && !is_full(&stage->turn))
        r = call_next(stage, &stage->call, &failure);
    if (failure < 0)
        return det_stage_fail_by(stage, &stage->call, failure);
    note_result(stage, &stage->call, r);
    r = det_stage_commit(stage);
    if (r <= 0)
        return r;
    return source->is_idle ? park_source(stage) : DET_DIRECTIVE_AGAIN;
}

/* ---- on the pool */

static int run_next_job(struct det_flow_job *job)
{
    struct det_flow_stage *stage = job->call.stage;
    det_time begin = det_world_now(job->call.base.world, DET_CLOCK_MONOTONIC), before, after;
    int r, failure = 0;

    job->call.base.now = det_world_now(job->call.base.world, DET_CLOCK_WALL);
    after = begin;
    do {
        before = after;
        r = call_next(stage, &job->call, &failure);
        after = det_world_now(job->call.base.world, DET_CLOCK_MONOTONIC);
    } while (r == DET_SOURCE_MORE && !is_full(&job->turn) && after - before < BURST_SPAN &&
             after - begin < BURST_MAX);
    return failure < 0 ? failure : r;
}

/* Joins what a job has made. 1: there was one. */
static int take_job(struct det_flow_stage *stage)
{
    struct det_flow_job *job = stage->pool.jobs[0];
    int r;

    if (job->phase != DET_JOB_DONE)
        return 0;
    job->phase = DET_JOB_FREE;
    if (job->call.is_failed)
        return det_stage_fail_by(stage, &job->call, job->result);
    det_stage_begin_turn(stage);
    r = det_flow_turn_take(&stage->turn, &job->turn, stage->stream);
    if (r < 0)
        return r;
    note_result(stage, &job->call, job->result);
    r = det_stage_commit(stage);
    return r < 0 ? r : 1;
}

static int submit_next(struct det_flow_stage *stage)
{
    struct det_flow_job *job = stage->pool.jobs[0];

    stage->is_woken = false;
    det_flow_turn_begin(&job->turn);
    job->turn.room = stage->turn.room;
    det_flow_job_submit(job, run_next_job);
    return DET_DIRECTIVE_CONTINUE;
}

/* ---- dispatch */

static bool has_running_next(const struct det_flow_stage *stage)
{
    return stage->pool.jobs[0]->phase == DET_JOB_RUNNING;
}

static int complete_source(struct flow_source_event *ret)
{
    *ret = flow_source_completed();
    return DET_DIRECTIVE_TRANSITION;
}

static int run_source(struct det_flow_stage *stage, struct flow_source_event *ret)
{
    struct flow_source *source = stage->particular;
    bool is_async = stage->flags & DET_STAGE_ASYNC, due;
    int r;

    if (stage->kept.end != DET_END_NONE)
        return complete_source(ret);
    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    r = is_async ? take_job(stage) : 0;
    if (r < 0 || stage->turn.is_complete)
        return r < 0 ? r : DET_DIRECTIVE_CONTINUE;
    if (source->has_ended)
        return complete_source(ret);
    if (is_async && has_running_next(stage))
        return DET_DIRECTIVE_CONTINUE;
    r = is_due(stage, &due);
    if (r < 0 || !due || !begin_source_turn(stage))
        return r < 0 ? r : DET_DIRECTIVE_CONTINUE;
    return is_async ? submit_next(stage) : run_on_loop(stage);
}

/* What next() has left is appended before the end; a blocked one is asked to return. */
static int drain_source(struct det_flow_stage *stage, struct flow_source_event *ret)
{
    struct flow_source *source = stage->particular;
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if ((stage->flags & DET_STAGE_ASYNC) && !source->is_joined) {
        if (has_running_next(stage))
            return DET_DIRECTIVE_CONTINUE;
        source->is_joined = true;
        r = take_job(stage);
        if (r < 0 || stage->turn.is_complete)
            return r < 0 ? r : DET_DIRECTIVE_CONTINUE;
    }
    r = det_stage_finish(stage, source->is_truncated ? DET_END_TRUNCATED : DET_END_NATURAL);
    if (r <= 0)
        return r;
    /* Who sent the last rows waits for their acknowledgement, which close() would end. */
    stage->waits_for_journal = stage->functions.acknowledged && source->count > 0;
    if (stage->waits_for_journal)
        return DET_DIRECTIVE_CONTINUE;
    *ret = flow_source_drain_complete();
    return DET_DIRECTIVE_TRANSITION;
}

static int truncate_output(
    struct det_flow_stage *stage, const struct flow_source_event *event,
    struct flow_source_event *ret)
{
    struct flow_source *source = stage->particular;

    (void)event;
    (void)ret;
    source->is_truncated = !source->has_ended;
    det_stage_interrupt(stage);
    return DET_EFFECT_DONE;
}

const struct det_stage_kind_def det_source_kind = {
    .component = &flow_source_component,
    .open = open_source,
    .close = close_source,
    .request = request_stage,
};
