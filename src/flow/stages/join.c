/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* join.c - joins: the functions that join.fsm names.
 *
 *     reference row -> key -> table: the last row of a key counts
 *     row           -> key -> reference row, or none -> join()
 *
 * When the output has ended (no row is left to join, or a strict join has found no match), the rest
 * of the inputs is read and dropped, so that their writers can end. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"
#include "flow/stages/stage_key.h"
#include "flow/table.h"

#define FSM_LOCAL
#define FSM_SPEC "flow/stages/join.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "flow/stages/join.fsm"
#include <detent/fsm/define.h>

#define STAGE flow_join
#include "flow/stages/stage_actions.h"

#define REFERENCE_BATCH 8

struct flow_join {
    struct det_stage_key key, reference_key;
    uint32_t batch, in_a_row; /* LIVE: reference rows since the last row of the other side */
    uint16_t next[2];         /* the edge that is looked at first: of rows, of the reference */
    bool is_poisoned;
    bool leaves_rows; /* to the next open */
};

static int open_join(struct det_flow_stage *stage, struct det_error *reterr)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct flow_join *join = DET_NEW(allocator, struct flow_join);
    int r;

    stage->particular = join;
    r = join ? det_table_open(allocator, stage->reference, &stage->table) : DET_ERR_NO_MEMORY;
    if (r < 0)
        return det_error_set(reterr, r, "out of memory for stage %s", stage->spec->name);
    join->batch = stage->spec->reference_batch ? stage->spec->reference_batch : REFERENCE_BATCH;
    r = det_stage_key_open(&join->key, stage, stage->spec->key, stage->in, reterr);
    if (r < 0)
        return r;
    return det_stage_key_open(
        &join->reference_key, stage, stage->spec->reference_key, stage->reference, reterr);
}

static void close_join(struct det_flow_stage *stage)
{
    struct flow_join *join = stage->particular;

    if (!join)
        return;
    det_stage_key_close(&join->key, stage);
    det_stage_key_close(&join->reference_key, stage);
    det_table_close(stage->table);
    DET_DELETE(stage->pipeline->allocator, join);
}

static bool is_live(const struct det_flow_stage *stage, const struct flow_join_event *event)
{
    (void)event;
    return stage->flags & DET_STAGE_LIVE;
}

static bool is_full(const struct det_flow_turn *turn)
{
    return turn->size >= DET_TURN_BYTES || turn->outputs >= turn->reserved;
}

/* ---- the two sides */

static bool is_reference(const struct det_flow_edge *edge)
{
    return edge->flags & DET_EDGE_REFERENCE;
}

/* The next edge of a side with rows, in turn; NULL: none. */
static struct det_flow_edge *next_of_side(struct det_flow_stage *stage, bool reference)
{
    struct flow_join *join = stage->particular;

    for (uint32_t i = 0; i < stage->input_count; i++) {
        struct det_flow_edge *edge = stage->inputs[join->next[reference]];

        join->next[reference] = (uint16_t)((join->next[reference] + 1u) % stage->input_count);
        if (is_reference(edge) == reference && det_edge_available(edge, false) > 0)
            return edge;
    }
    return NULL;
}

/* The worst end of a side; DET_END_NONE: not all of it has ended. */
static enum det_end_kind end_of_side(const struct det_flow_stage *stage, bool reference)
{
    enum det_end_kind worst = DET_END_NATURAL;

    for (uint32_t i = 0; i < stage->input_count; i++) {
        const struct det_flow_edge *edge = stage->inputs[i];

        if (is_reference(edge) != reference)
            continue;
        if (edge->taken.end == DET_END_NONE)
            return DET_END_NONE;
        if (edge->taken.end > (unsigned)worst)
            worst = (enum det_end_kind)edge->taken.end;
    }
    return worst;
}

/* ---- rows */

static int put_reference(
    struct det_flow_stage *stage, const struct det_slot *slot, const void *value)
{
    struct flow_join *join = stage->particular;
    struct det_table_entry *entry;
    struct det_error error;
    struct det_view key;
    int r;

