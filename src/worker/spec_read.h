/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_read.h - declarations shared by the parts of the reader of .worker files. */
#ifndef DET_WORKER_SPEC_READ_H
#define DET_WORKER_SPEC_READ_H

#include <detent/tool/worker_spec.h>

#include "machine/parse.h"

/* A row of STATE during its checks. */
struct det_worker_read_state {
    const struct det_node *row, *name, *wire, *stop; /* NULL: not read, or missing */
    int phase;                                       /* -1: not read */
};

struct det_worker_spec {
    struct det_spec *text; /* the reader of src/machine: rows, words, records, findings */
    struct det_worker_spec_summary facts;
    struct det_worker_read_state *read;    /* by state */
    const struct det_node **actions;       /* rows, by action */
    struct det_worker_spec_state *states;  /* of the facts, to be filled */
    struct det_worker_spec_action *filled; /* of the facts, to be filled */
    size_t state_rows, action_rows;        /* number in the text, also beyond the limit */
    bool is_row_lost;                      /* a state whose row could not be read may be missing */
};

/* spec_read_check.c: rules over several rows. */
void det_worker_read_check(struct det_worker_spec *spec);

#endif
