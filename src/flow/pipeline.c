/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pipeline.c - the supervisor of a flow: the functions that pipeline.fsm names.
 *
 * Stages report by counts (struct det_pipeline_reports) and wake this component; it asks stages by
 * offering them events. So neither waits for the other, and a report is never lost. A failure of a
 * stage or of the journal is an error of a dispatch function, which drives the machine.
 *
 * The end has three steps: every stage has ended; the last fact and a checkpoint are appended; they
 * are acknowledged. Only then is the machine in a final state. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "flow/flow_internal.h"

#define FSM_LOCAL
#define FSM_SPEC "flow/pipeline.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "flow/pipeline.fsm"
#include <detent/fsm/define.h>

#define STOP_TIMEOUT (30 * DET_SECOND)

#define SAME_STATE(name) \
    _Static_assert((int)DET_PIPELINE_##name == (int)PIPELINE_##name, "states of the spec and API")
SAME_STATE(CREATED);
SAME_STATE(MATERIALIZING);
SAME_STATE(MATERIALIZED);
SAME_STATE(READY);
SAME_STATE(RUNNING);
SAME_STATE(SOURCE_COMPLETED);
SAME_STATE(ABORT_REQUESTED);
SAME_STATE(DRAINING);
SAME_STATE(DRAINED);
SAME_STATE(FAILED);
SAME_STATE(CANCELLED);

const struct det_component_def *const det_pipeline_component_def = &pipeline_component;

const char *det_pipeline_state_name(enum det_pipeline_state state)
{
    return (unsigned)state < pipeline_state_count ? pipeline_machine.states[state].name : "unknown";
}

void det_pipeline_notice(struct det_pipeline *pipeline)
{
    det_component_wake(&pipeline->component);
    det_pipeline_check_end(pipeline);
}

static uint16_t stage_count(const struct det_pipeline *pipeline)
{
    return pipeline->flow->stage_count;
}

static void request_all(
    struct det_pipeline *pipeline, enum det_stage_request request, bool sources, bool others)
{
    for (uint16_t i = 0; i < stage_count(pipeline); i++) {
        struct det_flow_stage *stage = &pipeline->stages[i];
        bool is_source = stage->spec->kind == DET_STAGE_SOURCE;

        if (is_source ? sources : others)
            det_stage_kind_of(stage->spec->kind)->request(stage, request);
    }
}

void det_pipeline_totals(
    const struct det_pipeline *pipeline, uint64_t *rows_in, uint64_t *rows_out, uint64_t *errors)
{
    *rows_in = *rows_out = *errors = 0;
    for (uint16_t i = 0; i < stage_count(pipeline); i++) {
        const struct det_flow_stage *stage = &pipeline->stages[i];

        *errors += stage->kept.errors + stage->kept.rejected;
        if (stage->spec->kind == DET_STAGE_SOURCE)
            *rows_in += stage->kept.rows_out;
        for (uint32_t j = 0; j < stage->input_count; j++) {
            if (stage->spec->kind == DET_STAGE_SINK)
                *rows_out += stage->inputs[j]->done.rows;
        }
    }
}

/* ---- intents */

static void set_reason(struct det_pipeline *pipeline, const char *reason)
{
    struct det_pipeline_intent *intent = &pipeline->intent;

    if (intent->reason[0] == '\0')
        (void)det_text_copy(intent->reason, sizeof intent->reason, reason);
}

static det_time deadline_of(const struct det_pipeline *pipeline, det_time timeout)
{
    if (timeout == 0)
        timeout = pipeline->options.stop_timeout ? pipeline->options.stop_timeout : STOP_TIMEOUT;
    return det_add_time(det_loop_now(pipeline->loop), timeout);
}

static bool is_cancel(const struct det_pipeline *pipeline, const struct pipeline_event *event)
{
    /* What has completed is not cancelled. */
    return event->stop.is_cancel && pipeline->last_fact == 0;
}

static bool has_failed(const struct det_pipeline *pipeline, const struct pipeline_event *event)
{
    (void)event;
    return pipeline->intent.has_failed;
}

/* A graceful stop keeps the deadline of an earlier one; a cancel has its own. */
static int note_stop(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    struct det_pipeline_intent *intent = &pipeline->intent;

    (void)ret;
    if (event->stop.is_cancel) {
        intent->is_cancel = true;
        intent->deadline = DET_NEVER;
    } else if (intent->deadline == DET_NEVER) {
        intent->deadline = deadline_of(pipeline, event->stop.timeout);
    }
    intent->is_stop = true;
    set_reason(pipeline, event->stop.is_cancel ? "cancel requested" : "stop requested");
    det_facts_add(
        pipeline, DET_FLOW_FACT_STOP_REQUESTED, NULL, event->stop.is_cancel ? "cancel" : "drain");
    return DET_EFFECT_DONE;
}

static int note_deadline(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    pipeline->intent.is_cancel = true;
    det_facts_add(pipeline, DET_FLOW_FACT_STOP_REQUESTED, NULL, "cancel: the drain took too long");
    return DET_EFFECT_DONE;
}

static int note_abort(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)ret;
    pipeline->intent.has_failed = true;
    pipeline->intent.code = DET_ERR_CANCELLED;
    pipeline->intent.reason[0] = '\0';
    set_reason(pipeline, event->abort.reason[0] ? event->abort.reason : "aborted");
    det_facts_add(pipeline, DET_FLOW_FACT_ABORTED, NULL, pipeline->intent.reason);
    return DET_EFFECT_DONE;
}

