/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_jobs_test.c - claims of jobs in a file, when somebody sets the clock. */
#include "lib/test.h"

#include <detent/sim.h>

#include "store/jobs.h"
#include "store/store.h"

#define SPAN (30 * DET_SECOND)

struct bench {
    char *folder;
    struct det_sim *sim;
    struct det_store *store;
    struct det_job_row job; /* that was claimed, without its texts */
    det_time next;
};

static void bench_open(struct bench *bench)
{
    struct det_error error = { 0 };
    char url[1100];

    *bench = (struct bench){ .folder = det_test_folder() };
    snprintf(url, sizeof url, "sqlite:%s/jobs.db", bench->folder);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 5 }, &bench->sim, NULL), 0);
    if (det_store_open_with(
            url, &(struct det_store_options){ .world = det_sim_world(bench->sim) }, &bench->store,
            &error) < 0)
        fail_msg("%s", error.text);
}

static void bench_close(struct bench *bench)
{
    det_store_close(bench->store);
    det_sim_close(bench->sim);
    det_test_folder_remove(bench->folder);
}

static det_time now_of(const struct bench *bench)
{
    return bench->store->ops->now(bench->store);
}

static void put(struct bench *bench, const char *id, det_time run_at)
{
    struct det_job_put job = { "q", id, "work", "", 0, run_at };
    struct det_job_place place;

    assert_int_equal(bench->store->ops->jobs->put(bench->store, &job, &place), 0);
}

static int take(void *context, const struct det_job_row *row)
{
    ((struct bench *)context)->job = *row;
    return 0;
}

static int claim(struct bench *bench)
{
    const struct det_job_claim wanted = { "q", 9, SPAN };

    return bench->store->ops->jobs->claim(bench->store, &wanted, take, bench, &bench->next);
}

static int renew(struct bench *bench)
{
    return bench->store->ops->jobs->renew(bench->store, bench->job.key, bench->job.attempts, SPAN);
}

static int cancel(struct bench *bench)
{
    const struct det_job_change change = { DET_JOB_CANCEL, "q", "a", NULL };

    return bench->store->ops->jobs->change(bench->store, &change);
}

static void who_sets_the_clock_ends_no_claim_and_makes_none_longer(void **state)
{
    static const det_time jumps[] = { DET_DAY, -DET_DAY };
    struct bench bench;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bench_open(&bench);
        put(&bench, "a", 0);
        assert_int_equal(claim(&bench), 0);
        det_sim_jump_wall(bench.sim, jumps[i]);
        assert_int_equal(claim(&bench), DET_ERR_NOT_FOUND);
        assert_true(bench.next > now_of(&bench) && bench.next <= now_of(&bench) + SPAN);
        assert_int_equal(cancel(&bench), DET_ERR_NOT_FOUND);
        assert_int_equal(det_sim_advance(bench.sim, SPAN - DET_SECOND), 0);
        assert_int_equal(renew(&bench), 0);
        assert_int_equal(det_sim_advance(bench.sim, SPAN - DET_SECOND), 0);
        assert_int_equal(claim(&bench), DET_ERR_NOT_FOUND);
        /* Who has gone does not renew it. */
        assert_int_equal(det_sim_advance(bench.sim, 2 * DET_SECOND), 0);
        assert_int_equal(renew(&bench), DET_ERR_LOCK_LOST);
        assert_int_equal(claim(&bench), 0);
        assert_int_equal(bench.job.lost, 1);
        bench_close(&bench);
    }
}

static void what_waits_for_its_time_waits_by_the_clock_on_the_wall(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    put(&bench, "a", now_of(&bench) + DET_HOUR);
    assert_int_equal(claim(&bench), DET_ERR_NOT_FOUND);
    det_sim_jump_wall(bench.sim, DET_HOUR);
    assert_int_equal(claim(&bench), 0);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sets_the_clock_ends_no_claim_and_makes_none_longer),
        cmocka_unit_test(what_waits_for_its_time_waits_by_the_clock_on_the_wall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
