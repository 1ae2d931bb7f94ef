/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit_cases.c - one commit: the head, the data, the events, and its possible results. */
#include "conform/conform.h"

static void new_instance_is_loaded_as_committed(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image = image_read(box, "p");

    assert_non_null(subject->instance);
    assert_true(image->is_there);
    assert_int_equal(image->loaded.head.sequence, 0);
    assert_int_equal(image->loaded.head.visit, 1);
    assert_int_equal(image->loaded.head.transition_count, 0);
    assert_int_equal(image->loaded.head.state, PARCEL_CREATED);
    assert_true(image->loaded.head.started_at == subject->head.started_at);
    assert_true(image->loaded.head.last_transition_at == subject->head.last_transition_at);
    assert_false(image->loaded.head.is_stopped);
    assert_string_equal(image->loaded.reason, "");
    assert_true(parcel_data_equal(&image->data, &subject->data));
    assert_int_equal(image->loaded.history_count, 0);
    assert_int_equal(image->event_count + image->timer_count + image->effect_count, 0);
    assert_int_equal(image->deferred_count + image->has_snapshot, 0);
    free(image);
}

static void an_instance_may_start_with_rows(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_new(box, "p");
    struct det_store_answer answer;
    struct draft draft;
    struct image *image;

    draft_start(&draft, subject);
    draft_timer(&draft, DET_STORE_SET, DET_STATE_TIMER, 5);
    draft_event_id(&draft, "start-1");
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(box->store->ops->answer(box->store, subject->instance, "start-1", &answer), 0);
    assert_int_equal(answer.sequence, 0);
    assert_int_equal(answer.visit, 1);
    free(image);
}

static void unstarted_instance_is_not_found(void **state)
{
    struct box *box = *state;
    struct image *image;

    subject_start(box, "p");
    image = image_read(box, "P");
    assert_false(image->is_there);
    free(image);
}

static void a_second_of_the_same_id_exists_already(void **state)
{
    struct box *box = *state;
    struct subject *first = subject_start(box, "p"), *second = subject_new(box, "p");
    struct image *before, *after;
    struct draft draft;

    subject_move(first, PARCEL_PACK, PARCEL_PACKED);
    before = image_read(box, "p");
    draft_start(&draft, second);
    draft_data(&draft, 99);
    draft_timer(&draft, DET_STORE_SET, DET_STATE_TIMER, 5);
    draft_event_id(&draft, "second");
    assert_int_equal(draft_commit(&draft), DET_ERR_EXISTS);
    after = image_read(box, "p");
    image_assert_equal(after, before);
    subject_move(first, PARCEL_COUNT, PARCEL_PACKED);
    free(before);
    free(after);
}

static void ids_are_compared_byte_by_byte_and_may_be_long(void **state)
{
    struct box *box = *state;
    char longest[DET_ID_MAX + 1], other[DET_ID_MAX + 1];
    struct image *image;

    memset(longest, 'x', DET_ID_MAX);
    longest[DET_ID_MAX] = 0;
    memcpy(other, longest, sizeof other);
    other[DET_ID_MAX - 1] = 'X';
    subject_move(subject_start(box, longest), PARCEL_COUNT, PARCEL_CREATED);
    subject_start(box, other);
    subject_start(box, "a.b:c-D_9");
    image = image_read(box, longest);
    assert_int_equal(image->loaded.head.sequence, 1);
    free(image);
    image = image_read(box, other);
    assert_int_equal(image->loaded.head.sequence, 0);
    free(image);
}

static void events_are_numbered_and_kept_in_order(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_move(subject, PARCEL_COUNT, PARCEL_PACKED);
    subject_move(subject, PARCEL_HOLD, PARCEL_HELD);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.sequence, 3);
    assert_int_equal(image->loaded.head.visit, 4);
    assert_int_equal(image->loaded.head.transition_count, 2);
    assert_int_equal(image->event_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(image->events[i].row.sequence, i + 1);
    assert_int_equal(image->events[0].row.from, PARCEL_CREATED);
    assert_int_equal(image->events[0].row.to, PARCEL_PACKED);
    assert_int_equal(image->events[1].row.outcome, DET_OUTCOME_STAY);
    assert_int_equal(image->events[1].row.visit, 2);
    assert_int_equal(image->events[2].row.event, PARCEL_HOLD);
    free(image);
}

