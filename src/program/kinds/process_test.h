/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_test.h - for suites of programs that are kept running. */
#ifndef DET_KINDS_PROCESS_TEST_H
#define DET_KINDS_PROCESS_TEST_H

#include "kinds/bench_test.h"
#include "kinds/kinds.h"
#include "kinds/process.h"

/* A config of up to three words, settled. */
static inline void set_arguments(
    struct process_desired *config, const char *a, const char *b, const char *c)
{
    const char *const words[] = { a, b, c };

    *config = (struct process_desired){ 0 };
    for (; config->argv_count < 3 && words[config->argv_count]; config->argv_count++)
        (void)snprintf(
            config->argv[config->argv_count], sizeof config->argv[0], "%s",
            words[config->argv_count]);
    assert_derived(&process_kind, config);
}

static inline const struct process_observed *seen_of(const struct bench *bench)
{
    return bench->observed;
}

#endif
