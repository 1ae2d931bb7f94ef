/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_check.c - the rules of a .flow file over several rows: names, edges, the graph. The compiler
 * checks what it can know (flow/define.h), det_flow_check() the same for the tables. */
#include <stdio.h>
#include <string.h>

#include "flow/spec.h"
#include "flow/topology.h"
#include "machine/parse_arguments.h"
#include "machine/reserved_names.h"

/* The C functions of a stage, by what comes after its name. */
struct function {
    const char *suffix;
    unsigned kinds;
    int extra; /* only with this option; -1: always */
};
static const struct function functions[] = {
    { "_emit", ~(1u << DET_STAGE_SINK), -1 },
    { "_emit_at", ~(1u << DET_STAGE_SINK), -1 },
    { "_result", 1u << DET_STAGE_STATEFUL, -1 },
    { "_open", ~0u, DET_FLOW_EXTRA_OPENS },
    { "_close", ~0u, DET_FLOW_EXTRA_OPENS },
    { "_drain", ~0u, DET_FLOW_EXTRA_DRAINS },
    { "_acknowledged", ~0u, DET_FLOW_EXTRA_ACKNOWLEDGES },
    { "_begin", ~0u, DET_FLOW_EXTRA_BEGINS },
    { "_flush", ~0u, DET_FLOW_EXTRA_BUFFERED },
};

static bool check_letters(struct det_flow_spec *spec, const struct det_node *node)
{
    if (det_topology_is_name(node->text))
        return true;
    if (node->width > DET_FLOW_NAME_MAX)
        det_flow_read_report(
            spec, DET_RULE_BAD_NAME, node, "%.64s... is longer than %d bytes", node->text,
            DET_FLOW_NAME_MAX);
    else
        det_flow_read_report(
            spec, DET_RULE_BAD_NAME, node,
            "%.64s is stored on disk: use only lower case letters, digits and _, a letter first",
            node->text);
    return false;
}

static bool check_use(struct det_flow_spec *spec, const struct det_node *node)
{
    const char *use = det_function_name_use(node->text);

    if (use == NULL && det_row_find_in(DET_LANGUAGE_FLOW, node->text, strlen(node->text)) >= 0)
        use = "a row or a word of specs";
    if (use != NULL)
        det_flow_read_report(
            spec, DET_RULE_BAD_NAME, node, "%s is %s: choose another name", node->text, use);
    return use == NULL;
}

static void check_flow_name(struct det_flow_spec *spec)
{
    struct det_spec *text = spec->text;
    const struct det_node *name = text->words[DET_FLOW_WORD_NAME];
    struct det_place place = { .file = text->sources->path, .line = 1, .column = 1 };

    if (name == NULL)
        name = text->guessed_words[DET_FLOW_WORD_NAME];
    if (name == NULL) {
        det_parse_report(
            text, DET_RULE_NO_NAME, &place,
            "there is no #define FLOW_NAME: a fragment is not a flow by itself");
        det_parse_hint(text, "add the line: #define FLOW_NAME payments");
        return;
    }
    spec->flow.name = name->text;
    if (name->kind != DET_NODE_NAME)
        det_flow_read_report(spec, DET_RULE_BAD_NAME, name, "%s is not a name", name->text);
    else if (check_use(spec, name))
        (void)check_letters(spec, name);
}

static void report_twice(
    struct det_flow_spec *spec, const struct det_flow_read_stage *stage,
    const struct det_flow_read_stage *first, bool is_function)
{
    if (is_function)
        det_flow_read_report(
            spec, DET_RULE_DUPLICATE_NAME, stage->name_node,
            "%s is the name of a C function of the stage %s", stage->name, first->name);
    else
        det_flow_read_report(
            spec, DET_RULE_DUPLICATE_NAME, stage->name_node, "%s is a stage already", stage->name);
    /* Its edges are those of the first one. */
    spec->is_edge_lost |= !is_function;
    det_parse_other(spec->text, first->name_node);
}

