/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* topology.c - the rules about the graph of a flow. Nothing here allocates or recurses: a graph has
 * at most DET_FLOW_STAGES_MAX nodes, and all tables are on the stack. */
#include "flow/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"
/* More names of a cycle are not listed. */
#define LISTED_MAX 6

struct checker {
    const struct det_flow *flow;
    det_topology_report_fn *report;
    void *context;
};

/* The edges by the stage from which they lead. */
struct graph {
    uint16_t start[DET_FLOW_STAGES_MAX + 1];
    uint16_t to[DET_FLOW_EDGES_MAX];
};

static void DET_PRINTF(3, 4) report(
    const struct checker *checker, struct det_topology_finding finding, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    finding.text = text;
    checker->report(checker->context, &finding);
}

#define ABOUT_STAGE(rule, index)               \
    (struct det_topology_finding)              \
    {                                          \
        rule, (int)(index), -1, -1, NULL, NULL \
    }
#define ABOUT_EDGE(rule, index)                \
    (struct det_topology_finding)              \
    {                                          \
        rule, -1, (int)(index), -1, NULL, NULL \
    }

bool det_topology_is_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= DET_FLOW_NAME_MAX && strspn(name, NAME_LETTERS) == length &&
           name[0] >= 'a' && name[0] <= 'z';
}

const char *det_topology_kind_word(enum det_stage_kind kind)
{
    static const char *const words[] = {
        [DET_STAGE_SOURCE] = "SOURCE",     [DET_STAGE_TRANSFORM] = "TRANSFORM",
        [DET_STAGE_STATEFUL] = "STATEFUL", [DET_STAGE_JOIN] = "JOIN",
        [DET_STAGE_SINK] = "SINK",
    };

    det_assert((unsigned)kind < sizeof words / sizeof *words);
    return words[kind];
}

static const char *edge_word(unsigned flags)
{
    return flags & DET_EDGE_REFERENCE ? "REFERENCE" : flags & DET_EDGE_BACK ? "BACK_EDGE" : "EDGE";
}

/* ---- edges */

static bool check_role(const struct checker *checker, unsigned index)
{
    const struct det_edge *edge = &checker->flow->edges[index];
    const struct det_stage *from = &checker->flow->stages[edge->from];
    const struct det_stage *to = &checker->flow->stages[edge->to];
    struct det_topology_finding finding = ABOUT_EDGE(DET_RULE_EDGE_ROLE, index);

    if (edge->from == edge->to) {
        report(checker, finding, "an edge leads from %s to itself", from->name);
    } else if (from->kind == DET_STAGE_SINK) {
        report(checker, finding, "%s is a SINK, and nothing leads out of it", from->name);
    } else if (to->kind == DET_STAGE_SOURCE) {
        report(checker, finding, "%s is a SOURCE, and nothing leads into it", to->name);
    } else if ((edge->flags & DET_EDGE_REFERENCE) && to->kind != DET_STAGE_JOIN) {
        finding.hint = "write EDGE, or make the stage a JOIN";
        report(
            checker, finding, "%s is a %s, not a JOIN, and has no reference", to->name,
            det_topology_kind_word(to->kind));
    } else {
        return true;
    }
    return false;
}

static void check_records(const struct checker *checker, unsigned index)
{
    const struct det_edge *edge = &checker->flow->edges[index];
    const struct det_stage *from = &checker->flow->stages[edge->from];
    const struct det_stage *to = &checker->flow->stages[edge->to];
    bool is_reference = (edge->flags & DET_EDGE_REFERENCE) != 0;
    const struct det_record *made = det_record_of(from->out);
    const struct det_record *taken = det_record_of(is_reference ? to->reference : to->in);

    if (made == NULL || taken == NULL || det_topology_is_same_record(made, taken))
        return;
    report(
        checker, ABOUT_EDGE(DET_RULE_EDGE_RECORD, index), "%s makes %s, but %s %s %s%s", from->name,
        made->name, is_reference ? "the reference of" : to->name, is_reference ? to->name : "takes",
        is_reference ? "is " : taken->name, is_reference ? taken->name : "");
}

