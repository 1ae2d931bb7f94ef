/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_cases.c - jobs and schedules, driver/jobs.h. */
#include "conform/jobs.h"

static void a_job_is_kept_as_it_was_put(void **state)
{
    struct box *box = *state;
    struct listed all;
    det_time before;
    uint64_t key;

    NEEDS_JOBS(state);
    before = box_now(box);
    key = put(box, "a:1");
    box_reopen(box);
    all = list(box, "q", 0, 10);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.rows[0].key, key);
    assert_string_equal(all.rows[0].queue, "q");
    assert_string_equal(all.rows[0].id, "a:1");
    assert_string_equal(all.rows[0].task, "work");
    assert_int_equal(all.rows[0].body_size, 4);
    assert_memory_equal(all.rows[0].body, "body", 4);
    assert_int_equal(all.rows[0].state, DET_JOB_QUEUED);
    assert_int_equal(all.rows[0].attempts, 0);
    assert_string_equal(all.rows[0].owner, "");
    assert_true(all.rows[0].submitted_at >= before - DET_SECOND && !all.rows[0].ended_at);
}

static void an_id_is_put_once_per_queue(void **state)
{
    struct box *box = *state;
    struct det_job_put again = { "q", "a", "work", "body", 4, 0 };
    struct det_job_place place;
    uint64_t key;

    NEEDS_JOBS(state);
    key = put(box, "a");
    assert_int_equal(det_jobs_put(box->store, &again, &place), 0);
    assert_false(place.is_new);
    assert_int_equal(place.key, key);
    again.queue = "other";
    assert_int_equal(det_jobs_put(box->store, &again, &place), 0);
    assert_true(place.is_new && place.key > key);
    assert_string_equal(list(box, "q", 0, 9).rows[0].task, "work");
    assert_int_equal(list(box, "other", 0, 9).rows[0].body_size, 4);
}

static void invalid_job_is_refused(void **state)
{
    struct box *box = *state;
    static const char *const bad[] = { NULL, "", "a\nb", "\xff" };
    struct det_job_place place;
    struct shown shown = { .key = 1, .attempts = 1 };
    const struct det_job_ops *ops = ops_of(state);
    det_time next;

    NEEDS_JOBS(state);
    for (size_t i = 0; i < 4; i++) {
        struct det_job_put queue = { bad[i], "a", "t", "", 0, 0 },
                           id = { "q", bad[i], "t", "", 0, 0 };
        struct det_job_put task = { "q", "a", bad[i], "", 0, 0 };
        struct det_job_schedule schedule;
        struct det_job_firing firing = { .name = bad[i] };

        assert_int_equal(det_jobs_put(box->store, &queue, &place), DET_ERR_INVALID);
        assert_int_equal(det_jobs_put(box->store, &id, &place), DET_ERR_INVALID);
        assert_int_equal(det_jobs_put(box->store, &task, &place), DET_ERR_INVALID);
        assert_int_equal(ops->schedule(box->store, bad[i], &schedule), DET_ERR_INVALID);
        assert_int_equal(ops->fire(box->store, &firing), DET_ERR_INVALID);
    }
    assert_int_equal(
        det_jobs_put(box->store, &(struct det_job_put){ "q", "a b", "t", "", 0, 0 }, &place),
        DET_ERR_INVALID);
    assert_int_equal(
        det_jobs_put(box->store, &(struct det_job_put){ "q", "a", "t", "", 0, -1 }, &place),
        DET_ERR_INVALID);
    assert_int_equal(
        det_jobs_put(
            box->store, &(struct det_job_put){ "q", "a", "t", "", DET_JOB_BODY_MAX + 1, 0 },
            &place),
        DET_ERR_INVALID);
    assert_int_equal(claim_of(box, 0, LONG, &shown, &next), DET_ERR_INVALID);
    assert_int_equal(claim_of(box, 1, 0, &shown, &next), DET_ERR_INVALID);
    shown.attempts = 1;
    assert_int_equal(end(box, &shown, DET_JOB_RUNNING, 0), DET_ERR_INVALID);
    assert_int_equal(end(box, &shown, DET_JOB_DELAYED, -1), DET_ERR_INVALID);
    shown.attempts = 0;
    assert_int_equal(end(box, &shown, DET_JOB_DONE, 0), DET_ERR_INVALID);
    assert_int_equal(det_jobs_renew(box->store, "q", 1, 1, 0), DET_ERR_INVALID);
    assert_int_equal(
        ops->fire(box->store, &(struct det_job_firing){ .name = "s", .next_at = -1 }),
        DET_ERR_INVALID);
    assert_int_equal(list(box, NULL, 0, 9).count, 0);
}

