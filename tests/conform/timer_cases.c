/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timer_cases.c - timers in a commit: set, cleared, and taken when they fire. */
#include "conform/conform.h"

static int take_timer(struct subject *subject, uint16_t timer, det_time due, uint64_t visit)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_LATE, DET_OUTCOME_STAY, subject->head.state)->is_timeout = true;
    draft_timer(&draft, DET_STORE_TAKE, timer, due)->visit = visit;
    return draft_commit(&draft);
}

static int clear_timer(struct subject *subject, uint16_t timer)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft.timers[0] = (struct det_store_timer_change){ DET_STORE_CLEAR, { .timer = timer } };
    draft.commit.timer_count = 1;
    return draft_commit(&draft);
}

static void a_timer_is_given_back_as_it_was_set(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED);
    draft_timer(&draft, DET_STORE_SET, DET_STATE_TIMER, 7);
    draft_timer(&draft, DET_STORE_SET, PARCEL_REMINDER, 8)->value = NULL;
    draft_timer(&draft, DET_STORE_SET, PARCEL_DEADLINE, 1234567890123456789)->visit = 1;
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 3);
    assert_int_equal(image->timers[0].row.timer, PARCEL_REMINDER);
    assert_int_equal(image->timers[0].row.due, 8);
    assert_int_equal(value_number(&image->timers[0].value), 0);
    assert_int_equal(image->timers[1].row.timer, PARCEL_DEADLINE);
    assert_true(image->timers[1].row.due == 1234567890123456789);
    assert_int_equal(image->timers[1].row.visit, 1);
    assert_int_equal(image->timers[2].row.timer, DET_STATE_TIMER);
    assert_int_equal(image->timers[2].row.event, PARCEL_LATE);
    assert_int_equal(image->timers[2].row.visit, 2);
    assert_true(parcel_value_equal(PARCEL_LATE, &image->timers[2].value, &draft.timer_values[0]));
    for (size_t i = 0; i < 3; i++)
        assert_false(image->timers[i].row.is_foreign);
    free(image);
}

static void setting_a_timer_again_replaces_it(void **state)
{
    struct box *box = *state;
    struct subject *one = subject_start(box, "one"), *two = subject_start(box, "two");
    struct image *image;

    subject_set_timer(one, PARCEL_REMINDER, 10);
    subject_set_timer(two, PARCEL_REMINDER, 20);
    subject_set_timer(one, PARCEL_REMINDER, 30);
    subject_set_timer(one, DET_STATE_TIMER, 40);
    image = image_read(box, "one");
    assert_int_equal(image->timer_count, 2);
    assert_int_equal(image->timers[0].row.due, 30);
    assert_int_equal(image->timers[1].row.due, 40);
    free(image);
    image = image_read(box, "two");
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->timers[0].row.due, 20);
    free(image);
}

static void clearing_a_timer_removes_it_and_may_be_repeated(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    assert_int_equal(clear_timer(subject, PARCEL_REMINDER), 0);
    assert_int_equal(clear_timer(subject, DET_STATE_TIMER), 0);
    subject_set_timer(subject, PARCEL_REMINDER, 10);
    subject_set_timer(subject, DET_STATE_TIMER, 20);
    assert_int_equal(clear_timer(subject, PARCEL_REMINDER), 0);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->timers[0].row.timer, DET_STATE_TIMER);
    free(image);
    assert_int_equal(clear_timer(subject, DET_STATE_TIMER), 0);
    assert_int_equal(clear_timer(subject, DET_STATE_TIMER), 0);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 0);
    free(image);
}

static void a_timer_fires_only_with_its_stored_deadline_and_visit(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    assert_int_equal(take_timer(subject, DET_STATE_TIMER, 10, 1), DET_ERR_NOT_FOUND);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 10, 1), DET_ERR_NOT_FOUND);
    subject_set_timer(subject, PARCEL_REMINDER, 10);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 9, 1), DET_ERR_NOT_FOUND);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 10, 2), DET_ERR_NOT_FOUND);
    assert_int_equal(take_timer(subject, PARCEL_DEADLINE, 10, 1), DET_ERR_NOT_FOUND);
    assert_int_equal(take_timer(subject, DET_STATE_TIMER, 10, 1), DET_ERR_NOT_FOUND);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->event_count, 0);
    free(image);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 10, 1), 0);
}

