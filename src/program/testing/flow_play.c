/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_play.c - runs one case of a flow.
 *
 *     rows of the case --> queue --> source --> stages of the flow --> sink --> list of rows
 *                                      \------------ journal on the simulated disk
 *
 * Invariants
 *   1. The cursor of a source is the number of rows of its queue that it has emitted. It is in the
 *      journal, so that a crash emits again what was lost, and nothing else.
 *   2. A sink keeps a row once, by its position: after a crash it may be delivered again. */
#include "testing/flow_play.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <detent/sim.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "inspect/flow_rows.h"
#include "os/os.h"

#define TURN_ROWS 256

struct queued_row {
    const void *value;
    det_time event_time; /* 0: when it is emitted */
};

struct delivered_row {
    uint64_t position;
    void *value;
};

/* What stands in for a source or a sink, and what was seen of any stage. */
struct stand_in {
    struct flow_play *play;
    const struct det_record *record; /* of its rows */
    struct det_stage_call *call;     /* of a source, while it is open */
    struct queued_row *queue;
    struct delivered_row *list;
    size_t count, capacity; /* of the queue or of the list */
    bool has_ended;
    uint64_t seen;     /* sink: rows of the list; else position of its last row */
    uint64_t rejected; /* position of the last rejected row that was seen */
};

struct flow_play {
    const struct flow_play_options *options;
    struct play_result *result;
    struct det_arena arena;
    struct det_sim *sim;
    struct det_flow flow;
    struct det_stage *stages;
    struct stand_in *stand_ins; /* by stage */
    struct det_pipeline *pipeline;
    bool has_crashed, is_broken;
};

/* Failures. */

DET_PRINTF(3, 4)
static struct play_failure *fail_case(
    struct flow_play *play, const struct det_datum *node, const char *format, ...)
{
    size_t index = play->result->failure_count++;
    struct play_failure *failure;
    va_list arguments;

    if (index >= PLAY_FAILURES_MAX)
        return NULL;
    failure = &play->result->failures[index];
    *failure = (struct play_failure){ .line = node->line, .column = node->column };
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return failure;
}

static void set_texts(
    struct play_failure *failure, const struct det_buffer *expected,
    const struct det_buffer *actual)
{
    if (!failure || det_buffer_status(expected) < 0 || det_buffer_status(actual) < 0)
        return;
    (void)det_text_copy(failure->expected, sizeof failure->expected, det_buffer_text(expected));
    (void)det_text_copy(failure->actual, sizeof failure->actual, det_buffer_text(actual));
}

/* Growing arrays in the arena of the case. */
static bool grow(struct stand_in *one, size_t size, void **items)
{
    size_t capacity = one->capacity ? 2 * one->capacity : 16;
    void *grown;

    if (one->count < one->capacity)
        return true;
    grown = det_arena_array(&one->play->arena, capacity, size);
    if (!grown)
        return false;
    if (one->count)
        memcpy(grown, *items, one->count * size);
    *items = grown;
    one->capacity = capacity;
    return true;
}

/* Stages of the case. */

struct queue_cursor {
    uint64_t rows;
};

static const struct det_record *cursor_record(void)
{
    static const struct det_field fields[] = {
        { .name = "rows",
          .kind = DET_KIND_UNSIGNED,
          .offset = offsetof(struct queue_cursor, rows),
          .size = sizeof(uint64_t) },
    };
    static const struct det_record record = { .name = "queue_cursor",
                                              .size = sizeof(struct queue_cursor),
                                              .fields = fields,
                                              .field_count = 1 };

    return &record;
}

static struct stand_in *stand_in_of(const struct det_stage_call *call)
{
    struct flow_play *play = call->user;

    for (uint16_t i = 0; i < play->flow.stage_count; i++) {
        if (strcmp(play->stages[i].name, call->stage->name) == 0)
            return &play->stand_ins[i];
    }
    det_assert(false);
    return NULL;
}

static int open_source(struct det_stage_call *call)
{
    struct stand_in *one = stand_in_of(call);

    one->call = call;
    call->self = one;
    return 0;
}

static void close_source(struct det_stage_call *call)
{
    struct stand_in *one = call->self;

    one->call = NULL;
}

