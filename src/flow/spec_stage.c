/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_stage.c - reads the row of a stage: its name, its records, its options. A row with a mistake
 * still declares its stage. */
#include <string.h>

#include "base/text.h"
#include "flow/spec.h"
#include "flow/topology.h"
#include "machine/parse_arguments.h"

#define KIND(kind)        (1u << DET_STAGE_##kind)
#define ALL_KINDS         ((1u << DET_STAGE_KINDS) - 1)
#define DEFAULT_LIVE_ROWS 8

/* A row being read. */
struct stage_row {
    struct det_flow_spec *spec;
    struct det_stage *stage;
    struct det_flow_read_stage *read;
    struct det_take take; /* of an option */
};

static enum det_stage_kind kind_of(const struct det_node *row)
{
    return (enum det_stage_kind)((int)row->row - (int)DET_FLOW_ROW_SOURCE);
}

_Static_assert(
    DET_FLOW_ROW_TRANSFORM - DET_FLOW_ROW_SOURCE == DET_STAGE_TRANSFORM &&
        DET_FLOW_ROW_STATEFUL - DET_FLOW_ROW_SOURCE == DET_STAGE_STATEFUL &&
        DET_FLOW_ROW_JOIN - DET_FLOW_ROW_SOURCE == DET_STAGE_JOIN &&
        DET_FLOW_ROW_SINK - DET_FLOW_ROW_SOURCE == DET_STAGE_SINK,
    "the rows of stages must have the order of their kinds");

static struct det_record_ref take_record(struct stage_row *row, const char *what)
{
    struct det_spec *text = row->spec->text;
    const struct det_node *node = det_take_node(&row->take, what);
    struct det_record_ref ref = { NULL, NULL };

    if (node != NULL)
        ref.record = det_parse_record_of(text, node);
    if (node != NULL && ref.record == NULL)
        row->read->is_broken = true;
    return ref;
}

static const char *take_text(struct stage_row *row, enum det_flow_text which, const char *what)
{
    const struct det_node *node = row->take.next;
    const char *text = det_take_string(&row->take, what);

    if (text != NULL)
        row->read->texts[which] = node;
    return text;
}

static void read_infinite(struct stage_row *row)
{
    row->stage->flags |= DET_STAGE_INFINITE;
}

static void read_async(struct stage_row *row)
{
    row->stage->flags |= DET_STAGE_ASYNC;
    row->stage->concurrency = 1;
    if (row->take.next != NULL)
        row->stage->concurrency = (uint16_t)det_take_number(
            &row->take, DET_PIPELINE_THREADS_MAX, "a number from 1 to 256");
}

static void read_cursor(struct stage_row *row)
{
    row->stage->cursor = take_record(row, "a record");
}

static void read_state(struct stage_row *row)
{
    row->stage->state = take_record(row, "a record");
}

static void read_key(struct stage_row *row)
{
    row->stage->key = take_text(row, DET_FLOW_TEXT_KEY, "an expression in double quotes");
}

static void read_emit_at_end(struct stage_row *row)
{
    row->stage->emission.kind = DET_EMIT_AT_END;
}

static void read_emit_always(struct stage_row *row)
{
    row->stage->emission.kind = DET_EMIT_ALWAYS;
}

static void read_emit_every(struct stage_row *row)
{
    row->stage->emission = (struct det_emission){
        .kind = DET_EMIT_EVERY,
        .rows = det_take_number(&row->take, UINT32_MAX, "a number of rows, at least 1"),
    };
}

static void read_emit_within(struct stage_row *row)
{
    row->stage->emission =
        (struct det_emission){ .kind = DET_EMIT_WITHIN, .time = det_take_duration(&row->take) };
}

static void read_on(struct stage_row *row)
{
    row->stage->reference_key =
        take_text(row, DET_FLOW_TEXT_REFERENCE_KEY, "an expression in double quotes");
    row->stage->key = take_text(row, DET_FLOW_TEXT_KEY, "an expression in double quotes");
}

static void read_inner(struct stage_row *row)
{
    row->stage->join = DET_JOIN_INNER;
}

