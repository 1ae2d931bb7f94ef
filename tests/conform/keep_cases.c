/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep_cases.c - the content of a store after it was closed and opened again; permitted openings.
 * Stores that end with the process pass these by staying open. */
#include <detent/tool/store.h>

#include "conform/conform.h"

static void reload(struct box *box, struct subject *subject)
{
    box_reopen(box);
    subject->store = box->store;
    subject_load(subject);
}

static void instance_continues_over_three_sessions(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (uint64_t session = 0; session < 3; session++) {
        assert_int_equal(subject->head.sequence, session * 2);
        subject_move(subject, PARCEL_HOLD, PARCEL_HELD);
        subject_move(subject, PARCEL_RESUME, PARCEL_PACKED);
        reload(box, subject);
        assert_int_equal(subject->head.state, PARCEL_PACKED);
    }
    image = image_read(box, "p");
    assert_int_equal(image->event_count, 6);
    assert_int_equal(image->loaded.history_count, 6);
    free(image);
}

static void reopened_store_keeps_everything(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;
    struct lender lock = { box, box->store, "p", true };
    struct draft draft;
    struct image *before, *after;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED)->choice = 1;
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_DEFERRED, PARCEL_PACKED)->cause = "parcel/p/1/0";
    draft_data(&draft, 31);
    draft_event_id(&draft, "an-id");
    draft_timer(&draft, DET_STORE_SET, DET_STATE_TIMER, 10);
    draft_timer(&draft, DET_STORE_SET, PARCEL_DEADLINE, 20)->value = NULL;
    draft_effect(&draft, DET_STORE_SET, 1, 0);
    draft_effect(&draft, DET_STORE_SET, 1, 1)->is_dead = false;
    draft_deferred(&draft, DET_STORE_SET, 2);
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
    draft_init(&draft, subject);
    draft_stop(&draft, "done");
    draft_effect(&draft, DET_STORE_UPDATE, 1, 1)->is_dead = true;
    assert_int_equal(draft_commit(&draft), 0);
    lender_grant(&lock, "me", DET_HOUR);
    before = image_read(box, "p");
    assert_int_equal(before->effect_count, 2);
    if (box_frees_locks(box))
        before->lock.owner[0] = 0;
    for (int i = 0; i < 3; i++) {
        reload(box, subject);
        after = image_read(box, "p");
        image_assert_equal(after, before);
        free(after);
    }
    assert_int_equal(box->store->ops->answer(box->store, subject->instance, "an-id", &answer), 0);
    assert_int_equal(answer.sequence, 2);
    free(before);
}

static void tokens_and_fences_outlive_the_opening(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct lender lease = { box, box->store, "leader", false };
    struct lender lock = { box, box->store, "p", true };
    struct det_store_lease ret;
    struct draft draft;

    lender_grant(&lease, "me", DET_HOUR);
    lender_grant(&lock, "me", DET_HOUR);
    reload(box, subject);
    lease.store = lock.store = box->store;
    if (box_frees_locks(box)) {
        assert_int_equal(lender_grant(&lease, "you", DET_HOUR), 2);
        assert_int_equal(lender_grant(&lock, "you", DET_HOUR), 2);
        return;
    }
    assert_int_equal(
        lender_ask(&lease, DET_LEASE_ACQUIRE, "you", 0, DET_HOUR, &ret), DET_ERR_LOCKED);
    assert_string_equal(ret.owner, "me");
    assert_int_equal(lender_ask(&lease, DET_LEASE_RENEW, "me", 1, DET_HOUR, &ret), 0);
    assert_int_equal(lender_ask(&lock, DET_LEASE_READ, NULL, 0, 0, &ret), 0);
    assert_string_equal(ret.owner, "me");
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    assert_int_equal(draft_commit(&draft), DET_ERR_LOCKED);
    draft.commit.fence = 1;
    assert_int_equal(draft_commit(&draft), 0);
}

/* Timers of a shared store belong to the opening that has gone; see shared_cases.c. */
static int count_due(void *context, const struct det_store_due *row)
{
    ++*(unsigned *)context;
    assert_int_equal(row->due, 10);
    return 0;
}

static void loading_restores_stored_deadlines(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    unsigned count = 0;
    det_time next = 0;
    struct image *image;

    subject_set_timer(subject, DET_STATE_TIMER, 10);
    reload(box, subject);
    image = image_read(box, "p");
    assert_int_equal(image->timers[0].row.due, 10);
    free(image);
    assert_int_equal(
        box->store->ops->due(
            box->store, box->machine, &(struct det_store_due_query){ .before = 10, .limit = 5 },
            count_due, &count, &next),
        0);
    assert_int_equal(count, box->driver->is_shared ? 0 : 1);
    assert_true(next == DET_NEVER);
}

