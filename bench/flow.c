/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow.c - rows of 256 bytes through a source, transforms and a sink. */
#include <detent/flow.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"

#define REC_SPEC "flow.rec"
#include <detent/rec/declare.h>

#define STAGES_MAX 128
/* Kept, so that segments are reused as in a log that has run for a while. */
#define KEPT (UINT64_C(64) << 20)

struct flow_shape {
    unsigned transforms;
    bool is_stateful;   /* the last stage before the sink sums by key */
    const char *scheme; /* NULL: in memory */
    enum det_journal_durability durability;
};

struct flow_run {
    uint64_t rows;
    uint64_t received;
};

static int next_rows(struct det_stage_call *call, void *cursor)
{
    const struct flow_run *run = call->user;
    struct flow_place *place = cursor;
    struct flow_row row = { .body = { .size = sizeof row.body.data } };
    uint32_t room = det_stage_room(call);
    int r;

    memset(row.body.data, 'x', sizeof row.body.data);
    for (; room > 0 && place->next < run->rows; room--) {
        row.number = place->next++;
        row.key = (uint32_t)(row.number % 1000);
        r = det_stage_emit(call, &row);
        if (r < 0)
            return r;
    }
    return place->next < run->rows ? DET_SOURCE_MORE : DET_SOURCE_DONE;
}

static int pass_row(struct det_stage_call *call, const void *in)
{
    return det_stage_emit(call, in);
}

static int count_row(struct det_stage_call *call, void *state, const void *in)
{
    const struct flow_row *row = in;
    struct flow_total *total = state;

    (void)call;
    total->count++;
    total->sum += row->number;
    return 0;
}

static int emit_total(struct det_stage_call *call, void *state)
{
    const struct flow_total *total = state;
    struct flow_row row = { .number = total->sum };

    return det_stage_emit(call, &row);
}

static int receive_row(struct det_stage_call *call, void *cursor, const void *in)
{
    struct flow_run *run = call->user;

    (void)cursor;
    (void)in;
    run->received++;
    return 0;
}

static const struct det_stage_functions source_functions = { .next = next_rows };
static const struct det_stage_functions transform_functions = { .process = pass_row };
static const struct det_stage_functions stateful_functions = { .accumulate = count_row,
                                                               .emit = emit_total };
static const struct det_stage_functions sink_functions = { .deliver = receive_row };

struct flow_line {
    struct det_stage stages[STAGES_MAX];
    struct det_edge edges[STAGES_MAX];
    char names[STAGES_MAX][8];
    struct det_flow flow;
};

static void add_stage(
    struct flow_line *line, enum det_stage_kind kind, const struct det_stage_functions *functions)
{
    uint16_t number = line->flow.stage_count++;
    const struct det_record_ref row = { .get = flow_row_record };
    struct det_stage *stage = &line->stages[number];

    (void)snprintf(line->names[number], sizeof line->names[number], "s%u", (unsigned)number);
    *stage =
        (struct det_stage){ .name = line->names[number], .kind = kind, .functions = functions };
    if (kind != DET_STAGE_SOURCE)
        stage->in = row;
    if (kind != DET_STAGE_SINK)
        stage->out = row;
    if (kind == DET_STAGE_SOURCE)
        stage->cursor.get = flow_place_record;
    if (kind == DET_STAGE_STATEFUL) {
        stage->state.get = flow_total_record;
        stage->key = "key";
    }
    if (number > 0)
        line->edges[line->flow.edge_count++] =
            (struct det_edge){ .from = (uint16_t)(number - 1), .to = number };
}

static void make_line(struct flow_line *line, const struct flow_shape *shape)
{
    *line = (struct flow_line){ 0 };
    line->flow.name = "line";
    line->flow.stages = line->stages;
    line->flow.edges = line->edges;
    add_stage(line, DET_STAGE_SOURCE, &source_functions);
    for (unsigned i = 0; i < shape->transforms; i++)
        add_stage(line, DET_STAGE_TRANSFORM, &transform_functions);
    if (shape->is_stateful)
        add_stage(line, DET_STAGE_STATEFUL, &stateful_functions);
    add_stage(line, DET_STAGE_SINK, &sink_functions);
}

