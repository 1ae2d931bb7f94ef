/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_change_cases.c - manual changes of jobs, and jobs imported from another store. */
#include "conform/jobs.h"

static void retried_job_is_queued_after_the_others(void **state)
{
    struct box *box = *state;
    struct shown old, again;

    NEEDS_JOBS(state);
    put(box, "a");
    put_in(box, "other", "a", 0);
    put(box, "b");
    assert_int_equal(change(box, DET_JOB_RETRY, "a"), DET_ERR_NOT_FOUND);
    old = claim(box, 1, LONG, "a");
    assert_int_equal(change(box, DET_JOB_RETRY, "a"), DET_ERR_NOT_FOUND);
    assert_int_equal(end(box, &old, DET_JOB_FAILED, 0), 0);
    assert_int_equal(find(box, "a", DET_JOB_FAILED).count, 1);
    assert_int_equal(change(box, DET_JOB_RETRY, "a"), 0);
    assert_int_equal(change(box, DET_JOB_RETRY, "a"), DET_ERR_NOT_FOUND);
    assert_int_equal(find(box, NULL, DET_JOB_FAILED).count, 0);
    claim(box, 2, LONG, "b");
    again = claim(box, 2, LONG, "a");
    assert_true(again.key > old.key);
    assert_int_equal(again.attempts, 1);
    assert_int_equal(again.ended_at, 0);
    assert_string_equal(again.reason, "");
    assert_string_equal(again.task, "work");
    assert_int_equal(again.body_size, 4);
    /* The former holder has lost it, although the attempts start from 1 again. */
    assert_int_equal(end(box, &old, DET_JOB_DONE, 0), DET_ERR_LOCK_LOST);
    assert_int_equal(
        det_jobs_renew(box->store, "q", old.key, old.attempts, LONG), DET_ERR_LOCK_LOST);
    assert_int_equal(end(box, &again, DET_JOB_DONE, 0), 0);
    assert_int_equal(change(box, DET_JOB_RETRY, "a"), DET_ERR_NOT_FOUND);
}

static void waiting_job_can_be_cancelled(void **state)
{
    struct box *box = *state;
    struct listed listed;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    put_in(box, "q", "c", box_now(box) + LONG);
    claim(box, 1, LONG, "a");
    assert_int_equal(change(box, DET_JOB_CANCEL, "a"), DET_ERR_NOT_FOUND);
    assert_int_equal(change(box, DET_JOB_CANCEL, "nobody"), DET_ERR_NOT_FOUND);
    assert_int_equal(change(box, DET_JOB_CANCEL, "b"), 0);
    assert_int_equal(change(box, DET_JOB_CANCEL, "c"), 0);
    assert_int_equal(change(box, DET_JOB_CANCEL, "c"), DET_ERR_NOT_FOUND);
    assert_int_equal(change(box, DET_JOB_CANCEL, "no id"), DET_ERR_INVALID);
    listed = find(box, NULL, DET_JOB_FAILED);
    assert_int_equal(listed.count, 2);
    assert_string_equal(listed.rows[1].id, "c");
    assert_string_equal(listed.rows[1].reason, "by hand");
    assert_int_equal(listed.rows[1].due_at, 0);
    assert_true(listed.rows[1].ended_at > 0);
    claim_none(box, 2);
}

/* The holder is dead; its late end changes nothing. */
static void job_with_a_lapsed_claim_can_be_cancelled(void **state)
{
    struct box *box = *state;
    struct listed listed;
    struct shown a, b;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    a = claim(box, 2, SHORT, "a");
    wait_past(box, a.due_at);
    assert_int_equal(change(box, DET_JOB_CANCEL, "a"), 0);
    assert_int_equal(det_jobs_renew(box->store, "q", a.key, a.attempts, LONG), DET_ERR_LOCK_LOST);
    assert_int_equal(end(box, &a, DET_JOB_DONE, 0), 0);
    b = claim(box, 2, box->driver->is_shared ? 500 * DET_MILLISECOND : LONG, "b");
    assert_int_equal(change(box, DET_JOB_CANCEL, "b"), DET_ERR_NOT_FOUND);
    if (box->driver->is_kept) {
        box_reopen(box);
        if (box->driver->is_shared)
            wait_past(box, b.due_at);
        assert_int_equal(change(box, DET_JOB_CANCEL, "b"), 0);
    }
    listed = find(box, NULL, DET_JOB_FAILED);
    assert_int_equal(listed.count, box->driver->is_kept ? 2 : 1);
    assert_string_equal(listed.rows[0].reason, "by hand");
    assert_true(listed.rows[0].ended_at > 0 && !listed.rows[0].owner[0]);
    claim_none(box, 2);
}