static bool has_function(
    const struct det_flow_spec *spec, const struct det_flow_read_stage *stage,
    const struct function *function)
{
    return (function->kinds >> spec->stages[stage->index].kind & 1) != 0 &&
           stage->options[DET_FLOW_EXTRA_USE] == NULL &&
           (function->extra < 0 || stage->options[function->extra] != NULL);
}

/* A stage named read_emit, and another one named read. */
static void check_suffixes(struct det_flow_spec *spec, const struct det_flow_read_stage *stage)
{
    size_t length = strlen(stage->name);
    char name[DET_NAME_MAX + 1];

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        size_t size = strlen(functions[i].suffix);
        const struct det_flow_read_stage *other;

        if (length <= size || length > DET_NAME_MAX ||
            strcmp(stage->name + length - size, functions[i].suffix) != 0)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(length - size), stage->name);
        other = det_map_get(&spec->names, name);
        if (other != NULL && has_function(spec, other, &functions[i]))
            report_twice(spec, stage, other, true);
    }
}

/* Returns true if the name is that of something in the map with the suffix. */
static bool is_made_of(const struct det_map *map, const char *name, const char *suffix)
{
    size_t length = strlen(name), size = strlen(suffix);
    char what[DET_NAME_MAX + 1];

    if (length <= size || length > DET_NAME_MAX || strcmp(name + length - size, suffix) != 0)
        return false;
    (void)snprintf(what, sizeof what, "%.*s", (int)(length - size), name);
    return det_map_get(map, what) != NULL;
}

/* The names in C of records, enums and of the flow itself. */
static void check_declared(struct det_flow_spec *spec, const struct det_flow_read_stage *stage)
{
    const struct det_spec *text = spec->text;
    const char *flow = spec->flow.name, *name = stage->name;
    size_t length = flow != NULL ? strlen(flow) : 0;

    if (det_map_get(&text->value_map, name) != NULL)
        det_flow_read_report(
            spec, DET_RULE_DUPLICATE_NAME, stage->name_node, "%s is a value of an enum", name);
    else if (
        is_made_of(&text->record_map, name, "_record") ||
        is_made_of(&text->record_map, name, "_record_version") ||
        is_made_of(&text->enum_map, name, "_enum") || is_made_of(&text->enum_map, name, "_count"))
        det_flow_read_report(
            spec, DET_RULE_DUPLICATE_NAME, stage->name_node,
            "%s is the name of a record or an enum in C", name);
    else if (
        flow != NULL && strncmp(name, flow, length) == 0 && strcmp(name + length, "_flow") == 0)
        det_flow_read_report(
            spec, DET_RULE_DUPLICATE_NAME, stage->name_node, "%s is the name of the flow in C",
            name);
}

static void check_names(struct det_flow_spec *spec)
{
    for (uint16_t i = 0; i < spec->flow.stage_count && spec->text->error == 0; i++) {
        struct det_flow_read_stage *stage = &spec->read[i];
        int r = det_map_put(&spec->names, stage);

        if (r == DET_ERR_EXISTS)
            report_twice(spec, stage, det_map_get(&spec->names, stage->name), false);
        else if (r < 0)
            spec->text->error = r;
        else if (check_use(spec, stage->name_node) && check_letters(spec, stage->name_node))
            check_declared(spec, stage);
    }
    for (uint16_t i = 0; i < spec->flow.stage_count && spec->text->error == 0; i++)
        check_suffixes(spec, &spec->read[i]);
}

static const struct det_flow_read_stage *find_stage(
    struct det_flow_spec *spec, const struct det_node *node)
{
    const struct det_flow_read_stage *stage = det_map_get(&spec->names, node->text);
    const char *names[DET_FLOW_STAGES_MAX];