static void jobs_are_claimed_in_the_order_in_which_they_were_put(void **state)
{
    struct box *box = *state;
    struct shown first;

    NEEDS_JOBS(state);
    put(box, "c");
    put_in(box, "other", "x", 0);
    put(box, "a");
    put(box, "b");
    first = claim(box, 3, LONG, "c");
    assert_int_equal(first.attempts, 1);
    assert_int_equal(first.state, DET_JOB_RUNNING);
    assert_true(first.due_at > box_now(box));
    claim(box, 3, LONG, "a");
    claim(box, 3, LONG, "b");
    claim_none(box, 4);
}

static void no_more_of_a_queue_run_than_it_has_places(void **state)
{
    struct box *box = *state;
    struct shown a, b;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    put(box, "c");
    a = claim(box, 2, LONG, "a");
    b = claim(box, 2, LONG, "b");
    claim_none(box, 2);
    claim_none(box, 1);
    assert_int_equal(end(box, &b, DET_JOB_DONE, 0), 0);
    claim_none(box, 1);
    claim(box, 2, LONG, "c");
    assert_int_equal(end(box, &a, DET_JOB_FAILED, 0), 0);
    claim_none(box, 2);
}

static void ended_job_is_never_claimed_and_is_removed_when_old(void **state)
{
    struct box *box = *state;
    struct shown a, b;
    struct listed all;
    uint64_t count;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    put(box, "c");
    a = claim(box, 1, LONG, "a");
    assert_int_equal(end(box, &a, DET_JOB_DONE, 0), 0);
    b = claim(box, 1, LONG, "b");
    assert_int_equal(end(box, &b, DET_JOB_FAILED, 0), 0);
    box_reopen(box);
    all = list(box, NULL, 0, 9);
    assert_int_equal(all.rows[0].state, DET_JOB_DONE);
    assert_int_equal(all.rows[1].state, DET_JOB_FAILED);
    assert_true(all.rows[0].ended_at > 0 && all.rows[0].due_at == 0 && !all.rows[0].owner[0]);
    assert_string_equal(all.rows[1].reason, "why");
    assert_int_equal(box->store->ops->jobs->forget(box->store, all.rows[0].ended_at, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(
        box->store->ops->jobs->forget(box->store, all.rows[1].ended_at + 1, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(list(box, NULL, 0, 9).count, 1);
    assert_true(put(box, "a") > all.rows[2].key);
    assert_int_equal(end(box, &b, DET_JOB_DONE, 0), DET_ERR_LOCK_LOST);
}

static void delayed_job_waits_and_lets_others_pass(void **state)
{
    struct box *box = *state;
    struct shown shown;
    det_time at, next;

    NEEDS_JOBS(state);
    at = box_now(box) + 300 * DET_MILLISECOND;
    put_in(box, "q", "late", at);
    assert_int_equal(list(box, NULL, 0, 9).rows[0].state, DET_JOB_DELAYED);
    assert_int_equal(claim_of(box, 9, LONG, &shown, &next), DET_ERR_NOT_FOUND);
    assert_true(next == at);
    put(box, "soon");
    claim(box, 9, LONG, "soon");
    put(box, "next");
    wait_past(box, at);
    claim(box, 9, LONG, "late");
    claim(box, 9, LONG, "next");
}

static void delayed_job_keeps_its_place(void **state)
{
    struct box *box = *state;
    struct shown a;
    struct listed all;
    det_time at;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    a = claim(box, 1, LONG, "a");
    assert_int_equal(end(box, &a, DET_JOB_DELAYED, 0), 0);
    a = claim(box, 1, LONG, "a");
    assert_int_equal(a.attempts, 2);
    assert_string_equal(a.reason, "why");
    at = box_now(box) + 300 * DET_MILLISECOND;
    assert_int_equal(end(box, &a, DET_JOB_DELAYED, at), 0);
    all = list(box, NULL, 0, 9);
    assert_true(all.rows[0].state == DET_JOB_DELAYED && all.rows[0].due_at == at);
    assert_true(!all.rows[0].ended_at);
    claim(box, 1, LONG, "b");
    wait_past(box, at);
    assert_int_equal(claim(box, 2, LONG, "a").attempts, 3);
}

static void lapsed_claim_is_granted_again_and_the_old_one_invalid(void **state)
{
    struct box *box = *state;
    struct shown a, again;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    a = claim(box, 1, SHORT, "a");
    wait_past(box, a.due_at);
    assert_int_equal(det_jobs_renew(box->store, "q", a.key, a.attempts, LONG), DET_ERR_LOCK_LOST);
    again = claim(box, 1, LONG, "a");
    assert_int_equal(again.attempts, 2);
    assert_int_equal(det_jobs_renew(box->store, "q", a.key, a.attempts, LONG), DET_ERR_LOCK_LOST);
    assert_int_equal(end(box, &a, DET_JOB_DONE, 0), DET_ERR_LOCK_LOST);
    assert_int_equal(end(box, &a, DET_JOB_DELAYED, 0), DET_ERR_LOCK_LOST);
    claim_none(box, 1);
    assert_int_equal(det_jobs_renew(box->store, "q", a.key, again.attempts, LONG), 0);
    assert_int_equal(end(box, &again, DET_JOB_DONE, 0), 0);
}

static void only_unended_claims_are_counted_as_lost(void **state)
{
    struct box *box = *state;
    struct shown a;

    NEEDS_JOBS(state);
    put(box, "a");
    a = claim(box, 1, LONG, "a");
    assert_int_equal(end(box, &a, DET_JOB_DELAYED, 0), 0);
    a = claim(box, 1, SHORT, "a");
    assert_int_equal(a.lost, 0);
    wait_past(box, a.due_at);
    a = claim(box, 1, SHORT, "a");
    assert_int_equal(a.lost, 1);
    wait_past(box, a.due_at);
    assert_int_equal(end(box, &a, DET_JOB_DELAYED, 0), 0);
    a = claim(box, 1, LONG, "a");
    assert_true(a.lost == 1 && a.attempts == 4);
    assert_int_equal(end(box, &a, DET_JOB_FAILED, 0), 0);
    assert_int_equal(list(box, NULL, 0, 9).rows[0].lost, 1);
    assert_int_equal(change(box, DET_JOB_RETRY, "a"), 0);
    assert_int_equal(claim(box, 1, LONG, "a").lost, 0);
}

static void end_of_a_lapsed_claim_is_valid_until_it_is_reclaimed(void **state)
{
    struct box *box = *state;
    struct shown a;

    NEEDS_JOBS(state);
    put(box, "a");
    a = claim(box, 1, SHORT, "a");
    wait_past(box, a.due_at);
    assert_int_equal(end(box, &a, DET_JOB_DONE, 0), 0);
    assert_int_equal(end(box, &a, DET_JOB_DONE, 0), 0);
    assert_int_equal(end(box, &a, DET_JOB_DELAYED, 0), 0);
    assert_int_equal(list(box, NULL, 0, 9).rows[0].state, DET_JOB_DONE);
    claim_none(box, 1);
}

static void renewals_keep_a_claim(void **state)
{
    struct box *box = *state;
    struct shown a, shown;
    det_time next;

    NEEDS_JOBS(state);
    put(box, "a");
    a = claim(box, 1, DET_MINUTE, "a");
    assert_int_equal(det_jobs_renew(box->store, "q", a.key, a.attempts, LONG), 0);
    assert_int_equal(
        det_jobs_renew(box->store, "q", a.key, a.attempts + 1, LONG), DET_ERR_LOCK_LOST);
    assert_int_equal(det_jobs_renew(box->store, "q", a.key + 1, 1, LONG), DET_ERR_LOCK_LOST);
    assert_int_equal(claim_of(box, 1, LONG, &shown, &next), DET_ERR_NOT_FOUND);
    assert_true(next > a.due_at);
    if (!box->sim)
        return;
    wait_past(box, a.due_at);
    claim_none(box, 1);
}

static void claim_refused_by_the_visitor_is_undone(void **state)
{
    struct box *box = *state;
    struct det_job_claim wanted = { "q", 1, LONG };
    det_time next;

    NEEDS_JOBS(state);
    put(box, "a");
    assert_int_equal(det_jobs_claim(box->store, &wanted, refuse, NULL, &next), DET_ERR_CANCELLED);
    assert_int_equal(claim(box, 1, LONG, "a").attempts, 1);
}

static void list_is_ordered_by_key_and_continues_after_one(void **state)
{
    struct box *box = *state;
    struct det_job_query query = { .limit = 9 };
    struct listed listed = { .answer = 7 }, some;
    char id[8];

    NEEDS_JOBS(state);
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "j%d", i);
        put_in(box, i % 2 ? "odd" : "even", id, 0);
    }
    some = list(box, NULL, 0, 4);
    assert_int_equal(some.count, 4);
    assert_string_equal(some.rows[3].id, "j3");
    some = list(box, NULL, some.rows[3].key, 9);
    assert_int_equal(some.count, 2);
    some = list(box, "odd", 0, 9);
    assert_int_equal(some.count, 3);
    assert_string_equal(some.rows[2].id, "j5");
    assert_int_equal(box->store->ops->jobs->list(box->store, &query, note, &listed), 7);
    assert_int_equal(listed.count, 1);
}

static void schedule_time_is_fired_by_one_process(void **state)
{
    struct box *box = *state;
    const struct det_job_ops *ops = ops_of(state);
    struct det_job_put job = { "q", "s:100", "work", "x", 1, 0 };
    struct det_job_firing firing = { "s", 0, 100, 0, NULL };
    struct det_job_schedule schedule;

    NEEDS_JOBS(state);
    assert_int_equal(ops->schedule(box->store, "s", &schedule), 0);
    assert_true(schedule.token == 0 && schedule.next_at == 0);
    assert_int_equal(ops->fire(box->store, &firing), 0);
    assert_int_equal(ops->fire(box->store, &firing), DET_ERR_CONFLICT);
    assert_int_equal(list(box, NULL, 0, 9).count, 0);
    firing = (struct det_job_firing){ "s", 1, 200, 100, &job };
    assert_int_equal(ops->fire(box->store, &firing), 0);
    assert_int_equal(ops->fire(box->store, &firing), DET_ERR_CONFLICT);
    box_reopen(box);
    ops = ops_of(state);
    assert_int_equal(ops->schedule(box->store, "s", &schedule), 0);
    assert_true(schedule.token == 2 && schedule.next_at == 200 && schedule.last_at == 100);
    assert_int_equal(list(box, "q", 0, 9).count, 1);
    firing.token = 2;
    firing.next_at = 300;
    assert_int_equal(ops->fire(box->store, &firing), 0);
    assert_int_equal(list(box, "q", 0, 9).count, 1);
    job.id = "not an id";
    firing.token = 3;
    assert_int_equal(ops->fire(box->store, &firing), DET_ERR_INVALID);
    assert_int_equal(ops->schedule(box->store, "s", &schedule), 0);
    assert_true(schedule.token == 3 && schedule.next_at == 300);
}

/* In a store of one process the jobs of an earlier process are free at once; in a shared store the
 * claim of a dead node holds until it lapses. */
static void running_job_of_an_ended_process_runs_again(void **state)
{
    struct box *box = *state;
    struct shown a;

    NEEDS_JOBS(state);
    if (!box->driver->is_kept)
        return;
    put(box, "a");
    put(box, "b");
    a = claim(box, 1, box->driver->is_shared ? 500 * DET_MILLISECOND : LONG, "a");
    box_reopen(box);
    if (box->driver->is_shared) {
        claim_none(box, 1);
        wait_past(box, a.due_at);
    }
    assert_int_equal(claim(box, 1, LONG, "a").attempts, 2);
    claim_none(box, 1);
}

static void two_openings_share_the_places_of_a_queue(void **state)
{
    struct box *box = *state;
    struct det_job_claim wanted = { "q", 1, LONG };
    struct det_store *other;
    struct shown shown, a;
    det_time next;

    NEEDS_JOBS(state);
    if (!box->driver->is_shared)
        return;
    other = box_open_store(box);
    put(box, "a");
    put(box, "b");
    a = claim(box, 1, LONG, "a");
    assert_int_equal(det_jobs_claim(other, &wanted, show, &shown, &next), DET_ERR_NOT_FOUND);
    assert_int_equal(end(box, &a, DET_JOB_DONE, 0), 0);
    assert_int_equal(det_jobs_claim(other, &wanted, show, &shown, &next), 0);
    assert_string_equal(shown.id, "b");
    if (!box->driver->is_stand_in)
        assert_string_not_equal(shown.owner, a.owner);
    claim_none(box, 1);
    box_close_store(box, other);
}

static void an_end_needs_the_token_of_the_claim(void **state)
{
    struct box *box = *state;

    NEEDS_JOBS(state);
    put(box, "a");
    assert_int_equal(
        end(box, &(struct shown){ .key = 1, .attempts = 9 }, DET_JOB_DONE, 0), DET_ERR_LOCK_LOST);
    assert_int_equal(list(box, NULL, 0, 9).rows[0].state, DET_JOB_QUEUED);
}

static void a_store_for_reading_changes_no_jobs(void **state)
{
    struct box *box = *state;
    const struct det_job_ops *ops = ops_of(state);
    struct det_job_put job = { "q", "b", "work", "", 0, 0 };
    struct det_job_claim wanted = { "q", 1, LONG };
    struct det_job_firing firing = { .name = "s" };
    struct det_job_end how = { .key = 1, .token = 1, .state = DET_JOB_DONE };
    struct det_job_change by_hand = { DET_JOB_CANCEL, "q", "a", NULL };
    struct det_job_row row = { .queue = "q", .id = "r", .task = "work", .reason = "" };
    struct det_job_place place;
    struct det_store *reader;
    struct det_error error;
    struct shown shown;
    det_time next;
    uint64_t count;
    bool is_new;

    NEEDS_JOBS(state);
    if (!box->driver->has_readers)
        return;
    put(box, "a");
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .is_read_only = true }, &reader, &error), 0);
    assert_int_equal(det_jobs_put(reader, &job, &place), DET_ERR_READ_ONLY);
    assert_int_equal(det_jobs_claim(reader, &wanted, show, &shown, &next), DET_ERR_READ_ONLY);
    assert_int_equal(det_jobs_renew(reader, "q", 1, 1, LONG), DET_ERR_READ_ONLY);
    assert_int_equal(det_jobs_end(reader, "q", &how), DET_ERR_READ_ONLY);
    assert_int_equal(ops->change(reader, &by_hand), DET_ERR_READ_ONLY);
    assert_int_equal(ops->forget(reader, 1, &count), DET_ERR_READ_ONLY);
    assert_int_equal(ops->fire(reader, &firing), DET_ERR_READ_ONLY);
    assert_int_equal(ops->restore(reader, &row, &is_new), DET_ERR_READ_ONLY);
    box_close_store(box, reader);
}