static void an_event_is_given_back_with_all_it_carried(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_event *event;
    struct draft draft;
    struct image *image;
    char cause[CAUSE_MAX + 1];

    memset(cause, 'c', CAUSE_MAX);
    cause[CAUSE_MAX] = 0;
    draft_init(&draft, subject);
    event = draft_event(&draft, PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_HELD);
    event->choice = 12345;
    event->is_timeout = true;
    event->at = 1234567890123456789;
    event->cause = cause;
    event->event_id = "of-the-event";
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    event = &image->events[0].row;
    assert_int_equal(event->choice, 12345);
    assert_true(event->is_timeout);
    assert_true(event->at == 1234567890123456789);
    assert_string_equal(image->events[0].cause, cause);
    assert_string_equal(image->events[0].event_id, "of-the-event");
    assert_true(parcel_value_equal(PARCEL_PACK, &image->events[0].value, &draft.values[0]));
    free(image);
}

static void every_outcome_is_given_back(void **state)
{
    static const enum det_outcome outcomes[] = { DET_OUTCOME_GOTO, DET_OUTCOME_STAY,
                                                 DET_OUTCOME_DEFERRED, DET_OUTCOME_DEAD_LETTER,
                                                 DET_OUTCOME_STOP };
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (size_t i = 0; i < 5; i++) {
        struct draft draft;

        draft_init(&draft, subject);
        draft_event(&draft, PARCEL_COUNT, outcomes[i], PARCEL_HELD);
        assert_int_equal(draft_commit(&draft), 0);
    }
    image = image_read(box, "p");
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(image->events[i].row.outcome, outcomes[i]);
    assert_true(image->loaded.head.is_stopped);
    free(image);
}

/* All records of the suite, with the extremes of every type, as payload and as data. */
static void every_field_type_round_trips(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (uint64_t number = 0; number < 24; number++) {
        struct parcel_event expected = parcel_value(PARCEL_PACK, number);
        struct draft draft;

        draft_init(&draft, subject);
        draft_event(&draft, PARCEL_PACK, DET_OUTCOME_STAY, PARCEL_CREATED);
        draft.values[0] = expected;
        draft_data(&draft, number);
        assert_int_equal(draft_commit(&draft), 0);
        image = image_read(box, "p");
        assert_true(parcel_value_equal(PARCEL_PACK, &image->events[number].value, &expected));
        assert_true(parcel_data_equal(&image->data, &draft.data));
        free(image);
    }
}

static int number_of(void *context, const struct det_store_event *row)
{
    uint64_t *numbers = context;

    numbers[++numbers[0]] = row->sequence;
    return row->sequence == 5 ? 55 : 0;
}

static void events_are_listed_after_a_sequence_up_to_the_end(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store *store = box->store;
    uint64_t numbers[10] = { 0 };

    assert_int_equal(store->ops->events(store, subject->instance, 0, number_of, numbers), 0);
    assert_int_equal(numbers[0], 0);
    for (int i = 0; i < 3; i++)
        subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    assert_int_equal(store->ops->events(store, subject->instance, 1, number_of, numbers), 0);
    assert_int_equal(numbers[0], 2);
    assert_int_equal(numbers[1], 2);
    assert_int_equal(numbers[2], 3);
    numbers[0] = 0;
    assert_int_equal(store->ops->events(store, subject->instance, 3, number_of, numbers), 0);
    assert_int_equal(store->ops->events(store, subject->instance, 99, number_of, numbers), 0);
    assert_int_equal(numbers[0], 0);
}

