/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* frame.h - measures the cases of one bench, round by round, and compares them with their goals. */
#ifndef BENCH_FRAME_H
#define BENCH_FRAME_H

#include "bench.h"

enum bench_verdict {
    BENCH_UNKNOWN, /* no case to compare with */
    BENCH_MET,
    BENCH_MISSED,
};

/* The result of one case after the last round. Values are nanoseconds an operation. */
struct bench_result {
    const struct bench_case *what;
    int code; /* 0, DET_ERR_UNSUPPORTED when it was skipped, another error when it failed */
    char note[BENCH_NOTE_MAX];
    double samples[BENCH_ROUNDS_MAX];
    double median, p10, p90;
    double ratio; /* 0: none */
    double processor_samples[BENCH_ROUNDS_MAX];
    double processor, processor_ratio; /* 0: not measured */
    double allocations;
    double kept_bytes; /* 0: not measured */
    enum bench_verdict verdicts[BENCH_GOALS_MAX];
};

struct bench_results {
    const struct bench *bench;
    const char *name;
    unsigned rounds;
    size_t count;
    struct bench_result items[BENCH_CASES_MAX];
};

struct bench_measure_options {
    bool is_quick;
    const char *case_filter; /* only cases whose name contains it; NULL: all */
};

/* 0 or a negative error, with a note in `note` of BENCH_NOTE_MAX bytes, when the bench itself
 * cannot run. The failure of a case is in its result. */
DET_MUST_CHECK int bench_measure(
    const char *name, const struct bench *bench, const struct bench_measure_options *options,
    struct bench_results *ret, char *note);
/* The goal as words: "at most 1.5 x table in C". */
void bench_goal_text(
    const struct bench_results *results, const struct bench_result *result,
    const struct bench_goal *goal, char *target, size_t capacity);
/* The case that `result` is compared with, or NULL. */
const struct bench_result *bench_baseline(
    const struct bench_results *results, const struct bench_result *result);

#endif
