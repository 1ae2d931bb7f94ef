/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage_call.c - what a function of a stage may call: emit, reject, fail; wait and wake. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "flow/flow_internal.h"
#include "flow/table.h"

static struct det_flow_call *call_of(struct det_stage_call *base)
{
    return (struct det_flow_call *)(void *)base;
}

/* Completes the row that was added for an output. */
static void describe_output(
    const struct det_stage_call *base, struct det_journal_row *row, det_time event_time)
{
    row->parent = base->row.position;
    row->correlation = base->row.correlation;
    row->event_time = event_time ? event_time : base->row.event_time;
}

#define ROW_HEADER_MAX 40 /* of a row in a group */

/* Bytes of the rows of a turn in a group, with their headers. */
static size_t weight_of(const struct det_flow_turn *turn)
{
    return turn->size + turn->count * ROW_HEADER_MAX;
}

static int emit_row(struct det_stage_call *base, const void *value, det_time event_time)
{
    const struct det_flow_call *call = call_of(base);
    const struct det_flow_stage *stage = call->stage;
    struct det_flow_turn *turn = call->turn;
    int64_t size;
    void *place;
    int r;

    if (!stage->out)
        return DET_ERR_UNSUPPORTED;
    if (weight_of(turn) > call->begin + DET_STAGE_OUTPUT_MAX)
        return DET_ERR_LIMIT;
    r = det_flow_turn_reserve(turn, stage->out_max);
    if (r < 0)
        return r;
    size = det_record_encode(stage->out, value, turn->bytes + turn->size, stage->out_max, NULL);
    if (size < 0)
        return (int)size;
    place = det_flow_turn_value(turn);
    if (!place)
        return DET_ERR_NO_MEMORY;
    memcpy(place, value, stage->out->size);
    describe_output(
        base, det_flow_turn_add(turn, stage->stream, DET_ROW_DATA, (size_t)size), event_time);
    turn->outputs++;
    turn->data++;
    return 0;
}

static bool stays_in_stream(const struct det_flow_stage *stage, enum det_row_rejection why)
{
    return (why == DET_REJECT_VALIDATION || why == DET_REJECT_DOMAIN) &&
           stage->spec->kind != DET_STAGE_SOURCE && stage->spec->kind != DET_STAGE_SINK;
}

static int put_rejected(struct det_flow_call *call, uint16_t stream)
{
    struct det_view text = det_view_text(call->text);
    struct det_flow_turn *turn = call->turn;
    size_t size, max = 0;
    int64_t more = 0;
    int r;

    if (call->input)
        max = det_record_encoded_max(call->input_record);
    r = det_flow_turn_reserve(turn, det_rejected_row_max(text.size, max));
    if (r < 0)
        return r;
    size = det_rejected_row_write(call->why, call->code, text, turn->bytes + turn->size);
    if (call->input)
        more = det_record_encode(
            call->input_record, call->input, turn->bytes + turn->size + size, max, NULL);
    if (more < 0)
        return (int)more;
    describe_output(
        &call->base, det_flow_turn_add(turn, stream, DET_ROW_REJECTED, size + (size_t)more), 0);
    return 0;
}

/* Adds the row of a rejection to the turn. */
static int add_rejected(struct det_flow_call *call)
{
    const struct det_flow_stage *stage = call->stage;
    struct det_flow_turn *turn = call->turn;
    bool stays = stays_in_stream(stage, call->why);
    int r;

    if (stays && !det_flow_turn_value(turn))
        return DET_ERR_NO_MEMORY;
    r = put_rejected(call, stays ? stage->stream : stage->error_stream);
    if (r < 0)
        return r;
    if (stays) {
        turn->outputs++;
        turn->rejected++;
    } else {
        turn->errors++;
    }
    return 0;
}

DET_PRINTF(2, 0)
static void set_text(struct det_flow_call *call, const char *format, va_list arguments)
{
    char text[DET_ERROR_TEXT_MAX];

    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    (void)det_text_copy(call->text, sizeof call->text, text);
}

/* A source has no row to reject: the error is a row of its own. */
DET_PRINTF(3, 4)
static int reject_row(
    struct det_stage_call *base, enum det_row_rejection why, const char *format, ...)
{
    struct det_flow_call *call = call_of(base);
    va_list arguments;
    int r;

    va_start(arguments, format);
    set_text(call, format, arguments);
    va_end(arguments);
    call->why = (unsigned)why < DET_REJECTIONS ? why : DET_REJECT_UNKNOWN;
    call->code = DET_ERR_REFUSED;
    call->is_rejected = true;
    if (!call->rejects_at_once)
        return DET_ERR_REFUSED;
    r = add_rejected(call);
    return r < 0 ? r : DET_ERR_REFUSED;
}

DET_PRINTF(3, 4)
static int fail_stage(struct det_stage_call *base, int code, const char *format, ...)
{
    struct det_flow_call *call = call_of(base);
    va_list arguments;

    va_start(arguments, format);
    set_text(call, format, arguments);
    va_end(arguments);
    call->code = code < 0 ? code : DET_ERR_INVALID;
    call->is_failed = true;
    return call->code;
}