static void a_timer_is_deleted_by_the_commit_that_fires_it(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    subject_set_timer(subject, DET_STATE_TIMER, 10);
    assert_int_equal(take_timer(subject, DET_STATE_TIMER, 10, 1), 0);
    assert_int_equal(take_timer(subject, DET_STATE_TIMER, 10, 1), DET_ERR_NOT_FOUND);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 0);
    assert_int_equal(image->event_count, 1);
    assert_true(image->events[0].row.is_timeout);
    free(image);
}

static void timer_taken_too_early_is_kept(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    det_time due = box_now(box) + DET_HOUR;
    struct image *before, *after;

    subject_set_timer(subject, PARCEL_REMINDER, due);
    before = image_read(box, "p");
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, due, 1), DET_ERR_EARLY);
    after = image_read(box, "p");
    image_assert_equal(after, before);
    free(before);
    free(after);
}

static void a_timer_is_taken_when_its_time_has_come(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    det_time due = box_now(box) + 2 * DET_MILLISECOND, limit = due + 30 * DET_SECOND;
    int r;

    subject_set_timer(subject, DET_STATE_TIMER, due);
    box_wait(box, due - 1);
    /* The estimate of a shared store's clock may be a little fast. */
    do
        r = take_timer(subject, DET_STATE_TIMER, due, 1);
    while (r == DET_ERR_EARLY && !box->sim && box_now(box) < limit);
    assert_int_equal(r, 0);
}

static void a_stay_keeps_the_timers(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    subject_set_timer(subject, DET_STATE_TIMER, 10);
    subject_set_timer(subject, PARCEL_DEADLINE, 20);
    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 2);
    assert_int_equal(image->timers[1].row.visit, 1);
    free(image);
    assert_int_equal(take_timer(subject, DET_STATE_TIMER, 10, 1), 0);
}

/* Changes an existing timer, due at 1, twice in one commit; returns its due time. */
static det_time change_twice(
    struct box *box, enum det_store_change_kind first, enum det_store_change_kind second)
{
    static int number;
    struct subject *subject;
    struct draft draft;
    struct image *image;
    det_time due;
    char id[8];

    snprintf(id, sizeof id, "p%d", number++);
    subject = subject_start(box, id);
    subject_set_timer(subject, PARCEL_REMINDER, 1);
    draft_init(&draft, subject);
    draft_timer(&draft, first, PARCEL_REMINDER, first == DET_STORE_SET ? 2 : 1);
    draft_timer(&draft, second, PARCEL_REMINDER, 3);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, id);
    due = image->timer_count ? image->timers[0].row.due : 0;
    free(image);
    return due;
}

static void changes_are_applied_in_their_order(void **state)
{
    struct box *box = *state;

    assert_int_equal(change_twice(box, DET_STORE_CLEAR, DET_STORE_SET), 3);
    assert_int_equal(change_twice(box, DET_STORE_TAKE, DET_STORE_SET), 3);
    assert_int_equal(change_twice(box, DET_STORE_SET, DET_STORE_SET), 3);
    assert_int_equal(change_twice(box, DET_STORE_SET, DET_STORE_CLEAR), 0);
    assert_int_equal(change_twice(box, DET_STORE_CLEAR, DET_STORE_CLEAR), 0);
}

static void several_timers_are_taken_atomically(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    subject_set_timer(subject, PARCEL_REMINDER, 10);
    subject_set_timer(subject, PARCEL_DEADLINE, box_now(box) + DET_HOUR);
    draft_init(&draft, subject);
    draft_timer(&draft, DET_STORE_TAKE, PARCEL_REMINDER, 10);
    draft_timer(&draft, DET_STORE_TAKE, DET_STATE_TIMER, 10);
    assert_int_equal(draft_commit(&draft), DET_ERR_NOT_FOUND);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 2);
    free(image);
    subject_set_timer(subject, DET_STATE_TIMER, 10);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->timers[0].row.timer, PARCEL_DEADLINE);
    free(image);
}

/* Stores a failed attempt; returns the result. */
static int update_timer(
    struct subject *subject, det_time due, uint32_t attempts, det_time next, bool is_dead)
{
    struct det_store_timer *row;
    struct draft draft;

    draft_init(&draft, subject);
    row = draft_timer(&draft, DET_STORE_UPDATE, PARCEL_REMINDER, due);
    row->attempts = attempts;
    row->last_error = attempts ? -5 : 0;
    row->reason = attempts ? "it is closed" : NULL;
    row->next = next;
    row->is_dead = is_dead;
    return draft_commit(&draft);
}

static int note_due(void *context, const struct det_store_due *row)
{
    *(det_time *)context = row->due;
    return 0;
}