static const struct CMUnitTest jobs[] = {
    CASE(a_job_is_kept_as_it_was_put),
    CASE(an_id_is_put_once_per_queue),
    CASE(invalid_job_is_refused),
    CASE(jobs_are_claimed_in_the_order_in_which_they_were_put),
    CASE(no_more_of_a_queue_run_than_it_has_places),
    CASE(ended_job_is_never_claimed_and_is_removed_when_old),
    CASE(delayed_job_waits_and_lets_others_pass),
    CASE(delayed_job_keeps_its_place),
    CASE(lapsed_claim_is_granted_again_and_the_old_one_invalid),
    CASE(only_unended_claims_are_counted_as_lost),
    CASE(end_of_a_lapsed_claim_is_valid_until_it_is_reclaimed),
    CASE(renewals_keep_a_claim),
    CASE(claim_refused_by_the_visitor_is_undone),
    CASE(list_is_ordered_by_key_and_continues_after_one),
    CASE(schedule_time_is_fired_by_one_process),
    CASE(running_job_of_an_ended_process_runs_again),
    CASE(two_openings_share_the_places_of_a_queue),
    CASE(an_end_needs_the_token_of_the_claim),
    CASE(a_store_for_reading_changes_no_jobs),
};
const struct group job_cases = GROUP_OF(jobs);
