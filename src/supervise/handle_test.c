/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handle_test.c - handles from other threads, real ones. */
/* test: threads */
#include "supervise/handle_cases.h"

#define REPEATS 5

static void in_this_world(stage_fn *run)
{
    struct stage *stage = calloc(1, sizeof *stage);

    assert_non_null(stage);
    for (int i = 0; i < REPEATS; i++) {
        stage_open(stage, det_world_real());
        run(stage);
        stage_close(stage);
    }
    free(stage);
}

HANDLE_CASES(HANDLE_CASE_TEST)

int main(void)
{
    const struct CMUnitTest tests[] = { HANDLE_CASES(HANDLE_CASE_ENTRY) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