static void check_twice(const struct checker *checker, unsigned index)
{
    const struct det_edge *edges = checker->flow->edges, *edge = &edges[index];
    struct det_topology_finding finding = ABOUT_EDGE(DET_RULE_DUPLICATE_EDGE, index);

    for (unsigned i = 0; i < index; i++) {
        if (edges[i].from != edge->from || edges[i].to != edge->to)
            continue;
        finding.first = (int)i;
        report(
            checker, finding, "%s(%s, %s): there is %s %s between them already",
            edge_word(edge->flags), checker->flow->stages[edge->from].name,
            checker->flow->stages[edge->to].name, edges[i].flags == 0 ? "an" : "a",
            edge_word(edges[i].flags));
        return;
    }
}

void det_topology_check_edges(
    const struct det_flow *flow, det_topology_report_fn *report_fn, void *context)
{
    struct checker checker = { flow, report_fn, context };

    for (unsigned i = 0; i < flow->edge_count; i++) {
        det_assert(flow->edges[i].from < flow->stage_count);
        det_assert(flow->edges[i].to < flow->stage_count);
        if (check_role(&checker, i)) {
            check_records(&checker, i);
            check_twice(&checker, i);
        }
    }
}

/* ---- stages */

struct degree {
    uint16_t in, out, references;
};

static void count_degrees(const struct det_flow *flow, struct degree *degrees)
{
    memset(degrees, 0, flow->stage_count * sizeof *degrees);
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];

        degrees[edge->from].out++;
        if (edge->flags & DET_EDGE_REFERENCE)
            degrees[edge->to].references++;
        else
            degrees[edge->to].in++;
    }
}

static void check_degree(const struct checker *checker, unsigned index, const struct degree *degree)
{
    const struct det_stage *stage = &checker->flow->stages[index];
    struct det_topology_finding hanging = ABOUT_STAGE(DET_RULE_STAGE_HANGING, index);
    struct det_topology_finding reference = ABOUT_STAGE(DET_RULE_JOIN_REFERENCE, index);

    if (stage->kind != DET_STAGE_SOURCE && degree->in == 0)
        report(checker, hanging, "no EDGE leads into %s", stage->name);
    if (stage->kind != DET_STAGE_SINK && degree->out == 0)
        report(checker, hanging, "no edge leads out of %s", stage->name);
    if (stage->kind != DET_STAGE_JOIN || degree->references == 1)
        return;
    reference.hint = degree->references == 0 ? "add a REFERENCE row"
                                             : "join one after the other, with a JOIN for each";
    report(
        checker, reference, "%s is a JOIN and has %u reference%s instead of one", stage->name,
        degree->references, det_plural(degree->references));
}

static bool has_kind(const struct det_flow *flow, enum det_stage_kind kind)
{
    for (unsigned i = 0; i < flow->stage_count; i++) {
        if (flow->stages[i].kind == kind)
            return true;
    }
    return false;
}

void det_topology_check_stages(
    const struct det_flow *flow, det_topology_report_fn *report_fn, void *context)
{
    struct checker checker = { flow, report_fn, context };
    struct degree degrees[DET_FLOW_STAGES_MAX];
    bool has_source = has_kind(flow, DET_STAGE_SOURCE), has_sink = has_kind(flow, DET_STAGE_SINK);

    det_assert(flow->stage_count <= DET_FLOW_STAGES_MAX);
    if (!has_source || !has_sink) {
        report(
            &checker, ABOUT_STAGE(DET_RULE_NO_STAGES, -1), "the flow has no %s",
            has_source ? "SINK" : "SOURCE");
        return;
    }
    count_degrees(flow, degrees);
    for (unsigned i = 0; i < flow->stage_count; i++)
        check_degree(&checker, i, &degrees[i]);
}

/* ---- paths */

/* With `is_backward`, the edges by the stage to which they lead. */
static void build_graph(
    const struct det_flow *flow, unsigned without, bool is_backward, struct graph *ret)
{
    uint16_t next[DET_FLOW_STAGES_MAX];

    memset(ret->start, 0, sizeof ret->start);
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];

        if (!(edge->flags & without))
            ret->start[(is_backward ? edge->to : edge->from) + 1]++;
    }
    for (unsigned i = 0; i < flow->stage_count; i++) {
        next[i] = ret->start[i];
        ret->start[i + 1] = (uint16_t)(ret->start[i + 1] + ret->start[i]);
    }
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];

        if (!(edge->flags & without))
            ret->to[next[is_backward ? edge->to : edge->from]++] =
                is_backward ? edge->from : edge->to;
    }
}

