/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_status.c - flows as JSON and as metrics, from samples of their pipelines.
 *
 * Every second while a pipeline is open, and before each answer, its counters are read. Rates are
 * the differences of two samples that are a second apart. */
#include "daemon/flows_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "observe/metrics.h"

#define SAMPLE_EVERY DET_SECOND
/* A sample of an answer does not shorten the time of a rate below this. */
#define RATE_SPAN (900 * DET_MILLISECOND)

int up_flow_samples_open(struct up_flow *flow)
{
    const struct det_allocator *allocator = up_allocator(flow->flows->up);
    const struct det_flow *spec = flow->definition->flow;

    flow->stage_count = spec->stage_count;
    flow->edge_count = spec->edge_count;
    flow->sampled_at = 0;
    flow->stages = DET_NEW_ARRAY(allocator, flow->stage_count, struct det_stage_status);
    flow->edges = DET_NEW_ARRAY(allocator, flow->edge_count, struct det_edge_status);
    flow->rates = DET_NEW_ARRAY(allocator, flow->stage_count, struct up_flow_rate);
    flow->edge_rates = DET_NEW_ARRAY(allocator, flow->edge_count, struct up_flow_rate);
    if (flow->stages && flow->edges && flow->rates && flow->edge_rates)
        return 0;
    up_flow_samples_close(flow);
    return DET_ERR_NO_MEMORY;
}

void up_flow_samples_close(struct up_flow *flow)
{
    const struct det_allocator *allocator = up_allocator(flow->flows->up);

    if (flow->stages)
        DET_DELETE_ARRAY(allocator, flow->stages, flow->stage_count);
    if (flow->edges)
        DET_DELETE_ARRAY(allocator, flow->edges, flow->edge_count);
    if (flow->rates)
        DET_DELETE_ARRAY(allocator, flow->rates, flow->stage_count);
    if (flow->edge_rates)
        DET_DELETE_ARRAY(allocator, flow->edge_rates, flow->edge_count);
    flow->stages = NULL;
    flow->edges = NULL;
    flow->rates = flow->edge_rates = NULL;
}

static void update_rate(struct up_flow_rate *rate, uint64_t count, det_time span)
{
    /* A new run counts from 0. */
    uint64_t more = count - (count < rate->before ? 0 : rate->before);

    if (span > 0)
        rate->per_second = (double)more * (double)DET_SECOND / (double)span;
    rate->before = count;
}

static uint64_t counted(const struct det_stage_status *stage)
{
    return stage->kind == DET_STAGE_SINK ? stage->rows_in : stage->rows_out;
}

static void update_rates(struct up_flow *flow, det_time span)
{
    for (size_t i = 0; i < flow->stage_count; i++)
        update_rate(&flow->rates[i], counted(&flow->stages[i]), span);
    for (size_t i = 0; i < flow->edge_count; i++)
        update_rate(&flow->edge_rates[i], flow->edges[i].read, span);
}

void up_flow_sample(struct up_flow *flow)
{
    size_t stage_count = flow->stage_count, edge_count = flow->edge_count;
    det_time now = det_loop_now(up_loop(flow->flows->up));

    if (!flow->stages || !flow->pipeline || !flow->is_open)
        return;
    if (det_pipeline_status(flow->pipeline, flow->stages, &stage_count, flow->edges, &edge_count) <
        0)
        return;
    det_assert(stage_count == flow->stage_count && edge_count == flow->edge_count);
    if (flow->sampled_at && now - flow->sampled_at < RATE_SPAN)
        return;
    update_rates(flow, flow->sampled_at ? now - flow->sampled_at : 0);
    flow->sampled_at = now;
}

/* Metrics. */

