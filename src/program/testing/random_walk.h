/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_walk.h - one random walk of a machine in a simulated world, checked at every step.
 *
 * Beside the runtime runs a model: the fold of the machine's table over what was committed. What
 * must hold whenever everything has settled:
 *   1 sequences are contiguous, and each event starts from the state the one before led to;
 *   2 state, sequence and data of the instance are those of the model;
 *   3 each committed step is the one that the table says;
 *   4 a state's timer belongs to the visit that lasts, is due when its state was entered plus its
 *     time, and there while that lies ahead; the same for named timers since they were armed;
 *   5 what was refused, ignored or a duplicate has changed nothing;
 *   6 what has stopped stays stopped, and has no timers;
 *   7 an error is one that the table, the state and the answers of user code explain. */
#ifndef DET_TESTING_RANDOM_WALK_H
#define DET_TESTING_RANDOM_WALK_H

#include "testing/coverage.h"
#include "testing/trace_file.h"

#define WALK_TEXT_MAX 400

struct walk_options {
    uint64_t seed;
    uint64_t steps;
    const struct det_allocator *allocator;
    struct cli_coverage *coverage;  /* NULL: not wanted */
    struct cli_trace_writer *trace; /* NULL: not wanted */
    bool (*is_stopped)(void *context);
    void *context;
};

struct walk_result {
    uint64_t hash;
    uint64_t steps; /* that were made */
    uint64_t events, refused, instances;
    det_time virtual_time;
    char violation[WALK_TEXT_MAX]; /* "" when all held; else what did not, in step `steps` */
};

/* The functions of the machine are bound by cli_stubs_bind(). 0 or a negative error. */
DET_MUST_CHECK int walk_machine(
    const struct det_machine *machine, const struct walk_options *options, struct walk_result *ret);

#endif
