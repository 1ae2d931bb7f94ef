/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_case.c - reads the test file of a flow. */
#include "testing/flow_case.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "testing/case_internal.h"

#define WINDOW_MAX 1048576

struct flow_reader {
    struct cli_reader reader;
    const struct det_flow *flow;
};

enum { FILE_FLOW, FILE_MODULE, FILE_STAGES, FILE_WINDOW, FILE_CASES, FILE_KEYS };
static const char *const file_words[] = { "flow", "module", "stages", "window", "cases" };
enum { CASE_NAME, CASE_STEPS, CASE_KEYS };
static const char *const case_words[] = { "name", "steps" };
enum {
    STEP_ROWS,
    STEP_TIME,
    STEP_ADVANCE,
    STEP_END,
    STEP_STOP,
    STEP_CRASH,
    STEP_EXPECT,
    STEP_KEYS
};
static const char *const step_words[] = { "rows", "event_time", "advance", "end",
                                          "stop", "crash",      "expect" };
enum { EXPECT_ROWS, EXPECT_REJECTED, EXPECT_END, EXPECT_REASON, EXPECT_KEYS };
static const char *const expect_words[] = { "rows", "rejected", "end", "reason" };

static const char *const end_names[] = { "none", "completed", "cancelled", "failed" };

const char *flow_case_end_name(enum flow_case_end end)
{
    return end_names[end];
}

bool flow_case_is_one(const struct det_datum *root)
{
    return det_datum_get(root, "flow") != NULL;
}

/* Stages. */

/* At the place of a name, which is a key or a value. */
static int find_stage(
    struct flow_reader *flow, const struct det_datum *at, const char *name, uint16_t *ret)
{
    const char *names[DET_FLOW_STAGES_MAX];

    for (uint16_t i = 0; i < flow->flow->stage_count; i++) {
        names[i] = flow->flow->stages[i].name;
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return 0;
        }
    }
    return reader_fail_near(
        &flow->reader, at, name, names, flow->flow->stage_count, "the flow has no stage '%s'",
        name);
}

static struct det_datum key_of(const struct det_datum *node)
{
    return (struct det_datum){ .line = node->key_line, .column = node->key_column };
}

static int find_source(
    struct flow_reader *flow, const struct det_datum *at, const char *name, uint16_t *ret)
{
    int r = find_stage(flow, at, name, ret);

    if (r == 0 && flow->flow->stages[*ret].kind != DET_STAGE_SOURCE)
        r = reader_fail(&flow->reader, at, "'%s' is not a source", name);
    return r;
}

/* Rows. */

static const struct det_record *record_of(const struct det_stage *stage)
{
    return det_record_of(stage->kind == DET_STAGE_SINK ? stage->in : stage->out);
}

static int take_row_list(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_rows *rows)
{
    const struct det_record *record = record_of(&flow->flow->stages[rows->stage]);
    int r = reader_want(&flow->reader, node, DET_DATUM_LIST, "rows of a stage");

    rows->node = node;
    if (r < 0)
        return r;
    rows->items = det_arena_array(flow->reader.arena, node->count + 1, sizeof(void *));
    if (!rows->items)
        return reader_no_memory(&flow->reader, node);
    READER_EACH (item, node, &flow->reader, r)
        r = reader_both(
            r, case_take_fields(&flow->reader, record, item, &rows->items[rows->count++]));
    return r;
}

/* A mapping from stages to rows. `are_sources`: only of sources. */
static int take_rows(
    struct flow_reader *flow, const struct det_datum *node, bool are_sources,
    struct flow_case_rows **end)
{
    int r = reader_want(&flow->reader, node, DET_DATUM_MAP, "'rows'");

    READER_EACH (item, node, &flow->reader, r) {
        struct flow_case_rows *rows = det_arena_alloc(flow->reader.arena, sizeof *rows);
        struct det_datum key = key_of(item);
        int one;

        if (!rows)
            return reader_no_memory(&flow->reader, item);
        *rows = (struct flow_case_rows){ .node = item };
        one = are_sources ? find_source(flow, &key, item->key, &rows->stage)
                          : find_stage(flow, &key, item->key, &rows->stage);
        r = reader_both(r, one < 0 ? one : take_row_list(flow, item, rows));
        *end = rows;
        end = &rows->next;
    }
    return r;
}