    r = det_stage_key_of(&join->reference_key, value, &key, &error);
    if (r < 0)
        return det_stage_key_reject(&stage->call, r, &error);
    entry = det_table_get(stage->table, key);
    if (!entry)
        entry = det_table_put(stage->table, key);
    if (!entry)
        return DET_ERR_NO_MEMORY;
    memcpy(entry->value, value, stage->reference->size);
    entry->position = slot->position;
    entry->correlation = slot->correlation;
    det_table_change(stage->table, entry);
    return 0;
}

static int join_row(struct det_flow_stage *stage, const void *value)
{
    struct flow_join *join = stage->particular;
    const struct det_table_entry *entry;
    struct det_error error;
    struct det_view key;
    int r;

    r = det_stage_key_of(&join->key, value, &key, &error);
    if (r < 0)
        return det_stage_key_reject(&stage->call, r, &error);
    entry = det_table_get(stage->table, key);
    if (!entry && stage->spec->join == DET_JOIN_INNER)
        return 0;
    if (!entry && stage->spec->join == DET_JOIN_STRICT) {
        join->is_poisoned = true;
        return det_stage_reject(
            &stage->call.base, DET_REJECT_PERMANENT, "no reference row has its key");
    }
    return stage->functions.join(&stage->call.base, entry ? entry->value : NULL, value);
}

/* A reference row that cannot be read fails a join that needs all of them. */
static int process_row(struct det_flow_stage *stage, struct det_flow_edge *edge)
{
    const struct det_ring *ring = &edge->from->ring;
    const struct det_slot *slot = det_ring_slot(ring, edge->taken.sequence + 1);
    const void *value = det_ring_value(ring, slot->sequence);
    struct det_flow_turn_mark mark = det_flow_turn_mark(&stage->turn);
    bool reference = is_reference(edge);
    int r;

    if (slot->kind != DET_SLOT_ROW)
        return det_edge_take(edge, slot);
    det_flow_call_begin(&stage->call, slot, value, reference ? stage->reference : stage->in);
    r = reference ? put_reference(stage, slot, value) : join_row(stage, value);
    if (r < 0 && reference && !(stage->flags & DET_STAGE_LIVE))
        return det_component_fail(
            &stage->component, r, "reference row %llu: %s", (unsigned long long)slot->position,
            stage->call.is_rejected ? stage->call.text : det_error_text(r));
    if (r < 0) {
        r = det_flow_call_end(&stage->call, r, &mark);
        if (r < 0)
            return det_stage_fail_by(stage, &stage->call, r);
    }
    return det_edge_take(edge, slot);
}

/* Of the live sides the reference goes first, but not for more than a batch. */
static struct det_flow_edge *next_live(struct det_flow_stage *stage)
{
    struct flow_join *join = stage->particular;
    struct det_flow_edge *edge = NULL;

    if (join->in_a_row >= join->batch)
        edge = next_of_side(stage, false);
    if (edge) {
        join->in_a_row = 0;
        return edge;
    }
    edge = next_of_side(stage, true);
    if (edge) {
        join->in_a_row++;
        return edge;
    }
    join->in_a_row = 0;
    return next_of_side(stage, false);
}

enum join_side { SIDE_ROWS, SIDE_REFERENCE, SIDE_BOTH };

static struct det_flow_edge *next_edge(struct det_flow_stage *stage, enum join_side side)
{
    return side == SIDE_BOTH ? next_live(stage) : next_of_side(stage, side == SIDE_REFERENCE);
}

