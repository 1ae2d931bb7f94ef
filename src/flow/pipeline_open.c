/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pipeline_open.c - makes a pipeline of a flow and its options: stages and edges, the journal of
 * the run, what the log says, the components; and takes it apart again.
 *
 * Everything is made on the calling thread; then the loop starts. Closing goes the other way: the
 * component ends, stages end, the pool, the loop, the rest. A message of a stage may still be under
 * way on a loop that goes on, so the memory is freed by a message after it. */
#include <detent/driver/loop.h>

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "flow/flow_internal.h"

#define THREADS 4

/* ---- stages and edges */

/* Connectors of several kinds may have one name. Returns one of another kind if there is no
 * other. */
static const struct det_connector *find_connector(
    const struct det_pipeline *pipeline, const struct det_stage *spec)
{
    const struct det_connector *const *connector = pipeline->options.connectors;
    const struct det_connector *found = NULL;

    for (; connector && *connector; connector++) {
        if (strcmp((*connector)->name, spec->use) != 0)
            continue;
        found = *connector;
        if (found->kinds & 1u << spec->kind)
            break;
    }
    return found;
}

/* The connector that makes the record of the states; NULL: none does. */
static const struct det_connector *state_maker(const struct det_flow_stage *stage)
{
    const struct det_connector *connector =
        stage->spec->use ? find_connector(stage->pipeline, stage->spec) : NULL;

    return connector && connector->open_state ? connector : NULL;
}

int det_stage_state_open(
    const struct det_flow_stage *stage, const struct det_record **ret, struct det_error *reterr)
{
    const struct det_record *record = det_record_of(stage->spec->state);
    const struct det_connector *connector = state_maker(stage);

    if (connector)
        return connector->open_state(stage->spec, stage->pipeline->allocator, ret, reterr);
    if (!record && stage->spec->use)
        record = det_record_of(find_connector(stage->pipeline, stage->spec)->state);
    if (!record)
        return det_error_set(
            reterr, DET_ERR_DEFINITION, "stage %s has no state", stage->spec->name);
    *ret = record;
    return 0;
}

void det_stage_state_close(const struct det_flow_stage *stage, const struct det_record *record)
{
    const struct det_connector *connector = state_maker(stage);

    if (record && connector)
        connector->close_state(record, stage->pipeline->allocator);
}

static int set_functions(struct det_flow_stage *stage, struct det_error *reterr)
{
    const struct det_stage *spec = stage->spec;
    const struct det_connector *connector;

    stage->flags = spec->flags;
    stage->cursor.record = det_record_of(spec->cursor);
    if (!spec->use) {
        if (!spec->functions)
            return det_error_set(
                reterr, DET_ERR_UNBOUND, "stage %s has neither functions nor a connector",
                spec->name);
        stage->functions = *spec->functions;
        return 0;
    }
    connector = find_connector(stage->pipeline, spec);
    if (!connector)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "stage %s uses the connector %s, which there is not",
            spec->name, spec->use);
    if (!(connector->kinds & 1u << spec->kind))
        return det_error_set(
            reterr, DET_ERR_DEFINITION,
            "stage %s cannot use the connector %s: it is of another kind", spec->name, spec->use);
    stage->functions = connector->functions;
    stage->flags |= connector->flags;
    if (!stage->cursor.record)
        stage->cursor.record = det_record_of(connector->cursor);
    return 0;
}

/* Every kind has a function that it cannot do without. */
static int check_functions(const struct det_flow_stage *stage, struct det_error *reterr)
{
    const struct det_stage_functions *functions = &stage->functions;
    bool has[DET_STAGE_KINDS] = {
        [DET_STAGE_SOURCE] = functions->next != NULL,
        [DET_STAGE_TRANSFORM] = functions->process != NULL,
        [DET_STAGE_STATEFUL] = functions->accumulate && functions->emit,
        [DET_STAGE_JOIN] = functions->join != NULL,
        [DET_STAGE_SINK] = functions->deliver != NULL,
    };
    static const char *const names[DET_STAGE_KINDS] = {
        [DET_STAGE_SOURCE] = "next()",
        [DET_STAGE_TRANSFORM] = "process()",
        [DET_STAGE_STATEFUL] = "accumulate() and emit()",
        [DET_STAGE_JOIN] = "join()",
        [DET_STAGE_SINK] = "deliver()",
    };

    if (has[stage->spec->kind])
        return 0;
    return det_error_set(
        reterr, DET_ERR_UNBOUND, "stage %s has no %s", stage->spec->name, names[stage->spec->kind]);
}

