/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* coverage.h - which states of a machine were entered and which transitions taken. */
#ifndef DET_TESTING_COVERAGE_H
#define DET_TESTING_COVERAGE_H

#include <detent/runtime.h>
#include <detent/tool/spec.h>

#include "terminal/terminal.h"

struct cli_coverage {
    const struct det_machine *machine;
    bool *states;      /* by id */
    bool *transitions; /* by their number in transition_index.h */
    size_t *order;     /* in which they are shown: their numbers */
};

struct cli_coverage_counts {
    size_t states, states_visited, transitions, transitions_taken;
};

DET_MUST_CHECK int cli_coverage_init(
    struct cli_coverage *coverage, const struct det_machine *machine,
    const struct det_allocator *allocator);
void cli_coverage_deinit(struct cli_coverage *coverage, const struct det_allocator *allocator);
/* Counts a committed step; `edge` is the number of the transition that it took. */
void cli_coverage_note(struct cli_coverage *coverage, const struct det_note *note, size_t edge);
struct cli_coverage_counts cli_coverage_count(const struct cli_coverage *coverage);
/* Prints the counts, and everything missed with its place in the spec. */
void cli_coverage_print(
    struct cli *cli, const struct cli_coverage *coverage, const struct det_spec *spec);

#endif