/* Tarjan's algorithm. A stage is visited when `order` is not 0, and its component is known when
 * `component` is not UNKNOWN. */
#define UNKNOWN UINT16_MAX
struct search {
    struct graph graph;
    uint16_t order[DET_FLOW_STAGES_MAX], low[DET_FLOW_STAGES_MAX];
    uint16_t open[DET_FLOW_STAGES_MAX];                            /* stages without a component */
    uint16_t path[DET_FLOW_STAGES_MAX], next[DET_FLOW_STAGES_MAX]; /* the way to the current one */
    unsigned open_count, path_count, visited, components;
    uint16_t *component;
};

static void enter_stage(struct search *search, uint16_t stage)
{
    det_assert(search->path_count < DET_FLOW_STAGES_MAX);
    search->order[stage] = search->low[stage] = (uint16_t)++search->visited;
    search->next[stage] = search->graph.start[stage];
    search->path[search->path_count++] = stage;
    search->open[search->open_count++] = stage;
}

static uint16_t least(uint16_t a, uint16_t b)
{
    return a < b ? a : b;
}

static void leave_stage(struct search *search, uint16_t stage)
{
    uint16_t member;

    search->path_count--;
    if (search->path_count > 0) {
        uint16_t before = search->path[search->path_count - 1];

        search->low[before] = least(search->low[before], search->low[stage]);
    }
    if (search->low[stage] != search->order[stage])
        return;
    do {
        member = search->open[--search->open_count];
        search->component[member] = (uint16_t)search->components;
    } while (member != stage);
    search->components++;
}

static void search_from(struct search *search, uint16_t root)
{
    enter_stage(search, root);
    while (search->path_count > 0) {
        uint16_t stage = search->path[search->path_count - 1], to;

        if (search->next[stage] == search->graph.start[stage + 1]) {
            leave_stage(search, stage);
            continue;
        }
        to = search->graph.to[search->next[stage]++];
        if (search->order[to] == 0)
            enter_stage(search, to);
        else if (search->component[to] == UNKNOWN)
            search->low[stage] = least(search->low[stage], search->order[to]);
    }
}

unsigned det_topology_components(const struct det_flow *flow, unsigned without, uint16_t *ret)
{
    struct search search = { .component = ret };

    det_assert(flow->stage_count <= DET_FLOW_STAGES_MAX && flow->edge_count <= DET_FLOW_EDGES_MAX);
    build_graph(flow, without, false, &search.graph);
    for (unsigned i = 0; i < flow->stage_count; i++)
        ret[i] = UNKNOWN;
    for (uint16_t i = 0; i < flow->stage_count; i++) {
        if (search.order[i] == 0)
            search_from(&search, i);
    }
    det_assert(search.open_count == 0);
    return search.components;
}

/* Marks what the stages in `reached` reach. */
static void spread(const struct det_flow *flow, const struct graph *graph, bool *reached)
{
    uint16_t waiting[DET_FLOW_STAGES_MAX];
    unsigned count = 0;

    for (uint16_t i = 0; i < flow->stage_count; i++) {
        if (reached[i])
            waiting[count++] = i;
    }
    while (count > 0) {
        uint16_t stage = waiting[--count];

        for (unsigned i = graph->start[stage]; i < graph->start[stage + 1]; i++) {
            if (!reached[graph->to[i]]) {
                reached[graph->to[i]] = true;
                waiting[count++] = graph->to[i];
            }
        }
    }
}

static void check_connected(const struct checker *checker)
{
    const struct det_flow *flow = checker->flow;
    bool reached[DET_FLOW_STAGES_MAX] = { true };
    struct graph forward, backward;
    unsigned i = 0, before = 0, count = 1;

    build_graph(flow, 0, false, &forward);
    build_graph(flow, 0, true, &backward);
    while (count > before) {
        before = count;
        spread(flow, &forward, reached);
        spread(flow, &backward, reached);
        count = 0;
        for (unsigned k = 0; k < flow->stage_count; k++)
            count += reached[k];
    }
    while (i < flow->stage_count && reached[i])
        i++;
    if (i < flow->stage_count)
        report(
            checker, ABOUT_STAGE(DET_RULE_FLOW_SPLIT, i),
            "no edges connect %s with %s: these are two flows", flow->stages[i].name,
            flow->stages[0].name);
}