static void visitor_result_ends_the_walk(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    uint64_t numbers[10] = { 0 };

    for (int i = 0; i < 7; i++)
        subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    assert_int_equal(
        box->store->ops->events(box->store, subject->instance, 0, number_of, numbers), 55);
    assert_int_equal(numbers[0], 5);
}

static void a_stop_is_durable_with_its_reason(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    char reason[DET_REASON_MAX + 1];
    struct draft draft;
    struct image *image;

    memset(reason, 'r', DET_REASON_MAX);
    reason[DET_REASON_MAX] = 0;
    draft_init(&draft, subject);
    draft_stop(&draft, reason);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_true(image->loaded.head.is_stopped);
    assert_string_equal(image->loaded.reason, reason);
    assert_int_equal(image->events[0].row.event, UINT16_MAX);
    assert_int_equal(image->events[0].row.outcome, DET_OUTCOME_STOP);
    assert_null(image->events[0].row.value);
    free(image);
}

static void commit_without_reason_or_data_keeps_them(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_stop(&draft, "enough");
    draft_data(&draft, 4);
    assert_int_equal(draft_commit(&draft), 0);
    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    image = image_read(box, "p");
    assert_string_equal(image->loaded.reason, "enough");
    assert_true(parcel_data_equal(&image->data, &draft.data));
    free(image);
}

static void several_events_are_one_commit(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_PACKED);
    draft_event(&draft, PARCEL_HOLD, DET_OUTCOME_GOTO, PARCEL_HELD);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->event_count, 3);
    assert_int_equal(image->loaded.head.sequence, 3);
    assert_int_equal(image->loaded.head.state, PARCEL_HELD);
    assert_int_equal(image->loaded.history_count, 2);
    free(image);
}

static void as_many_events_as_a_batch_has_are_one_commit(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_event *events = calloc(DET_BATCH_MAX, sizeof *events);
    struct parcel_event *values = calloc(DET_BATCH_MAX, sizeof *values);
    struct draft draft;
    struct image *image;

    assert_true(events && values);
    draft_init(&draft, subject);
    for (size_t i = 0; i < DET_BATCH_MAX; i++) {
        draft.commit.event_count = 0;
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        events[i] = draft.events[0];
        values[i] = draft.values[0];
        events[i].value = &values[i];
    }
    draft.commit.events = events;
    draft.commit.event_count = DET_BATCH_MAX;
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->event_count, DET_BATCH_MAX);
    for (size_t i = 0; i < DET_BATCH_MAX; i++)
        assert_int_equal(value_number(&image->events[i].value), i + 1);
    free(image);
    free(events);
    free(values);
}

static void conflict_reports_the_actual_sequence(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;

    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    for (uint64_t expected = 0; expected < 5; expected++) {
        if (expected == 2)
            continue;
        draft_init(&draft, subject);
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        draft.commit.expected = expected;
        draft.commit.actual = 77;
        assert_int_equal(draft_commit(&draft), DET_ERR_CONFLICT);
        assert_int_equal(draft.commit.actual, 2);
    }
    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
}

static void commit_without_events_ignores_the_sequence(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    subject_move(subject, PARCEL_COUNT, PARCEL_CREATED);
    draft_init(&draft, subject);
    draft.commit.expected = 77;
    draft_timer(&draft, DET_STORE_SET, PARCEL_REMINDER, 5);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.sequence, 1);
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->event_count, 1);
    free(image);
}

static void the_history_lists_previous_states_most_recent_first(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_move(subject, PARCEL_COUNT, PARCEL_PACKED);
    subject_move(subject, PARCEL_HOLD, PARCEL_HELD);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.history_count, 2);
    assert_int_equal(image->loaded.history[0], PARCEL_PACKED);
    assert_int_equal(image->loaded.history[1], PARCEL_CREATED);
    free(image);
}