static void read_left(struct stage_row *row)
{
    row->stage->join = DET_JOIN_LEFT;
}

static void read_strict(struct stage_row *row)
{
    row->stage->join = DET_JOIN_STRICT;
}

static void read_live(struct stage_row *row)
{
    row->stage->flags |= DET_STAGE_LIVE;
    row->stage->reference_batch = DEFAULT_LIVE_ROWS;
    if (row->take.next != NULL)
        row->stage->reference_batch =
            (uint16_t)det_take_number(&row->take, UINT16_MAX, "a number from 1 to 65535");
}

static void read_buffered(struct stage_row *row)
{
    row->stage->flags |= DET_STAGE_BUFFERED;
}

static void read_window(struct stage_row *row)
{
    row->stage->window =
        det_take_number(&row->take, DET_PIPELINE_WINDOW_MAX, "a number of rows from 1 to 1048576");
}

static void read_use(struct stage_row *row)
{
    const struct det_node *name = det_take_node(&row->take, "the name of a connector");

    row->read->texts[DET_FLOW_TEXT_USE] = name;
    row->stage->use = det_parse_text(name);
    if (row->take.next != NULL)
        row->stage->settings = take_text(
            row, DET_FLOW_TEXT_SETTINGS, "settings in double quotes, such as \"{path: a.csv}\"");
}

static void read_with(struct stage_row *row)
{
    const char **names = det_parse_alloc(row->spec->text, (DET_FLOW_WITH_MAX + 1) * sizeof *names);
    size_t count = 0;

    if (names == NULL)
        return;
    while (row->take.next != NULL && !row->take.failed)
        names[count++] = det_take_name(&row->take, "the name of a policy");
    row->stage->with = names;
}

/* The C function of an option is generated. */
static void read_nothing(struct stage_row *row)
{
    (void)row;
}

/* What an option must not be together with: the bits are those of enum det_flow_extra. */
#define BIT(extra) (UINT32_C(1) << DET_FLOW_EXTRA_##extra)
#define EMISSIONS  (BIT(EMIT_AT_END) | BIT(EMIT_ALWAYS) | BIT(EMIT_EVERY) | BIT(EMIT_WITHIN))
#define JOINS      (BIT(INNER) | BIT(LEFT) | BIT(STRICT))
#define OF_FUNCTIONS \
    (BIT(CURSOR) | BIT(BEGINS) | BIT(ACKNOWLEDGES) | BIT(BUFFERED) | BIT(OPENS) | BIT(DRAINS))

struct option {
    unsigned kinds;
    uint32_t excludes;
    void (*read)(struct stage_row *row);
};

static const struct option options[DET_FLOW_EXTRA_COUNT] = {
    [DET_FLOW_EXTRA_INFINITE] = { KIND(SOURCE), 0, read_infinite },
    [DET_FLOW_EXTRA_ASYNC] = { KIND(SOURCE) | KIND(TRANSFORM) | KIND(SINK), 0, read_async },
    [DET_FLOW_EXTRA_CURSOR] = { KIND(SOURCE) | KIND(SINK), BIT(USE), read_cursor },
    [DET_FLOW_EXTRA_ACKNOWLEDGES] = { KIND(SOURCE), BIT(USE), read_nothing },
    [DET_FLOW_EXTRA_STATE] = { KIND(STATEFUL), 0, read_state },
    [DET_FLOW_EXTRA_KEY] = { KIND(STATEFUL), 0, read_key },
    [DET_FLOW_EXTRA_EMIT_AT_END] = { KIND(STATEFUL), EMISSIONS, read_emit_at_end },
    [DET_FLOW_EXTRA_EMIT_ALWAYS] = { KIND(STATEFUL), EMISSIONS, read_emit_always },
    [DET_FLOW_EXTRA_EMIT_EVERY] = { KIND(STATEFUL), EMISSIONS, read_emit_every },
    [DET_FLOW_EXTRA_EMIT_WITHIN] = { KIND(STATEFUL), EMISSIONS, read_emit_within },
    [DET_FLOW_EXTRA_ON] = { KIND(JOIN), 0, read_on },
    [DET_FLOW_EXTRA_INNER] = { KIND(JOIN), JOINS, read_inner },
    [DET_FLOW_EXTRA_LEFT] = { KIND(JOIN), JOINS, read_left },
    [DET_FLOW_EXTRA_STRICT] = { KIND(JOIN), JOINS, read_strict },
    [DET_FLOW_EXTRA_LIVE] = { KIND(JOIN), 0, read_live },
    [DET_FLOW_EXTRA_BEGINS] = { KIND(SINK), BIT(USE), read_nothing },
    [DET_FLOW_EXTRA_BUFFERED] = { KIND(SINK), BIT(USE), read_buffered },
    [DET_FLOW_EXTRA_WINDOW] = { ALL_KINDS & ~KIND(SINK), 0, read_window },
    [DET_FLOW_EXTRA_OPENS] = { ALL_KINDS, BIT(USE), read_nothing },
    [DET_FLOW_EXTRA_DRAINS] = { ALL_KINDS, BIT(USE), read_nothing },
    [DET_FLOW_EXTRA_USE] = { ALL_KINDS, OF_FUNCTIONS, read_use },
    [DET_FLOW_EXTRA_WITH] = { ALL_KINDS, 0, read_with },
};