static int emit_next(struct det_stage_call *call, void *place)
{
    struct stand_in *one = call->self;
    struct queue_cursor *cursor = place;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < TURN_ROWS && cursor->rows < one->count; i++) {
        const struct queued_row *row = &one->queue[cursor->rows++];

        r = row->event_time ? det_stage_emit_at(call, row->value, row->event_time)
                            : det_stage_emit(call, row->value);
    }
    if (r < 0)
        return r;
    if (cursor->rows < one->count)
        return DET_SOURCE_MORE;
    return one->has_ended ? DET_SOURCE_DONE : DET_SOURCE_IDLE;
}

static int open_sink(struct det_stage_call *call)
{
    call->self = stand_in_of(call);
    return 0;
}

static bool is_delivered(const struct stand_in *one, uint64_t position)
{
    for (size_t i = one->count; one->play->has_crashed && i > 0; i--) {
        if (one->list[i - 1].position == position)
            return true;
    }
    return false;
}

static int keep_row(struct det_stage_call *call, void *cursor, const void *in)
{
    struct stand_in *one = call->self;
    void *items = one->list, *value;

    (void)cursor;
    if (is_delivered(one, call->row.position))
        return 0;
    value = det_arena_alloc(&one->play->arena, one->record->size);
    if (!value || !grow(one, sizeof *one->list, &items))
        return det_stage_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    one->list = items;
    memcpy(value, in, one->record->size);
    one->list[one->count++] = (struct delivered_row){ call->row.position, value };
    return 0;
}

static const struct det_stage_functions source_functions = { .open = open_source,
                                                             .close = close_source,
                                                             .next = emit_next };
static const struct det_stage_functions sink_functions = { .open = open_sink, .deliver = keep_row };

static void replace_stage(struct det_stage *stage, const struct det_stage_functions *functions)
{
    stage->use = NULL;
    stage->settings = NULL;
    stage->flags = 0;
    stage->functions = functions;
    stage->cursor = (struct det_record_ref){ 0 };
}

static int copy_flow(struct flow_play *play, const struct det_flow *flow)
{
    play->flow = *flow;
    play->stages = det_arena_array(&play->arena, flow->stage_count, sizeof *play->stages);
    play->stand_ins = det_arena_array(&play->arena, flow->stage_count, sizeof *play->stand_ins);
    if (!play->stages || !play->stand_ins)
        return DET_ERR_NO_MEMORY;
    memcpy(play->stages, flow->stages, flow->stage_count * sizeof *play->stages);
    play->flow.stages = play->stages;
    for (uint16_t i = 0; i < flow->stage_count; i++) {
        struct det_stage *stage = &play->stages[i];
        bool is_sink = stage->kind == DET_STAGE_SINK;

        play->stand_ins[i].play = play;
        play->stand_ins[i].record = det_record_of(is_sink ? stage->in : stage->out);
        if (is_sink)
            replace_stage(stage, &sink_functions);
        if (stage->kind == DET_STAGE_SOURCE) {
            replace_stage(stage, &source_functions);
            stage->cursor.get = cursor_record;
        }
    }
    return 0;
}

/* The pipeline. */

static int open_pipeline(struct flow_play *play, const struct det_datum *node)
{
    const struct det_pipeline_options options = {
        .journal = "file:flow",
        .world = det_sim_world(play->sim),
        .allocator = play->options->allocator,
        .connectors = det_connectors_all(),
        .folder = play->options->folder,
        .user = play,
        .window = play->options->window,
    };
    struct det_error error = { 0 };
    int r = det_pipeline_open(&play->flow, &options, &play->pipeline, &error);

    if (r == DET_ERR_NO_MEMORY)
        return r;
    if (r < 0) {
        play->pipeline = NULL;
        (void)fail_case(play, node, "the flow cannot be opened: %s", error.text);
    }
    return 0;
}

static void note_simulation(struct flow_play *play, const struct det_datum *node, int r)
{
    if (r >= 0 || play->is_broken)
        return;
    play->is_broken = true;
    (void)fail_case(
        play, node, "%s",
        r == DET_ERR_LIMIT ? "the case needs too many steps of the simulation; see --steps-max"
                           : "the simulation cannot continue: all threads wait");
}

static void crash(struct flow_play *play, const struct flow_case_step *step)
{
    det_sim_power_cut(play->sim);
    play->has_crashed = true;
    det_pipeline_close(play->pipeline);
    play->pipeline = NULL;
    if (open_pipeline(play, step->node) < 0)
        (void)fail_case(play, step->node, "out of memory");
}