static void check_reached(const struct checker *checker, bool is_backward)
{
    const struct det_flow *flow = checker->flow;
    enum det_stage_kind kind = is_backward ? DET_STAGE_SINK : DET_STAGE_SOURCE;
    bool reached[DET_FLOW_STAGES_MAX];
    struct graph graph;

    build_graph(flow, 0, is_backward, &graph);
    for (unsigned i = 0; i < flow->stage_count; i++)
        reached[i] = flow->stages[i].kind == kind;
    spread(flow, &graph, reached);
    for (unsigned i = 0; i < flow->stage_count; i++) {
        if (!reached[i])
            report(
                checker, ABOUT_STAGE(DET_RULE_STAGE_UNREACHABLE, i),
                is_backward ? "%s reaches no SINK" : "no SOURCE reaches %s", flow->stages[i].name);
    }
}

/* Writes "a, b, c": the stages of a component, in the order of their rows. */
static void list_members(
    const struct det_flow *flow, const uint16_t *component, unsigned which, char *target,
    size_t capacity)
{
    size_t used = 0;
    unsigned count = 0;

    target[0] = '\0';
    for (unsigned i = 0; i < flow->stage_count && used < capacity; i++) {
        if (component[i] != which)
            continue;
        if (count == LISTED_MAX) {
            (void)snprintf(target + used, capacity - used, ", ...");
            return;
        }
        used += (size_t)snprintf(
            target + used, capacity - used, "%s%.32s", count > 0 ? ", " : "", flow->stages[i].name);
        count++;
    }
}

struct cycle {
    unsigned size, first, entries;
    int other; /* a member that is no TRANSFORM; -1: none */
};

/* Stages that are fed from outside of their component count once. */
static void measure_cycles(
    const struct det_flow *flow, const uint16_t *component, struct cycle *cycles, unsigned count)
{
    bool is_entry[DET_FLOW_STAGES_MAX] = { false };

    for (unsigned i = 0; i < count; i++)
        cycles[i] = (struct cycle){ .other = -1 };
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];

        is_entry[edge->to] |= component[edge->from] != component[edge->to];
    }
    for (unsigned i = flow->stage_count; i-- > 0;) {
        struct cycle *cycle = &cycles[component[i]];

        cycle->size++;
        cycle->first = i;
        cycle->entries += is_entry[i];
        if (flow->stages[i].kind != DET_STAGE_TRANSFORM)
            cycle->other = (int)i;
    }
}

static void check_cycle(
    const struct checker *checker, const uint16_t *component, const struct cycle *cycle)
{
    const struct det_flow *flow = checker->flow;
    struct det_topology_finding finding = ABOUT_STAGE(DET_RULE_BAD_CYCLE, cycle->first);
    char names[DET_ERROR_TEXT_MAX - 80];

    list_members(flow, component, component[cycle->first], names, sizeof names);
    if (cycle->other >= 0) {
        finding.stage = cycle->other;
        report(
            checker, finding, "%s is a %s in a cycle (%s); only TRANSFORM stages may be in one",
            flow->stages[cycle->other].name,
            det_topology_kind_word(flow->stages[cycle->other].kind), names);
    } else if (cycle->entries > 1) {
        finding.hint = "lead the edges from outside into one of them";
        report(
            checker, finding, "a cycle (%s) is fed from outside at %u stage%s instead of one",
            names, cycle->entries, det_plural(cycle->entries));
    }
}