static bool is_cancelled(struct det_stage_call *base)
{
    return atomic_load(&call_of(base)->stage->pool.is_cancelled);
}

static int wait_for_wake(struct det_stage_call *base, det_time deadline)
{
    struct det_stage_pool *pool = &call_of(base)->stage->pool;
    struct det_world *world = base->world;
    int r = 0;

    det_mutex_lock(world, pool->mutex);
    while (r == 0 && !pool->wake_wanted && !atomic_load(&pool->is_cancelled))
        r = det_condition_wait(world, pool->changed, pool->mutex, deadline);
    if (atomic_load(&pool->is_cancelled))
        r = DET_ERR_CANCELLED;
    else if (pool->wake_wanted)
        r = 0;
    pool->wake_wanted = false;
    det_mutex_unlock(world, pool->mutex);
    return r;
}

static void wake_stage(struct det_stage_call *base)
{
    struct det_flow_stage *stage = call_of(base)->stage;

    if (stage->pool.mutex) {
        det_mutex_lock(base->world, stage->pool.mutex);
        stage->pool.wake_wanted = true;
        det_condition_broadcast(base->world, stage->pool.changed);
        det_mutex_unlock(base->world, stage->pool.mutex);
    }
    if (!atomic_exchange(&stage->wake_posted, true))
        det_loop_post(stage->pipeline->loop, &stage->wake_post);
}

static void wake_stage_at(struct det_stage_call *base, det_time monotonic)
{
    struct det_flow_call *call = call_of(base);

    if (monotonic < call->wake_at)
        call->wake_at = monotonic;
}

static uint32_t room_of(struct det_stage_call *base)
{
    const struct det_flow_call *call = call_of(base);
    uint64_t room = call->turn->room, used = call->turn->outputs;

    return used < room ? (uint32_t)(room - used) : 0;
}

/* The state in hand is the newest, or was there before: then none has to go. */
static void keep_states(struct det_stage_call *base, uint64_t states)
{
    struct det_flow_table *table = call_of(base)->stage->table;

    det_assert(states > 0);
    while (table && det_table_count(table) > states)
        det_table_remove(table, det_table_after(table, NULL));
}

const struct det_stage_calls det_flow_stage_calls = {
    .emit = emit_row,
    .reject = reject_row,
    .fail = fail_stage,
    .is_cancelled = is_cancelled,
    .wait = wait_for_wake,
    .wake = wake_stage,
    .wake_at = wake_stage_at,
    .room = room_of,
    .keep = keep_states,
};

void det_flow_call_init(
    struct det_flow_call *call, struct det_flow_stage *stage, struct det_flow_turn *turn)
{
    const struct det_pipeline *pipeline = stage->pipeline;

    *call = (struct det_flow_call){
        .base = { .calls = &det_flow_stage_calls,
                  .stage = stage->spec,
                  .flow = pipeline->flow->name,
                  .run = pipeline->run,
                  .folder = pipeline->options.folder,
                  .world = pipeline->world,
                  .allocator = pipeline->allocator,
                  .user = pipeline->options.user },
        .stage = stage,
        .turn = turn,
        .rejects_at_once = stage->spec->kind == DET_STAGE_SOURCE,
        .wake_at = DET_NEVER,
    };
}

void det_flow_call_begin(
    struct det_flow_call *call, const struct det_slot *slot, const void *input,
    const struct det_record *record)
{
    call->is_rejected = call->is_failed = false;
    call->begin = weight_of(call->turn);
    call->input = input;
    call->input_record = record;
    if (slot) {
        call->base.row.position = slot->position;
        call->base.row.sequence = slot->sequence;
        call->base.row.stream = slot->stream;
        call->base.row.correlation = slot->correlation;
        call->base.row.event_time = slot->event_time;
    } else {
        call->base.row = (struct det_row_info){ 0 };
        if (call->stage->spec->kind == DET_STAGE_SOURCE)
            call->base.row.sequence = call->stage->ring.written + call->turn->outputs;
    }
}

int det_flow_call_end(struct det_flow_call *call, int r, const struct det_flow_turn_mark *mark)
{
    if (r >= 0)
        return 0;
    if (call->is_failed)
        return call->code;
    if (r == DET_ERR_NO_MEMORY && !call->is_rejected) {
        (void)det_text_copy(call->text, sizeof call->text, det_error_text(r));
        call->code = r;
        call->is_failed = true;
        return r;
    }
    if (!call->is_rejected) {
        (void)det_text_copy(call->text, sizeof call->text, det_error_text(r));
        call->why = DET_REJECT_UNKNOWN;
        call->code = r;
    }
    if (mark)
        det_flow_turn_rewind(call->turn, mark);
    else if (call->is_rejected)
        return 0;
    r = add_rejected(call);
    if (r < 0) {
        (void)det_text_copy(call->text, sizeof call->text, det_error_text(r));
        call->code = r;
        call->is_failed = true;
    }
    return r;
}

int det_stage_fail_by(struct det_flow_stage *stage, const struct det_flow_call *call, int r)
{
    if (!call->is_failed)
        return r;
    return det_component_fail(&stage->component, call->code, "%s", call->text);
}
