/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history.c - a worker's history: its latest changes of state and ends of actions, and its
 * metrics. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"
#include "json/writer.h"

static size_t size_of(const char *reason)
{
    return sizeof(struct det_history_row) + strlen(reason) + 1;
}

static void free_row(struct det_worker *worker, struct det_history_row *row)
{
    if (row)
        det_free(worker->workers->allocator, row, size_of(row->reason));
}

void det_history_free(struct det_worker *worker)
{
    if (!worker->acting.history)
        return;
    for (size_t i = 0; i < worker->acting.history->room; i++)
        free_row(worker, worker->acting.history->rows[i]);
    if (worker->acting.history->rows)
        DET_DELETE_ARRAY(
            worker->workers->allocator, worker->acting.history->rows, worker->acting.history->room);
    DET_DELETE(worker->workers->allocator, worker->acting.history);
}

/* A ring that is full for the first time is in order, so it can grow. Without memory it keeps its
 * size. */
static void grow(struct det_worker *worker)
{
    const struct det_allocator *allocator = worker->workers->allocator;
    struct det_history *history = worker->acting.history;
    uint32_t room = history->room ? 2 * history->room : DET_HISTORY_FIRST;
    struct det_history_row **rows;

    if (history->count != history->room || room > DET_HISTORY_KEPT)
        return;
    rows = DET_NEW_ARRAY(allocator, room, struct det_history_row *);
    if (!rows)
        return;
    if (history->rows) {
        memcpy(rows, history->rows, history->room * sizeof *rows);
        DET_DELETE_ARRAY(allocator, history->rows, history->room);
    }
    history->rows = rows;
    history->room = room;
}

/* Replaces the oldest row; NULL: no memory, and the row is omitted. */
static struct det_history_row *next_row(struct det_worker *worker, const char *reason)
{
    struct det_workers *workers = worker->workers;
    struct det_history_row *row, **place;

    if (!worker->acting.history)
        worker->acting.history = DET_NEW(workers->allocator, struct det_history);
    if (!worker->acting.history)
        return NULL;
    grow(worker);
    if (!worker->acting.history->room)
        return NULL;
    det_assert(worker->acting.history->room <= DET_HISTORY_KEPT);
    row = det_alloc_zero(workers->allocator, size_of(reason));
    if (!row)
        return NULL;
    place = &worker->acting.history
                 ->rows[worker->acting.history->count++ % worker->acting.history->room];
    free_row(worker, *place);
    *place = row;
    memcpy(row->reason, reason, strlen(reason) + 1);
    row->wall = workers->now + workers->wall_ahead;
    return row;
}

void det_history_state(struct det_worker *worker, uint16_t from, uint16_t to, const char *reason)
{
    struct det_history_row *row = next_row(worker, reason);

    if (!row)
        return;
    row->from = worker->kind->states[from].name;
    row->to = worker->kind->states[to].name;
}

void det_history_action(
    struct det_worker *worker, const char *action, int code, det_time took, const char *text)
{
    struct det_history_row *row = next_row(worker, text);

    if (!row)
        return;
    row->action = action;
    row->code = code;
    row->took = took;
}

static void write_row(struct det_buffer *buffer, const struct det_history *history, uint64_t number)
{
    const struct det_history_row *row = history->rows[(number - 1) % history->room];
    struct det_json_writer json;

    det_assert(number > 0 && number <= history->count && row);
    det_json_writer_init(&json, buffer->allocator);
    det_json_open(&json, NULL, '{');
    det_json_number(&json, "sequence", number);
    det_json_time(&json, "at", row->wall);
    if (row->action) {
        det_json_text(&json, "action", row->action);
        det_json_text(&json, "result", row->code < 0 ? det_error_name(row->code) : "OK");
        det_json_number(&json, "took_ms", (uint64_t)(row->took / DET_MILLISECOND));
    } else {
        det_json_text(&json, "from", row->from);
        det_json_text(&json, "to", row->to);
    }
    if (row->reason[0])
        det_json_text(&json, "reason", row->reason);
    det_json_close(&json, '}');
    if (det_buffer_status(&json.text))
        buffer->error = det_buffer_status(&json.text);
    det_buffer_append(buffer, json.text.data, json.text.size);
    det_buffer_append_char(buffer, '\n');
    det_buffer_deinit(&json.text);
}

/* The number of the oldest row. */
static uint64_t oldest(const struct det_history *history)
{
    return history->count > history->room ? history->count - history->room + 1 : 1;
}

void det_history_write(const struct det_worker *worker, struct det_buffer *buffer)
{
    const struct det_history *history = worker->acting.history;

    for (uint64_t i = history ? history->count : 0; i && i >= oldest(history); i--)
        write_row(buffer, history, i);
}

void det_history_write_after(
    const struct det_worker *worker, uint64_t after, struct det_buffer *buffer, uint64_t *ret_lost)
{
    const struct det_history *history = worker->acting.history;
    uint64_t first;

    *ret_lost = 0;
    if (!history || after == history->count)
        return;
    /* A cursor beyond the newest row belongs to a previous worker of this name. */
    first = after > history->count ? 1 : after + 1;
    if (first < oldest(history)) {
        *ret_lost = oldest(history) - first;
        first = oldest(history);
    }
    for (uint64_t i = first; i <= history->count; i++)
        write_row(buffer, history, i);
}

/* Metrics. */

static struct det_metric *metric_of(struct det_worker *worker, const struct det_run_metric *from)
{
    struct det_metric *metric = worker->acting.metrics;

    while (metric && strcmp(metric->name, from->name) != 0)
        metric = metric->next;
    if (metric)
        return metric;
    metric = DET_NEW(worker->workers->allocator, struct det_metric);
    if (!metric)
        return NULL;
    det_text_copy(metric->name, sizeof metric->name, from->name);
    metric->is_gauge = from->is_gauge;
    metric->next = worker->acting.metrics;
    worker->acting.metrics = metric;
    return metric;
}

void det_metrics_take(struct det_worker *worker, struct det_run *run)
{
    det_assert(run->metric_count <= DET_RUN_METRICS_MAX && (run->metrics || !run->metric_count));
    for (uint32_t i = 0; i < run->metric_count; i++) {
        const struct det_run_metric *from = &run->metrics[i];
        struct det_metric *metric = metric_of(worker, from);

        if (!metric)
            continue;
        metric->count += from->count;
        if (metric->is_gauge)
            metric->value = from->value;
    }
    run->metric_count = 0;
}