static int run_flow(struct bench_lap *lap)
{
    static struct flow_line line;
    const struct flow_shape *shape = lap->argument;
    struct flow_run run = { .rows = lap->operations };
    char folder[BENCH_PATH_MAX], url[BENCH_PATH_MAX + 16];
    struct det_pipeline_options options = {
        .durability = shape->durability,
        .user = &run,
        .waits_for_run = true,
        .retain_size = KEPT,
        .window = 16384,
    };
    struct det_pipeline_end end;
    struct det_pipeline *pipeline;
    struct det_error error;
    int r;

    make_line(&line, shape);
    if (shape->scheme) {
        r = bench_folder_make("flow", folder);
        if (r < 0)
            return bench_lap_fail(lap, r, "no folder");
        (void)snprintf(url, sizeof url, "%s%s", shape->scheme, folder);
        options.journal = url;
    }
    r = det_pipeline_open(&line.flow, &options, &pipeline, &error);
    if (r < 0)
        return bench_lap_fail(lap, r, "%s", error.text);
    r = det_pipeline_wait_state(pipeline, DET_PIPELINE_READY, DET_NEVER);
    bench_lap_begin(lap);
    (void)det_pipeline_run(pipeline);
    r = det_pipeline_wait(pipeline, DET_NEVER, &end);
    bench_lap_end(lap);
    det_pipeline_close(pipeline);
    if (shape->scheme)
        bench_folder_remove(folder);
    if (r < 0 || end.outcome != DET_PIPELINE_COMPLETED)
        return bench_lap_fail(lap, DET_ERR_IO, "%s", end.reason);
    if (!shape->is_stateful && run.received != run.rows)
        return bench_lap_fail(lap, DET_ERR_IO, "rows are missing");
    return 0;
}

#define SHAPE(name, ...) static const struct flow_shape name = { __VA_ARGS__ }
SHAPE(memory_1, .transforms = 1, .durability = DET_JOURNAL_MEMORY);
SHAPE(memory_3, .transforms = 3, .durability = DET_JOURNAL_MEMORY);
SHAPE(memory_10, .transforms = 10, .durability = DET_JOURNAL_MEMORY);
SHAPE(memory_100, .transforms = 100, .durability = DET_JOURNAL_MEMORY);
SHAPE(memory_sum, .is_stateful = true, .durability = DET_JOURNAL_MEMORY);
SHAPE(os_1, .transforms = 1, .scheme = "file:", .durability = DET_JOURNAL_OS);
SHAPE(disk_1, .transforms = 1, .scheme = "file:");
SHAPE(disk_3, .transforms = 3, .scheme = "file:");
SHAPE(disk_10, .transforms = 10, .scheme = "file:");

#define OURS(shape, count) BENCH_OURS, run_flow, &(shape), count, .bytes = 256
static const struct bench_case cases[] = {
    { "memory: 1 transform", OURS(memory_1, 1000000) },
    { "memory: 3 transforms", OURS(memory_3, 1000000) },
    { "memory: 10 transforms", OURS(memory_10, 300000) },
    { "memory: 100 transforms", OURS(memory_100, 30000) },
    { "memory: sum by 1,000 keys", OURS(memory_sum, 1000000) },
    { "os: 1 transform", OURS(os_1, 1000000) },
    { "disk: 1 transform", OURS(disk_1, 1000000), .goals = { { BENCH_NS_MAX, 1000, NULL } } },
    { "disk: 3 transforms", OURS(disk_3, 500000) },
    { "disk: 10 transforms", OURS(disk_10, 200000) },
};

extern const struct bench bench_flow;
const struct bench bench_flow = {
    .title = "flow: rows of 256 bytes from a source to a sink",
    .operation = "row",
    .rounds = 7,
    .has_processor = true,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