static int take_text_list(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_texts *texts)
{
    int r = reader_want(&flow->reader, node, DET_DATUM_LIST, "rejected rows of a stage");

    texts->node = node;
    if (r < 0)
        return r;
    texts->items = det_arena_array(flow->reader.arena, node->count + 1, sizeof(void *));
    if (!texts->items)
        return reader_no_memory(&flow->reader, node);
    READER_EACH (item, node, &flow->reader, r) {
        r = reader_both(
            r, reader_want(&flow->reader, item, DET_DATUM_TEXT, "the reason of a rejected row"));
        texts->items[texts->count++] = item->text;
    }
    return r;
}

static int take_rejected(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_texts **end)
{
    int r = reader_want(&flow->reader, node, DET_DATUM_MAP, "'rejected'");

    READER_EACH (item, node, &flow->reader, r) {
        struct flow_case_texts *texts = det_arena_alloc(flow->reader.arena, sizeof *texts);
        struct det_datum key = key_of(item);
        int one;

        if (!texts)
            return reader_no_memory(&flow->reader, item);
        *texts = (struct flow_case_texts){ .node = item };
        one = find_stage(flow, &key, item->key, &texts->stage);
        r = reader_both(r, one < 0 ? one : take_text_list(flow, item, texts));
        *end = texts;
        end = &texts->next;
    }
    return r;
}

/* Expectations. */

static int take_end(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_expect *expect)
{
    size_t count = sizeof end_names / sizeof *end_names;
    int r = reader_want(&flow->reader, node, DET_DATUM_TEXT, "'end'");

    expect->end_node = node;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (strcmp(node->text, end_names[i]) == 0) {
            expect->end = (enum flow_case_end)i;
            return 0;
        }
    }
    return r < 0 ? r
                 : reader_fail_near(
                       &flow->reader, node, node->text, end_names, count,
                       "'end' is one of completed, cancelled, failed, none");
}

static int take_expect(
    struct flow_reader *flow, const struct det_datum *node, const struct flow_case_expect **ret)
{
    struct flow_case_expect *expect = det_arena_alloc(flow->reader.arena, sizeof *expect);
    const struct det_datum *nodes[EXPECT_KEYS];
    int r;

    if (!expect)
        return reader_no_memory(&flow->reader, node);
    *expect = (struct flow_case_expect){ .node = node };
    *ret = expect;
    r = reader_keys(&flow->reader, node, expect_words, EXPECT_KEYS, nodes, "'expect'");
    if (nodes[EXPECT_ROWS])
        r = reader_both(r, take_rows(flow, nodes[EXPECT_ROWS], false, &expect->rows));
    if (nodes[EXPECT_REJECTED])
        r = reader_both(r, take_rejected(flow, nodes[EXPECT_REJECTED], &expect->rejected));
    if (nodes[EXPECT_END])
        r = reader_both(r, take_end(flow, nodes[EXPECT_END], expect));
    expect->reason_node = nodes[EXPECT_REASON];
    if (nodes[EXPECT_REASON]) {
        r = reader_both(
            r, reader_want(&flow->reader, nodes[EXPECT_REASON], DET_DATUM_TEXT, "'reason'"));
        expect->reason = nodes[EXPECT_REASON]->text;
    }
    return r;
}

/* Steps. */

static int take_ends(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_step *step)
{
    int r = 0;

    step->ends = det_arena_array(flow->reader.arena, node->count + 1, sizeof *step->ends);
    if (!step->ends)
        return reader_no_memory(&flow->reader, node);
    if (det_datum_is_scalar(node))
        return find_source(
            flow, node, node->text ? node->text : "", &step->ends[step->end_count++]);
    r = reader_want(&flow->reader, node, DET_DATUM_LIST, "'end'");
    READER_EACH (item, node, &flow->reader, r) {
        int one = reader_want(&flow->reader, item, DET_DATUM_TEXT, "a source");

        if (one == 0)
            one = find_source(flow, item, item->text, &step->ends[step->end_count++]);
        r = reader_both(r, one);
    }
    return r;
}

static int take_stop(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_step *step)
{
    int r = reader_want(&flow->reader, node, DET_DATUM_TEXT, "'stop'");

    if (r == 0 && strcmp(node->text, "drain") != 0 && strcmp(node->text, "cancel") != 0)
        r = reader_fail(&flow->reader, node, "'stop' is drain or cancel");
    step->is_cancel = r == 0 && strcmp(node->text, "cancel") == 0;
    return r;
}

