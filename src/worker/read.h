/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* read.h - what the parts of the reader of .worker files share. */
#ifndef DET_WORKER_READ_H
#define DET_WORKER_READ_H

#include <detent/tool/worker_spec.h>

#include "machine/parse.h"

/* What is known of a row of STATE while it is judged. */
struct det_worker_read_state {
    const struct det_node *row, *name, *wire, *stop; /* NULL: not read, or not there */
    int phase;                                       /* -1: not read */
};

struct det_worker_spec {
    struct det_spec *text; /* the machinery of src/machine: rows, words, records, complaints */
    struct det_worker_spec_facts facts;
    struct det_worker_read_state *read;    /* by state */
    const struct det_node **actions;       /* rows, by action */
    struct det_worker_spec_state *states;  /* those of the facts, to be filled */
    struct det_worker_spec_action *filled; /* the same */
    size_t state_rows, action_rows;        /* of the text, also beyond the limit */
    bool is_row_lost;                      /* a state that could not be read may be missing */
};

/* read_check.c: what no single row can tell. */
void det_worker_read_check(struct det_worker_spec *spec);

#endif