/* Every cycle has a BACK_EDGE, and every BACK_EDGE is in a cycle. */
static bool check_back_edges(const struct checker *checker, const uint16_t *component)
{
    const struct det_flow *flow = checker->flow;
    uint16_t forward[DET_FLOW_STAGES_MAX];
    struct cycle cycles[DET_FLOW_STAGES_MAX];
    unsigned count = det_topology_components(flow, DET_EDGE_BACK, forward);
    bool is_sound = true;

    measure_cycles(flow, forward, cycles, count);
    for (unsigned i = 0; i < count; i++) {
        struct det_topology_finding finding = ABOUT_STAGE(DET_RULE_BAD_CYCLE, cycles[i].first);
        char names[DET_ERROR_TEXT_MAX - 80];

        if (cycles[i].size < 2)
            continue;
        list_members(flow, forward, i, names, sizeof names);
        finding.hint = "write BACK_EDGE for the edge that leads back";
        report(checker, finding, "a cycle (%s) has no BACK_EDGE", names);
        is_sound = false;
    }
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];
        struct det_topology_finding finding = ABOUT_EDGE(DET_RULE_BAD_CYCLE, i);

        if (!(edge->flags & DET_EDGE_BACK) || component[edge->from] == component[edge->to])
            continue;
        finding.hint = "write EDGE";
        report(
            checker, finding, "BACK_EDGE(%s, %s) closes no cycle", flow->stages[edge->from].name,
            flow->stages[edge->to].name);
        is_sound = false;
    }
    return is_sound;
}

static void check_cycles(const struct checker *checker)
{
    const struct det_flow *flow = checker->flow;
    uint16_t component[DET_FLOW_STAGES_MAX];
    struct cycle cycles[DET_FLOW_STAGES_MAX];
    unsigned count = det_topology_components(flow, 0, component);

    if (!check_back_edges(checker, component))
        return;
    measure_cycles(flow, component, cycles, count);
    for (unsigned i = 0; i < count; i++) {
        if (cycles[i].size > 1)
            check_cycle(checker, component, &cycles[i]);
    }
}

/* What leads to the reference of a join, and to its input. */
static void find_origins(
    const struct det_flow *flow, const struct graph *backward, uint16_t join, bool is_reference,
    bool *ret)
{
    for (unsigned i = 0; i < flow->stage_count; i++)
        ret[i] = false;
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];

        if (edge->to == join && ((edge->flags & DET_EDGE_REFERENCE) != 0) == is_reference)
            ret[edge->from] = true;
    }
    spread(flow, backward, ret);
}

/* A join that is not LIVE takes no input until its reference has ended. */
static void check_reference(
    const struct checker *checker, const struct graph *backward, unsigned index)
{
    const struct det_flow *flow = checker->flow;
    uint16_t join = flow->edges[index].to;
    struct det_topology_finding endless = ABOUT_EDGE(DET_RULE_REFERENCE_ENDLESS, index);
    struct det_topology_finding blocked = ABOUT_EDGE(DET_RULE_JOIN_BLOCKED, index);
    bool of_reference[DET_FLOW_STAGES_MAX], of_input[DET_FLOW_STAGES_MAX];
    int common = -1;

    find_origins(flow, backward, join, true, of_reference);
    find_origins(flow, backward, join, false, of_input);
    endless.hint = blocked.hint = "add LIVE to the JOIN";
    for (unsigned i = 0; i < flow->stage_count; i++) {
        const struct det_stage *stage = &flow->stages[i];

        if (!of_reference[i] || stage->kind != DET_STAGE_SOURCE)
            continue;
        if (stage->flags & DET_STAGE_INFINITE) {
            report(
                checker, endless, "%s waits for the end of its reference, but %s is INFINITE",
                flow->stages[join].name, stage->name);
            return;
        }
        if (of_input[i] && common < 0)
            common = (int)i;
    }
    if (common >= 0)
        report(
            checker, blocked,
            "%s reads its reference to the end first, but %s feeds its input too, and is blocked "
            "when the window is full",
            flow->stages[join].name, flow->stages[common].name);
}

static void check_references(const struct checker *checker)
{
    const struct det_flow *flow = checker->flow;
    struct graph backward;

    build_graph(flow, 0, true, &backward);
    for (unsigned i = 0; i < flow->edge_count; i++) {
        const struct det_edge *edge = &flow->edges[i];

        if ((edge->flags & DET_EDGE_REFERENCE) && !(flow->stages[edge->to].flags & DET_STAGE_LIVE))
            check_reference(checker, &backward, i);
    }
}

void det_topology_check_paths(
    const struct det_flow *flow, det_topology_report_fn *report_fn, void *context)
{
    struct checker checker = { flow, report_fn, context };

    det_assert(flow->stage_count > 0 && flow->stage_count <= DET_FLOW_STAGES_MAX);
    check_connected(&checker);
    check_cycles(&checker);
    check_reached(&checker, false);
    check_reached(&checker, true);
    check_references(&checker);
}