static int process_side(struct det_flow_stage *stage, enum join_side side)
{
    const struct flow_join *join = stage->particular;
    struct det_flow_edge *edge;
    uint32_t rows = 0;
    int r = 0;

    det_stage_begin_turn(stage);
    stage->is_blocked = stage->turn.reserved == 0;
    if (stage->is_blocked)
        return DET_DIRECTIVE_CONTINUE;
    while (rows < DET_TURN_ROWS && r == 0 && !join->is_poisoned && !is_full(&stage->turn) &&
           (edge = next_edge(stage, side)) != NULL) {
        r = process_row(stage, edge);
        rows++;
    }
    /* In the group of the row that has no match: no crash can come between them. */
    if (r == 0 && join->is_poisoned) {
        stage->is_drained = true;
        r = det_stage_write_end(stage, DET_END_POISON);
    }
    if (r < 0)
        return r;
    r = det_stage_commit(stage);
    if (r <= 0)
        return r;
    return rows > 0 ? DET_DIRECTIVE_AGAIN : DET_DIRECTIVE_CONTINUE;
}

/* ---- dispatch */

static int end_output(struct flow_join_event *ret)
{
    *ret = flow_join_received_eof();
    return DET_DIRECTIVE_TRANSITION;
}

/* The flow drains before the whole reference was read: rows are joined by the next open. */
static int leave_rows(struct det_flow_stage *stage, struct flow_join_event *ret)
{
    struct flow_join *join = stage->particular;

    join->leaves_rows = true;
    for (uint32_t i = 0; i < stage->input_count; i++) {
        if (!is_reference(stage->inputs[i]))
            det_edge_leave(stage->inputs[i]);
    }
    return end_output(ret);
}

static int run_hydrating(struct det_flow_stage *stage, struct flow_join_event *ret)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (stage->kept.end != DET_END_NONE)
        return end_output(ret);
    if (end_of_side(stage, true) == DET_END_NONE)
        return process_side(stage, SIDE_REFERENCE);
    if (end_of_side(stage, true) == DET_END_TRUNCATED)
        return leave_rows(stage, ret);
    *ret = flow_join_reference_complete();
    return DET_DIRECTIVE_TRANSITION;
}

static int run_side(struct det_flow_stage *stage, enum join_side side, struct flow_join_event *ret)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (stage->kept.end != DET_END_NONE || end_of_side(stage, false) != DET_END_NONE)
        return end_output(ret);
    return process_side(stage, side);
}

static int run_enriching(struct det_flow_stage *stage, struct flow_join_event *ret)
{
    return run_side(stage, SIDE_ROWS, ret);
}

static int run_live(struct det_flow_stage *stage, struct flow_join_event *ret)
{
    return run_side(stage, SIDE_BOTH, ret);
}

/* The rows that are left, without looking at them. */
static int drop_inputs(struct det_flow_stage *stage)
{
    uint64_t count;
    struct det_flow_edge *edge = det_stage_next_input(stage, false, &count);
    int r = 0;

    if (!edge)
        return DET_DIRECTIVE_CONTINUE;
    det_stage_begin_turn(stage);
    for (uint64_t i = 0; i < count && r == 0; i++)
        r = det_edge_take(edge, det_ring_slot(&edge->from->ring, edge->taken.sequence + 1));
    if (r == 0)
        r = det_stage_commit(stage);
    return r <= 0 ? r : DET_DIRECTIVE_AGAIN;
}

/* The end of a live reference says nothing about the output. */
static enum det_end_kind end_of_output(const struct det_flow_stage *stage)
{
    const struct flow_join *join = stage->particular;
    enum det_end_kind rows = end_of_side(stage, false), reference = end_of_side(stage, true);

    if (join->leaves_rows)
        return DET_END_TRUNCATED;

    return reference > rows && !(stage->flags & DET_STAGE_LIVE) ? reference : rows;
}

static int drain_join(struct det_flow_stage *stage, struct flow_join_event *ret)
{
    const struct flow_join *join = stage->particular;
    int r;

    r = det_stage_finish(stage, end_of_output(stage));
    if (r <= 0)
        return r;
    if (!join->leaves_rows && det_stage_input_end(stage) == DET_END_NONE)
        return drop_inputs(stage);
    *ret = flow_join_drain_complete();
    return DET_DIRECTIVE_TRANSITION;
}

const struct det_stage_kind_def det_join_kind = {
    .component = &flow_join_component,
    .open = open_join,
    .close = close_join,
    .request = request_stage,
};
