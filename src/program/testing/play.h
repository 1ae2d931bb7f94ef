/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* play.h - runs one case: a simulated world, a memory store, a runtime, one instance.
 *
 *     open -> start -> step, settle, expect -> ... -> cancel waiting calls -> close
 *
 * Effects run on the runtime's pool and may wait there for an answer of the case. A failed
 * expectation is not an error of the player: it returns 0 with the failures in `ret`. */
#ifndef DET_TESTING_PLAY_H
#define DET_TESTING_PLAY_H

#include "testing/case.h"
#include "testing/coverage.h"
#include "testing/trace_file.h"

#define PLAY_TEXT_MAX 400
/* Recorded failures of one step; more are only counted. */
#define PLAY_FAILURES_MAX 16
/* Steps of the simulation in one case: one that needs more has a machine that runs in circles. A
 * pending timer costs about two for each second of virtual time. */
#define PLAY_STEPS_DEFAULT 20000000

struct play_options {
    const struct det_allocator *allocator;
    struct cli_coverage *coverage;
    struct cli_trace_writer *trace;
    uint64_t steps_max; /* 0: PLAY_STEPS_DEFAULT */
};

/* Something that a step failed with. */
struct play_failure {
    uint32_t line, column;
    char text[PLAY_TEXT_MAX];
    char expected[PLAY_TEXT_MAX], actual[PLAY_TEXT_MAX]; /* "" when there are none */
};

struct play_result {
    bool is_ok;
    size_t step; /* the last one, from 1; 0: the start */
    struct play_failure failures[PLAY_FAILURES_MAX];
    size_t failure_count;     /* also of those that found no room */
    char note[PLAY_TEXT_MAX]; /* what else went wrong meanwhile; "" when nothing did */
    det_time virtual_time;
};

/* The functions of the machine are bound by cli_stubs_bind(). 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int play_case(
    const struct case_file *file, const struct case_case *one, const struct det_machine *machine,
    const struct play_options *options, struct play_result *ret);

#endif
