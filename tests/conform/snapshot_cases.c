/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* snapshot_cases.c - snapshots, and the events before them, which may be deleted. */
#include "conform/conform.h"

static uint64_t prune(struct subject *subject, uint64_t sequence)
{
    uint64_t gone = 99;

    assert_int_equal(
        subject->store->ops->prune(subject->store, subject->instance, sequence, 0, &gone), 0);
    return gone;
}

static void snapshot(struct subject *subject)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
}

/* Five events, with data that change. */
static struct subject *five(struct box *box)
{
    struct subject *subject = subject_start(box, "p");
    struct draft draft;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_move(subject, PARCEL_COUNT, PARCEL_PACKED);
    subject_move(subject, PARCEL_HOLD, PARCEL_HELD);
    subject_move(subject, PARCEL_COUNT, PARCEL_HELD);
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_RESUME, DET_OUTCOME_GOTO, PARCEL_SHIPPED);
    draft_data(&draft, 55);
    assert_int_equal(draft_commit(&draft), 0);
    return subject;
}

/* Asserts that the snapshot equals the instance in this image. */
static void assert_snapshot_of(const struct image *image, const struct image *then)
{
    const struct det_store_loaded *a = &image->snapshot.loaded, *b = &then->loaded;

    assert_true(image->has_snapshot);
    assert_int_equal(a->head.sequence, b->head.sequence);
    assert_int_equal(a->head.visit, b->head.visit);
    assert_int_equal(a->head.transition_count, b->head.transition_count);
    assert_int_equal(a->head.state, b->head.state);
    assert_true(a->head.started_at == b->head.started_at);
    assert_true(a->head.last_transition_at == b->head.last_transition_at);
    assert_true(a->head.is_stopped == b->head.is_stopped);
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->history_count, b->history_count);
    assert_memory_equal(a->history, b->history, a->history_count * sizeof a->history[0]);
    assert_true(parcel_data_equal(&image->snapshot_data, &then->data));
}

static void no_snapshot_exists_until_one_is_taken(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct parcel_data data;
    struct det_store_snapshot ret = { .loaded = { .data = &data } };

    assert_int_equal(
        box->store->ops->snapshot(box->store, subject->instance, &ret), DET_ERR_NOT_FOUND);
    snapshot(subject);
    assert_int_equal(box->store->ops->snapshot(box->store, subject->instance, &ret), 0);
}

static void snapshot_equals_the_head_when_taken(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    det_time before = box_now(box);
    struct image *then, *now;

    snapshot(subject);
    then = image_read(box, "p");
    assert_snapshot_of(then, then);
    assert_true(then->snapshot.taken_at >= before - DET_SECOND);
    assert_true(then->snapshot.taken_at <= box_now(box) + DET_SECOND);
    subject_move(subject, PARCEL_ARRIVE, PARCEL_DELIVERED);
    now = image_read(box, "p");
    assert_int_equal(now->loaded.head.sequence, 6);
    assert_int_equal(now->event_count, 6);
    assert_snapshot_of(now, then);
    free(then);
    free(now);
}

static void a_snapshot_is_taken_in_the_commit_of_an_event(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_ARRIVE, DET_OUTCOME_GOTO, PARCEL_DELIVERED);
    draft_stop(&draft, "delivered");
    draft_data(&draft, 66);
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.sequence, 7);
    assert_snapshot_of(image, image);
    assert_string_equal(image->snapshot.loaded.reason, "delivered");
    free(image);
}

static void an_instance_may_be_snapshot_at_its_start(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    snapshot(subject);
    image = image_read(box, "p");
    assert_snapshot_of(image, image);
    free(image);
}

static void a_second_snapshot_replaces_the_first(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct image *image;

    snapshot(subject);
    subject_move(subject, PARCEL_COUNT, PARCEL_SHIPPED);
    snapshot(subject);
    snapshot(subject);
    image = image_read(box, "p");
    assert_int_equal(image->snapshot.loaded.head.sequence, 6);
    assert_snapshot_of(image, image);
    free(image);
}

/* A writer that expects sequence 5 may be refused, or the snapshot has the real head; but it never
 * mixes both, and is never older than the last one. */
static void a_snapshot_is_atomic_and_replaces_only_older_ones(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box), old = *subject;
    struct draft draft;
    struct image *image;
    int r;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_ARRIVE, DET_OUTCOME_GOTO, PARCEL_DELIVERED);
    draft_data(&draft, 66);
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
    draft_init(&draft, &old);
    draft_snapshot(&draft);
    r = draft_commit(&draft);
    assert_true(r == 0 || r == DET_ERR_CONFLICT);
    image = image_read(box, "p");
    assert_int_equal(image->snapshot.loaded.head.sequence, 6);
    assert_snapshot_of(image, image);
    free(image);
}

static void a_stale_commit_stores_no_outdated_snapshot(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box), old = *subject;
    struct draft draft;
    struct image *image;
    int r;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_ARRIVE, DET_OUTCOME_GOTO, PARCEL_DELIVERED);
    draft_data(&draft, 66);
    assert_int_equal(draft_commit(&draft), 0);
    draft_init(&draft, &old);
    draft_snapshot(&draft);
    r = draft_commit(&draft);
    image = image_read(box, "p");
    assert_true(r == DET_ERR_CONFLICT || image->snapshot.loaded.head.sequence == 6);
    assert_true(r == DET_ERR_CONFLICT || image->snapshot.loaded.head.state == PARCEL_DELIVERED);
    assert_true(r == 0 || !image->has_snapshot);
    free(image);
}

