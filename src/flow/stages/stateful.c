/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stateful.c - stateful stages: the functions that stateful.fsm names.
 *
 *     row -> key -> state -> accumulate() -> emit(), if it is time   always, every
 *     end of a period, end of the input: for each state emit(), and the state is gone
 *
 * Emissions of many states take several groups. A state is gone in the group of its rows, so a
 * crash in between emits the rest, and nothing twice. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "flow/flow_internal.h"
#include "flow/stages/stage_key.h"
#include "flow/table.h"

#define FSM_LOCAL
#define FSM_SPEC "flow/stages/stateful.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "flow/stages/stateful.fsm"
#include <detent/fsm/define.h>

#define STAGE flow_stateful
#include "flow/stages/stage_actions.h"

struct flow_stateful {
    struct det_stage_key key;
    const struct det_record *record;
    void *before; /* a copy of a state, if a row is rejected */
};

static int open_stateful(struct det_flow_stage *stage, struct det_error *reterr)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct flow_stateful *stateful = DET_NEW(allocator, struct flow_stateful);
    int r = DET_ERR_NO_MEMORY;

    stage->particular = stateful;
    if (stateful) {
        r = det_stage_state_open(stage, &stateful->record, reterr);
        if (r < 0)
            return r;
        stateful->before = det_alloc(allocator, stateful->record->size);
        r = det_table_open(allocator, stateful->record, &stage->table);
    }
    if (r < 0 || !stateful->before)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "out of memory for stage %s", stage->spec->name);
    return det_stage_key_open(&stateful->key, stage, stage->spec->key, stage->in, reterr);
}

static void close_stateful(struct det_flow_stage *stage)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct flow_stateful *stateful = stage->particular;

    if (!stateful)
        return;
    det_stage_key_close(&stateful->key, stage);
    det_table_close(stage->table);
    if (stateful->before)
        det_free(allocator, stateful->before, stateful->record->size);
    det_stage_state_close(stage, stateful->record);
    DET_DELETE(allocator, stateful);
}

static bool is_full(const struct det_flow_turn *turn)
{
    return turn->size >= DET_TURN_BYTES || turn->outputs >= turn->reserved;
}

/* ---- emission */

/* The rows of an emission have the last row that was folded as their parent. */
static int emit_state(struct det_flow_stage *stage, struct det_table_entry *entry)
{
    struct det_flow_call *call = &stage->call;
    struct det_slot slot = { .position = entry->position, .correlation = entry->correlation };
    int r;

    det_flow_call_begin(call, &slot, NULL, NULL);
    r = stage->functions.emit(&call->base, entry->value);
    if (r < 0 && (call->is_failed || call->is_rejected))
        return det_component_fail(&stage->component, r, "emit: %s", call->text);
    if (r < 0)
        return det_component_fail(&stage->component, r, "emit: %s", det_error_text(r));
    entry->rows = 0;
    return 0;
}

/* Emits from states and removes them, as many as fit a turn. */
static int emit_turn(struct det_flow_stage *stage)
{
    bool only_rest = stage->spec->emission.kind == DET_EMIT_EVERY;
    int r = 0;

    det_stage_begin_turn(stage);
    stage->is_blocked = stage->turn.reserved == 0;
    if (stage->is_blocked)
        return DET_DIRECTIVE_CONTINUE;
    for (int i = 0; i < DET_TURN_ROWS && !is_full(&stage->turn); i++) {
        struct det_table_entry *entry = det_table_after(stage->table, NULL);

        if (!entry)
            break;
        if (!only_rest || entry->rows > 0)
            r = emit_state(stage, entry);
        if (r < 0)
            return r;
        det_table_remove(stage->table, entry);
    }
    if (det_table_count(stage->table) == 0)
        stage->period = 0;
    r = det_stage_commit(stage);
    return r <= 0 ? r : DET_DIRECTIVE_AGAIN;
}

static int emit_period(struct det_flow_stage *stage, struct flow_stateful_event *ret)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (det_table_count(stage->table) > 0)
        return emit_turn(stage);
    stage->period = 0;
    *ret = flow_stateful_emit_complete();
    return DET_DIRECTIVE_TRANSITION;
}

static int emit_after_row(struct det_flow_stage *stage, struct det_table_entry *entry)
{
    const struct det_emission *emission = &stage->spec->emission;

    switch (emission->kind) {
    case DET_EMIT_ALWAYS:
        return emit_state(stage, entry);
    case DET_EMIT_EVERY:
        return entry->rows >= emission->rows ? emit_state(stage, entry) : 0;
    case DET_EMIT_WITHIN:
        if (stage->period == 0)
            stage->period = stage->call.base.now;
        return 0;
    case DET_EMIT_AT_END:
        return 0;
    }
    return 0;
}

/* ---- rows */

static int fold_row(
    struct det_flow_stage *stage, struct det_table_entry *entry, const struct det_slot *slot,
    const void *value)
{
    struct flow_stateful *stateful = stage->particular;
    int r;

    memcpy(stateful->before, entry->value, stateful->record->size);
    r = stage->functions.accumulate(&stage->call.base, entry->value, value);
    if (r < 0) {
        memcpy(entry->value, stateful->before, stateful->record->size);
        return r;
    }
    entry->rows++;
    entry->position = slot->position;
    entry->correlation = slot->correlation;
    det_table_change(stage->table, entry);
    return 0;
}

