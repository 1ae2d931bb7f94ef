/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_cases.c - the fence: commits while the lock of the instance is held. */
#include "conform/conform.h"

static struct lender lock_of(struct subject *subject)
{
    return (struct lender){ subject->box, subject->store, subject->id, true };
}

/* One event under a fence. */
static int send_under(struct subject *subject, uint64_t fence)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, subject->head.state);
    draft.commit.fence = fence;
    return draft_commit(&draft);
}

static void unlocked_instance_accepts_any_writer(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");

    assert_int_equal(send_under(subject, 0), 0);
    assert_int_equal(send_under(subject, 1), DET_ERR_LOCK_LOST);
    assert_int_equal(subject->head.sequence, 1);
}

static void only_the_holder_writes_while_it_is_held(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    uint64_t fence = lender_grant(&lock, "a", DET_HOUR);

    assert_int_equal(send_under(subject, 0), DET_ERR_LOCKED);
    assert_int_equal(send_under(subject, fence + 1), DET_ERR_LOCK_LOST);
    assert_int_equal(send_under(subject, fence), 0);
    assert_int_equal(send_under(subject, 0), DET_ERR_LOCKED);
    assert_int_equal(send_under(subject, fence), 0);
    assert_int_equal(subject->head.sequence, 2);
}

static void a_commit_without_events_needs_the_lock_too(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    uint64_t fence = lender_grant(&lock, "a", DET_HOUR);
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_timer(&draft, DET_STORE_SET, PARCEL_REMINDER, 5);
    assert_int_equal(draft_commit(&draft), DET_ERR_LOCKED);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 0);
    free(image);
    draft.commit.fence = fence;
    assert_int_equal(draft_commit(&draft), 0);
}

static void released_lock_admits_any_writer(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    uint64_t fence = lender_grant(&lock, "a", DET_HOUR);
    struct det_store_lease lease;

    assert_int_equal(send_under(subject, 0), DET_ERR_LOCKED);
    assert_int_equal(lender_ask(&lock, DET_LEASE_RELEASE, "a", fence, 0, &lease), 0);
    assert_int_equal(send_under(subject, 0), 0);
}

struct held {
    size_t count;
    char ids[8][8];
};

static int add_held(void *context, const struct det_store_listed *row)
{
    struct held *held = context;

    assert_true(held->count < 8);
    snprintf(held->ids[held->count++], sizeof held->ids[0], "%s", row->id);
    return 0;
}

static void held_locks_are_listed(void **state)
{
    struct box *box = *state;
    const struct det_store_ops *ops = box->store->ops;
    struct det_store_query query = { .is_locked = true };
    struct held held = { 0 };
    struct det_store_lease lease;
    uint64_t fence = 0;
    char id[8];

    for (int i = 0; i < 4; i++) {
        struct lender lock;

        snprintf(id, sizeof id, "p%d", i);
        lock = lock_of(subject_start(box, id));
        if (i != 2)
            fence = lender_grant(&lock, "a", DET_HOUR);
        if (i == 3)
            assert_int_equal(lender_ask(&lock, DET_LEASE_RELEASE, "a", fence, 0, &lease), 0);
    }
    assert_int_equal(ops->list(box->store, box->machine, &query, add_held, &held), 0);
    /* A driver that cannot tell lists others too. */
    if (strcmp(box->driver->scheme, "shared") != 0)
        assert_int_equal(held.count, 2);
    assert_string_equal(held.ids[0], "p0");
    assert_string_equal(held.ids[1], "p1");
    held.count = 0;
    query.after = "p0";
    assert_int_equal(ops->list(box->store, box->machine, &query, add_held, &held), 0);
    assert_true(held.count > 0);
    assert_string_equal(held.ids[0], "p1");
}

static void lapsed_lock_admits_any_writer(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);

    lender_grant(&lock, "a", DET_MILLISECOND);
    lender_lapse(&lock);
    assert_int_equal(send_under(subject, 0), 0);
}

/* Others may have written without a lock meanwhile, which the holder must notice. */
static void holder_of_a_lapsed_lock_cannot_write(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    uint64_t fence = lender_grant(&lock, "a", DET_MILLISECOND);
    struct det_store_lease lease;

    lender_lapse(&lock);
    assert_int_equal(send_under(subject, fence), DET_ERR_LOCK_LOST);
    assert_int_equal(send_under(subject, 0), 0);
    assert_int_equal(send_under(subject, fence), DET_ERR_LOCK_LOST);
    fence = lender_grant(&lock, "a", DET_HOUR);
    assert_int_equal(lender_ask(&lock, DET_LEASE_RELEASE, "a", fence, 0, &lease), 0);
    assert_int_equal(send_under(subject, fence), DET_ERR_LOCK_LOST);
    assert_int_equal(subject->head.sequence, 1);
}

