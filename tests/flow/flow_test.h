/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_test.h - flows for these tests, built by code: stages whose functions follow the fields of
 * struct bed, and a sink that records the rows it receives. */
#ifndef DET_TESTS_FLOW_TEST_H
#define DET_TESTS_FLOW_TEST_H

#include <detent/driver/loop.h>
#include <detent/flow.h>
#include <detent/sim.h>

#define REC_SPEC "flow/flow_test.rec"
#include <detent/rec/declare.h>

#include "lib/test.h"
#include "os/os.h"

#define GOT_MAX 20000

/* What a flow did; `user` of its stages. One thread at a time writes a field. */
struct bed {
    struct det_stage stages[8];
    struct det_edge edges[8];
    struct det_flow flow;
    struct det_pipeline_options options;
    struct det_pipeline *pipeline;
    struct det_error error;
    struct det_pipeline_end end;
    /* What the functions do. */
    uint64_t rows;      /* of the source */
    uint64_t burst;     /* rows in a call of next(); 0: as many as fit */
    bool is_endless;    /* the source is idle after its rows, instead of done */
    uint64_t fail_at;   /* process() fails the stage at this value; 0: never */
    uint64_t reject_at; /* ... rejects it */
    enum det_row_rejection why;
    uint64_t copies; /* rows that process() emits for each; 0: one */
    uint64_t copied;
    void *more; /* of a test */
    /* What happened. */
    uint64_t got[GOT_MAX];
    uint64_t positions[GOT_MAX];
    size_t got_count;
    uint64_t acknowledged;
    unsigned opens, closes, drains, flushes, nexts;
    char facts[4096]; /* "opened ready running ..." */
    bool has_ended;
};

static inline struct bed *bed_of(struct det_stage_call *call)
{
    return call->user;
}

static inline int count_open(struct det_stage_call *call)
{
    bed_of(call)->opens++;
    return 0;
}

static inline void count_close(struct det_stage_call *call)
{
    bed_of(call)->closes++;
}

static inline int count_drain(struct det_stage_call *call)
{
    bed_of(call)->drains++;
    return 0;
}

/* Emits the numbers from 1. */
static inline int next_numbers(struct det_stage_call *call, void *cursor)
{
    struct bed *bed = bed_of(call);
    struct place *place = cursor;
    uint64_t burst = bed->burst ? bed->burst : UINT64_MAX;

    bed->nexts++;
    for (; burst > 0 && det_stage_room(call) > 0 && place->next < bed->rows; burst--) {
        struct number number = { .value = ++place->next, .key = (uint32_t)(place->next % 5) };
        int r = det_stage_emit(call, &number);

        if (r < 0)
            return r;
    }
    if (place->next < bed->rows)
        return DET_SOURCE_MORE;
    return bed->is_endless ? DET_SOURCE_IDLE : DET_SOURCE_DONE;
}

static inline void note_acknowledged(struct det_stage_call *call, uint64_t sequence)
{
    bed_of(call)->acknowledged = sequence;
}

static inline int pass_number(struct det_stage_call *call, const void *in)
{
    const struct number *number = in;
    struct bed *bed = bed_of(call);
    uint64_t copies = bed->copies ? bed->copies : 1;
    int r = 0;

    if (number->value == bed->fail_at)
        return det_stage_fail(call, DET_ERR_IO, "number %u is bad", (unsigned)number->value);
    for (uint64_t i = 0; i < copies && r == 0; i++)
        r = det_stage_emit(call, number);
    if (number->value == bed->reject_at)
        return det_stage_reject(call, bed->why, "number %u is odd", (unsigned)number->value);
    return r;
}

static inline int keep_number(struct det_stage_call *call, void *cursor, const void *in)
{
    const struct number *number = in;
    struct bed *bed = bed_of(call);

    (void)cursor;
    assert_true(bed->got_count < GOT_MAX);
    bed->positions[bed->got_count] = call->row.position;
    bed->got[bed->got_count++] = number->value;
    return 0;
}

static inline int drop_number(struct det_stage_call *call, void *cursor, const void *in)
{
    (void)call;
    (void)cursor;
    (void)in;
    return 0;
}

static inline int count_flush(struct det_stage_call *call, void *cursor)
{
    (void)cursor;
    bed_of(call)->flushes++;
    return 0;
}

static inline void note_fact(void *user, const struct det_flow_fact *fact)
{
    struct bed *bed = user;
    size_t length = strlen(bed->facts);

    snprintf(
        bed->facts + length, sizeof bed->facts - length, "%s%s%s ", fact->stage ? fact->stage : "",
        fact->stage ? ":" : "", det_flow_fact_name(fact->kind));
}

