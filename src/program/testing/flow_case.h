/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_case.h - a test file of a flow (docs/formats/flow_test.md) as data: stages found, rows made,
 * so that a case that runs can fail only by its expectations. Everything lives in the arena of the
 * file. */
#ifndef DET_TESTING_FLOW_CASE_H
#define DET_TESTING_FLOW_CASE_H

#include <detent/flow.h>

#include "config/config.h"
#include "testing/case.h"

/* Rows of a stage: emitted by a source, or expected. */
struct flow_case_rows {
    struct flow_case_rows *next;
    const struct det_datum *node; /* the sequence */
    uint16_t stage;
    const struct case_fields **items;
    size_t count;
};

/* Parts of reasons, for each row that a stage has rejected. */
struct flow_case_texts {
    struct flow_case_texts *next;
    const struct det_datum *node;
    uint16_t stage;
    const char **items;
    size_t count;
};

enum flow_case_end {
    FLOW_CASE_RUNS,
    FLOW_CASE_COMPLETED,
    FLOW_CASE_CANCELLED,
    FLOW_CASE_FAILED,
};
/* "none", "completed", ... */
const char *flow_case_end_name(enum flow_case_end end);

struct flow_case_expect {
    const struct det_datum *node, *end_node, *reason_node; /* NULL: not said */
    struct flow_case_rows *rows;
    struct flow_case_texts *rejected;
    enum flow_case_end end;
    const char *reason;
};

enum flow_case_action {
    FLOW_CASE_NOTHING,
    FLOW_CASE_EMIT,
    FLOW_CASE_ADVANCE,
    FLOW_CASE_END,
    FLOW_CASE_STOP,
    FLOW_CASE_CRASH,
};

struct flow_case_step {
    struct flow_case_step *next;
    const struct det_datum *node;
    enum flow_case_action action;
    struct flow_case_rows *rows;
    det_time event_time; /* 0: now */
    det_time span;
    uint16_t *ends; /* sources */
    size_t end_count;
    bool is_cancel;
    const struct flow_case_expect *expect; /* NULL: none */
};

struct flow_case {
    struct flow_case *next;
    const struct det_datum *node;
    const char *name;
    struct flow_case_step *steps;
    size_t step_count;
};

struct flow_case_file {
    const char *flow, *module; /* paths as written; module NULL: none */
    const struct det_datum *flow_node;
    struct config_flow_stage *stages;
    size_t stage_count;
    uint32_t window;
    struct flow_case *cases;
    size_t case_count;
};

/* True if a test file is about a flow. */
bool flow_case_is_one(const struct det_datum *root);
/* Reads what is needed to load the flow. 0, DET_ERR_MALFORMED or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int flow_case_read_head(
    struct det_arena *arena, const struct det_datum *root, struct flow_case_file *ret,
    struct cli_problems *reterr);
/* Reads the cases for this flow. Returns like flow_case_read_head(). */
DET_MUST_CHECK int flow_case_read(
    struct det_arena *arena, const struct det_datum *root, const struct det_flow *flow,
    struct flow_case_file *file, struct cli_problems *reterr);

#endif