/* Steps. */

static bool add_row(struct stand_in *one, const void *value, det_time event_time)
{
    void *items = one->queue;

    if (!grow(one, sizeof *one->queue, &items))
        return false;
    one->queue = items;
    one->queue[one->count++] = (struct queued_row){ value, event_time };
    return true;
}

static void wake_source(struct flow_play *play, const struct det_datum *node, uint16_t stage)
{
    struct stand_in *one = &play->stand_ins[stage];

    if (one->call)
        det_stage_wake(one->call);
    else
        (void)fail_case(
            play, node, "the source '%s' is not open: the flow has ended",
            play->stages[stage].name);
}

static void emit_rows(struct flow_play *play, const struct flow_case_step *step)
{
    for (const struct flow_case_rows *rows = step->rows; rows; rows = rows->next) {
        struct stand_in *one = &play->stand_ins[rows->stage];

        if (one->has_ended)
            (void)fail_case(
                play, rows->node, "the source '%s' has ended", play->stages[rows->stage].name);
        for (size_t i = 0; i < rows->count; i++) {
            if (!add_row(one, rows->items[i]->value, step->event_time))
                (void)fail_case(play, rows->node, "out of memory");
        }
        wake_source(play, rows->node, rows->stage);
    }
}

static void end_sources(struct flow_play *play, const struct flow_case_step *step)
{
    for (size_t i = 0; i < step->end_count; i++) {
        play->stand_ins[step->ends[i]].has_ended = true;
        wake_source(play, step->node, step->ends[i]);
    }
}

static void run_action(struct flow_play *play, const struct flow_case_step *step)
{
    switch (step->action) {
    case FLOW_CASE_NOTHING:
        return;
    case FLOW_CASE_EMIT:
        emit_rows(play, step);
        return;
    case FLOW_CASE_ADVANCE:
        note_simulation(play, step->node, det_sim_advance(play->sim, step->span));
        return;
    case FLOW_CASE_END:
        end_sources(play, step);
        return;
    case FLOW_CASE_STOP:
        if (step->is_cancel)
            (void)det_pipeline_cancel(play->pipeline);
        else
            (void)det_pipeline_drain(play->pipeline, 0);
        return;
    case FLOW_CASE_CRASH:
        crash(play, step);
        return;
    }
}

/* Expectations: rows. */

struct actual_rows {
    struct flow_play *play;
    const struct flow_case_rows *expected;
    const struct det_record *record;
    struct det_buffer text; /* a list of JSON objects */
    void *value, *copy;
    size_t count;
    bool is_different;
};

static void append_json(struct actual_rows *actual, const void *value)
{
    size_t size = det_record_to_json(actual->record, value, DET_TEXT_REVEAL, NULL, 0);
    char *text = det_arena_alloc(&actual->play->arena, size + 1);

    det_buffer_append_text(&actual->text, actual->count ? ", " : "");
    if (!text)
        return;
    (void)det_record_to_json(actual->record, value, DET_TEXT_REVEAL, text, size + 1);
    det_buffer_append_text(&actual->text, text);
}

/* Only given fields are compared: with them set, the row is the same. */
static void compare_row(struct actual_rows *actual, const void *value)
{
    append_json(actual, value);
    if (actual->count < actual->expected->count) {
        memcpy(actual->copy, value, actual->record->size);
        case_fields_apply(actual->expected->items[actual->count], actual->copy);
        actual->is_different |= !det_record_equal(actual->record, actual->copy, value);
    }
    actual->count++;
}

static void compare_delivered(struct actual_rows *actual, struct stand_in *one)
{
    for (; one->seen < one->count; one->seen++)
        compare_row(actual, one->list[one->seen].value);
}

typedef void see_row_fn(void *user, const struct det_journal_row *row);

/* Calls `see` for the rows of a stream after a position. */
static void read_stream(
    struct flow_play *play, const char *name, uint64_t *position, see_row_fn *see, void *user)
{
    struct det_journal *journal = det_pipeline_journal(play->pipeline);
    struct det_journal_reader_options options = { .from = *position + 1, .one_stream = true };
    int stream = flow_find_stream(journal, name);
    struct det_journal_reader *reader;
    struct det_journal_row row;