static inline void note_end(void *user, const struct det_pipeline_end *end)
{
    struct bed *bed = user;

    /* On a loop of its own this is another thread, and the test waits for the end. */
    if (bed->options.loop)
        bed->end = *end;
    bed->has_ended = true;
}

static const struct det_stage_functions numbers_functions = {
    .open = count_open,
    .close = count_close,
    .next = next_numbers,
    .acknowledged = note_acknowledged,
    .drain = count_drain,
};
static const struct det_stage_functions loop_numbers_functions = { .next = next_numbers };
static const struct det_stage_functions pass_functions = { .process = pass_number };
static const struct det_stage_functions keep_functions = { .deliver = keep_number };
static const struct det_stage_functions buffered_functions = { .deliver = keep_number,
                                                               .flush = count_flush };

static inline int add_number(struct det_stage_call *call, void *state, const void *in)
{
    const struct number *number = in;
    struct total *total = state;

    total->key = number->key;
    total->count++;
    total->sum += number->value;
    if (number->value == bed_of(call)->fail_at)
        return det_stage_fail(call, DET_ERR_IO, "number %u is bad", (unsigned)number->value);
    if (number->value == bed_of(call)->reject_at)
        return det_stage_reject(call, DET_REJECT_VALIDATION, "no");
    return 0;
}

static inline int emit_total(struct det_stage_call *call, void *state)
{
    return det_stage_emit(call, state);
}

static inline int keep_total(struct det_stage_call *call, void *cursor, const void *in)
{
    const struct total *total = in;
    struct bed *bed = bed_of(call);

    (void)cursor;
    assert_true(bed->got_count < GOT_MAX);
    bed->positions[bed->got_count] = total->count;
    bed->got[bed->got_count++] = total->sum;
    return 0;
}

static const struct det_stage_functions sum_functions
    __attribute__((unused)) = { .accumulate = add_number, .emit = emit_total };
static const struct det_stage_functions keep_total_functions
    __attribute__((unused)) = { .deliver = keep_total };

static inline struct det_stage source_stage(const char *name)
{
    return (struct det_stage){
        .name = name,
        .kind = DET_STAGE_SOURCE,
        .out = { .get = number_record },
        .cursor = { .get = place_record },
        .functions = &loop_numbers_functions,
    };
}

static inline struct det_stage transform_stage(const char *name)
{
    return (struct det_stage){
        .name = name,
        .kind = DET_STAGE_TRANSFORM,
        .in = { .get = number_record },
        .out = { .get = number_record },
        .functions = &pass_functions,
    };
}

static inline struct det_stage sink_stage(const char *name)
{
    return (struct det_stage){
        .name = name,
        .kind = DET_STAGE_SINK,
        .in = { .get = number_record },
        .functions = &keep_functions,
    };
}

/* read -> pass -> keep, in a bed of its own. */
static inline struct bed *new_bed(uint64_t rows)
{
    struct bed *bed = calloc(1, sizeof *bed);

    assert_non_null(bed);
    bed->stages[0] = source_stage("read");
    bed->stages[1] = transform_stage("pass");
    bed->stages[2] = sink_stage("keep");
    bed->edges[0] = (struct det_edge){ 0, 1, 0 };
    bed->edges[1] = (struct det_edge){ 1, 2, 0 };
    bed->flow = (struct det_flow){
        .name = "line",
        .stages = bed->stages,
        .edges = bed->edges,
        .stage_count = 3,
        .edge_count = 2,
    };
    bed->rows = rows;
    bed->options.user = bed;
    bed->options.on_fact = note_fact;
    bed->options.on_end = note_end;
    return bed;
}

static inline void open_bed(struct bed *bed)
{
    if (det_pipeline_open(&bed->flow, &bed->options, &bed->pipeline, &bed->error) < 0)
        fail_msg("%s", bed->error.text);
}

static inline void close_bed(struct bed *bed)
{
    det_pipeline_close(bed->pipeline);
    bed->pipeline = NULL;
}

/* Runs it to its end. */
static inline void run_bed(struct bed *bed)
{
    open_bed(bed);
    assert_int_equal(det_pipeline_wait(bed->pipeline, DET_NEVER, &bed->end), 0);
    close_bed(bed);
}

/* The sink has got `first` to `last`, each once and in order. */
static inline void assert_got(const struct bed *bed, uint64_t first, uint64_t last)
{
    assert_int_equal(bed->got_count, last + 1 - first);
    for (size_t i = 0; i < bed->got_count; i++)
        assert_int_equal(bed->got[i], first + i);
}

#endif