/* A failure is the reason, also of a flow that is being stopped; the first one counts. */
static int note_failure(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    const struct det_failure *failure = det_component_failure(&pipeline->component);
    struct det_pipeline_intent *intent = &pipeline->intent;

    (void)event;
    (void)ret;
    if (intent->has_failed)
        return DET_EFFECT_DONE;
    intent->has_failed = true;
    intent->code = failure->code;
    det_flow_reason(failure, intent->reason);
    return DET_EFFECT_DONE;
}

/* ---- actions */

static int initialize_stages(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    request_all(pipeline, DET_STAGE_INITIALIZE, true, true);
    return DET_EFFECT_DONE;
}

static int start_readers(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    request_all(pipeline, DET_STAGE_READY, true, true);
    return DET_EFFECT_DONE;
}

static int report_ready(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    det_facts_add(pipeline, DET_FLOW_FACT_READY, NULL, "");
    return DET_EFFECT_DONE;
}

static int start_sources(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    det_facts_add(pipeline, DET_FLOW_FACT_RUNNING, NULL, "");
    request_all(pipeline, DET_STAGE_START, true, false);
    return DET_EFFECT_DONE;
}

static int drain_sources(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    request_all(pipeline, DET_STAGE_BEGIN_DRAIN, true, false);
    return DET_EFFECT_DONE;
}

static int report_draining(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    det_facts_add(pipeline, DET_FLOW_FACT_DRAINING, NULL, "");
    return DET_EFFECT_DONE;
}

/* The deadline of a drain that was too slow is not extended. */
static int cancel_stages(
    struct det_pipeline *pipeline, const struct pipeline_event *event, struct pipeline_event *ret)
{
    (void)event;
    (void)ret;
    if (pipeline->intent.deadline == DET_NEVER)
        pipeline->intent.deadline = deadline_of(pipeline, 0);
    request_all(pipeline, DET_STAGE_CANCEL, true, true);
    return DET_EFFECT_DONE;
}

/* ---- dispatch */

/* 0, or the failure of a stage or of the journal. */
static int check_failures(struct det_pipeline *pipeline)
{
    const struct det_flow_stage *failed = pipeline->reports.failed;
    struct det_error error;
    int r;

    if (failed)
        return det_component_fail(
            &pipeline->component, failed->failure.code, "stage %s: %s", failed->spec->name,
            failed->failure.text);
    r = det_journal_failure(pipeline->journal, &error);
    return r < 0 ? det_component_fail(&pipeline->component, r, "%s", error.text) : 0;
}