static int restore(struct box *box, const struct det_job_row *row)
{
    bool is_new = false;
    int r = box->store->ops->jobs->restore(box->store, row, &is_new);

    return r < 0 ? r : is_new;
}

static void imported_job_is_restored_without_its_claim(void **state)
{
    struct box *box = *state;
    struct det_job_row row = {
        .key = 1000,
        .queue = "q",
        .id = "ran",
        .task = "work",
        .body = "body",
        .body_size = 4,
        .state = DET_JOB_RUNNING,
        .due_at = 77,
        .attempts = 5,
        .lost = 2,
        .owner = "somebody",
        .submitted_at = 33,
        .reason = "why",
    };
    struct listed all;
    struct shown ran;

    NEEDS_JOBS(state);
    put(box, "first");
    assert_int_equal(restore(box, &row), 1);
    row.reason = "another";
    assert_int_equal(restore(box, &row), 0);
    row.id = "late";
    row.state = DET_JOB_DELAYED;
    row.due_at = box_now(box) + LONG;
    row.reason = NULL;
    assert_int_equal(restore(box, &row), 1);
    row.id = "failed";
    row.state = DET_JOB_FAILED;
    row.ended_at = 44;
    assert_int_equal(restore(box, &row), 1);
    box_reopen(box);
    all = list(box, NULL, 0, 9);
    assert_int_equal(all.count, 4);
    assert_true(all.rows[1].key > all.rows[0].key && all.rows[3].key > all.rows[2].key);
    assert_true(all.rows[1].state == DET_JOB_QUEUED && all.rows[1].due_at == 0);
    assert_string_equal(all.rows[1].owner, "");
    assert_string_equal(all.rows[1].reason, "why");
    assert_true(all.rows[1].attempts == 5 && all.rows[1].submitted_at == 33);
    assert_memory_equal(all.rows[1].body, "body", 4);
    assert_true(all.rows[2].state == DET_JOB_DELAYED && all.rows[2].due_at == row.due_at);
    assert_true(all.rows[3].state == DET_JOB_FAILED && all.rows[3].ended_at == 44);
    assert_int_equal(all.rows[3].due_at, 0);
    claim(box, 2, LONG, "first");
    ran = claim(box, 2, LONG, "ran");
    assert_true(ran.attempts == 6 && ran.lost == 2);
    assert_int_equal(change(box, DET_JOB_RETRY, "failed"), 0);
}

static void invalid_job_row_is_not_restored(void **state)
{
    struct box *box = *state;
    const struct det_job_row good = { .queue = "q", .id = "a", .task = "work" };
    struct det_job_row row = good;
    char reason[DET_REASON_MAX + 2];

    NEEDS_JOBS(state);
    memset(reason, 'x', sizeof reason);
    reason[DET_REASON_MAX + 1] = 0;
    row.id = "not an id";
    assert_int_equal(restore(box, &row), DET_ERR_INVALID);
    row = good;
    row.state = DET_JOB_DONE;
    assert_int_equal(restore(box, &row), DET_ERR_INVALID);
    row = good;
    row.ended_at = 1;
    assert_int_equal(restore(box, &row), DET_ERR_INVALID);
    row = good;
    row.submitted_at = -1;
    assert_int_equal(restore(box, &row), DET_ERR_INVALID);
    row = good;
    row.reason = reason;
    assert_int_equal(restore(box, &row), DET_ERR_INVALID);
    assert_int_equal(list(box, NULL, 0, 9).count, 0);
}

static void all_ended_jobs_are_removed_whatever_their_number(void **state)
{
    struct box *box = *state;
    struct det_job_row row = { .queue = "q", .task = "work", .state = DET_JOB_DONE };
    uint64_t count;
    char id[16];

    NEEDS_JOBS(state);
    row.id = id;
    for (int i = 1; i <= 520; i++) {
        snprintf(id, sizeof id, "j%d", i);
        row.ended_at = i;
        assert_int_equal(restore(box, &row), 1);
    }
    assert_int_equal(box->store->ops->jobs->forget(box->store, 519, &count), 0);
    assert_int_equal(count, 518);
    assert_int_equal(list(box, NULL, 0, 9).count, 2);
}

static struct listed list_newest(struct box *box, const char *queue, uint64_t after, size_t limit)
{
    struct det_job_query query = {
        .queue = queue, .is_newest_first = true, .after = after, .limit = limit
    };
    struct listed listed = { 0 };

    assert_int_equal(box->store->ops->jobs->list(box->store, &query, note, &listed), 0);
    return listed;
}