static int take_crash(struct flow_reader *flow, const struct det_datum *node)
{
    bool wants = false;
    int r = reader_bool(&flow->reader, node, &wants);

    return r == 0 && !wants ? reader_fail(&flow->reader, node, "'crash' is true") : r;
}

static int take_time(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_step *step)
{
    int r = reader_want(&flow->reader, node, DET_DATUM_TEXT, "'event_time'");

    if (r == 0 && det_parse_time(det_view_text(node->text), &step->event_time) < 0)
        r = reader_fail(&flow->reader, node, "'event_time' is a time such as 2026-01-01T12:00:00Z");
    return r;
}

static int take_action(
    struct flow_reader *flow, const struct det_datum *node, const struct det_datum *const *nodes,
    struct flow_case_step *step)
{
    static const enum flow_case_action actions[] = {
        [STEP_ROWS] = FLOW_CASE_EMIT,   [STEP_ADVANCE] = FLOW_CASE_ADVANCE,
        [STEP_END] = FLOW_CASE_END,     [STEP_STOP] = FLOW_CASE_STOP,
        [STEP_CRASH] = FLOW_CASE_CRASH,
    };
    size_t key = STEP_KEYS;

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (!nodes[i] || !actions[i])
            continue;
        if (key != STEP_KEYS)
            return reader_fail(&flow->reader, node, "a step has one action");
        key = i;
    }
    if (nodes[STEP_TIME] && key != STEP_ROWS)
        return reader_fail_key(&flow->reader, nodes[STEP_TIME], "'event_time' goes with 'rows'");
    if (key == STEP_KEYS)
        return 0;
    step->action = actions[key];
    switch (step->action) {
    case FLOW_CASE_NOTHING:
        return 0;
    case FLOW_CASE_EMIT:
        return take_rows(flow, nodes[key], true, &step->rows);
    case FLOW_CASE_ADVANCE:
        return reader_span(&flow->reader, nodes[key], &step->span);
    case FLOW_CASE_END:
        return take_ends(flow, nodes[key], step);
    case FLOW_CASE_STOP:
        return take_stop(flow, nodes[key], step);
    case FLOW_CASE_CRASH:
        return take_crash(flow, nodes[key]);
    }
    return 0;
}

static int take_step(
    struct flow_reader *flow, const struct det_datum *node, struct flow_case_step *step)
{
    const struct det_datum *nodes[STEP_KEYS];
    int r = reader_keys(&flow->reader, node, step_words, STEP_KEYS, nodes, "a step");

    step->node = node;
    if (node->kind != DET_DATUM_MAP)
        return r;
    r = reader_both(r, take_action(flow, node, nodes, step));
    if (nodes[STEP_TIME])
        r = reader_both(r, take_time(flow, nodes[STEP_TIME], step));
    if (nodes[STEP_EXPECT])
        r = reader_both(r, take_expect(flow, nodes[STEP_EXPECT], &step->expect));
    return r;
}

static int take_steps(struct flow_reader *flow, const struct det_datum *node, struct flow_case *one)
{
    struct flow_case_step **end = &one->steps;
    int r = reader_want(&flow->reader, node, DET_DATUM_LIST, "'steps'");

    READER_EACH (item, node, &flow->reader, r) {
        struct flow_case_step *step = det_arena_alloc(flow->reader.arena, sizeof *step);

        if (!step)
            return reader_no_memory(&flow->reader, item);
        *step = (struct flow_case_step){ .node = item };
        r = reader_both(r, take_step(flow, item, step));
        *end = step;
        end = &step->next;
        one->step_count++;
    }
    return r;
}

/* Cases. */

static int check_name(
    struct flow_reader *flow, const struct flow_case_file *file, const struct det_datum *name)
{
    int r = reader_want(&flow->reader, name, DET_DATUM_TEXT, "the name of a case");

    if (r == 0 && !*name->text)
        r = reader_fail(&flow->reader, name, "the name of a case is not empty");
    for (const struct flow_case *other = file->cases; other && r == 0; other = other->next) {
        if (other->name && strcmp(other->name, name->text) == 0)
            r = reader_fail(&flow->reader, name, "there is a case '%s' already", name->text);
    }
    return r;
}

