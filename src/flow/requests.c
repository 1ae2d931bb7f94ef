/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* requests.c - what other threads ask of a pipeline: its state, its end, its counts. */
#include "base/assert.h"
#include "flow/flow_internal.h"

enum det_pipeline_state det_pipeline_state(const struct det_pipeline *pipeline)
{
    return (enum det_pipeline_state)det_handle_state(pipeline->handle);
}

int det_pipeline_wait_state(
    struct det_pipeline *pipeline, enum det_pipeline_state state, det_time deadline)
{
    for (;;) {
        uint64_t seen = det_handle_changes(pipeline->handle);
        int r;

        if (det_pipeline_state(pipeline) >= state || det_handle_has_ended(pipeline->handle))
            return 0;
        r = det_handle_wait_change(pipeline->handle, seen, deadline);
        if (r < 0)
            return r;
    }
}

int det_pipeline_wait(
    struct det_pipeline *pipeline, det_time deadline, struct det_pipeline_end *ret)
{
    int r = 0;

    det_mutex_lock(pipeline->world, pipeline->mutex);
    while (pipeline->end.outcome == DET_PIPELINE_RUNS && r == 0)
        r = deadline == 0
                ? DET_ERR_TIMEOUT
                : det_condition_wait(pipeline->world, pipeline->changed, pipeline->mutex, deadline);
    if (pipeline->end.outcome != DET_PIPELINE_RUNS)
        r = 0;
    if (r == 0 && ret)
        *ret = pipeline->end;
    det_mutex_unlock(pipeline->world, pipeline->mutex);
    return r;
}

/* On the loop, with nothing of the pipeline on the stack: on_end() may close it. */
static void report_end(void *argument)
{
    struct det_pipeline *pipeline = argument;
    struct det_pipeline_end end;

    det_mutex_lock(pipeline->world, pipeline->mutex);
    end = pipeline->end;
    pipeline->has_ended = true;
    det_condition_broadcast(pipeline->world, pipeline->changed);
    det_mutex_unlock(pipeline->world, pipeline->mutex);
    if (pipeline->options.on_end)
        pipeline->options.on_end(pipeline->options.user, &end);
}

void det_pipeline_check_end(struct det_pipeline *pipeline)
{
    if (pipeline->is_end_posted || pipeline->end.outcome == DET_PIPELINE_RUNS ||
        pipeline->reports.ended < pipeline->flow->stage_count)
        return;
    pipeline->is_end_posted = true;
    pipeline->end_post = (struct det_post){ .run = report_end, .argument = pipeline };
    det_loop_post(pipeline->loop, &pipeline->end_post);
}

void det_pipeline_publish_end(struct det_pipeline *pipeline, const struct det_pipeline_end *end)
{
    det_mutex_lock(pipeline->world, pipeline->mutex);
    pipeline->end = *end;
    det_condition_broadcast(pipeline->world, pipeline->changed);
    det_mutex_unlock(pipeline->world, pipeline->mutex);
    det_pipeline_check_end(pipeline);
}

static bool has_ended(struct det_pipeline *pipeline)
{
    bool ended;

    det_mutex_lock(pipeline->world, pipeline->mutex);
    ended = pipeline->has_ended;
    det_mutex_unlock(pipeline->world, pipeline->mutex);
    return ended;
}

/* The loop of the caller is turned here until then. */
void det_pipeline_wait_stages(struct det_pipeline *pipeline)
{
    if (!pipeline->owns_loop) {
        while (!has_ended(pipeline) && det_loop_turn(pipeline->loop, DET_NEVER) >= 0)
            continue;
        return;
    }
    det_mutex_lock(pipeline->world, pipeline->mutex);
    while (!pipeline->has_ended)
        (void)det_condition_wait(pipeline->world, pipeline->changed, pipeline->mutex, DET_NEVER);
    det_mutex_unlock(pipeline->world, pipeline->mutex);
}

static uint64_t shown_number(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void copy_stage(struct det_flow_stage *stage, struct det_stage_status *ret)
{
    const struct det_stage_shown *shown = &stage->shown;
    const struct det_machine *machine = det_stage_kind_of(stage->spec->kind)->component->machine;

    *ret = (struct det_stage_status){
        .name = stage->spec->name,
        .kind = stage->spec->kind,
        .state = machine->states[atomic_load(&shown->state)].name,
        .reason = atomic_load(&shown->has_failed) ? stage->failure.text : "",
        .end = (enum det_end_kind)atomic_load(&shown->end),
        .rows_in = shown_number(&shown->rows_in),
        .rows_out = shown_number(&shown->rows_out),
        .errors = shown_number(&shown->errors),
        .rejected = shown_number(&shown->rejected),
        .keys = shown_number(&shown->keys),
        .turns = shown_number(&shown->turns),
        .blocked = shown_number(&shown->blocked),
        .last_at = (det_time)atomic_load_explicit(&shown->last_at, memory_order_relaxed),
    };
    ret->errors += ret->rejected;
}

static void copy_edge(const struct det_flow_edge *edge, struct det_edge_status *ret)
{
    /* In this order: a reader is never after its writer. */
    uint64_t read = shown_number(&edge->shown.read);
    uint64_t written = shown_number(&edge->shown.written);
    uint64_t lag = written > read ? written - read : 0;
    uint32_t window = edge->from->ring.window;

    *ret = (struct det_edge_status){
        .from = edge->from->index,
        .to = edge->to->index,
        .written = written,
        .read = read,
        .lag = (uint32_t)lag,
        .credit = lag < window ? (uint32_t)(window - lag) : 0,
        .window = window,
    };
}

int det_pipeline_status(
    struct det_pipeline *pipeline, struct det_stage_status *stages, size_t *stage_count,
    struct det_edge_status *edges, size_t *edge_count)
{
    const struct det_flow *flow = pipeline->flow;

    for (size_t i = 0; i < *stage_count && i < flow->stage_count; i++)
        copy_stage(&pipeline->stages[i], &stages[i]);
    for (size_t i = 0; i < *edge_count && i < flow->edge_count; i++)
        copy_edge(&pipeline->edges[i], &edges[i]);
    *stage_count = flow->stage_count;
    *edge_count = flow->edge_count;
    return 0;
}

uint64_t det_pipeline_run_number(const struct det_pipeline *pipeline)
{
    return pipeline->run_number;
}

struct det_journal *det_pipeline_journal(struct det_pipeline *pipeline)
{
    return pipeline->journal;
}