/* Returns the due time of the next timer; 0: none. */
static det_time first_due(struct box *box)
{
    const struct det_store_due_query query = { .before = DET_NEVER - 1, .limit = 1 };
    det_time due = 0, next;

    assert_int_equal(
        box->store->ops->due(box->store, box->machine, &query, note_due, &due, &next), 0);
    return due;
}

static int count_listed(void *context, const struct det_store_listed *row)
{
    (void)row;
    ++*(unsigned *)context;
    return 0;
}

static unsigned count_dead(struct box *box)
{
    const struct det_store_query query = { .has_dead = true };
    unsigned count = 0;

    assert_int_equal(
        box->store->ops->list(box->store, box->machine, &query, count_listed, &count), 0);
    return count;
}

static void failed_timer_is_due_later_with_its_attempts(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    det_time later = box_now(box) + DET_HOUR;
    struct image *image;

    subject_set_timer(subject, PARCEL_REMINDER, 10);
    assert_int_equal(update_timer(subject, 9, 1, later, false), DET_ERR_NOT_FOUND);
    assert_int_equal(update_timer(subject, 10, 2, later, false), 0);
    assert_true(first_due(box) == later);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 10, 1), DET_ERR_EARLY);
    box_reopen(box);
    subject = subject_find(box, box->store, "p");
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->timers[0].row.due, 10);
    assert_true(image->timers[0].row.next == later);
    assert_int_equal(image->timers[0].row.attempts, 2);
    assert_int_equal(image->timers[0].row.last_error, -5);
    assert_string_equal(image->timers[0].reason, "it is closed");
    assert_false(image->timers[0].row.is_dead);
    assert_int_equal(value_number(&image->timers[0].value), 1000);
    free(image);
    assert_int_equal(count_dead(box), 0);
    subject_set_timer(subject, PARCEL_REMINDER, 20);
    image = image_read(box, "p");
    assert_int_equal(image->timers[0].row.attempts, 0);
    assert_string_equal(image->timers[0].reason, "");
    free(image);
    assert_true(first_due(box) == 20);
}

static void dead_timer_is_not_due_until_it_is_retried(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    subject_start(box, "q");
    subject_set_timer(subject, PARCEL_REMINDER, 10);
    assert_int_equal(update_timer(subject, 10, 8, 10, true), 0);
    assert_int_equal(first_due(box), 0);
    assert_int_equal(count_dead(box), 1);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 10, 1), DET_ERR_NOT_FOUND);
    box_reopen(box);
    subject = subject_find(box, box->store, "p");
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_true(image->timers[0].row.is_dead);
    assert_false(image->timers[0].row.is_foreign);
    assert_int_equal(image->timers[0].row.attempts, 8);
    free(image);
    assert_int_equal(update_timer(subject, 10, 0, 11, false), 0);
    assert_int_equal(first_due(box), 11);
    assert_int_equal(count_dead(box), 0);
    assert_int_equal(take_timer(subject, PARCEL_REMINDER, 10, 1), 0);
    assert_int_equal(update_timer(subject, 10, 1, 11, false), DET_ERR_NOT_FOUND);
}

static void a_dead_timer_is_cleared_and_replaced_like_any(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    subject_set_timer(subject, PARCEL_REMINDER, 10);
    assert_int_equal(update_timer(subject, 10, 8, 10, true), 0);
    subject_set_timer(subject, PARCEL_REMINDER, 30);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_false(image->timers[0].row.is_dead);
    free(image);
    assert_int_equal(first_due(box), 30);
    assert_int_equal(update_timer(subject, 30, 8, 30, true), 0);
    assert_int_equal(clear_timer(subject, PARCEL_REMINDER), 0);
    assert_int_equal(count_dead(box), 0);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 0);
    free(image);
}

static const struct CMUnitTest timers[] = {
    CASE(a_timer_is_given_back_as_it_was_set),
    CASE(setting_a_timer_again_replaces_it),
    CASE(clearing_a_timer_removes_it_and_may_be_repeated),
    CASE(a_timer_fires_only_with_its_stored_deadline_and_visit),
    CASE(a_timer_is_deleted_by_the_commit_that_fires_it),
    CASE(timer_taken_too_early_is_kept),
    CASE(a_timer_is_taken_when_its_time_has_come),
    CASE(a_stay_keeps_the_timers),
    CASE(changes_are_applied_in_their_order),
    CASE(several_timers_are_taken_atomically),
    CASE(failed_timer_is_due_later_with_its_attempts),
    CASE(dead_timer_is_not_due_until_it_is_retried),
    CASE(a_dead_timer_is_cleared_and_replaced_like_any),
};
const struct group timer_cases = GROUP_OF(timers);
