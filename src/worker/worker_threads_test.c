/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads_test.c - a thread pool in the real world. */
/* test: threads */
#include "worker/real_world_cases.h"
#include "worker/worker_threads_random_cases.h"

static void thread_pool_holds_under_many_jobs(void **state)
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
    const struct CMUnitTest tests[] = { WORKER_THREADS_CASES,
                                        WORLD_CASE(thread_pool_holds_under_many_jobs) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
