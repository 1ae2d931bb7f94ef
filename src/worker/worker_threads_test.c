/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads_test.c - a thread pool in the real world. */
/* test: threads */
#include "worker/worker_threads_random_cases.h"

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

static void it_holds_in_a_crowd(void **state)
{
    struct world_fixture *fixture = *state;
    static struct crowd crowd;
    unsigned late = 0;

    for (uint64_t seed = 1; seed <= 24; seed++) {
        crowd_run(&crowd, fixture->world, seed, 300);
        late += crowd.late;
    }
    assert_true(late > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { CREW_CASES, WORLD_CASE(it_holds_in_a_crowd) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
