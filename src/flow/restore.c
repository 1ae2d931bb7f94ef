/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* restore.c - sets the stages of a flow to what its log says: the last checkpoint, the progress
 * after it, the states, and the rows that were written and not read. Nothing is executed. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"
#include "flow/table.h"

static int report_row(
    const struct det_journal_row *row, const char *what, int code, struct det_error *reterr)
{
    return det_error_set(
        reterr, code, "row %llu of the log is not %s: %s", (unsigned long long)row->position, what,
        det_error_text(code));
}

int det_checkpoint_find(
    struct det_journal *journal, uint16_t stream, struct det_checkpoint_end *ret,
    uint64_t *ret_position, struct det_error *reterr)
{
    struct det_journal_reader_options options = { .unacknowledged = true };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;
    int r;

    r = det_journal_last(journal, stream, NULL, &options.from);
    if (r < 0 || options.from == 0)
        return DET_ERR_NOT_FOUND;
    r = det_journal_reader_open(journal, &options, &reader, reterr);
    if (r == 0)
        r = det_journal_reader_next(reader, &row, reterr);
    if (r < 0)
        return r;
    if (r == 0 || row.kind != DET_ROW_CHECKPOINT_END)
        return det_error_set(reterr, DET_ERR_MALFORMED, "the log has no whole checkpoint");
    r = det_checkpoint_end_row_read(row.data, row.size, ret);
    if (r == 0 && ret->rows >= row.position)
        r = DET_ERR_MALFORMED;
    if (r < 0)
        return report_row(&row, "a checkpoint", r, reterr);
    *ret_position = row.position;
    return 0;
}

/* ---- progress */

static int restore_cursor(
    struct det_flow_stage *stage, const struct det_flow_progress *progress,
    struct det_error *reterr)
{
    struct det_stage_cursor *cursor = &stage->cursor;

    if (progress->cursor_size == 0)
        return 0;
    if (!cursor->record || progress->cursor_size > cursor->max)
        return det_error_set(
            reterr, DET_ERR_MALFORMED, "the log has a cursor of stage %s that does not fit",
            stage->spec->name);
    memcpy(cursor->kept, progress->cursor, progress->cursor_size);
    cursor->kept_size = progress->cursor_size;
    return 0;
}

static int apply_progress(
    struct det_flow_stage *stage, const struct det_flow_progress *progress,
    struct det_error *reterr)
{
    if (progress->input_count != stage->input_count)
        return det_error_set(
            reterr, DET_ERR_MALFORMED,
            "the log counts the inputs of stage %s as %u, the flow as %u", stage->spec->name,
            (unsigned)progress->input_count, (unsigned)stage->input_count);
    for (uint32_t i = 0; i < stage->input_count; i++)
        stage->inputs[i]->done = progress->inputs[i];
    stage->kept = (struct det_stage_kept){
        .rows_out = progress->rows_out,
        .errors = progress->errors,
        .rejected = progress->rejected,
        .end = progress->end,
        .state_rows = progress->state_rows,
        .state_from = progress->state_from,
        .period = progress->period,
    };
    return restore_cursor(stage, progress, reterr);
}

static struct det_flow_progress progress_for(struct det_flow_stage *stage)
{
    return (struct det_flow_progress){
        .inputs = stage->marks,
        .input_capacity = stage->input_count,
    };
}

static struct det_flow_stage *find_stage(struct det_pipeline *pipeline, struct det_view name)
{
    for (uint16_t i = 0; i < pipeline->flow->stage_count; i++) {
        if (det_view_is(name, pipeline->flow->stages[i].name))
            return &pipeline->stages[i];
    }
    return NULL;
}

/* The name is needed before the rest can be read: the number of inputs is that of the stage. */
static int restore_checkpoint_row(
    struct det_pipeline *pipeline, const struct det_journal_row *row, struct det_error *reterr)
{
    struct det_flow_progress progress = { 0 };
    struct det_flow_stage *stage;
    struct det_view name;
    int r;

