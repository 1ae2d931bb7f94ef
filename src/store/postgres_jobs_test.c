/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_jobs_test.c - jobs that several processes put into one queue of PostgreSQL at once. */
/* test: threads */
#include "store/postgres_test.h"

#include "os/os.h"
#include "store/jobs.h"

#define PUTTERS 6u
#define JOBS    60u

/* A process of its own, as far as the server can tell. */
struct putter {
    struct det_store *store;
    struct det_thread *thread;
    uint64_t keys[JOBS];
    unsigned new_ones;
    int r;
};

static void run_putter(void *argument)
{
    struct putter *putter = argument;

    for (unsigned i = 0; putter->r == 0 && i < JOBS; i++) {
        struct det_job_place place = { 0 };
        char id[16];

        snprintf(id, sizeof id, "j%u", i);
        putter->r = det_jobs_put(
            putter->store, &(struct det_job_put){ "q", id, "work", "body", 4, 0 }, &place);
        putter->keys[i] = place.key;
        putter->new_ones += place.is_new;
    }
}

static void a_job_that_many_put_at_once_is_there_once_and_all_are_told_where(void **state)
{
    struct det_world *world = det_world_real();
    char *url = det_test_postgres_url(server, NULL);
    struct putter putters[PUTTERS] = { 0 };
    unsigned new_ones = 0;

    (void)state;
    for (unsigned i = 0; i < PUTTERS; i++)
        putters[i].store = store_at(url, NULL);
    for (unsigned i = 0; i < PUTTERS; i++)
        assert_int_equal(
            det_thread_start(world, "putter", run_putter, &putters[i], &putters[i].thread), 0);
    for (unsigned i = 0; i < PUTTERS; i++)
        det_thread_join(world, putters[i].thread);
    for (unsigned i = 0; i < PUTTERS; i++) {
        assert_int_equal(putters[i].r, 0);
        assert_memory_equal(putters[i].keys, putters[0].keys, sizeof putters[0].keys);
        new_ones += putters[i].new_ones;
        det_store_close(putters[i].store);
    }
    assert_int_equal(new_ones, JOBS);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_many_put_at_once_is_there_once_and_all_are_told_where),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