static bool is_reserved(const char *name)
{
    return strcmp(name, "system") == 0 || strcmp(name, "checkpoints") == 0 ||
           strcmp(name, "main") == 0;
}

static int describe_stage(struct det_flow_stage *stage, struct det_error *reterr)
{
    int r;

    if (stage->spec->with && stage->spec->with[0])
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "stage %s has the middleware %s, which cannot run yet",
            stage->spec->name, stage->spec->with[0]);

    if (is_reserved(stage->spec->name))
        return det_error_set(
            reterr, DET_ERR_DEFINITION, "a stage cannot have the name %s: it is that of a stream",
            stage->spec->name);
    stage->in = det_record_of(stage->spec->in);
    stage->reference = det_record_of(stage->spec->reference);
    stage->out = det_record_of(stage->spec->out);
    r = set_functions(stage, reterr);
    return r < 0 ? r : check_functions(stage, reterr);
}

static int allocate_stages(struct det_pipeline *pipeline)
{
    const struct det_flow *flow = pipeline->flow;

    pipeline->stages = DET_NEW_ARRAY(pipeline->allocator, flow->stage_count, struct det_flow_stage);
    pipeline->edges = DET_NEW_ARRAY(pipeline->allocator, flow->edge_count, struct det_flow_edge);
    if (!pipeline->stages || !pipeline->edges)
        return DET_ERR_NO_MEMORY;
    for (uint16_t i = 0; i < flow->stage_count; i++) {
        pipeline->stages[i].pipeline = pipeline;
        pipeline->stages[i].spec = &flow->stages[i];
        pipeline->stages[i].index = i;
        pipeline->source_count =
            (uint16_t)(pipeline->source_count + (flow->stages[i].kind == DET_STAGE_SOURCE));
    }
    for (uint16_t i = 0; i < flow->edge_count; i++) {
        struct det_flow_edge *edge = &pipeline->edges[i];

        edge->from = &pipeline->stages[flow->edges[i].from];
        edge->to = &pipeline->stages[flow->edges[i].to];
        edge->flags = flow->edges[i].flags;
        edge->from->output_count++;
        edge->to->input_count++;
    }
    return 0;
}

/* Gives each stage its edges, in their order in the flow. */
static int link_edges(struct det_pipeline *pipeline)
{
    const struct det_flow *flow = pipeline->flow;

    for (uint16_t i = 0; i < flow->stage_count; i++) {
        struct det_flow_stage *stage = &pipeline->stages[i];

        stage->inputs =
            DET_NEW_ARRAY(pipeline->allocator, stage->input_count, struct det_flow_edge *);
        stage->outputs =
            DET_NEW_ARRAY(pipeline->allocator, stage->output_count, struct det_flow_edge *);
        if (!stage->inputs || !stage->outputs)
            return DET_ERR_NO_MEMORY;
    }
    for (uint16_t i = 0; i < flow->stage_count; i++)
        pipeline->stages[i].input_count = pipeline->stages[i].output_count = 0;
    for (uint16_t i = 0; i < flow->edge_count; i++) {
        struct det_flow_edge *edge = &pipeline->edges[i];

        edge->to->inputs[edge->to->input_count++] = edge;
        edge->from->outputs[edge->from->output_count++] = edge;
    }
    return 0;
}

static int open_stages(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r = 0;

    for (uint16_t i = 0; i < pipeline->flow->stage_count && r == 0; i++) {
        struct det_flow_stage *stage = &pipeline->stages[i];

        r = det_stage_open(stage, reterr);
        for (uint32_t j = 0; j < stage->output_count && r == 0; j++) {
            r = det_ring_add(&stage->ring, &stage->outputs[j]->reader);
            if (r < 0)
                (void)det_error_set(reterr, r, "out of memory for a flow");
        }
    }
    return r;
}

/* ---- the parts around them */

static int check_options(const struct det_pipeline_options *options, struct det_error *reterr)
{
    if (options->window > DET_PIPELINE_WINDOW_MAX || options->threads > DET_PIPELINE_THREADS_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "a flow has a window of at most %d rows and at most %d threads",
            DET_PIPELINE_WINDOW_MAX, DET_PIPELINE_THREADS_MAX);
    if (options->stop_timeout < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "stop_timeout is negative");
    return det_reserved_check(options->reserved, "a pipeline", reterr);
}

