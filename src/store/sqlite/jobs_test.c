/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_test.c - claims of jobs in a file: after a change of the clock, with damaged rows, and the
 * rows that they read. */
#include "lib/test.h"

#include <sqlite3.h>

#include <detent/sim.h>

#include "store/jobs_test.h"
#include "store/sqlite/sqlite.h"
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

    assert_int_equal(det_jobs_put(bench->store, &job, &place), 0);
}

static int take(void *context, const struct det_job_row *row)
{
    ((struct bench *)context)->job = *row;
    return 0;
}

static int claim(struct bench *bench)
{
    const struct det_job_claim wanted = { "q", 9, SPAN };

    return det_jobs_claim(bench->store, &wanted, take, bench, &bench->next);
}

static int renew(struct bench *bench)
{
    return det_jobs_renew(bench->store, "q", bench->job.key, bench->job.attempts, SPAN);
}

static int cancel(struct bench *bench)
{
    const struct det_job_change change = { DET_JOB_CANCEL, "q", "a", NULL };

    return bench->store->ops->jobs->change(bench->store, &change);
}

static void clock_jump_neither_ends_nor_prolongs_a_claim(void **state)
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
        /* A dead process does not renew its claim. */
        assert_int_equal(det_sim_advance(bench.sim, 2 * DET_SECOND), 0);
        assert_int_equal(renew(&bench), DET_ERR_LOCK_LOST);
        assert_int_equal(claim(&bench), 0);
        assert_int_equal(bench.job.lost, 1);
        bench_close(&bench);
    }
}

static void delayed_job_waits_by_the_wall_clock(void **state)
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

/* On the file, beside the store. */
static void execute(const struct bench *bench, const char *text)
{
    char path[1100];
    sqlite3 *database;

    snprintf(path, sizeof path, "%s/jobs.db", bench->folder);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static int count_jobs(void *context, const struct det_store_finding *row)
{
    *(unsigned *)context += strstr(row->text, "job") != NULL;
    return 0;
}

/* Counts jobs that are damaged and have failed for that reason. */
static int count_damaged(void *context, const struct det_job_row *row)
{
    unsigned *counts = context;

    counts[0] += row->is_damaged;
    counts[1] += row->is_damaged && row->state == DET_JOB_FAILED &&
                 strcmp(row->reason, DET_JOB_DAMAGED) == 0 && row->ended_at > 0;
    return 0;
}

static void assert_damaged(struct bench *bench, unsigned failed)
{
    const struct det_job_query all = { .limit = 9 };
    unsigned counts[2] = { 0 };

    assert_int_equal(bench->store->ops->jobs->list(bench->store, &all, count_damaged, counts), 0);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], failed);
}

static void a_damaged_job_is_reported_and_neither_claimed_nor_made_good_by_a_change(void **state)
{
    static const char *const damages[] = {
        "UPDATE jobs SET body = 'y' WHERE id = 'a'",
        "UPDATE jobs SET task = 'wort' WHERE id = 'a'",
        "UPDATE jobs SET id = 'c' WHERE id = 'a'",
        "UPDATE jobs SET attempts = 4 WHERE id = 'a'",
        "UPDATE jobs SET lost = 1 WHERE id = 'a'",
        "UPDATE jobs SET checksum = checksum + 1 WHERE id = 'a'",
        /* Put back into the queue by the claim. */
        "UPDATE jobs SET state = 'delayed', due_at = 1, reason = 'z' WHERE id = 'a'",
        "UPDATE jobs SET state = 'running', due_at = 1, owner = 'x' WHERE id = 'a'",
    };
    struct bench bench;
    unsigned found;

    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        bench_open(&bench);
        put(&bench, "a", 0);
        put(&bench, "b", 0);
        execute(&bench, damages[i]);
        assert_int_equal(claim(&bench), 0);
        assert_int_equal(bench.job.key, 2);
        assert_damaged(&bench, 0);
        /* One that finds nothing else. */
        assert_int_equal(claim(&bench), DET_ERR_NOT_FOUND);
        assert_damaged(&bench, 1);
        assert_int_equal(
            bench.store->ops->jobs->change(
                bench.store,
                &(struct det_job_change){ .verb = DET_JOB_RETRY, .queue = "q", .id = "a" }),
            DET_ERR_NOT_FOUND);
        found = 0;
        assert_int_equal(bench.store->ops->check(bench.store, count_jobs, NULL, &found), 0);
        assert_int_equal(found, 1);
        bench_close(&bench);
    }
}

/* The statements of a claim use indexes of rows that have not ended. */
static const struct {
    const char *text;
} statements[] = {
#define SQLITE_STATEMENT(name, text) { #name ": " text },
#include "store/sqlite/statements.def"
#undef SQLITE_STATEMENT
};

static bool by_id(const char *detail)
{
    return strstr(detail, "(queue=? AND id=?)") != NULL;
}

static void assert_plan(sqlite3 *database, const char *name, const char *text)
{
    sqlite3_stmt *statement;
    char explain[4000];
    bool is_named = false;

    snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", text);
    assert_int_equal(sqlite3_prepare_v2(database, explain, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(statement, 3);

        if (strstr(detail, "SCAN jobs") || (strstr(detail, "autoindex") && !by_id(detail)))
            fail_msg("%s: %s", name, detail);
        is_named = is_named || by_id(detail) || strstr(detail, "jobs_queued") ||
                   strstr(detail, "jobs_delayed") || strstr(detail, "jobs_running");
    }
    sqlite3_finalize(statement);
    assert_true(is_named);
}

static void claims_and_lists_do_not_scan_ended_jobs(void **state)
{
    static const char *const names[] = { "JOB_DUE: ",
                                         "JOB_LAPSE: ",
                                         "JOB_TAKE: ",
                                         "JOB_DAMAGED: ",
                                         "JOB_NEXT: ",
                                         "JOB_LIST_ID: ",
                                         "JOB_LIST_ID_NEWEST: ",
                                         "JOB_LIST_QUEUED: ",
                                         "JOB_LIST_QUEUED_NEWEST: ",
                                         "JOB_LIST_DELAYED: ",
                                         "JOB_LIST_DELAYED_NEWEST: ",
                                         "JOB_LIST_RUNNING: ",
                                         "JOB_LIST_RUNNING_NEWEST: " };
    struct bench bench;
    char path[1100];
    sqlite3 *database;
    unsigned seen = 0;

    (void)state;
    bench_open(&bench);
    put(&bench, "a", 0);
    snprintf(path, sizeof path, "%s/jobs.db", bench.folder);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(det_sqlite_checksum_open(database), SQLITE_OK);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            size_t size = strlen(names[k]);

            if (strncmp(statements[i].text, names[k], size) != 0)
                continue;
            assert_plan(database, names[k], statements[i].text + size);
            seen++;
        }
    }
    assert_int_equal(seen, sizeof names / sizeof *names);
    sqlite3_close(database);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_jump_neither_ends_nor_prolongs_a_claim),
        cmocka_unit_test(delayed_job_waits_by_the_wall_clock),
        cmocka_unit_test(a_damaged_job_is_reported_and_neither_claimed_nor_made_good_by_a_change),
        cmocka_unit_test(claims_and_lists_do_not_scan_ended_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