    if (stream < 0 || *position >= det_journal_acknowledged(journal))
        return;
    options.stream = (uint16_t)stream;
    if (det_journal_reader_open(journal, &options, &reader, NULL) < 0)
        return;
    while (det_journal_reader_next(reader, &row, NULL) > 0) {
        *position = row.position;
        see(user, &row);
    }
    det_journal_reader_close(reader);
}

static void see_emitted(void *user, const struct det_journal_row *row)
{
    struct actual_rows *actual = user;

    if (strcmp("data", flow_row_kind(row)) == 0 &&
        det_record_decode(actual->record, row->data, row->size, actual->value, NULL) == 0)
        compare_row(actual, actual->value);
}

static int check_rows(struct flow_play *play, const struct flow_case_rows *expected)
{
    struct stand_in *one = &play->stand_ins[expected->stage];
    struct actual_rows actual = { .play = play, .expected = expected, .record = one->record };
    const char *name = play->stages[expected->stage].name;
    struct det_buffer wanted;

    actual.value = det_arena_alloc(&play->arena, one->record->size);
    actual.copy = det_arena_alloc(&play->arena, one->record->size);
    if (!actual.value || !actual.copy)
        return DET_ERR_NO_MEMORY;
    det_buffer_init(&actual.text, play->options->allocator);
    det_buffer_init(&wanted, play->options->allocator);
    det_buffer_append_char(&actual.text, '[');
    if (play->stages[expected->stage].kind == DET_STAGE_SINK)
        compare_delivered(&actual, one);
    else
        read_stream(play, name, &one->seen, see_emitted, &actual);
    det_buffer_append_char(&actual.text, ']');
    if (actual.is_different || actual.count != expected->count) {
        det_datum_to_json(expected->node, &wanted);
        set_texts(
            fail_case(play, expected->node, "rows of %s are not as expected", name), &wanted,
            &actual.text);
    }
    det_buffer_deinit(&wanted);
    det_buffer_deinit(&actual.text);
    return 0;
}

/* Expectations: rejected rows. */

struct actual_texts {
    const struct flow_case_texts *expected;
    struct det_buffer text;
    size_t count;
    bool is_different;
};

static void see_rejected(void *user, const struct det_journal_row *row)
{
    struct actual_texts *actual = user;
    struct flow_rejected rejected;
    struct det_buffer reason;

    if (strcmp("rejected", flow_row_kind(row)) != 0 || flow_rejected_read(row, &rejected) < 0)
        return;
    det_buffer_init(&reason, actual->text.allocator);
    det_buffer_append(&reason, rejected.text.data, rejected.text.size);
    det_buffer_format(
        &actual->text, "%s\"%s\"", actual->count ? ", " : "", det_buffer_text(&reason));
    if (actual->count < actual->expected->count)
        actual->is_different |=
            !strstr(det_buffer_text(&reason), actual->expected->items[actual->count]);
    actual->count++;
    det_buffer_deinit(&reason);
}

/* Rejected rows are in the errors, or marked in the stream of the stage. */
static void check_rejected(struct flow_play *play, const struct flow_case_texts *expected)
{
    struct stand_in *one = &play->stand_ins[expected->stage];
    const char *name = play->stages[expected->stage].name;
    struct actual_texts actual = { .expected = expected };
    uint64_t from = one->rejected, other = from;
    char errors[DET_JOURNAL_NAME_MAX + 1];
    struct det_buffer wanted;

    det_buffer_init(&actual.text, play->options->allocator);
    det_buffer_init(&wanted, play->options->allocator);
    (void)snprintf(errors, sizeof errors, "%s.errors", name);
    det_buffer_append_char(&actual.text, '[');
    read_stream(play, name, &from, see_rejected, &actual);
    read_stream(play, errors, &other, see_rejected, &actual);
    det_buffer_append_char(&actual.text, ']');
    one->rejected = from > other ? from : other;
    if (actual.is_different || actual.count != expected->count) {
        det_datum_to_json(expected->node, &wanted);
        set_texts(
            fail_case(play, expected->node, "rejected rows of %s are not as expected", name),
            &wanted, &actual.text);
    }
    det_buffer_deinit(&wanted);
    det_buffer_deinit(&actual.text);
}

/* Expectations: the end. */

static enum flow_case_end end_of(const struct det_pipeline_end *end)
{
    switch (end->outcome) {
    case DET_PIPELINE_RUNS:
        break;
    case DET_PIPELINE_COMPLETED:
        return FLOW_CASE_COMPLETED;
    case DET_PIPELINE_STOPPED:
        return FLOW_CASE_CANCELLED;
    case DET_PIPELINE_HAS_FAILED:
        return FLOW_CASE_FAILED;
    }
    return FLOW_CASE_RUNS;
}

