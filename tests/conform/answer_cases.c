/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* answer_cases.c - event ids and their first answers. */
#include "conform/conform.h"

static int ask(struct subject *subject, const char *event_id, struct det_store_answer *ret)
{
    return subject->store->ops->answer(subject->store, subject->instance, event_id, ret);
}

static int send_with_id(struct subject *subject, const char *event_id, unsigned to)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(
        &draft, PARCEL_HOLD, to == subject->head.state ? DET_OUTCOME_STAY : DET_OUTCOME_GOTO, to);
    draft_event_id(&draft, event_id);
    return draft_commit(&draft);
}

static void an_event_id_is_answered_as_it_was_the_first_time(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;

    assert_int_equal(ask(subject, "e", &answer), DET_ERR_NOT_FOUND);
    assert_int_equal(send_with_id(subject, "e", PARCEL_HELD), 0);
    assert_int_equal(send_with_id(subject, "f", PARCEL_HELD), 0);
    assert_int_equal(ask(subject, "e", &answer), 0);
    assert_int_equal(answer.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(answer.state, PARCEL_HELD);
    assert_int_equal(answer.sequence, 1);
    assert_int_equal(answer.visit, 2);
    assert_int_equal(ask(subject, "f", &answer), 0);
    assert_int_equal(answer.outcome, DET_OUTCOME_STAY);
    assert_int_equal(answer.sequence, 2);
    assert_int_equal(ask(subject, "E", &answer), DET_ERR_NOT_FOUND);
}

static void a_known_event_id_is_refused_and_keeps_its_answer(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;

    assert_int_equal(send_with_id(subject, "e", PARCEL_HELD), 0);
    assert_int_equal(send_with_id(subject, "e", PARCEL_SHIPPED), DET_ERR_EXISTS);
    assert_int_equal(ask(subject, "e", &answer), 0);
    assert_int_equal(answer.state, PARCEL_HELD);
    assert_int_equal(send_with_id(subject, "f", PARCEL_SHIPPED), 0);
    assert_int_equal(subject->head.sequence, 2);
}

static void every_instance_has_its_own_event_ids(void **state)
{
    struct box *box = *state;
    struct subject *one = subject_start(box, "one"), *two = subject_start(box, "two");
    struct det_store_answer answer;

    assert_int_equal(send_with_id(one, "e", PARCEL_HELD), 0);
    assert_int_equal(ask(two, "e", &answer), DET_ERR_NOT_FOUND);
    assert_int_equal(send_with_id(two, "e", PARCEL_SHIPPED), 0);
    assert_int_equal(ask(one, "e", &answer), 0);
    assert_int_equal(answer.state, PARCEL_HELD);
}

static void an_event_id_may_be_long(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;
    char id[DET_ID_MAX + 1], other[DET_ID_MAX + 1];

    memset(id, 'i', DET_ID_MAX);
    id[DET_ID_MAX] = 0;
    memcpy(other, id, sizeof other);
    other[DET_ID_MAX - 1] = 'j';
    assert_int_equal(send_with_id(subject, id, PARCEL_HELD), 0);
    assert_int_equal(ask(subject, other, &answer), DET_ERR_NOT_FOUND);
    assert_int_equal(ask(subject, id, &answer), 0);
}

static void each_of_many_event_ids_is_known(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;
    char id[16];

    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "e%d", i);
        assert_int_equal(send_with_id(subject, id, PARCEL_CREATED), 0);
    }
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "e%d", i);
        assert_int_equal(ask(subject, id, &answer), 0);
        assert_int_equal(answer.sequence, i + 1);
        if (i % 10 == 0)
            assert_int_equal(send_with_id(subject, id, PARCEL_CREATED), DET_ERR_EXISTS);
    }
}

static void forget_before(struct subject *subject, det_time before)
{
    struct det_store *store = subject->box->store;
    uint64_t gone = 99;

    assert_int_equal(store->ops->prune(store, subject->instance, 0, before, &gone), 0);
    assert_int_equal(gone, 0);
}

static void old_answers_are_deleted_on_request(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;
    det_time between, limit = box_now(box) + 30 * DET_SECOND;

    assert_int_equal(send_with_id(subject, "old", PARCEL_HELD), 0);
    /* The estimate of a shared store's clock may be a little slow. */
    do {
        box_wait(box, box_now(box) + 2 * DET_MILLISECOND);
        between = box_now(box);
        assert_true(between < limit);
        forget_before(subject, between);
    } while (ask(subject, "old", &answer) == 0);
    assert_int_equal(ask(subject, "old", &answer), DET_ERR_NOT_FOUND);
    box_wait(box, between + 2 * DET_MILLISECOND);
    assert_int_equal(send_with_id(subject, "new", PARCEL_HELD), 0);
    forget_before(subject, between);
    assert_int_equal(ask(subject, "new", &answer), 0);
    assert_int_equal(send_with_id(subject, "old", PARCEL_HELD), 0);
    assert_int_equal(send_with_id(subject, "new", PARCEL_HELD), DET_ERR_EXISTS);
}

static void answer_identifies_the_first_request(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_store_answer answer;
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_event_id(&draft, "e");
    draft.commit.answer.event = PARCEL_COUNT;
    draft.commit.answer.request = 0xfedcba9876543210;
    assert_int_equal(draft_commit(&draft), 0);
    assert_int_equal(send_with_id(subject, "f", PARCEL_HELD), 0);
    box_reopen(box);
    subject = subject_find(box, box->store, "p");
    assert_int_equal(ask(subject, "e", &answer), 0);
    assert_true(answer.request == 0xfedcba9876543210);
    assert_int_equal(answer.event, PARCEL_COUNT);
    assert_int_equal(answer.sequence, 1);
    assert_int_equal(ask(subject, "f", &answer), 0);
    assert_int_equal(answer.request, 0);
    assert_int_equal(answer.event, UINT16_MAX);
}

static const struct CMUnitTest answers[] = {
    CASE(an_event_id_is_answered_as_it_was_the_first_time),
    CASE(answer_identifies_the_first_request),
    CASE(a_known_event_id_is_refused_and_keeps_its_answer),
    CASE(every_instance_has_its_own_event_ids),
    CASE(an_event_id_may_be_long),
    CASE(each_of_many_event_ids_is_known),
    CASE(old_answers_are_deleted_on_request),
};
const struct group answer_cases = GROUP_OF(answers);
