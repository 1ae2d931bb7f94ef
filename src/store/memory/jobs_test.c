/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_test.c - jobs when memory fails; tests/conform/job_cases.c has the rest. */
#include "lib/test.h"

#include "store/jobs_test.h"
#include "store/store.h"

static int count(void *context, const struct det_job_row *job)
{
    (void)job;
    ++*(unsigned *)context;
    return 0;
}

static unsigned jobs_in(struct det_store *store)
{
    unsigned found = 0;

    assert_int_equal(
        store->ops->jobs->list(store, &(struct det_job_query){ .limit = 9 }, count, &found), 0);
    return found;
}

static int put_and_fire(struct det_store *store)
{
    const struct det_job_ops *ops = store->ops->jobs;
    struct det_job_put job = { "q", "a", "task", "body", 4, 0 };
    struct det_job_firing firing = { "s", 0, 10, 5, &job };
    struct det_job_schedule schedule;
    struct det_job_place place;
    int r;

    r = det_jobs_put(store, &job, &place);
    assert_int_equal(jobs_in(store), r == 0);
    if (r < 0)
        return r;
    job.id = "b";
    r = ops->fire(store, &firing);
    assert_int_equal(jobs_in(store), r == 0 ? 2 : 1);
    assert_int_equal(ops->schedule(store, "s", &schedule), 0);
    assert_int_equal(schedule.token, r == 0);
    return r;
}

static int all_or_nothing(struct det_test_memory *memory, void *argument)
{
    struct det_store *store;
    struct det_error error;
    int r;

    (void)argument;
    r = det_store_open_with(
        "memory:", &(struct det_store_options){ .allocator = &memory->allocator }, &store, &error);
    if (r < 0)
        return r;
    r = put_and_fire(store);
    det_store_close(store);
    return r;
}

static void a_job_or_a_firing_without_memory_leaves_nothing(void **state)
{
    (void)state;
    det_test_each_failure(all_or_nothing, NULL);
}

static void every_state_has_a_name_of_its_own(void **state)
{
    enum det_job_state found;

    (void)state;
    for (int i = DET_JOB_QUEUED; i <= DET_JOB_FAILED; i++) {
        assert_int_equal(
            det_jobs_state_find(det_jobs_state_name((enum det_job_state)i), &found), 0);
        assert_int_equal((int)found, i);
    }
    assert_int_equal(det_jobs_state_find("gone", &found), DET_ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_or_a_firing_without_memory_leaves_nothing),
        cmocka_unit_test(every_state_has_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
