/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit.c - the group of a turn: reserve credit, append, publish.
 *
 *     complete   the states that have changed and the PROGRESS row join the rows, once
 *     reserve    the slowest reader has room for the outputs; else the turn waits, whole
 *     append     one group; if the journal has no room, the turn waits
 *     publish    the rows become visible, the inputs are released: nothing here can fail
 *
 * What one input emits may exceed the window. Such a turn waits until the ring is empty. */
#include <string.h>

#include "base/assert.h"
#include "flow/flow_internal.h"
#include "flow/table.h"

static bool has_read(const struct det_flow_stage *stage)
{
    for (uint32_t i = 0; i < stage->input_count; i++) {
        if (stage->inputs[i]->taken.sequence != stage->inputs[i]->done.sequence)
            return true;
    }
    return false;
}

/* The progress after this turn. */
static void describe_turn(
    const struct det_flow_stage *stage, struct det_input_mark *inputs,
    struct det_flow_progress *ret)
{
    const struct det_flow_turn *turn = &stage->turn;

    det_stage_progress(stage, inputs, ret);
    for (uint32_t i = 0; i < stage->input_count; i++)
        inputs[i] = stage->inputs[i]->taken;
    ret->rows_out += turn->data;
    ret->errors += turn->errors;
    ret->rejected += turn->rejected;
    if (turn->end != DET_END_NONE)
        ret->end = turn->end;
    ret->period = stage->period;
    ret->cursor = stage->cursor.next;
    ret->cursor_size = stage->cursor.next_size;
    if (stage->table)
        det_table_progress(stage->table, ret);
}

void det_stage_progress(
    const struct det_flow_stage *stage, struct det_input_mark *inputs,
    struct det_flow_progress *ret)
{
    for (uint32_t i = 0; i < stage->input_count; i++)
        inputs[i] = stage->inputs[i]->done;
    *ret = (struct det_flow_progress){
        .rows_out = stage->kept.rows_out,
        .errors = stage->kept.errors,
        .rejected = stage->kept.rejected,
        .end = stage->kept.end,
        .state_rows = stage->kept.state_rows,
        .state_from = stage->kept.state_from,
        .period = stage->kept.period,
        .inputs = inputs,
        .input_count = stage->input_count,
        .cursor = stage->cursor.kept,
        .cursor_size = stage->cursor.kept_size,
    };
}

/* Encodes the cursor as it is now. 1: it is not the one of the last group. */
static int note_cursor(struct det_flow_stage *stage)
{
    struct det_stage_cursor *cursor = &stage->cursor;
    struct det_error error;
    int64_t size;

    if (!cursor->record)
        return 0;
    size = det_record_encode(cursor->record, cursor->value, cursor->next, cursor->max, &error);
    if (size < 0)
        return det_component_fail(&stage->component, (int)size, "cursor: %s", error.text);
    cursor->next_size = (size_t)size;
    return cursor->next_size != cursor->kept_size ||
           memcmp(cursor->next, cursor->kept, cursor->kept_size) != 0;
}

static void keep_cursor(struct det_flow_stage *stage)
{
    struct det_stage_cursor *cursor = &stage->cursor;
    uint8_t *kept = cursor->kept;

    cursor->kept = cursor->next;
    cursor->kept_size = cursor->next_size;
    cursor->next = kept;
}

static int complete_turn(struct det_flow_stage *stage)
{
    struct det_flow_turn *turn = &stage->turn;
    struct det_flow_progress progress;
    int r = 0, cursor;

    cursor = note_cursor(stage);
    if (cursor < 0)
        return cursor;
    if (stage->table)
        r = det_table_write(
            stage->table, turn, stage->state_stream, det_journal_end(stage->pipeline->journal));
    if (r < 0)
        return r;
    if (det_flow_turn_is_empty(turn) && cursor == 0 && !has_read(stage) &&
        stage->period == stage->kept.period)
        return 0;
    r = det_flow_turn_reserve(
        turn, det_progress_row_max(stage->input_count, stage->cursor.next_size));
    if (r < 0)
        return r;
    describe_turn(stage, stage->marks, &progress);
    (void)det_flow_turn_add(
        turn, stage->state_stream, DET_ROW_PROGRESS,
        det_progress_row_write(&progress, turn->bytes + turn->size));
    turn->is_complete = true;
    return 0;
}

/* Rows that exceed the window are for an empty ring. An end is never stopped. */
static bool has_credit(const struct det_flow_stage *stage)
{
    const struct det_flow_turn *turn = &stage->turn;
    struct det_ring *ring = turn->ring;
    uint64_t credit;

    if (!ring || turn->outputs - (turn->end != DET_END_NONE) <= turn->reserved)
        return true;
    credit = det_ring_credit(ring);
    return turn->outputs <= credit || credit == ring->window;
}

/* Fills the slots of the outputs, which have consecutive sequences and known positions. */
static void publish_outputs(struct det_flow_stage *stage, uint64_t first)
{
    struct det_flow_turn *turn = &stage->turn;
    struct det_ring *ring = turn->ring;
    uint64_t sequence = ring->written;

    for (size_t i = 0; i < turn->count; i++) {
        const struct det_journal_row *row = &turn->rows[i];
        struct det_slot *slot;

        if (row->stream != stage->stream)
            continue;
        slot = det_ring_slot(ring, ++sequence);
        slot->position = first + i;
        slot->sequence = sequence;
        slot->stream = stage->stream;
        slot->correlation = row->correlation ? row->correlation : first + i;
        slot->event_time = row->event_time ? row->event_time : stage->call.base.now;
        slot->kind = row->kind == DET_ROW_DATA  ? DET_SLOT_ROW
                     : row->kind == DET_ROW_END ? DET_SLOT_END
                                                : DET_SLOT_SKIP;
        slot->end = turn->end;
        slot->count = stage->kept.rows_out + turn->data;
    }
    det_check(sequence == ring->written + turn->outputs);
    ring->written = sequence;
}

