/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job_batch_cases.c - jobs that are put, claimed, renewed and ended in batches. */
#include "conform/jobs.h"

#define MANY 12

static const char *number(size_t i)
{
    static char id[24];

    snprintf(id, sizeof id, "j%zu", i);
    return id;
}

static void put_many(struct box *box, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(box, number(i));
}

static struct det_job_batch claims(struct listed *listed, uint32_t capacity, uint32_t wanted)
{
    return (struct det_job_batch){ .queue = "q",
                                   .span = LONG,
                                   .capacity = capacity,
                                   .wanted = wanted,
                                   .visit = note,
                                   .context = listed };
}

static int apply(struct box *box, struct det_job_batch *batch)
{
    return box->store->ops->jobs->apply(box->store, batch);
}

static void a_batch_claims_as_many_as_it_wants_in_their_order(void **state)
{
    struct box *box = *state;
    struct listed listed = { 0 };
    struct det_job_batch batch = claims(&listed, 100, 5);

    NEEDS_JOBS(state);
    put_many(box, MANY);
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 5);
    assert_true(batch.next >= listed.rows[0].due_at);
    batch.wanted = 100;
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, MANY - 5);
    for (size_t i = 0; i < MANY; i++) {
        assert_string_equal(listed.rows[i].id, number(i));
        assert_int_equal(listed.rows[i].attempts, 1);
        assert_int_equal(listed.rows[i].state, DET_JOB_RUNNING);
    }
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 0);
}

static void a_batch_claims_no_more_than_the_queue_has_places(void **state)
{
    struct box *box = *state;
    struct listed listed = { 0 };
    struct det_job_batch batch = claims(&listed, 3, 100);
    struct shown first;

    NEEDS_JOBS(state);
    put_many(box, MANY);
    first = claim(box, 3, LONG, "j0");
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 2);
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 0);
    assert_int_equal(end(box, &first, DET_JOB_DONE, 0), 0);
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 1);
}

/* A batch may claim into the places of the jobs that it ends. */
static void ends_renewals_and_claims_are_one_transaction(void **state)
{
    struct box *box = *state;
    struct listed listed = { 0 }, again = { 0 };
    struct det_job_batch batch = claims(&listed, 3, 3);
    struct det_job_end ends[4];
    struct det_job_renewal renewals[2];

    NEEDS_JOBS(state);
    put_many(box, MANY);
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 3);
    for (size_t i = 0; i < 2; i++)
        ends[i] = (struct det_job_end){ .key = listed.rows[i].key,
                                        .token = 1,
                                        .state = i ? DET_JOB_FAILED : DET_JOB_DONE,
                                        .reason = i ? "why" : NULL };
    ends[2] = (struct det_job_end){ .key = listed.rows[0].key, .token = 2, .state = DET_JOB_DONE };
    ends[3] = (struct det_job_end){ .key = 1u << 30, .token = 1, .state = DET_JOB_DONE };
    renewals[0] = (struct det_job_renewal){ .key = listed.rows[2].key, .token = 1 };
    renewals[1] = (struct det_job_renewal){ .key = listed.rows[1].key, .token = 1 };
    batch = claims(&again, 3, 3);
    batch.ends = ends;
    batch.end_count = 4;
    batch.renewals = renewals;
    batch.renewal_count = 2;
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(ends[0].result, 0);
    assert_int_equal(ends[1].result, 0);
    assert_int_equal(ends[2].result, DET_ERR_LOCK_LOST);
    assert_int_equal(ends[3].result, DET_ERR_LOCK_LOST);
    assert_int_equal(renewals[0].result, 0);
    assert_int_equal(renewals[1].result, DET_ERR_LOCK_LOST);
    assert_int_equal(batch.claimed, 2);
    assert_string_equal(again.rows[0].id, "j3");
    assert_string_equal(again.rows[1].id, "j4");
    assert_int_equal(find(box, "j0", DET_JOB_DONE).count, 1);
    assert_string_equal(find(box, "j1", DET_JOB_FAILED).rows[0].reason, "why");
}

/* This batch may skip due jobs; the next batch without the flag finds them. */
static void a_batch_that_leaves_what_is_due_claims_what_is_queued(void **state)
{
    struct box *box = *state;
    struct listed listed = { 0 };
    struct det_job_batch batch = claims(&listed, 100, 1);
    struct shown lapsed;

    NEEDS_JOBS(state);
    put_many(box, 3);
    lapsed = claim(box, 100, SHORT, "j0");
    wait_past(box, lapsed.due_at);
    batch.leaves_due = true;
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 1);
    batch.ends = &(struct det_job_end){ .key = listed.rows[0].key,
                                        .token = listed.rows[0].attempts,
                                        .state = DET_JOB_DONE };
    batch.end_count = 1;
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.ends[0].result, 0);
    assert_int_equal(batch.claimed, 1);
    batch.end_count = 0;
    batch.leaves_due = false;
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(listed.count, 3);
    batch.leaves_due = true;
    assert_int_equal(apply(box, &batch), 0);
    assert_int_equal(batch.claimed, 0);
}

struct refusing {
    unsigned left;
    struct listed listed;
};