_Static_assert(DET_FLOW_EXTRA_COUNT <= 32, "every option must have its bit");

static void fail_row(struct stage_row *row)
{
    row->read->is_broken = true;
}

static void hint_option(struct stage_row *row, const char *name)
{
    const char *names[DET_FLOW_EXTRA_COUNT];
    size_t count = 0;

    for (unsigned i = 0; i < DET_FLOW_EXTRA_COUNT; i++) {
        if (options[i].kinds & 1u << row->stage->kind)
            names[count++] = det_flow_extra_kind((enum det_flow_extra)i)->name;
    }
    det_parse_hint_nearest(row->spec->text, name, names, count);
}

/* Returns false after a report. */
static bool is_permitted(struct stage_row *row, int extra, const struct det_node *node)
{
    const char *word = det_topology_kind_word(row->stage->kind);
    const struct det_node *other = NULL;

    if (extra < 0 || !(options[extra].kinds & 1u << row->stage->kind)) {
        det_flow_read_report(
            row->spec, DET_RULE_ROW_ARGUMENTS, node,
            node->kind == DET_NODE_NUMBER || node->kind == DET_NODE_STRING
                ? "%.0sthis is not an option of a %s"
                : "%.64s is not an option of a %s",
            node->text, word);
        hint_option(row, node->text);
        return false;
    }
    if (row->read->options[extra] != NULL) {
        det_flow_read_report(
            row->spec, DET_RULE_ROW_ARGUMENTS, node, "%s is there twice", node->text);
        det_parse_other(row->spec->text, row->read->options[extra]);
        return false;
    }
    for (unsigned i = 0; i < DET_FLOW_EXTRA_COUNT && other == NULL; i++) {
        if (options[extra].excludes >> i & 1)
            other = row->read->options[i];
    }
    if (other == NULL)
        return true;
    det_flow_read_report(
        row->spec, DET_RULE_ROW_ARGUMENTS, node, "%s and %s exclude each other", other->text,
        node->text);
    return false;
}

/* Returns false, after a report, if arguments are missing or too many. */
static bool has_arguments(
    struct stage_row *row, const struct det_row_kind *kind, const struct det_node *node)
{
    bool is_bare = node->kind == DET_NODE_NAME;

    if (is_bare ? kind->least == 0 : kind->most > 0 && node->argument_count > 0)
        return true;
    det_flow_read_report(
        row->spec, DET_RULE_ROW_ARGUMENTS, node, "%s has %s; it is written %s", node->text,
        is_bare || kind->most > 0 ? "no value" : "brackets", kind->form);
    return false;
}