static void history_has_the_last_of_very_many_states(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (int i = 0; i < DET_HISTORY_MAX + 30; i++)
        subject_move(
            subject, PARCEL_HOLD,
            i % 3 == 0   ? PARCEL_PACKED
            : i % 3 == 1 ? PARCEL_HELD
                         : PARCEL_SHIPPED);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.transition_count, DET_HISTORY_MAX + 30);
    assert_int_equal(image->loaded.history_count, DET_HISTORY_MAX);
    assert_memory_equal(image->loaded.history, subject->history, sizeof subject->history);
    free(image);
}

static void commits_of_one_call_have_a_result_each(void **state)
{
    struct box *box = *state;
    struct subject *subjects[6];
    struct draft drafts[6], *all[6];
    static const int expected[] = { 0, DET_ERR_CONFLICT, 0, DET_ERR_EXISTS, DET_ERR_NOT_FOUND, 0 };
    char id[8];

    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "p%d", i);
        subjects[i] = i == 3 ? subject_new(box, "p0") : subject_start(box, id);
    }
    subjects[5] = subject_new(box, "new");
    for (size_t i = 0; i < 6; i++) {
        all[i] = &drafts[i];
        if (i == 3 || i == 5) {
            draft_start(&drafts[i], subjects[i]);
            continue;
        }
        draft_init(&drafts[i], subjects[i]);
        draft_event(&drafts[i], PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED);
    }
    drafts[1].commit.expected = 9;
    draft_timer(&drafts[4], DET_STORE_TAKE, DET_STATE_TIMER, 1);
    draft_commit_all(all, 6);
    for (size_t i = 0; i < 6; i++) {
        struct image *image = image_read(box, subjects[i]->id);

        assert_int_equal(drafts[i].commit.result, expected[i]);
        assert_true(image->is_there);
        assert_int_equal(image->loaded.head.sequence, i == 0 || i == 2 || i == 3);
        assert_int_equal(image->event_count, image->loaded.head.sequence);
        free(image);
    }
}

static void many_instances_share_a_call(void **state)
{
    struct box *box = *state;
    struct draft *drafts = calloc(64, sizeof *drafts), *all[64];
    char id[8];

    assert_non_null(drafts);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64; i++) {
            struct subject *subject = drafts[i].subject;

            snprintf(id, sizeof id, "p%d", i);
            all[i] = &drafts[i];
            if (round == 0) {
                draft_start(&drafts[i], subject_new(box, id));
                continue;
            }
            draft_init(&drafts[i], subject);
            draft_event(&drafts[i], PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        }
        draft_commit_all(all, 64);
        for (int i = 0; i < 64; i++)
            assert_int_equal(drafts[i].commit.result, 0);
    }
    for (int i = 0; i < 64; i++) {
        struct image *image = image_read(box, drafts[i].subject->id);

        assert_int_equal(image->loaded.head.sequence, 2);
        assert_int_equal(image->event_count, 2);
        free(image);
    }
    free(drafts);
}

static const struct CMUnitTest commits[] = {
    CASE(new_instance_is_loaded_as_committed),
    CASE(an_instance_may_start_with_rows),
    CASE(unstarted_instance_is_not_found),
    CASE(a_second_of_the_same_id_exists_already),
    CASE(ids_are_compared_byte_by_byte_and_may_be_long),
    CASE(events_are_numbered_and_kept_in_order),
    CASE(an_event_is_given_back_with_all_it_carried),
    CASE(every_outcome_is_given_back),
    CASE(every_field_type_round_trips),
    CASE(events_are_listed_after_a_sequence_up_to_the_end),
    CASE(visitor_result_ends_the_walk),
    CASE(a_stop_is_durable_with_its_reason),
    CASE(commit_without_reason_or_data_keeps_them),
    CASE(several_events_are_one_commit),
    CASE(as_many_events_as_a_batch_has_are_one_commit),
    CASE(conflict_reports_the_actual_sequence),
    CASE(commit_without_events_ignores_the_sequence),
    CASE(the_history_lists_previous_states_most_recent_first),
    CASE(history_has_the_last_of_very_many_states),
    CASE(commits_of_one_call_have_a_result_each),
    CASE(many_instances_share_a_call),
};
const struct group commit_cases = GROUP_OF(commits);