static void a_store_has_an_identity_for_ever(void **state)
{
    struct box *box = *state;
    char identity[64];

    snprintf(identity, sizeof identity, "%s", det_store_identity(box->store));
    if (!box->driver->is_stand_in)
        assert_int_equal(strlen(identity), 32);
    assert_int_equal(strspn(identity, "0123456789abcdef"), strlen(identity));
    box_reopen(box);
    assert_string_equal(det_store_identity(box->store), identity);
}

static void unexpected_store_identity_is_refused(void **state)
{
    struct box *box = *state;
    struct det_store *store = NULL;
    struct det_error error = { 0 };
    char identity[64];

    if (!box->driver->is_kept || box->driver->is_stand_in)
        return;
    snprintf(identity, sizeof identity, "%s", det_store_identity(box->store));
    box_close_store(box, box->store);
    box->store = NULL;
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .identity = identity }, &store, &error), 0);
    det_store_close(store);
    identity[0] = identity[0] == '0' ? '1' : '0';
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .identity = identity }, &store, &error),
        DET_ERR_FOREIGN);
    assert_true(error.text[0]);
}

static void must_exist_does_not_create_a_store(void **state)
{
    struct box *box = *state;
    struct det_store *store = NULL;
    struct det_error error = { 0 };

    if (!box->driver->is_kept || box->driver->is_stand_in)
        return;
    box_close_store(box, box->store);
    box->store = NULL;
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .must_exist = true }, &store, &error), 0);
    det_store_close(store);
    box->driver->begin(box);
    for (int i = 0; i < 2; i++) {
        error.text[0] = 0;
        assert_true(
            box_open_with(box, (struct det_store_options){ .must_exist = true }, &store, &error) <
            0);
        assert_true(error.text[0]);
    }
}

static void read_only_store_is_not_changed(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p"), *reader;
    struct lender lease = { box, NULL, "leader", false }, lock = { box, NULL, "p", true };
    struct det_store_lease ret;
    struct det_store *store = NULL;
    struct image *before, *after;
    struct draft draft;
    uint64_t gone;

    if (!box->driver->has_readers)
        return;
    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    before = image_read(box, "p");
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .is_read_only = true }, &store, NULL), 0);
    assert_int_equal(store->ops->serve(store, box->machine, NULL), 0);
    reader = subject_find(box, store, "p");
    assert_int_equal(reader->head.sequence, 1);
    draft_init(&draft, reader);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_PACKED);
    assert_int_equal(draft_commit(&draft), DET_ERR_READ_ONLY);
    draft_start(&draft, subject_new(box, "q"));
    draft.subject->store = store;
    assert_int_equal(draft_commit(&draft), DET_ERR_READ_ONLY);
    lease.store = lock.store = store;
    assert_int_equal(
        lender_ask(&lease, DET_LEASE_ACQUIRE, "me", 0, DET_HOUR, &ret), DET_ERR_READ_ONLY);
    assert_int_equal(
        lender_ask(&lock, DET_LEASE_ACQUIRE, "me", 0, DET_HOUR, &ret), DET_ERR_READ_ONLY);
    assert_int_equal(store->ops->prune(store, reader->instance, 1, 0, &gone), DET_ERR_READ_ONLY);
    box_close_store(box, store);
    after = image_read(box, "p");
    image_assert_equal(after, before);
    free(before);
    free(after);
}

static void a_reader_sees_what_is_written_meanwhile(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p"), *reader;
    struct det_store *store = NULL;

    if (!box->driver->has_readers)
        return;
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .is_read_only = true }, &store, NULL), 0);
    assert_int_equal(store->ops->serve(store, box->machine, NULL), 0);
    reader = subject_find(box, store, "p");
    for (uint64_t i = 1; i < 4; i++) {
        subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
        subject_load(reader);
        assert_int_equal(reader->head.sequence, i);
    }
    box_close_store(box, store);
}

static const struct CMUnitTest keeps[] = {
    CASE(instance_continues_over_three_sessions),  CASE(reopened_store_keeps_everything),
    CASE(tokens_and_fences_outlive_the_opening),   CASE(loading_restores_stored_deadlines),
    CASE(a_store_has_an_identity_for_ever),        CASE(unexpected_store_identity_is_refused),
    CASE(must_exist_does_not_create_a_store),      CASE(read_only_store_is_not_changed),
    CASE(a_reader_sees_what_is_written_meanwhile),
};
const struct group keep_cases = GROUP_OF(keeps);