static void damaged_snapshot_is_reported_and_ignored(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct parcel_data data;
    struct det_store_snapshot ret = { .loaded = { .data = &data } };

    if (!box->driver->execute)
        return;
    snapshot(subject);
    box_damage(box, "UPDATE @snapshots SET visit = visit + 1");
    box->store = subject->store = box_open_store(box);
    subject_load(subject);
    assert_int_equal(subject->head.sequence, 5);
    assert_int_equal(
        box->store->ops->snapshot(box->store, subject->instance, &ret), DET_ERR_CORRUPT);
    subject_move(subject, PARCEL_COUNT, PARCEL_SHIPPED);
    snapshot(subject);
    assert_int_equal(box->store->ops->snapshot(box->store, subject->instance, &ret), 0);
    assert_int_equal(ret.loaded.head.sequence, 6);
}

static void without_a_snapshot_nothing_is_deleted(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct image *before = image_read(box, "p"), *after;

    assert_int_equal(prune(subject, 5), 0);
    assert_int_equal(prune(subject, UINT64_MAX >> 1), 0);
    after = image_read(box, "p");
    image_assert_equal(after, before);
    free(before);
    free(after);
}

static void prune_deletes_events_up_to_the_sequence(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct image *before, *after;

    snapshot(subject);
    before = image_read(box, "p");
    assert_int_equal(prune(subject, 2), 2);
    assert_int_equal(prune(subject, 2), 0);
    assert_int_equal(prune(subject, 0), 0);
    after = image_read(box, "p");
    assert_int_equal(after->event_count, 3);
    assert_int_equal(after->events[0].row.sequence, 3);
    memmove(&before->events[0], &before->events[2], 3 * sizeof before->events[0]);
    before->event_count = 3;
    image_assert_equal(after, before);
    free(before);
    free(after);
}

static void events_after_the_snapshot_are_not_deleted(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct image *image;

    snapshot(subject);
    subject_move(subject, PARCEL_COUNT, PARCEL_SHIPPED);
    subject_move(subject, PARCEL_COUNT, PARCEL_SHIPPED);
    assert_int_equal(prune(subject, 7), 5);
    image = image_read(box, "p");
    assert_int_equal(image->event_count, 2);
    assert_int_equal(image->events[0].row.sequence, 6);
    free(image);
}

static void the_sequence_continues_after_all_events_are_pruned(void **state)
{
    struct box *box = *state;
    struct subject *subject = five(box);
    struct image *image;

    snapshot(subject);
    assert_int_equal(prune(subject, 5), 5);
    for (int i = 0; i < 2; i++) {
        image = image_read(box, "p");
        assert_int_equal(image->loaded.head.sequence, 5);
        assert_int_equal(image->event_count, 0);
        assert_int_equal(image->loaded.history_count, 3);
        assert_int_equal(image->loaded.history[0], PARCEL_HELD);
        free(image);
        box_reopen(box);
        subject->store = box->store;
        subject_load(subject);
    }
    subject_move(subject, PARCEL_ARRIVE, PARCEL_DELIVERED);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.sequence, 6);
    assert_int_equal(image->event_count, 1);
    assert_int_equal(image->events[0].row.sequence, 6);
    assert_int_equal(image->loaded.history_count, 4);
    assert_int_equal(image->loaded.history[0], PARCEL_SHIPPED);
    assert_int_equal(image->loaded.history[1], PARCEL_HELD);
    free(image);
}

static void pending_rows_outlive_their_pruned_events(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    subject_set_effect(subject, 0, 5);
    subject_defer(subject);
    subject_set_timer(subject, PARCEL_REMINDER, 5);
    snapshot(subject);
    assert_int_equal(prune(subject, 2), 2);
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, 1);
    assert_int_equal(image->deferred_count, 1);
    assert_int_equal(image->timer_count, 1);
    free(image);
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_effect(&draft, DET_STORE_TAKE, 1, 0);
    draft_deferred(&draft, DET_STORE_TAKE, 2);
    draft_timer(&draft, DET_STORE_TAKE, PARCEL_REMINDER, 5);
    assert_int_equal(draft_commit(&draft), 0);
}

static const struct CMUnitTest snapshots[] = {
    CASE(no_snapshot_exists_until_one_is_taken),
    CASE(snapshot_equals_the_head_when_taken),
    CASE(a_snapshot_is_taken_in_the_commit_of_an_event),
    CASE(an_instance_may_be_snapshot_at_its_start),
    CASE(a_second_snapshot_replaces_the_first),
    CASE(a_snapshot_is_atomic_and_replaces_only_older_ones),
    CASE(a_stale_commit_stores_no_outdated_snapshot),
    CASE(damaged_snapshot_is_reported_and_ignored),
    CASE(without_a_snapshot_nothing_is_deleted),
    CASE(prune_deletes_events_up_to_the_sequence),
    CASE(events_after_the_snapshot_are_not_deleted),
    CASE(the_sequence_continues_after_all_events_are_pruned),
    CASE(pending_rows_outlive_their_pruned_events),
};
const struct group snapshot_cases = GROUP_OF(snapshots);