static int go(struct pipeline_event event, struct pipeline_event *ret)
{
    *ret = event;
    return DET_DIRECTIVE_TRANSITION;
}

static int watch_opening(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    int r;

    r = check_failures(pipeline);
    if (r < 0 || pipeline->reports.opened < stage_count(pipeline))
        return r;
    return go(pipeline_stages_opened(), ret);
}

static int watch_starting(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    int r;

    r = check_failures(pipeline);
    if (r < 0 || pipeline->reports.running + pipeline->source_count < stage_count(pipeline))
        return r;
    return go(pipeline_stages_running(), ret);
}

static int watch_ready(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    int r;

    r = check_failures(pipeline);
    if (r < 0 || pipeline->options.waits_for_run)
        return r;
    return go(pipeline_run(), ret);
}

static int watch_running(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    int r;

    r = check_failures(pipeline);
    if (r < 0 || pipeline->reports.sources_ended < pipeline->source_count)
        return r;
    return go(pipeline_sources_ended(), ret);
}

static int watch_sources_ended(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    int r;

    r = check_failures(pipeline);
    return r < 0 ? r : go(pipeline_begin_drain(), ret);
}

/* Every reader has read what its writer has written, up to the end. */
static int check_barrier(struct det_pipeline *pipeline)
{
    for (uint16_t i = 0; i < pipeline->flow->edge_count; i++) {
        const struct det_flow_edge *edge = &pipeline->edges[i];

        if (!edge->is_left &&
            (edge->done.end == DET_END_NONE || edge->done.sequence != edge->from->ring.written))
            return det_component_fail(
                &pipeline->component, DET_ERR_CORRUPT,
                "stage %s has completed after row %llu of the %llu of %s", edge->to->spec->name,
                (unsigned long long)edge->done.sequence,
                (unsigned long long)edge->from->ring.written, edge->from->spec->name);
    }
    return 0;
}

static bool is_truncated(const struct det_pipeline *pipeline)
{
    for (uint16_t i = 0; i < stage_count(pipeline); i++) {
        if (pipeline->stages[i].kept.end == DET_END_TRUNCATED)
            return true;
    }
    return false;
}

static enum det_flow_fact_kind last_fact(const struct det_pipeline *pipeline, bool is_complete)
{
    if (!is_complete)
        return pipeline->intent.has_failed ? DET_FLOW_FACT_FAILED : DET_FLOW_FACT_CANCELLED;
    return is_truncated(pipeline) ? DET_FLOW_FACT_CANCELLED : DET_FLOW_FACT_COMPLETED;
}

/* 1: the last fact and the last checkpoint are acknowledged; 0: not yet. */
static int finish_log(struct det_pipeline *pipeline, bool is_complete)
{
    int r;

    if (pipeline->last_fact == 0) {
        r = det_checkpoint_append(pipeline);
        if (r < 0)
            return r == DET_ERR_BUSY ? 0 : r;
        pipeline->last_fact = last_fact(pipeline, is_complete);
        det_facts_add(pipeline, pipeline->last_fact, NULL, pipeline->intent.reason);
    }
    if (!det_facts_flush(pipeline))
        return 0;
    return det_journal_acknowledged(pipeline->journal) >= pipeline->facts.last_position;
}

/* 1: the time of the stop is over; else the component is woken then. */
static int watch_deadline(struct det_pipeline *pipeline)
{
    det_time deadline = pipeline->intent.deadline;

    if (deadline == DET_NEVER)
        return 0;
    if (deadline <= det_loop_now(pipeline->loop))
        return 1;
    return det_component_wake_at(&pipeline->component, deadline);
}

