/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* topology.h - the rules about the graph of a flow, for det_flow_check() and for the reader. */
#ifndef DET_FLOW_TOPOLOGY_H
#define DET_FLOW_TOPOLOGY_H

#include <detent/flow.h>
#include <detent/tool/diagnostic.h>

/* A broken rule, with the index of the stage or the edge that it is about; -1: not about one. */
struct det_topology_finding {
    enum det_rule rule;
    int stage, edge;
    int first;        /* duplicates: the first one of its kind; -1: none */
    const char *text; /* a sentence, for the call */
    const char *hint; /* NULL: none */
};
typedef void det_topology_report_fn(void *context, const struct det_topology_finding *finding);

/* In this order; each expects that the ones before it found nothing, except that a stage may have
 * no records (det_topology_check_edges() then does not compare them). */

/* Ends of edges: known, of the right kind and record, once. */
void det_topology_check_edges(
    const struct det_flow *flow, det_topology_report_fn *report, void *context);
/* What every stage must have: edges, a JOIN its reference, the flow a SOURCE and a SINK. */
void det_topology_check_stages(
    const struct det_flow *flow, det_topology_report_fn *report, void *context);
/* The graph as a whole: connected, cycles, reachable. */
void det_topology_check_paths(
    const struct det_flow *flow, det_topology_report_fn *report, void *context);

/* The number of the strongly connected component of each stage, from 0; `ret` has room for
 * `stage_count`. Edges with one of the flags in `without` are ignored. Returns the number of
 * components. Iterative. */
unsigned det_topology_components(const struct det_flow *flow, unsigned without, uint16_t *ret);

/* A hash of a record's definition, 0 for NULL. `is_exact`: all of it; otherwise only what a change
 * that docs/formats/record.md allows cannot change. */
uint64_t det_topology_hash_record(const struct det_record *record, bool is_exact);
/* True for the same definition, by content. */
bool det_topology_is_same_record(const struct det_record *a, const struct det_record *b);

/* "SOURCE", ...: the word of the row. */
const char *det_topology_kind_word(enum det_stage_kind kind);

/* Lower case letters, digits and _, a letter first, at most DET_FLOW_NAME_MAX bytes. */
#define DET_FLOW_NAME_MAX 64
bool det_topology_is_name(const char *name);

#endif
