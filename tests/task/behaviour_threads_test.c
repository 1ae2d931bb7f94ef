/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* behaviour_threads_test.c - many real threads use one supervisor at once. */
#include "task/behaviour_cases.h"

static struct lab *crowd_lab(const struct det_tasks_options *options)
{
    return lab_open_real(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = { CROWD_CASES };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
