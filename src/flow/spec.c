/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec.c - reads a .flow file: the public functions of flow_spec.h. src/machine reads the text
 * itself, records and places. */
#include "flow/spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

void det_flow_read_report(
    struct det_flow_spec *spec, enum det_rule rule, const struct det_node *node, const char *format,
    ...)
{
    struct det_place place = det_parse_place(node);
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    det_parse_report(spec->text, rule, &place, "%s", text);
}

static bool is_edge_row(unsigned row)
{
    return row == DET_FLOW_ROW_EDGE || row == DET_FLOW_ROW_REFERENCE ||
           row == DET_FLOW_ROW_BACK_EDGE;
}

static bool is_stage_row(unsigned row)
{
    return row > DET_FLOW_ROW_BEFORE_FIRST && row < DET_FLOW_ROW_END && !is_edge_row(row);
}

static size_t count_rows(const struct det_flow_spec *spec, bool (*is_counted)(unsigned row))
{
    size_t count = 0;

    for (const struct det_node *row = spec->text->rows.first; row != NULL; row = row->next)
        count += is_counted((unsigned)row->row);
    return count;
}

static void report_many(
    struct det_flow_spec *spec, const struct det_node *row, const char *what, int most)
{
    det_flow_read_report(spec, DET_RULE_TOO_LARGE, row, "a flow has at most %d %s", most, what);
}

static void read_row(struct det_flow_spec *spec, const struct det_node *row)
{
    if (is_stage_row((unsigned)row->row)) {
        if (spec->stage_rows++ < DET_FLOW_STAGES_MAX)
            det_flow_read_stage(spec, row);
        else if (spec->stage_rows == DET_FLOW_STAGES_MAX + 1)
            report_many(spec, row, "stages", DET_FLOW_STAGES_MAX);
    } else if (is_edge_row((unsigned)row->row)) {
        if (spec->edge_rows_count < DET_FLOW_EDGES_MAX)
            spec->edge_rows[spec->edge_rows_count] = row;
        else if (spec->edge_rows_count == DET_FLOW_EDGES_MAX)
            report_many(spec, row, "edges", DET_FLOW_EDGES_MAX);
        spec->edge_rows_count++;
    }
}

static void read_rows(struct det_flow_spec *spec)
{
    struct det_spec *text = spec->text;
    size_t stages = count_rows(spec, is_stage_row), edges = count_rows(spec, is_edge_row);

    stages = stages < DET_FLOW_STAGES_MAX ? stages : DET_FLOW_STAGES_MAX;
    edges = edges < DET_FLOW_EDGES_MAX ? edges : DET_FLOW_EDGES_MAX;
    spec->stages = det_parse_alloc(text, (stages + 1) * sizeof *spec->stages);
    spec->read = det_parse_alloc(text, (stages + 1) * sizeof *spec->read);
    spec->edges = det_parse_alloc(text, (edges + 1) * sizeof *spec->edges);
    spec->edge_rows = det_parse_alloc(text, (edges + 1) * sizeof(struct det_node *));
    spec->flow.stages = spec->stages;
    spec->flow.edges = spec->edges;
    for (const struct det_node *row = text->rows.first; row != NULL && text->error == 0;
         row = row->next)
        read_row(spec, row);
}

static int read_flow(struct det_flow_spec *spec, const char *path, const char *text, size_t size)
{
    bool is_read = det_parse_read(spec->text, path, text, size);

    if (is_read && spec->text->error == 0)
        read_rows(spec);
    if (is_read && spec->text->error == 0)
        det_flow_read_check(spec);
    return det_parse_findings(spec->text);
}

static struct det_flow_spec *open_spec(const struct det_spec_options *options)
{
    struct det_flow_spec *spec = DET_NEW(options->allocator, struct det_flow_spec);

    if (spec == NULL)
        return NULL;
    spec->text = det_parse_open(options, DET_LANGUAGE_FLOW);
    if (spec->text == NULL) {
        DET_DELETE(options->allocator, spec);
        return NULL;
    }
    /* The author of a spec does not know this address, so cannot make names collide. */
    det_map_init(
        &spec->names, options->allocator, (uint64_t)(uintptr_t)spec,
        offsetof(struct det_flow_read_stage, name));
    return spec;
}

int det_flow_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_flow_spec **ret)
{
    static const struct det_spec_options defaults = { .allocator = NULL };
    struct det_flow_spec *spec = open_spec(options != NULL ? options : &defaults);
    int r;

    if (spec == NULL)
        return DET_ERR_NO_MEMORY;
    r = read_flow(spec, path, text, size);
    if (r < 0) {
        det_flow_spec_close(spec);
        return r;
    }
    *ret = spec;
    return 0;
}

void det_flow_spec_close(struct det_flow_spec *spec)
{
    const struct det_allocator *allocator;

    if (spec == NULL)
        return;
    allocator = spec->text->allocator;
    det_map_deinit(&spec->names);
    det_spec_close(spec->text);
    DET_DELETE(allocator, spec);
}

const struct det_flow *det_flow_spec_flow(const struct det_flow_spec *spec)
{
    return det_flow_spec_diagnostics(spec)->error_count == 0 ? &spec->flow : NULL;
}

const struct det_diagnostics *det_flow_spec_diagnostics(const struct det_flow_spec *spec)
{
    return det_spec_diagnostics(spec->text);
}

const char *det_flow_spec_file(const struct det_flow_spec *spec, size_t index)
{
    return det_spec_file(spec->text, index);
}

const struct det_record *det_flow_spec_record(const struct det_flow_spec *spec, size_t index)
{
    return det_spec_record(spec->text, index);
}

struct det_place det_flow_spec_stage_place(const struct det_flow_spec *spec, size_t stage)
{
    det_assert(stage < spec->flow.stage_count);
    return det_parse_place(spec->read[stage].row);
}

struct det_place det_flow_spec_edge_place(const struct det_flow_spec *spec, size_t edge)
{
    det_assert(edge < spec->flow.edge_count);
    return det_parse_place(spec->edge_rows[edge]);
}

struct det_place det_flow_spec_text_place(
    const struct det_flow_spec *spec, size_t stage, enum det_flow_text text, size_t offset)
{
    const struct det_node *node;
    struct det_place place;
    uint32_t at = 1;

    det_assert(stage < spec->flow.stage_count && (unsigned)text < DET_FLOW_TEXT_COUNT);
    node = spec->read[stage].texts[text];
    if (node == NULL)
        return det_flow_spec_stage_place(spec, stage);
    if (node->pieces != NULL)
        node = node->pieces;
    while (node->next_piece != NULL && offset >= strlen(node->text)) {
        offset -= strlen(node->text);
        node = node->next_piece;
    }
    place = det_parse_place(node);
    if (node->kind != DET_NODE_STRING)
        return place;
    /* Escapes take two bytes of the file; the last byte is the quote. */
    for (size_t i = 0; i < offset && at + 1 < node->width; i++)
        at += node->at[at] == '\\' ? 2 : 1;
    place.column += at;
    place.width = node->width - at - 1;
    return place;
}