static void read_option(struct stage_row *row, const struct det_node *node)
{
    bool is_word = node->kind == DET_NODE_NAME || node->kind == DET_NODE_CALL;
    int extra = is_word ? det_flow_extra_find(node->text, strlen(node->text)) : -1;
    const struct det_row_kind *kind;

    if (!is_permitted(row, extra, node)) {
        fail_row(row);
        return;
    }
    row->read->options[extra] = node;
    kind = det_flow_extra_kind((enum det_flow_extra)extra);
    if (!has_arguments(row, kind, node)) {
        fail_row(row);
        return;
    }
    row->take = (struct det_take){ .spec = row->spec->text, .call = node, .index = 1 };
    if (node->kind == DET_NODE_CALL)
        row->take = det_take_start(row->spec->text, node, kind);
    if (!row->take.failed)
        options[extra].read(row);
    row->read->is_broken |= row->take.failed;
}

/* Returns false after a report. */
static bool check_count(struct stage_row *row, const struct det_node *node)
{
    for (unsigned count = 0; node != NULL; node = node->next) {
        if (++count <= DET_FLOW_OPTIONS_MAX)
            continue;
        det_flow_read_report(
            row->spec, DET_RULE_TOO_LARGE, node, "a stage has at most %d options",
            DET_FLOW_OPTIONS_MAX);
        fail_row(row);
        return false;
    }
    return true;
}

static void check_missing(struct stage_row *row)
{
    const struct det_node *const *has = row->read->options;
    bool has_state = has[DET_FLOW_EXTRA_STATE] || has[DET_FLOW_EXTRA_USE];

    if (row->stage->kind == DET_STAGE_STATEFUL && !has_state) {
        det_flow_read_report(
            row->spec, DET_RULE_ROW_ARGUMENTS, row->read->row,
            "%s is a STATEFUL stage without STATE(record)", row->stage->name);
        fail_row(row);
    }
    if (has[DET_FLOW_EXTRA_BEGINS] && !has[DET_FLOW_EXTRA_CURSOR]) {
        det_flow_read_report(
            row->spec, DET_RULE_ROW_ARGUMENTS, has[DET_FLOW_EXTRA_BEGINS],
            "BEGINS needs CURSOR(record)");
        fail_row(row);
    }
}

static void read_options(struct stage_row *row, const struct det_node *node)
{
    if (!check_count(row, node))
        return;
    for (; node != NULL; node = node->next)
        read_option(row, node);
    if (!row->read->is_broken)
        check_missing(row);
}

static void read_records(struct stage_row *row)
{
    enum det_stage_kind kind = row->stage->kind;

    if (kind == DET_STAGE_JOIN)
        row->stage->reference = take_record(row, "the record of the reference");
    if (kind != DET_STAGE_SOURCE)
        row->stage->in = take_record(row, "the record that the stage takes");
    if (kind != DET_STAGE_SINK)
        row->stage->out = take_record(row, "the record that the stage makes");
}

/* Takes a row by its number of records only: the options are counted later. */
static struct det_take start_row(struct stage_row *row, const struct det_node *node)
{
    struct det_row_kind kind = *det_row_kind_in(DET_LANGUAGE_FLOW, (unsigned)node->row);

    kind.most = DET_ROW_MANY;
    return det_take_start(row->spec->text, node, &kind);
}

void det_flow_read_stage(struct det_flow_spec *spec, const struct det_node *node)
{
    struct stage_row row = { .spec = spec };

    row.stage = &spec->stages[spec->flow.stage_count];
    row.read = &spec->read[spec->flow.stage_count];
    *row.stage = (struct det_stage){ .kind = kind_of(node) };
    *row.read = (struct det_flow_read_stage){ .row = node };
    row.take = start_row(&row, node);
    row.read->name_node = det_take_node(&row.take, "the name of a stage");
    if (row.take.failed && det_parse_is_name(spec->text, node->arguments))
        row.read->name_node = node->arguments;
    if (row.read->name_node == NULL) {
        spec->is_row_lost = true;
        return;
    }
    row.stage->name = row.read->name = row.read->name_node->text;
    row.read->index = spec->flow.stage_count++;
    read_records(&row);
    row.read->is_broken |= row.take.failed;
    if (!row.take.failed)
        read_options(&row, row.take.next);
}