/* A row that is rejected leaves no new state behind. */
static int accumulate_row(
    struct det_flow_stage *stage, const struct det_slot *slot, const void *value,
    struct det_table_entry **ret)
{
    struct flow_stateful *stateful = stage->particular;
    struct det_table_entry *entry;
    struct det_error error;
    struct det_view key;
    bool is_new;
    int r;

    r = det_stage_key_of(&stateful->key, value, &key, &error);
    if (r < 0)
        return det_stage_key_reject(&stage->call, r, &error);
    entry = det_table_get(stage->table, key);
    is_new = !entry;
    if (is_new)
        entry = det_table_put(stage->table, key);
    if (!entry)
        return DET_ERR_NO_MEMORY;
    r = fold_row(stage, entry, slot, value);
    if (r < 0 && is_new)
        det_table_remove(stage->table, entry);
    *ret = entry;
    return r;
}

static int process_row(
    struct det_flow_stage *stage, struct det_flow_edge *edge, const struct det_slot *slot)
{
    const void *value = det_ring_value(&edge->from->ring, slot->sequence);
    struct det_flow_turn_mark mark = det_flow_turn_mark(&stage->turn);
    struct det_table_entry *entry = NULL;
    int r;

    if (slot->kind != DET_SLOT_ROW)
        return det_edge_take(edge, slot);
    det_flow_call_begin(&stage->call, slot, value, stage->in);
    r = accumulate_row(stage, slot, value, &entry);
    if (r < 0) {
        r = det_flow_call_end(&stage->call, r, &mark);
        if (r < 0)
            return det_stage_fail_by(stage, &stage->call, r);
    } else {
        r = emit_after_row(stage, entry);
    }
    return r < 0 ? r : det_edge_take(edge, slot);
}

static int process_rows(struct det_flow_stage *stage)
{
    struct det_flow_edge *edge;
    uint64_t count;
    int r = 0;

    det_stage_begin_turn(stage);
    stage->is_blocked = stage->turn.reserved == 0;
    if (stage->is_blocked)
        return DET_DIRECTIVE_CONTINUE;
    edge = det_stage_next_input(stage, false, &count);
    if (!edge)
        return DET_DIRECTIVE_CONTINUE;
    for (uint64_t i = 0; i < count && i < DET_TURN_ROWS && r == 0 && !is_full(&stage->turn); i++)
        r = process_row(stage, edge, det_ring_slot(&edge->from->ring, edge->taken.sequence + 1));
    if (r < 0)
        return r;
    r = det_stage_commit(stage);
    return r <= 0 ? r : DET_DIRECTIVE_AGAIN;
}

/* ---- dispatch */

/* 1: the period is over; else the stage is woken then. A wall clock that was set back does not
 * extend it by more than its length. */
static int watch_period(struct det_flow_stage *stage)
{
    det_time length = stage->spec->emission.time, left;

    if (stage->period == 0)
        return 0;
    left = stage->period + length - det_world_now(stage->pipeline->world, DET_CLOCK_WALL);
    if (left <= 0)
        return 1;
    if (left > length)
        left = length;
    return det_component_wake_at(
        &stage->component, det_add_time(det_loop_now(stage->pipeline->loop), left));
}

static int run_stateful(struct det_flow_stage *stage, struct flow_stateful_event *ret)
{
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (stage->kept.end != DET_END_NONE || det_stage_input_end(stage) != DET_END_NONE) {
        *ret = flow_stateful_received_eof();
        return DET_DIRECTIVE_TRANSITION;
    }
    r = watch_period(stage);
    if (r > 0) {
        *ret = flow_stateful_should_emit();
        return DET_DIRECTIVE_TRANSITION;
    }
    if (r == 0)
        r = process_rows(stage);
    /* The row that begins a period is in this turn. */
    if (r == DET_DIRECTIVE_CONTINUE && watch_period(stage) != 0)
        r = DET_DIRECTIVE_AGAIN;
    return r;
}

/* A truncated end keeps the states for the next open. */
static int drain_stateful(struct det_flow_stage *stage, struct flow_stateful_event *ret)
{
    enum det_end_kind end = det_stage_input_end(stage);
    int r;

    r = det_stage_finish_turn(stage);
    if (r <= 0)
        return r;
    if (end != DET_END_TRUNCATED && stage->spec->emission.kind != DET_EMIT_ALWAYS &&
        det_table_count(stage->table) > 0)
        return emit_turn(stage);
    r = det_stage_finish(stage, end);
    if (r <= 0)
        return r;
    *ret = flow_stateful_drain_complete();
    return DET_DIRECTIVE_TRANSITION;
}

const struct det_stage_kind_def det_stateful_kind = {
    .component = &flow_stateful_component,
    .open = open_stateful,
    .close = close_stateful,
    .request = request_stage,
};