    (void)!det_checkpoint_row_read(row->data, row->size, &name, &progress);
    stage = find_stage(pipeline, name);
    if (!stage)
        return report_row(row, "a checkpoint of a stage", DET_ERR_MALFORMED, reterr);
    progress = progress_for(stage);
    r = det_checkpoint_row_read(row->data, row->size, &name, &progress);
    if (r < 0)
        return report_row(row, "a checkpoint", r, reterr);
    return apply_progress(stage, &progress, reterr);
}

static int restore_progress_row(
    struct det_flow_stage *stage, const struct det_journal_row *row, struct det_error *reterr)
{
    struct det_flow_progress progress = progress_for(stage);
    int r;

    r = det_progress_row_read(row->data, row->size, &progress);
    if (r < 0)
        return report_row(row, "the progress of a stage", r, reterr);
    stage->last_position = row->position;
    return apply_progress(stage, &progress, reterr);
}

static struct det_flow_stage *stage_of_state(struct det_pipeline *pipeline, uint16_t stream)
{
    for (uint16_t i = 0; i < pipeline->flow->stage_count; i++) {
        if (pipeline->stages[i].state_stream == stream)
            return &pipeline->stages[i];
    }
    return NULL;
}

/* From the first row of the last checkpoint to the end of the log. */
static int restore_progress(struct det_pipeline *pipeline, struct det_error *reterr)
{
    struct det_journal_reader_options options = { .unacknowledged = true };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_checkpoint_end end;
    struct det_journal_row row;
    uint64_t position;
    int r;

    r = det_checkpoint_find(
        pipeline->journal, pipeline->checkpoints.stream, &end, &position, reterr);
    if (r < 0)
        return r;
    options.from = position - end.rows;
    r = det_journal_reader_open(pipeline->journal, &options, &reader, reterr);
    while (r >= 0 && (r = det_journal_reader_next(reader, &row, reterr)) > 0) {
        struct det_flow_stage *stage;

        if (row.kind == DET_ROW_CHECKPOINT && row.position < position)
            r = restore_checkpoint_row(pipeline, &row, reterr);
        if (row.kind != DET_ROW_PROGRESS)
            continue;
        stage = stage_of_state(pipeline, row.stream);
        if (stage)
            r = restore_progress_row(stage, &row, reterr);
    }
    return r;
}

/* A mark may be older than what is kept: then no row between them is needed. */
static uint64_t first_kept(const struct det_journal *journal, uint64_t position)
{
    uint64_t begin = det_journal_begin(journal);

    return position > begin ? position : begin;
}

/* ---- states */

static int restore_states(struct det_flow_stage *stage, struct det_error *reterr)
{
    struct det_journal *journal = stage->pipeline->journal;
    struct det_journal_reader_options options = {
        .from = first_kept(journal, stage->kept.state_from),
        .one_stream = true,
        .stream = stage->state_stream,
        .unacknowledged = true,
    };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;
    int r;

    if (!stage->table || options.from > det_journal_end(journal))
        return 0;
    r = det_journal_reader_open(journal, &options, &reader, reterr);
    while (r >= 0 && (r = det_journal_reader_next(reader, &row, reterr)) > 0)
        r = det_table_restore(stage->table, &row, reterr);
    if (r < 0)
        return r;
    r = det_table_restored(stage->table, &stage->kept);
    return r < 0 ? det_error_set(reterr, r, "out of memory for stage %s", stage->spec->name) : 0;
}

static int restore_values(struct det_flow_stage *stage, struct det_error *reterr)
{
    struct det_stage_cursor *cursor = &stage->cursor;

    stage->period = stage->kept.period;
    if (cursor->kept_size == 0)
        return 0;
    return det_record_decode(
        cursor->record, cursor->kept, cursor->kept_size, cursor->value, reterr);
}

/* ---- rows that were not read */

/* The place of the slowest reader; false: all have read everything. */
static bool find_unread(const struct det_flow_stage *stage, struct det_input_mark *ret)
{
    bool found = false;

    for (uint32_t i = 0; i < stage->output_count; i++) {
        const struct det_flow_edge *edge = stage->outputs[i];

        if (edge->done.sequence >= stage->ring.written)
            continue;
        if (!found || edge->done.sequence < ret->sequence)
            *ret = edge->done;
        found = true;
    }
    return found;
}