    /* It may belong to a row that could not be read. */
    if (stage != NULL || spec->is_row_lost || spec->stage_rows > DET_FLOW_STAGES_MAX)
        return stage;
    for (uint16_t i = 0; i < spec->flow.stage_count; i++)
        names[i] = spec->stages[i].name;
    det_flow_read_report(
        spec, DET_RULE_UNKNOWN_STAGE, node, "%s is not a stage of this flow", node->text);
    det_parse_hint_nearest(spec->text, node->text, names, spec->flow.stage_count);
    return NULL;
}

static unsigned flags_of(const struct det_node *row)
{
    if ((unsigned)row->row == DET_FLOW_ROW_REFERENCE)
        return DET_EDGE_REFERENCE;
    return (unsigned)row->row == DET_FLOW_ROW_BACK_EDGE ? DET_EDGE_BACK : 0;
}

static void read_edge(struct det_flow_spec *spec, const struct det_node *row)
{
    struct det_take take =
        det_take_start(spec->text, row, det_row_kind_in(DET_LANGUAGE_FLOW, (unsigned)row->row));
    const struct det_node *from_node = det_take_node(&take, "the name of a stage");
    const struct det_node *to_node = det_take_node(&take, "the name of a stage");
    const struct det_flow_read_stage *from, *to;

    spec->is_edge_lost |= take.failed;
    if (take.failed)
        return;
    from = find_stage(spec, from_node);
    to = find_stage(spec, to_node);
    if (from == NULL || to == NULL) {
        spec->is_edge_lost = true;
        return;
    }
    /* Rows without an edge are dropped, so that both have one index. */
    spec->edge_rows[spec->flow.edge_count] = row;
    spec->edges[spec->flow.edge_count++] = (struct det_edge){
        .from = from->index,
        .to = to->index,
        .flags = (uint16_t)flags_of(row),
    };
}

static void read_edges(struct det_flow_spec *spec)
{
    size_t count = spec->edge_rows_count;

    if (count > DET_FLOW_EDGES_MAX) {
        spec->is_edge_lost = true;
        count = DET_FLOW_EDGES_MAX;
    }
    for (size_t i = 0; i < count && spec->text->error == 0; i++)
        read_edge(spec, spec->edge_rows[i]);
}

static const struct det_node *node_of(
    const struct det_flow_spec *spec, const struct det_topology_finding *finding, int index)
{
    if (finding->edge >= 0)
        return spec->edge_rows[index];
    return finding->stage >= 0 ? spec->read[index].row : NULL;
}

static void take_finding(void *context, const struct det_topology_finding *finding)
{
    struct det_flow_spec *spec = context;
    int index = finding->edge >= 0 ? finding->edge : finding->stage;
    const struct det_node *node = node_of(spec, finding, index);
    struct det_place place = { .file = spec->text->sources->path, .line = 1, .column = 1 };

    if (node != NULL)
        place = det_parse_place(node);
    det_parse_report(spec->text, finding->rule, &place, "%s", finding->text);
    if (finding->hint != NULL)
        det_parse_hint(spec->text, "%s", finding->hint);
    if (finding->first >= 0)
        det_parse_other(spec->text, node_of(spec, finding, finding->first));
}

static bool has_errors(const struct det_flow_spec *spec)
{
    return spec->text->is_text_broken || spec->text->error < 0;
}

void det_flow_read_check(struct det_flow_spec *spec)
{
    check_flow_name(spec);
    check_names(spec);
    det_flow_read_keys(spec);
    read_edges(spec);
    if (spec->text->error < 0)
        return;
    det_topology_check_edges(&spec->flow, take_finding, spec);
    /* What is missing may be in a row with a mistake. */
    if (spec->is_row_lost || spec->is_edge_lost)
        return;
    det_topology_check_stages(&spec->flow, take_finding, spec);
    if (!has_errors(spec))
        det_topology_check_paths(&spec->flow, take_finding, spec);
}