static void check_end(struct flow_play *play, const struct flow_case_expect *expect)
{
    struct det_pipeline_end end = { 0 };
    struct play_failure *failure = NULL;

    if (det_pipeline_wait(play->pipeline, 0, &end) < 0)
        end = (struct det_pipeline_end){ 0 };
    if (expect->end_node && end_of(&end) != expect->end)
        failure = fail_case(play, expect->end_node, "end is not as expected");
    if (failure) {
        (void)det_text_copy(
            failure->expected, sizeof failure->expected, flow_case_end_name(expect->end));
        (void)snprintf(
            failure->actual, sizeof failure->actual, "%s%s%s", flow_case_end_name(end_of(&end)),
            *end.reason ? ": " : "", end.reason);
    }
    if (!expect->reason || strstr(end.reason, expect->reason))
        return;
    failure = fail_case(play, expect->reason_node, "reason is not as expected");
    if (!failure)
        return;
    (void)det_text_copy(failure->expected, sizeof failure->expected, expect->reason);
    (void)det_text_copy(failure->actual, sizeof failure->actual, end.reason);
}

static int check_step(struct flow_play *play, const struct flow_case_step *step)
{
    const struct flow_case_expect *expect = step->expect;
    int r = 0;

    if (!expect || !play->pipeline || play->is_broken)
        return 0;
    for (const struct flow_case_rows *rows = expect->rows; rows && r == 0; rows = rows->next)
        r = check_rows(play, rows);
    for (const struct flow_case_texts *texts = expect->rejected; texts; texts = texts->next)
        check_rejected(play, texts);
    check_end(play, expect);
    return r;
}

/* A case. */

static void note_reached(struct flow_play *play)
{
    struct det_stage_status *status =
        det_arena_array(&play->arena, play->flow.stage_count, sizeof *status);
    struct det_edge_status *edges =
        det_arena_array(&play->arena, play->flow.edge_count + 1u, sizeof *edges);
    size_t stages = play->flow.stage_count, edge_count = play->flow.edge_count;

    if (!status || !edges || !play->options->reached || !play->pipeline ||
        det_pipeline_status(play->pipeline, status, &stages, edges, &edge_count) < 0)
        return;
    for (size_t i = 0; i < stages; i++)
        play->options->reached[i] |= status[i].rows_in || status[i].rows_out;
}

static int play_steps(struct flow_play *play, const struct flow_case *one)
{
    int r = open_pipeline(play, one->node);

    for (const struct flow_case_step *step = one->steps;
         r == 0 && step && play->pipeline && play->result->failure_count == 0; step = step->next) {
        play->result->step++;
        note_simulation(play, step->node, det_sim_settle(play->sim));
        if (!play->is_broken)
            run_action(play, step);
        if (!play->is_broken)
            note_simulation(play, step->node, det_sim_settle(play->sim));
        r = check_step(play, step);
    }
    note_reached(play);
    return r;
}

int flow_play_case(
    const struct flow_case *one, const struct det_flow *flow,
    const struct flow_play_options *options, struct play_result *ret)
{
    struct flow_play play = { .options = options, .result = ret };
    const struct det_sim_options sim = {
        .seed = 1,
        .steps_max = options->steps_max ? options->steps_max : PLAY_STEPS_DEFAULT,
        .allocator = options->allocator,
    };
    det_time begin = 0;
    int r;

    *ret = (struct play_result){ 0 };
    det_arena_init(&play.arena, options->allocator);
    r = copy_flow(&play, flow);
    if (r == 0)
        r = det_sim_open(&sim, &play.sim, NULL);
    if (r == 0) {
        begin = det_world_now(det_sim_world(play.sim), DET_CLOCK_MONOTONIC);
        r = play_steps(&play, one);
        ret->virtual_time = det_world_now(det_sim_world(play.sim), DET_CLOCK_MONOTONIC) - begin;
        if (!play.is_broken)
            det_pipeline_close(play.pipeline);
        det_sim_close(play.sim);
    }
    det_arena_deinit(&play.arena);
    ret->is_ok = ret->failure_count == 0;
    return r == DET_ERR_NO_MEMORY ? r : 0;
}