static void set_series(
    struct det_metrics *metrics, enum det_metric metric, const char *a, const char *b,
    const char *c, uint64_t value)
{
    const char *values[DET_LABELS_MAX] = { a, b, c };

    det_series_set(
        det_metrics_series(metrics, metric, values),
        value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void set_stage(
    struct det_metrics *metrics, const struct up_flow *flow, const struct det_stage_status *stage)
{
    set_series(metrics, DET_METRIC_FLOW_EVENTS, flow->name, stage->name, "in", stage->rows_in);
    set_series(metrics, DET_METRIC_FLOW_EVENTS, flow->name, stage->name, "out", stage->rows_out);
    set_series(metrics, DET_METRIC_FLOW_REJECTED, flow->name, stage->name, NULL, stage->errors);
    set_series(metrics, DET_METRIC_FLOW_BLOCKED, flow->name, stage->name, NULL, stage->blocked);
}

static void set_edge(
    struct det_metrics *metrics, const struct up_flow *flow, const struct det_edge_status *edge)
{
    set_series(
        metrics, DET_METRIC_FLOW_LAG, flow->name, flow->stages[edge->from].name,
        flow->stages[edge->to].name, edge->lag);
}

static void set_journal(struct det_metrics *metrics, const struct up_flow *flow)
{
    struct det_journal_counts counts = det_journal_counts(det_pipeline_journal(flow->pipeline));

    set_series(
        metrics, DET_METRIC_FLOW_JOURNAL_BYTES, flow->name, NULL, NULL, counts.segment_bytes);
    set_series(metrics, DET_METRIC_FLOW_JOURNAL_ROWS, flow->name, NULL, NULL, counts.rows);
    set_series(metrics, DET_METRIC_FLOW_JOURNAL_WRITES, flow->name, NULL, NULL, counts.writes);
    set_series(metrics, DET_METRIC_FLOW_JOURNAL_SYNCS, flow->name, NULL, NULL, counts.syncs);
}

static void set_all(void *user, struct det_metrics *metrics)
{
    const struct up_flows *flows = user;

    det_metrics_reset(metrics, DET_METRIC_FLOWS);
    det_metrics_reset(metrics, DET_METRIC_FLOW_LAG);
    det_metrics_reset(metrics, DET_METRIC_FLOW_JOURNAL_BYTES);
    for (const struct up_flow *flow = flows->first; flow; flow = flow->following) {
        const char *values[DET_LABELS_MAX] = { up_flow_state(flow) };

        det_series_move(det_metrics_series(metrics, DET_METRIC_FLOWS, values), 1);
        set_series(metrics, DET_METRIC_FLOW_RESTARTS, flow->name, NULL, NULL, flow->restarts);
        for (size_t i = 0; flow->sampled_at && i < flow->stage_count; i++)
            set_stage(metrics, flow, &flow->stages[i]);
        for (size_t i = 0; flow->sampled_at && i < flow->edge_count; i++)
            set_edge(metrics, flow, &flow->edges[i]);
        if (flow->is_open)
            set_journal(metrics, flow);
    }
}

static void on_timer(void *argument)
{
    struct up_flows *flows = argument;
    struct up *up = flows->up;
    bool is_any_open = false;

    for (struct up_flow *flow = flows->first; flow; flow = flow->following) {
        up_flow_sample(flow);
        is_any_open |= flow->is_open;
    }
    det_metrics_change(up_metrics(up), set_all, flows);
    /* Without memory for the timer, the next opened flow starts it again. */
    if (is_any_open)
        (void)!det_loop_timer_set(
            up_loop(up), &flows->timer, det_loop_now(up_loop(up)) + SAMPLE_EVERY);
}

void up_flows_sample_begin(struct up_flows *flows)
{
    flows->timer.run = on_timer;
    flows->timer.argument = flows;
    on_timer(flows);
}

/* JSON. */

static const char *end_name(enum det_end_kind end)
{
    switch (end) {
    case DET_END_NONE:
        break;
    case DET_END_NATURAL:
        return "natural";
    case DET_END_TRUNCATED:
        return "truncated";
    case DET_END_POISON:
        return "poison";
    }
    return NULL;
}

static void write_rate(struct det_json_writer *json, double rate)
{
    char text[48];
    int size = snprintf(text, sizeof text, "%.1f", rate);

    det_json_raw(json, "rate", text, (size_t)size);
}

static void write_stage(struct det_json_writer *json, const struct up_flow *flow, size_t index)
{
    const struct det_stage_status *status = &flow->stages[index];
    const struct det_stage *stage = &flow->definition->flow->stages[index];
    bool is_open = flow->is_open;

    det_json_open(json, NULL, '{');
    det_json_text(json, "name", stage->name);
    det_json_text(json, "kind", flow_kind_name(stage->kind));
    det_json_text(json, "connector", stage->use);
    det_json_text(json, "state", flow->sampled_at ? status->state : NULL);
    det_json_text(json, "reason", flow->sampled_at && *status->reason ? status->reason : NULL);
    det_json_number(json, "in", status->rows_in);
    det_json_number(json, "out", status->rows_out);
    det_json_number(json, "rejected", status->errors);
    det_json_number(json, "keys", status->keys);
    det_json_number(json, "turns", status->turns);
    det_json_number(json, "blocked", status->blocked);
    det_json_text(json, "end", end_name(status->end));
    write_rate(json, is_open ? flow->rates[index].per_second : 0);
    det_json_close(json, '}');
}

static void write_edge(struct det_json_writer *json, const struct up_flow *flow, size_t index)
{
    const struct det_edge_status *status = &flow->edges[index];
    const struct det_flow *spec = flow->definition->flow;
    const struct det_edge *edge = &spec->edges[index];
    const struct det_record *record = det_record_of(spec->stages[edge->from].out);

    det_json_open(json, NULL, '{');
    det_json_text(json, "from", spec->stages[edge->from].name);
    det_json_text(json, "to", spec->stages[edge->to].name);
    det_json_text(
        json, "kind",
        edge->flags & DET_EDGE_REFERENCE ? "reference"
        : edge->flags & DET_EDGE_BACK    ? "back"
                                         : "data");
    det_json_text(json, "record", record ? record->name : NULL);
    det_json_number(json, "lag", status->lag);
    det_json_number(json, "credit", status->credit);
    det_json_number(json, "window", status->window);
    det_json_number(json, "written", status->written);
    det_json_number(json, "read", status->read);
    write_rate(json, flow->is_open ? flow->edge_rates[index].per_second : 0);
    det_json_close(json, '}');
}

static void write_journal(struct det_json_writer *json, const struct up_flow *flow)
{
    struct det_journal *journal;
    struct det_journal_counts counts;

    if (!flow->is_open) {
        det_json_null(json, "journal");
        return;
    }
    journal = det_pipeline_journal(flow->pipeline);
    counts = det_journal_counts(journal);
    det_json_open(json, "journal", '{');
    det_json_number(json, "begin", det_journal_begin(journal));
    det_json_number(json, "position", det_journal_end(journal));
    det_json_number(json, "acknowledged", det_journal_acknowledged(journal));
    det_json_number(json, "bytes", counts.segment_bytes);
    det_json_number(json, "segments", counts.segments);
    det_json_number(json, "torn", counts.torn);
    det_json_number(json, "writes", counts.writes);
    det_json_number(json, "syncs", counts.syncs);
    det_json_close(json, '}');
}

/* Totals: rows of sources, rows that sinks received, rejected rows, rows between stages. */
struct totals {
    uint64_t in, out, rejected, lag;
    double rate;
};

static struct totals total(const struct up_flow *flow)
{
    struct totals totals = { 0 };

    for (size_t i = 0; flow->stages && i < flow->stage_count; i++) {
        const struct det_stage_status *stage = &flow->stages[i];

        totals.in += stage->kind == DET_STAGE_SOURCE ? stage->rows_out : 0;
        totals.out += stage->kind == DET_STAGE_SINK ? stage->rows_in : 0;
        totals.rejected += stage->errors;
        if (stage->kind == DET_STAGE_SINK && flow->is_open)
            totals.rate += flow->rates[i].per_second;
    }
    for (size_t i = 0; flow->edges && i < flow->edge_count; i++)
        totals.lag += flow->edges[i].lag;
    return totals;
}

static const char *durability_name(enum config_durability durability)
{
    static const char *const names[] = { "disk", "os", "memory" };

    return names[durability];
}

static void write_summary(struct det_json_writer *json, struct up_flow *flow)
{
    const struct config_flow *config = &flow->definition->config;
    struct totals totals;

    up_flow_sample(flow);
    totals = total(flow);
    det_json_text(json, "kind", "flow");
    det_json_text(json, "name", flow->name);
    det_json_text(json, "flow", flow->definition->flow->name);
    det_json_text(json, "state", up_flow_state(flow));
    det_json_text(json, "reason", *up_flow_reason(flow) ? up_flow_reason(flow) : NULL);
    det_json_time(json, "since", flow->since);
    if (flow->run)
        det_json_number(json, "run", flow->run);
    else
        det_json_null(json, "run");
    det_json_text(json, "start", config->is_manual ? "manual" : "auto");
    det_json_text(json, "durability", durability_name(config->durability));
    det_json_number(json, "rows_in", totals.in);
    det_json_number(json, "rows_out", totals.out);
    det_json_number(json, "rejected", totals.rejected);
    det_json_number(json, "lag", totals.lag);
    write_rate(json, totals.rate);
    det_json_number(json, "restarts", flow->restarts);
}

int up_write_flows(struct up *up, struct det_json_writer *json, const char *key)
{
    struct up_flow *flow = up_flows(up) ? up_flows(up)->first : NULL;

    det_json_open(json, key, '[');
    for (; flow; flow = flow->following) {
        det_json_open(json, NULL, '{');
        write_summary(json, flow);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
    return det_buffer_status(&json->text);
}

int up_write_flow(struct up *up, struct det_json_writer *json, const char *name)
{
    struct up_flow *flow = up_flows_find(up_flows(up), name);

    if (!flow)
        return DET_ERR_NOT_FOUND;
    if (!flow->stages && up_flow_samples_open(flow) < 0)
        return DET_ERR_NO_MEMORY;
    det_json_open(json, NULL, '{');
    write_summary(json, flow);
    det_json_open(json, "stages", '[');
    for (size_t i = 0; i < flow->stage_count; i++)
        write_stage(json, flow, i);
    det_json_close(json, ']');
    det_json_open(json, "edges", '[');
    for (size_t i = 0; i < flow->edge_count; i++)
        write_edge(json, flow, i);
    det_json_close(json, ']');
    write_journal(json, flow);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

static bool has_failed(const struct up_flow *flow)
{
    const char *state = up_flow_state(flow);

    return strcmp(state, "failed") == 0 || strcmp(state, "backing_off") == 0;
}

void up_each_failed_flow(const struct up *up, up_failed_flow_fn *see, void *user)
{
    const struct up_flow *flow = up_flows(up) ? up_flows(up)->first : NULL;

    for (; flow; flow = flow->following) {
        if (has_failed(flow))
            see(user, flow->name, up_flow_reason(flow));
    }
}

void up_write_flows_figures(struct up *up, struct det_json_writer *json, const char *key)
{
    const struct up_flows *flows = up_flows(up);
    uint64_t open = 0, failed = 0, rejected = 0;

    if (!flows) {
        det_json_null(json, key);
        return;
    }
    for (const struct up_flow *flow = flows->first; flow; flow = flow->following) {
        open += flow->is_open;
        failed += has_failed(flow);
        rejected += total(flow).rejected;
    }
    det_json_open(json, key, '{');
    det_json_number(json, "flows", flows->count);
    det_json_number(json, "open", open);
    det_json_number(json, "failed", failed);
    det_json_number(json, "rejected", rejected);
    det_json_close(json, '}');
}