static int watch_draining(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    int r;

    r = check_failures(pipeline);
    if (r < 0)
        return r;
    if (pipeline->reports.ended == stage_count(pipeline)) {
        r = check_barrier(pipeline);
        if (r == 0)
            r = finish_log(pipeline, true);
        return r <= 0 ? r : go(pipeline_all_completed(), ret);
    }
    r = watch_deadline(pipeline);
    return r <= 0 ? r : go(pipeline_deadline(), ret);
}

/* A failure here changes nothing: the flow ends. */
static int watch_ending(struct det_pipeline *pipeline, struct pipeline_event *ret)
{
    bool has_ended = pipeline->reports.ended == stage_count(pipeline);
    int over, r;

    over = watch_deadline(pipeline);
    if (over < 0)
        over = 1;
    if (!over && !has_ended)
        return DET_DIRECTIVE_CONTINUE;
    r = det_journal_failure(pipeline->journal, NULL) < 0 ? 1 : finish_log(pipeline, false);
    if (r == 0 && !over)
        return DET_DIRECTIVE_CONTINUE;
    return go(pipeline_stages_ended(), ret);
}

/* ---- the end */

static enum det_end_kind worst_end(const struct det_pipeline *pipeline)
{
    enum det_end_kind worst = DET_END_NONE;

    for (uint16_t i = 0; i < pipeline->flow->edge_count; i++) {
        const struct det_flow_edge *edge = &pipeline->edges[i];

        if (edge->to->spec->kind == DET_STAGE_SINK && edge->done.end > (unsigned)worst)
            worst = (enum det_end_kind)edge->done.end;
    }
    return worst;
}

static int pipeline_completed(
    struct det_pipeline *pipeline, const struct det_component_end *component_end)
{
    const struct det_pipeline_intent *intent = &pipeline->intent;
    struct det_pipeline_end end = {
        .state = (enum det_pipeline_state)component_end->state,
        .end = worst_end(pipeline),
        .code = intent->has_failed ? intent->code : 0,
    };

    end.outcome = end.state == DET_PIPELINE_CANCELLED ? DET_PIPELINE_STOPPED
                  : end.state != DET_PIPELINE_DRAINED ? DET_PIPELINE_HAS_FAILED
                  : is_truncated(pipeline)            ? DET_PIPELINE_STOPPED
                                                      : DET_PIPELINE_COMPLETED;
    (void)det_text_copy(end.reason, sizeof end.reason, intent->reason);
    if (end.outcome == DET_PIPELINE_HAS_FAILED && !intent->has_failed) {
        end.code = component_end->failure.code;
        (void)det_text_copy(end.reason, sizeof end.reason, component_end->failure.text);
    }
    det_pipeline_totals(pipeline, &end.rows_in, &end.rows_out, &end.errors);
    det_pipeline_publish_end(pipeline, &end);
    return 0;
}

int det_pipeline_materialize(struct det_pipeline *pipeline)
{
    return pipeline_handle_send(pipeline->handle, pipeline_materialize());
}

int det_pipeline_run(struct det_pipeline *pipeline)
{
    return det_pipeline_sent(pipeline_handle_send(pipeline->handle, pipeline_run()));
}

int det_pipeline_drain(struct det_pipeline *pipeline, det_time timeout)
{
    struct pipeline_stop stop = { .timeout = timeout };

    return det_pipeline_sent(pipeline_handle_send(pipeline->handle, pipeline_stop(stop)));
}

int det_pipeline_cancel(struct det_pipeline *pipeline)
{
    struct pipeline_stop stop = { .is_cancel = true };

    return det_pipeline_sent(pipeline_handle_send(pipeline->handle, pipeline_stop(stop)));
}

int det_pipeline_abort(struct det_pipeline *pipeline, const char *reason)
{
    struct pipeline_abort abort = { 0 };

    (void)det_text_copy(abort.reason, sizeof abort.reason, reason ? reason : "");
    return det_pipeline_sent(pipeline_handle_send(pipeline->handle, pipeline_abort(abort)));
}
