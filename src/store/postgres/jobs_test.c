/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_test.c - concurrent puts of several processes into one queue of PostgreSQL, and the plans of
 * claims. */
/* test: threads */
#include "store/postgres/postgres_test.h"

#include "os/os.h"
#include "store/jobs_test.h"
#include "store/postgres/plan_test.h"

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

static void concurrent_puts_of_one_job_store_it_once(void **state)
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

static int note_job(void *context, const struct det_job_row *row)
{
    struct det_job_row *job = context;

    if (strcmp(row->id, "a") == 0)
        *job = *row;
    assert_true(
        strcmp(row->id, "a") != 0 || row->state != DET_JOB_FAILED ||
        strcmp(row->reason, DET_JOB_DAMAGED) == 0);
    return 0;
}

static struct det_job_row job_a(struct det_store *store)
{
    struct det_job_row job = { 0 };

    assert_int_equal(
        store->ops->jobs->list(store, &(struct det_job_query){ .limit = 9 }, note_job, &job), 0);
    return job;
}

static void damaged_job_does_not_block_the_queue_and_fails_last(void **state)
{
    const struct det_job_claim wanted = { "q", 9, DET_MINUTE };
    struct det_job_change retry = { .verb = DET_JOB_RETRY, .queue = "q", .id = "a" };
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);
    struct det_job_row claimed;
    struct det_job_place place;
    det_time next;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            det_jobs_put(
                store, &(struct det_job_put){ "q", i ? "b" : "a", "work", "x", 1, 0 }, &place),
            0);
    free(sql(store, "UPDATE @jobs SET body = 'y' WHERE id = 'a'"));
    assert_int_equal(det_jobs_claim(store, &wanted, note_job, &claimed, &next), 0);
    assert_true(job_a(store).is_damaged);
    assert_int_equal(job_a(store).state, DET_JOB_QUEUED);
    assert_int_equal(det_jobs_claim(store, &wanted, note_job, &claimed, &next), DET_ERR_NOT_FOUND);
    assert_true(job_a(store).is_damaged);
    assert_int_equal(job_a(store).state, DET_JOB_FAILED);
    assert_int_equal(store->ops->jobs->change(store, &retry), DET_ERR_NOT_FOUND);
    assert_int_equal(job_a(store).state, DET_JOB_FAILED);
    det_store_close(store);
    free(url);
}

static void assert_looks_up(
    struct det_store *store, enum postgres_statement_id id, const char *arguments)
{
    char *plan = plan_of(store, id, "SET enable_seqscan = off; ", arguments);
    char *rest = plan, *node;
    unsigned scans = 0;

    /* In the order of keys, from the first that is queued on. */
    if (id == POSTGRES_JOB_TAKE && strstr(plan, "\"Sort\""))
        fail_msg("statement %d sorts: %s", (int)id, plan);
    for (; (node = next_scan(&rest, id, "jobs")); scans++) {
        if (id == POSTGRES_JOB_TAKE && strstr(node, "jobs_pkey"))
            fail_msg("statement %d: %s", (int)id, node);
    }
    assert_true(scans > 0);
    free(plan);
}

static void assert_all_look_up(struct det_store *store)
{
    assert_looks_up(store, POSTGRES_JOB_WAKE, "'channel', '{q}'");
    assert_looks_up(store, POSTGRES_JOB_PUT, "'{q}', '{a}', '{work}', '{}', '{0}'");
    assert_looks_up(store, POSTGRES_JOB_END, "'{1}', '{1}', '{done}', '{0}', '{}', '{0}'");
    assert_looks_up(store, POSTGRES_JOB_RENEW, "1, '{1}', '{1}'");
    assert_looks_up(store, POSTGRES_JOB_HELD, "'q'");
    assert_looks_up(store, POSTGRES_JOB_TAKE, "'q', 64, 64, 1, 'owner'");
    assert_looks_up(store, POSTGRES_JOB_DAMAGED, "'q', 64");
}

/* Plans are kept for as long as a connection, so none may be good only for the statistics that it
 * was made with. */
static void job_batches_use_indexes_whatever_the_statistics(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);

    (void)state;
    assert_all_look_up(store);
    free(sql(store, "ANALYZE @jobs"));
    assert_all_look_up(store);
    free(sql(
        store, "INSERT INTO @jobs (queue, id, task, body, state, due_at, attempts, owner, "
               "submitted_at, ended_at, reason, checksum) SELECT 'q', 'j' || n, 'work', '', "
               "'queued', 0, 0, '', 1, 0, '', '' FROM generate_series(1, 20000) n; ANALYZE @jobs"));
    assert_all_look_up(store);
    free(sql(store, "UPDATE @jobs SET state = 'done', ended_at = 1; ANALYZE @jobs"));
    assert_all_look_up(store);
    det_store_close(store);
    free(url);
}

/* The test above uses these settings. */
static void batches_are_planned_without_sequential_scans(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);
    const struct postgres_statement *statements = postgres_store_of(store)->statements;
    const char setting[] = "set_config('enable_seqscan', 'off', true)";

    (void)state;
    assert_non_null(strstr(statements[POSTGRES_JOB_WAKE].text, setting));
    assert_non_null(strstr(statements[POSTGRES_JOB_LOCK].text, setting));
    det_store_close(store);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_job_does_not_block_the_queue_and_fails_last),
        cmocka_unit_test(concurrent_puts_of_one_job_store_it_once),
        cmocka_unit_test(job_batches_use_indexes_whatever_the_statistics),
        cmocka_unit_test(batches_are_planned_without_sequential_scans),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