static int refuse_later(void *context, const struct det_job_row *job)
{
    struct refusing *refusing = context;

    if (refusing->left-- == 0)
        return 7;
    return note(&refusing->listed, job);
}

static void claims_refused_by_the_visitor_are_queued_again(void **state)
{
    struct box *box = *state;
    struct refusing refusing = { .left = 2 };
    struct det_job_batch batch = claims(NULL, 100, 6);

    NEEDS_JOBS(state);
    put_many(box, MANY);
    batch.visit = refuse_later;
    batch.context = &refusing;
    assert_int_equal(apply(box, &batch), 7);
    assert_int_equal(batch.claimed, 2);
    assert_int_equal(find(box, NULL, DET_JOB_RUNNING).count, 2);
    assert_int_equal(claim(box, 100, LONG, "j2").attempts, 1);
    assert_int_equal(claim(box, 100, LONG, "j3").attempts, 1);
}

static void unstarted_job_costs_no_attempt_and_keeps_its_place(void **state)
{
    struct box *box = *state;
    struct det_job_end unbegun;
    struct shown a;

    NEEDS_JOBS(state);
    put(box, "a");
    put(box, "b");
    a = claim(box, 2, LONG, "a");
    unbegun = (struct det_job_end){
        .key = a.key, .token = a.attempts, .state = DET_JOB_DELAYED, .is_unbegun = true
    };
    assert_int_equal(det_jobs_end(box->store, "q", &unbegun), 0);
    assert_int_equal(find(box, "a", DET_JOB_QUEUED).rows[0].attempts, 0);
    assert_int_equal(find(box, "a", DET_JOB_QUEUED).rows[0].lost, 0);
    a = claim(box, 2, LONG, "a");
    assert_int_equal(a.attempts, 1);
    unbegun.state = DET_JOB_DONE;
    assert_int_equal(det_jobs_end(box->store, "q", &unbegun), DET_ERR_INVALID);
}

static void an_id_with_another_task_or_body_is_a_conflict_that_names_the_first_use(void **state)
{
    struct box *box = *state;
    struct det_job_put others[] = { { "q", "a", "other", "body", 4, 0 },
                                    { "q", "a", "work", "bod", 3, 0 },
                                    { "q", "a", "work", "bode", 4, 0 },
                                    { "q", "a", "work", NULL, 0, 0 } };
    struct det_job_place place;
    uint64_t key;

    NEEDS_JOBS(state);
    key = put(box, "a");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(det_jobs_put(box->store, &others[i], &place), DET_ERR_CONFLICT);
        assert_false(place.is_new);
        assert_int_equal(place.key, key);
        assert_true(place.submitted_at == list(box, "q", 0, 9).rows[0].submitted_at);
    }
    assert_int_equal(list(box, "q", 0, 9).count, 1);
}

/* An invalid job, an existing one, a duplicate, and valid ones. */
static void batch_put_has_a_result_for_each_job(void **state)
{
    struct box *box = *state;
    struct det_job_put jobs[] = {
        { "q", "x", "work", "body", 4, 0 }, { "q", "not an id", "work", "body", 4, 0 },
        { "q", "a", "work", "body", 4, 0 }, { "q", "a", "work", "other", 5, 0 },
        { "q", "y", "work", "body", 4, 0 }, { "q", "x", "work", "body", 4, 0 },
        { "q", "y", "other", "body", 4, 0 }
    };
    struct det_job_place places[7];
    uint64_t key;

    NEEDS_JOBS(state);
    key = put(box, "a");
    assert_int_equal(box->store->ops->jobs->put(box->store, jobs, 7, places), 0);
    assert_int_equal(places[0].result, 0);
    assert_true(places[0].is_new && places[0].key > key);
    assert_int_equal(places[1].result, DET_ERR_INVALID);
    assert_int_equal(places[2].result, 0);
    assert_true(!places[2].is_new && places[2].key == key);
    assert_int_equal(places[3].result, DET_ERR_CONFLICT);
    assert_true(places[4].is_new && places[4].key > places[0].key);
    assert_int_equal(places[5].result, 0);
    assert_true(!places[5].is_new && places[5].key == places[0].key);
    assert_int_equal(places[6].result, DET_ERR_CONFLICT);
    assert_int_equal(list(box, "q", 0, 9).count, 3);
    assert_int_equal(box->store->ops->jobs->put(box->store, &jobs[1], 1, places), 0);
    assert_int_equal(places[0].result, DET_ERR_INVALID);
}

static const struct CMUnitTest job_batches[] = {
    CASE(a_batch_claims_as_many_as_it_wants_in_their_order),
    CASE(a_batch_claims_no_more_than_the_queue_has_places),
    CASE(ends_renewals_and_claims_are_one_transaction),
    CASE(a_batch_that_leaves_what_is_due_claims_what_is_queued),
    CASE(claims_refused_by_the_visitor_are_queued_again),
    CASE(unstarted_job_costs_no_attempt_and_keeps_its_place),
    CASE(an_id_with_another_task_or_body_is_a_conflict_that_names_the_first_use),
    CASE(batch_put_has_a_result_for_each_job),
};
const struct group job_batch_cases = GROUP_OF(job_batches);