static int take_case(
    struct flow_reader *flow, const struct det_datum *node, const struct flow_case_file *file,
    struct flow_case *one)
{
    const struct det_datum *nodes[CASE_KEYS];
    int r = reader_keys(&flow->reader, node, case_words, CASE_KEYS, nodes, "a case");

    one->node = node;
    if (r == 0 && (!nodes[CASE_NAME] || !nodes[CASE_STEPS]))
        r = reader_fail(
            &flow->reader, node, "a case needs '%s'", nodes[CASE_NAME] ? "steps" : "name");
    if (nodes[CASE_NAME]) {
        int named = check_name(flow, file, nodes[CASE_NAME]);

        one->name = named == 0 ? nodes[CASE_NAME]->text : NULL;
        r = reader_both(r, named);
    }
    if (nodes[CASE_STEPS])
        r = reader_both(r, take_steps(flow, nodes[CASE_STEPS], one));
    return r;
}

int flow_case_read(
    struct det_arena *arena, const struct det_datum *root, const struct det_flow *spec,
    struct flow_case_file *file, struct cli_problems *reterr)
{
    struct flow_reader flow = { .reader = { .arena = arena, .problems = reterr }, .flow = spec };
    const struct det_datum *node = det_datum_get(root, "cases");
    struct flow_case **end = &file->cases;
    int r;

    *reterr = (struct cli_problems){ 0 };
    if (!node)
        return reader_fail(&flow.reader, root, "a test file needs 'cases'");
    r = reader_want(&flow.reader, node, DET_DATUM_LIST, "'cases'");
    if (r == 0 && !node->first)
        r = reader_fail(&flow.reader, node, "there are no cases");
    READER_EACH (item, node, &flow.reader, r) {
        struct flow_case *one = det_arena_alloc(arena, sizeof *one);

        if (!one)
            return reader_no_memory(&flow.reader, item);
        *one = (struct flow_case){ .node = item };
        r = reader_both(r, take_case(&flow, item, file, one));
        *end = one;
        end = &one->next;
        file->case_count++;
    }
    return r;
}

/* The head. */

static int take_stages(
    struct cli_reader *reader, const struct det_datum *node, struct flow_case_file *file)
{
    int r;

    file->stages = reader_array(reader, node, "'stages'", sizeof *file->stages, &r);
    READER_EACH (item, node, reader, r) {
        r = reader_both(r, reader_want(reader, item, DET_DATUM_MAP, "the settings of a stage"));
        file->stages[file->stage_count++] =
            (struct config_flow_stage){ .name = item->key, .settings = item };
    }
    return r;
}

static int take_window(
    struct cli_reader *reader, const struct det_datum *node, struct flow_case_file *file)
{
    uint64_t number = 0;
    int r = reader_number(reader, node, &number);

    if (r == 0 && (number < 1 || number > WINDOW_MAX))
        r = reader_fail(reader, node, "'window' is a number from 1 to %d", WINDOW_MAX);
    file->window = (uint32_t)number;
    return r;
}

int flow_case_read_head(
    struct det_arena *arena, const struct det_datum *root, struct flow_case_file *ret,
    struct cli_problems *reterr)
{
    struct cli_reader reader = { .arena = arena, .problems = reterr };
    const struct det_datum *nodes[FILE_KEYS];
    int r;

    *reterr = (struct cli_problems){ 0 };
    *ret = (struct flow_case_file){ 0 };
    r = reader_keys(&reader, root, file_words, FILE_KEYS, nodes, "a test file of a flow");
    if (r < 0)
        return r;
    det_assert(nodes[FILE_FLOW]);
    r = reader_want(&reader, nodes[FILE_FLOW], DET_DATUM_TEXT, "'flow'");
    ret->flow = nodes[FILE_FLOW]->text;
    ret->flow_node = nodes[FILE_FLOW];
    if (nodes[FILE_MODULE]) {
        r = reader_both(r, reader_want(&reader, nodes[FILE_MODULE], DET_DATUM_TEXT, "'module'"));
        ret->module = nodes[FILE_MODULE]->text;
    }
    if (nodes[FILE_STAGES])
        r = reader_both(r, take_stages(&reader, nodes[FILE_STAGES], ret));
    if (nodes[FILE_WINDOW])
        r = reader_both(r, take_window(&reader, nodes[FILE_WINDOW], ret));
    return r;
}