static int check_cycles(const struct det_flow *flow, struct det_error *reterr)
{
    for (uint16_t i = 0; i < flow->edge_count; i++) {
        if (flow->edges[i].flags & DET_EDGE_BACK)
            return det_error_set(
                reterr, DET_ERR_UNSUPPORTED,
                "the edge from %s back to %s makes a cycle; flows with cycles cannot run yet",
                flow->stages[flow->edges[i].from].name, flow->stages[flow->edges[i].to].name);
    }
    return 0;
}

static int open_loop(struct det_pipeline *pipeline)
{
    if (pipeline->options.loop) {
        pipeline->loop = pipeline->options.loop;
        pipeline->world = det_loop_world(pipeline->loop);
        return 0;
    }
    pipeline->owns_loop = true;
    return det_loop_open(pipeline->world, pipeline->allocator, &pipeline->loop);
}

/* The states of stages, for other threads. */
static void observe_step(
    void *observer, const struct det_component *component, unsigned from, unsigned to, int event)
{
    const struct det_pipeline *pipeline = observer;
    struct det_flow_stage *stage;

    (void)from;
    (void)event;
    if (component == &pipeline->component)
        return;
    stage = DET_CONTAINER((uintptr_t)component, struct det_flow_stage, component);
    atomic_store(&stage->shown.state, to);
}

static int open_base(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r;

    r = open_loop(pipeline);
    if (r == 0)
        r = det_mutex_open(pipeline->world, &pipeline->mutex);
    if (r == 0)
        r = det_condition_open(pipeline->world, &pipeline->changed);
    if (r == 0)
        r = allocate_stages(pipeline);
    if (r == 0)
        r = link_edges(pipeline);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot open flow %s: %s", pipeline->flow->name, det_error_text(r));
    return det_executor_open(
        pipeline->loop,
        &(struct det_executor_options){
            .allocator = pipeline->allocator, .observe = observe_step, .observer = pipeline },
        &pipeline->executor, reterr);
}

static int open_pool(struct det_pipeline *pipeline, struct det_error *reterr)
{
    unsigned threads = pipeline->options.threads ? pipeline->options.threads : THREADS;
    bool is_needed = false;
    int r;

    for (uint16_t i = 0; i < pipeline->flow->stage_count; i++)
        is_needed = is_needed || det_stage_needs_pool(&pipeline->stages[i]);
    if (!is_needed)
        return 0;
    r = det_pool_open_growing(pipeline->world, pipeline->allocator, 1, threads, &pipeline->pool);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot start threads for flow %s: %s", pipeline->flow->name,
            det_error_text(r));
    return 0;
}

/* More is acknowledged, or there is room, or the journal has failed. */
static void journal_changed(void *argument)
{
    struct det_pipeline *pipeline = argument;

    for (uint16_t i = 0; i < pipeline->flow->stage_count; i++) {
        struct det_flow_stage *stage = &pipeline->stages[i];

        if (stage->waits_for_journal)
            det_component_wake(&stage->component);
        if (stage->functions.acknowledged)
            det_source_acknowledge(stage);
    }
    (void)det_facts_flush(pipeline);
    det_checkpoint_acknowledged(pipeline);
    det_component_wake(&pipeline->component);
}

static int watch_journal(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r;

    pipeline->watcher.loop = pipeline->loop;
    pipeline->watcher.run = journal_changed;
    pipeline->watcher.argument = pipeline;
    r = det_journal_watch(pipeline->journal, &pipeline->watcher);
    if (r < 0)
        return det_error_set(reterr, r, "out of memory for a flow");
    pipeline->is_watching = true;
    return 0;
}

static int open_run(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r = 0;

    for (uint16_t i = 0; i < pipeline->flow->stage_count && r == 0; i++)
        r = describe_stage(&pipeline->stages[i], reterr);
    if (r == 0)
        r = det_run_open(pipeline, reterr);
    if (r == 0)
        r = det_facts_open(pipeline, reterr);
    if (r == 0)
        r = open_stages(pipeline, reterr);
    if (r == 0)
        r = det_checkpoints_open(pipeline, reterr);
    if (r == 0)
        r = pipeline->is_resumed ? det_run_restore(pipeline, reterr)
                                 : det_run_begin(pipeline, reterr);
    if (r == 0)
        det_facts_add(
            pipeline, DET_FLOW_FACT_OPENED, NULL, pipeline->is_resumed ? "resumed" : "begun");
    return r;
}