static void jobs_are_listed_newest_first_page_by_page(void **state)
{
    struct box *box = *state;
    struct listed page;
    struct shown first;

    NEEDS_JOBS(state);
    put(box, "a");
    put_in(box, "other", "x", 0);
    put(box, "b");
    put(box, "c");
    first = claim(box, 1, LONG, "a");
    assert_int_equal(end(box, &first, DET_JOB_FAILED, 0), 0);
    page = list_newest(box, "q", 0, 2);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.rows[0].id, "c");
    assert_string_equal(page.rows[1].id, "b");
    page = list_newest(box, "q", page.rows[1].key, 2);
    assert_int_equal(page.count, 1);
    assert_string_equal(page.rows[0].id, "a");
    assert_int_equal(list_newest(box, "q", page.rows[0].key, 2).count, 0);
    assert_int_equal(list_newest(box, NULL, 0, 9).count, 4);
    /* A retried job is the newest. */
    assert_int_equal(
        ops_of(state)->change(
            box->store, &(struct det_job_change){ DET_JOB_RETRY, "q", "a", NULL }),
        0);
    assert_string_equal(list_newest(box, "q", 0, 1).rows[0].id, "a");
    assert_int_equal(list(box, "q", UINT64_MAX, 9).count, 0);
}

static void list_in(struct box *box, struct det_job_query query, const char *expected)
{
    struct listed listed = { 0 };
    char ids[64] = "";

    query.queue = "q";
    query.limit = 9;
    assert_int_equal(box->store->ops->jobs->list(box->store, &query, note, &listed), 0);
    for (size_t i = 0; i < listed.count; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s ", listed.rows[i].id);
    assert_string_equal(ids, expected);
}

static void jobs_are_listed_by_state_and_id_in_both_orders(void **state)
{
    struct box *box = *state;
    struct shown run, ended;

    NEEDS_JOBS(state);
    put(box, "ended");
    put(box, "run");
    put(box, "a");
    put(box, "b");
    put_in(box, "q", "later", box_now(box) + DET_HOUR);
    put_in(box, "q", "soon", box_now(box) + DET_MINUTE);
    put_in(box, "other", "a", 0);
    ended = claim(box, 2, LONG, "ended");
    run = claim(box, 2, LONG, "run");
    assert_int_equal(end(box, &ended, DET_JOB_DONE, 0), 0);
    for (int i = 0; i < 2; i++) {
        struct det_job_query query = { .is_newest_first = i, .has_state = true };

        query.state = DET_JOB_QUEUED;
        list_in(box, query, i ? "b a " : "a b ");
        query.state = DET_JOB_DELAYED;
        list_in(box, query, i ? "soon later " : "later soon ");
        query.state = DET_JOB_RUNNING;
        list_in(box, query, "run ");
        query.after = run.key;
        list_in(box, query, "");
        query = (struct det_job_query){ .is_newest_first = i, .id = "a" };
        list_in(box, query, "a ");
        query.has_state = true;
        query.state = DET_JOB_DONE;
        list_in(box, query, "");
        query.id = NULL;
        list_in(box, query, "ended ");
    }
}

struct names {
    char text[64];
    det_time next_at;
    int answer;
};

static int note_schedule(void *context, const char *name, const struct det_job_schedule *schedule)
{
    struct names *names = context;
    size_t length = strlen(names->text);

    snprintf(names->text + length, sizeof names->text - length, "%s ", name);
    names->next_at = schedule->next_at;
    return names->answer;
}

static void schedules_are_listed_by_their_names(void **state)
{
    struct box *box = *state;
    const struct det_job_ops *ops = ops_of(state);
    static const char *const some[] = { "c", "a", "b" };
    struct names names = { .answer = 0 };

    NEEDS_JOBS(state);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            ops->fire(box->store, &(struct det_job_firing){ some[i], 0, 10 + i, 0, NULL }), 0);
    assert_int_equal(ops->schedules(box->store, note_schedule, &names), 0);
    assert_string_equal(names.text, "a b c ");
    assert_int_equal(names.next_at, 10);
    names = (struct names){ .answer = 7 };
    assert_int_equal(ops->schedules(box->store, note_schedule, &names), 7);
    assert_string_equal(names.text, "a ");
}

static const struct CMUnitTest job_changes[] = {
    CASE(retried_job_is_queued_after_the_others),
    CASE(waiting_job_can_be_cancelled),
    CASE(job_with_a_lapsed_claim_can_be_cancelled),
    CASE(imported_job_is_restored_without_its_claim),
    CASE(invalid_job_row_is_not_restored),
    CASE(all_ended_jobs_are_removed_whatever_their_number),
    CASE(jobs_are_listed_newest_first_page_by_page),
    CASE(jobs_are_listed_by_state_and_id_in_both_orders),
    CASE(schedules_are_listed_by_their_names),
};
const struct group job_change_cases = GROUP_OF(job_changes);