void det_stage_show(struct det_flow_stage *stage)
{
    struct det_stage_shown *shown = &stage->shown;
    uint64_t rows_in = 0;

    for (uint32_t i = 0; i < stage->input_count; i++) {
        struct det_flow_edge *edge = stage->inputs[i];

        rows_in += edge->done.rows;
        atomic_store_explicit(&edge->shown.read, edge->reader.read, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < stage->output_count; i++)
        atomic_store_explicit(
            &stage->outputs[i]->shown.written, stage->ring.written, memory_order_relaxed);
    atomic_store_explicit(&shown->rows_in, rows_in, memory_order_relaxed);
    atomic_store_explicit(&shown->rows_out, stage->kept.rows_out, memory_order_relaxed);
    atomic_store_explicit(&shown->errors, stage->kept.errors, memory_order_relaxed);
    atomic_store_explicit(&shown->rejected, stage->kept.rejected, memory_order_relaxed);
    atomic_store_explicit(&shown->end, stage->kept.end, memory_order_relaxed);
    if (stage->table)
        atomic_store_explicit(&shown->keys, det_table_count(stage->table), memory_order_relaxed);
}

static void release_inputs(struct det_flow_stage *stage)
{
    for (uint32_t i = 0; i < stage->input_count; i++) {
        struct det_flow_edge *edge = stage->inputs[i];

        if (edge->taken.sequence == edge->done.sequence)
            continue;
        edge->done = edge->taken;
        edge->reader.read = edge->done.sequence;
        if (edge->from->is_blocked)
            det_component_wake(&edge->from->component);
    }
}

static void publish(struct det_flow_stage *stage, uint64_t last)
{
    struct det_flow_turn *turn = &stage->turn;
    struct det_stage_kept *kept = &stage->kept;
    uint64_t first = last + 1 - turn->count;

    if (turn->outputs > 0) {
        publish_outputs(stage, first);
        for (uint32_t i = 0; i < stage->output_count; i++)
            det_component_wake(&stage->outputs[i]->to->component);
    }
    kept->rows_out += turn->data;
    kept->errors += turn->errors;
    kept->rejected += turn->rejected;
    if (turn->end != DET_END_NONE)
        kept->end = turn->end;
    kept->period = stage->period;
    keep_cursor(stage);
    if (stage->table)
        det_table_published(stage->table, kept);
    release_inputs(stage);
    stage->last_position = last;
    atomic_fetch_add_explicit(&stage->shown.turns, 1, memory_order_relaxed);
    atomic_store_explicit(
        &stage->shown.last_at, det_loop_now(stage->pipeline->loop), memory_order_relaxed);
    det_stage_show(stage);
    if (stage->spec->kind == DET_STAGE_SOURCE && turn->outputs > 0)
        det_source_note_group(stage);
    det_checkpoint_count(stage->pipeline, turn->size + 24 * turn->count);
}

static int block(struct det_flow_stage *stage)
{
    atomic_fetch_add_explicit(&stage->shown.blocked, 1, memory_order_relaxed);
    return DET_COMMIT_BLOCKED;
}

int det_stage_commit(struct det_flow_stage *stage)
{
    struct det_flow_turn *turn = &stage->turn;
    struct det_error error;
    uint64_t last;
    int r;

    r = turn->is_complete ? 0 : complete_turn(stage);
    if (r < 0)
        return r;
    if (!turn->is_complete)
        return DET_COMMIT_DONE;
    stage->is_blocked = !has_credit(stage);
    if (stage->is_blocked)
        return block(stage);
    r = turn->ring ? det_flow_turn_settle(turn) : 0;
    if (r < 0)
        return r;
    r = det_journal_offer(stage->pipeline->journal, turn->rows, turn->count, &last, &error);
    if (r == DET_ERR_BUSY) {
        stage->waits_for_journal = true;
        return block(stage);
    }
    if (r < 0)
        return det_component_fail(&stage->component, r, "%s", error.text);
    publish(stage, last);
    turn->is_complete = false;
    turn->count = 0;
    return DET_COMMIT_DONE;
}

int det_stage_write_end(struct det_flow_stage *stage, enum det_end_kind end)
{
    struct det_flow_turn *turn = &stage->turn;
    int r;

    det_assert(end != DET_END_NONE && turn->end == DET_END_NONE && !turn->is_complete);
    r = det_flow_turn_reserve(turn, DET_END_ROW_MAX);
    if (r < 0)
        return r;
    if (!det_flow_turn_value(turn))
        return DET_ERR_NO_MEMORY;
    (void)det_flow_turn_add(
        turn, stage->stream, DET_ROW_END,
        det_end_row_write(end, stage->kept.rows_out + turn->data, turn->bytes + turn->size));
    turn->outputs++;
    turn->end = (uint8_t)end;
    return 0;
}
