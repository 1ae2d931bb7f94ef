/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder_test.c - a recorder in the real world. */
/* test: threads */
#include "worker/recorder_cases.h"

static int world_setup(void **state)
{
    static struct world_fixture fixture;

    fixture = (struct world_fixture){ .world = det_world_real() };
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    (void)state;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { RECORDER_CASES, WORLD_CASE(ten_thousand_come_in_order) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