static int restore_value(
    struct det_flow_stage *stage, const struct det_journal_row *row, struct det_slot *slot,
    struct det_error *reterr)
{
    enum det_end_kind end;
    int r;

    slot->kind = DET_SLOT_SKIP;
    if (row->kind == DET_ROW_DATA) {
        slot->kind = DET_SLOT_ROW;
        return det_record_decode(
            stage->out, row->data, row->size, det_ring_value(&stage->ring, row->sequence), reterr);
    }
    if (row->kind != DET_ROW_END)
        return 0;
    r = det_end_row_read(row->data, row->size, &end, &slot->count);
    if (r < 0)
        return report_row(row, "an end", r, reterr);
    slot->kind = end == DET_END_TRUNCATED ? DET_SLOT_SKIP : DET_SLOT_END;
    slot->end = (uint8_t)end;
    return 0;
}

static int restore_row(
    struct det_flow_stage *stage, const struct det_journal_row *row, struct det_error *reterr)
{
    struct det_slot *slot = det_ring_slot(&stage->ring, row->sequence);

    *slot = (struct det_slot){
        .position = row->position,
        .sequence = row->sequence,
        .correlation = row->correlation,
        .event_time = row->event_time,
        .stream = row->stream,
    };
    return restore_value(stage, row, slot, reterr);
}

static int restore_ring(struct det_flow_stage *stage, struct det_error *reterr)
{
    struct det_journal *journal = stage->pipeline->journal;
    struct det_journal_reader_options options = {
        .one_stream = true,
        .stream = stage->stream,
        .unacknowledged = true,
    };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_input_mark unread = { 0 };
    struct det_journal_row row;
    uint64_t next;
    int r;

    if (!find_unread(stage, &unread))
        return 0;
    r = det_ring_grow(&stage->ring, stage->ring.written - unread.sequence);
    if (r < 0)
        return det_error_set(reterr, r, "out of memory for rows of stage %s", stage->spec->name);
    options.from = first_kept(journal, unread.position + 1);
    next = unread.sequence + 1;
    r = det_journal_reader_open(journal, &options, &reader, reterr);
    while (r >= 0 && (r = det_journal_reader_next(reader, &row, reterr)) > 0) {
        if (row.sequence != next)
            return det_error_set(
                reterr, DET_ERR_CORRUPT, "row %llu of stage %s is gone from the log",
                (unsigned long long)next, stage->spec->name);
        next++;
        r = restore_row(stage, &row, reterr);
    }
    return r;
}

/* ---- all of it */

/* A truncated end is not an end for this open. */
static void forget_truncated(struct det_pipeline *pipeline)
{
    for (uint16_t i = 0; i < pipeline->flow->stage_count; i++) {
        if (pipeline->stages[i].kept.end == DET_END_TRUNCATED)
            pipeline->stages[i].kept.end = DET_END_NONE;
    }
    for (uint16_t i = 0; i < pipeline->flow->edge_count; i++) {
        struct det_flow_edge *edge = &pipeline->edges[i];

        if (edge->done.end == DET_END_TRUNCATED)
            edge->done.end = DET_END_NONE;
        edge->taken = edge->done;
        edge->given = edge->reader.read = edge->done.sequence;
    }
}

static int restore_stage(struct det_flow_stage *stage, struct det_error *reterr)
{
    uint64_t sequence;
    int r;

    r = restore_values(stage, reterr);
    if (r == 0)
        r = restore_states(stage, reterr);
    if (r < 0 || !stage->out)
        return r;
    if (det_journal_last(stage->pipeline->journal, stage->stream, &sequence, NULL) == 0)
        stage->ring.written = sequence;
    return restore_ring(stage, reterr);
}

int det_run_restore(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r;

    r = restore_progress(pipeline, reterr);
    if (r < 0)
        return r;
    forget_truncated(pipeline);
    for (uint16_t i = 0; i < pipeline->flow->stage_count && r == 0; i++) {
        r = restore_stage(&pipeline->stages[i], reterr);
        det_stage_show(&pipeline->stages[i]);
    }
    return r;
}