static void a_write_with_an_old_fence_is_refused_in_every_state_of_the_lock(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    uint64_t old = lender_grant(&lock, "a", DET_MILLISECOND), new;
    struct det_store_lease lease;

    lender_lapse(&lock);
    new = lender_grant(&lock, "b", DET_HOUR);
    assert_int_equal(new, old + 1);
    assert_int_equal(send_under(subject, old), DET_ERR_LOCK_LOST);
    assert_int_equal(send_under(subject, new), 0);
    assert_int_equal(send_under(subject, old), DET_ERR_LOCK_LOST);
    assert_int_equal(lender_ask(&lock, DET_LEASE_RELEASE, "b", new, 0, &lease), 0);
    assert_int_equal(send_under(subject, old), DET_ERR_LOCK_LOST);
    lender_grant(&lock, "c", DET_MILLISECOND);
    lender_lapse(&lock);
    assert_int_equal(send_under(subject, old), DET_ERR_LOCK_LOST);
    assert_int_equal(send_under(subject, new), DET_ERR_LOCK_LOST);
    box_reopen(box);
    subject->store = box->store;
    subject_load(subject);
    assert_int_equal(send_under(subject, old), DET_ERR_LOCK_LOST);
    assert_int_equal(send_under(subject, 0), 0);
}

static void an_instance_that_is_not_there_has_no_lock(void **state)
{
    struct box *box = *state;
    struct lender lock = { box, box->store, "q", true };
    struct det_store_lease lease;

    subject_start(box, "p");
    for (int verb = DET_LEASE_ACQUIRE; verb <= DET_LEASE_READ; verb++)
        assert_int_equal(
            lender_ask(&lock, (enum det_store_lease_verb)verb, "a", 1, DET_HOUR, &lease),
            DET_ERR_NOT_FOUND);
}

static void every_instance_has_its_own_lock(void **state)
{
    struct box *box = *state;
    struct subject *one = subject_start(box, "one"), *two = subject_start(box, "two");
    struct lender lock = lock_of(one), named = { box, box->store, "two", false };

    lender_grant(&lock, "a", DET_HOUR);
    lender_grant(&named, "a", DET_HOUR);
    assert_int_equal(send_under(two, 0), 0);
    assert_int_equal(send_under(one, 0), DET_ERR_LOCKED);
    lock = lock_of(two);
    assert_int_equal(lender_grant(&lock, "b", DET_HOUR), 1);
    assert_int_equal(send_under(two, 1), 0);
}

static void a_granted_lock_reports_the_sequence_of_its_instance(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    struct det_store_lease lease;
    uint64_t fence;

    assert_int_equal(send_under(subject, 0), 0);
    assert_int_equal(send_under(subject, 0), 0);
    assert_int_equal(lender_ask(&lock, DET_LEASE_ACQUIRE, "a", 0, DET_HOUR, &lease), 0);
    assert_int_equal(lease.sequence, 2);
    fence = lease.token;
    assert_int_equal(send_under(subject, fence), 0);
    assert_int_equal(lender_ask(&lock, DET_LEASE_ACQUIRE, "b", 0, 1, &lease), DET_ERR_LOCKED);
    assert_int_equal(lease.sequence, 3);
    assert_int_equal(lender_ask(&lock, DET_LEASE_RENEW, "a", fence, DET_HOUR, &lease), 0);
    assert_int_equal(lease.sequence, 3);
    assert_int_equal(lender_ask(&lock, DET_LEASE_READ, NULL, 0, 0, &lease), 0);
    assert_int_equal(lease.sequence, 3);
}

static void locking_and_writing_do_not_disturb_each_other(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lock = lock_of(subject);
    struct image *before, *after;
    uint64_t fence;

    subject_set_timer(subject, PARCEL_REMINDER, 5);
    subject_set_effect(subject, 0, 5);
    before = image_read(box, "p");
    fence = lender_grant(&lock, "a", DET_HOUR);
    after = image_read(box, "p");
    before->lock = after->lock;
    image_assert_equal(after, before);
    assert_int_equal(send_under(subject, fence), 0);
    free(after);
    after = image_read(box, "p");
    assert_string_equal(after->lock.owner, "a");
    assert_int_equal(after->lock.token, fence);
    assert_true(after->lock.expires_at == before->lock.expires_at);
    free(before);
    free(after);
}

static const struct CMUnitTest locks[] = {
    CASE(unlocked_instance_accepts_any_writer),
    CASE(only_the_holder_writes_while_it_is_held),
    CASE(a_commit_without_events_needs_the_lock_too),
    CASE(released_lock_admits_any_writer),
    CASE(held_locks_are_listed),
    CASE(lapsed_lock_admits_any_writer),
    CASE(holder_of_a_lapsed_lock_cannot_write),
    CASE(a_write_with_an_old_fence_is_refused_in_every_state_of_the_lock),
    CASE(an_instance_that_is_not_there_has_no_lock),
    CASE(every_instance_has_its_own_lock),
    CASE(a_granted_lock_reports_the_sequence_of_its_instance),
    CASE(locking_and_writing_do_not_disturb_each_other),
};
const struct group lock_cases = GROUP_OF(locks);