static int supervise_all(struct det_pipeline *pipeline, struct det_error *reterr)
{
    static const struct det_supervise_options stage_options = { .without_handle = true };
    int r = 0;

    for (uint16_t i = 0; i < pipeline->flow->stage_count && r == 0; i++) {
        struct det_flow_stage *stage = &pipeline->stages[i];

        r = det_supervise(
            pipeline->executor, det_stage_kind_of(stage->spec->kind)->component, stage,
            &stage_options, NULL, reterr);
    }
    if (r == 0)
        r = det_supervise(
            pipeline->executor, det_pipeline_component_def, pipeline, NULL, &pipeline->handle,
            reterr);
    return r;
}

static int start_loop(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r;

    if (!pipeline->owns_loop)
        return 0;
    r = det_loop_start(pipeline->loop, pipeline->flow->name);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot start a thread for flow %s: %s", pipeline->flow->name,
            det_error_text(r));
    pipeline->is_loop_started = true;
    return 0;
}

/* ---- closing */

static void free_pipeline(void *argument)
{
    struct det_pipeline *pipeline = argument;
    const struct det_allocator *allocator = pipeline->allocator;

    /* The flow may be gone: its owner waits for det_pipeline_close() only. */
    if (pipeline->stages)
        DET_DELETE_ARRAY(allocator, pipeline->stages, pipeline->stage_count);
    if (pipeline->edges)
        DET_DELETE_ARRAY(allocator, pipeline->edges, pipeline->edge_count);
    det_condition_close(pipeline->world, pipeline->changed);
    det_mutex_close(pipeline->world, pipeline->mutex);
    det_free_string(allocator, pipeline->folder);
    DET_DELETE(allocator, pipeline);
}

/* After every stage has ended, or none has begun. */
static void close_parts(struct det_pipeline *pipeline)
{
    bool has_stages = pipeline->stages && pipeline->edges;

    det_handle_close(pipeline->handle);
    if (pipeline->pool)
        det_pool_close(pipeline->pool);
    if (pipeline->is_loop_started)
        det_loop_stop(pipeline->loop);
    det_executor_close(pipeline->executor);
    if (pipeline->is_watching)
        det_journal_unwatch(pipeline->journal, &pipeline->watcher);
    for (uint16_t i = 0; has_stages && i < pipeline->flow->stage_count; i++)
        det_stage_close(&pipeline->stages[i]);
    det_checkpoints_close(pipeline);
    det_facts_close(pipeline);
    det_journal_close(pipeline->journal);
}

static void close_all(struct det_pipeline *pipeline)
{
    struct det_loop *loop = pipeline->loop;

    close_parts(pipeline);
    if (loop && !pipeline->owns_loop) {
        pipeline->free_post = (struct det_post){ .run = free_pipeline, .argument = pipeline };
        det_loop_post(loop, &pipeline->free_post);
        return;
    }
    /* Runs the messages that are under way. */
    det_loop_close(loop);
    free_pipeline(pipeline);
}

void det_pipeline_close(struct det_pipeline *pipeline)
{
    if (!pipeline)
        return;
    (void)det_pipeline_cancel(pipeline);
    det_pipeline_wait_stages(pipeline);
    close_all(pipeline);
}

int det_pipeline_open(
    const struct det_flow *flow, const struct det_pipeline_options *options,
    struct det_pipeline **ret, struct det_error *reterr)
{
    static const struct det_pipeline_options zero;
    struct det_pipeline *pipeline;
    int r;

    options = options ? options : &zero;
    r = check_options(options, reterr);
    if (r == 0)
        r = det_flow_check(flow, reterr);
    if (r == 0)
        r = check_cycles(flow, reterr);
    if (r < 0)
        return r;
    pipeline = DET_NEW(options->allocator, struct det_pipeline);
    if (!pipeline)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for flow %s", flow->name);
    pipeline->flow = flow;
    pipeline->stage_count = flow->stage_count;
    pipeline->edge_count = flow->edge_count;
    pipeline->options = *options;
    pipeline->allocator = options->allocator;
    pipeline->world = det_world_or_real(options->world);
    pipeline->intent.deadline = DET_NEVER;
    r = open_base(pipeline, reterr);
    if (r == 0)
        r = open_run(pipeline, reterr);
    if (r == 0)
        r = open_pool(pipeline, reterr);
    if (r == 0)
        r = watch_journal(pipeline, reterr);
    if (r == 0)
        r = supervise_all(pipeline, reterr);
    if (r == 0)
        r = start_loop(pipeline, reterr);
    if (r < 0) {
        close_all(pipeline);
        return r;
    }
    *ret = pipeline;
    r = det_pipeline_materialize(pipeline);
    det_assert(r == 0);
    return 0;
}
