/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder_test.c - a recorder in the real world. */
/* test: threads */
#include "worker/real_world_cases.h"
#include "worker/recorder_cases.h"

int main(void)
{
    const struct CMUnitTest tests[] = { RECORDER_CASES, WORLD_CASE(ten_thousand_come_in_order) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
