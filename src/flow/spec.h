/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec.h - declarations shared by the parts of the reader of .flow files. */
#ifndef DET_FLOW_SPEC_H
#define DET_FLOW_SPEC_H

#include <detent/tool/flow_spec.h>

#include "machine/parse.h"

#define DET_FLOW_TEXT_COUNT (DET_FLOW_TEXT_SETTINGS + 1)

/* A stage during its checks, beside the struct det_stage with the same index. */
struct det_flow_read_stage {
    const char *name; /* the key in the map */
    const struct det_node *row, *name_node;
    uint16_t index;
    bool is_broken;                                       /* a mistake in its row was reported */
    const struct det_node *options[DET_FLOW_EXTRA_COUNT]; /* NULL: it has no such option */
    const struct det_node *texts[DET_FLOW_TEXT_COUNT];    /* NULL: it has no such text */
};

struct det_flow_spec {
    struct det_spec *text; /* the reader of src/machine: rows, words, records, findings */
    struct det_flow flow;
    struct det_stage *stages; /* of the flow, to be filled */
    struct det_edge *edges;
    struct det_flow_read_stage *read; /* by stage */
    const struct det_node **edge_rows;
    struct det_map names; /* of struct det_flow_read_stage */
    size_t stage_rows, edge_rows_count;
    bool is_row_lost;  /* a stage may be missing, since its row could not be read */
    bool is_edge_lost; /* an edge is missing */
};

void det_flow_read_report(
    struct det_flow_spec *spec, enum det_rule rule, const struct det_node *node, const char *format,
    ...) DET_PRINTF(4, 5);

/* spec_stage.c: reads the row of a stage into the next `stages` and `read`. */
void det_flow_read_stage(struct det_flow_spec *spec, const struct det_node *row);
/* spec_key.c: the keys of all stages. */
void det_flow_read_keys(struct det_flow_spec *spec);
/* spec_check.c: the rules over several rows. */
void det_flow_read_check(struct det_flow_spec *spec);

#endif
