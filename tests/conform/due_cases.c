/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due_cases.c - due timers and effects by their time, of this machine and this node. */
#include "conform/conform.h"

struct due_list {
    size_t count;
    char ids[16][8];
    det_time due[16];
    bool is_timer[16];
    size_t stop_at;
};

static int add_due(void *context, const struct det_store_due *row)
{
    struct due_list *list = context;
    size_t place = list->count++;

    assert_true(place < 16);
    snprintf(list->ids[place], sizeof list->ids[place], "%s", row->id);
    list->due[place] = row->due;
    list->is_timer[place] = row->is_timer;
    assert_true(place == 0 || list->due[place - 1] <= row->due);
    return list->count == list->stop_at ? 44 : 0;
}

static det_time inspect(struct box *box, det_time before, size_t limit, struct due_list *ret)
{
    det_time next = 77;

    *ret = (struct due_list){ 0 };
    assert_int_equal(
        box->store->ops->due(
            box->store, box->machine,
            &(struct det_store_due_query){ .before = before, .limit = limit }, add_due, ret, &next),
        0);
    return next;
}

/* Timers of three instances and an effect of one: due at 10, 20, 30, 40, and one in an hour. */
static void fill(struct box *box)
{
    struct subject *c = subject_start(box, "c"), *a = subject_start(box, "a");
    struct subject *b = subject_start(box, "b");

    subject_set_timer(c, PARCEL_REMINDER, 10);
    subject_set_timer(b, DET_STATE_TIMER, 30);
    subject_set_timer(b, PARCEL_DEADLINE, 40);
    subject_set_effect(a, 0, 20);
    subject_set_timer(a, DET_STATE_TIMER, 1000);
}

static void nothing_is_due_without_timers_or_effects(void **state)
{
    struct box *box = *state;
    struct due_list list;

    assert_true(inspect(box, DET_NEVER, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 0);
    subject_start(box, "p");
    assert_true(inspect(box, DET_NEVER, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 0);
}

static void only_due_timers_are_listed_oldest_first(void **state)
{
    static const char *const ids[] = { "c", "a", "b", "b" };
    struct box *box = *state;
    struct due_list list;

    fill(box);
    assert_int_equal(inspect(box, 40, 100, &list), 1000);
    assert_int_equal(list.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(list.ids[i], ids[i]);
        assert_int_equal(list.due[i], 10 * (i + 1));
        assert_true(list.is_timer[i] == (i != 1));
    }
    assert_int_equal(inspect(box, 39, 100, &list), 40);
    assert_int_equal(list.count, 3);
    assert_int_equal(inspect(box, 9, 100, &list), 10);
    assert_int_equal(list.count, 0);
    assert_true(inspect(box, 1000, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 5);
}

static void due_timers_are_listed_up_to_the_limit(void **state)
{
    static const det_time times[] = { 10, 20, 30, 40, 1000 };
    struct box *box = *state;
    struct due_list list;

    fill(box);
    for (size_t limit = 1; limit < 5; limit++) {
        assert_int_equal(inspect(box, DET_NEVER, limit, &list), times[limit]);
        assert_int_equal(list.count, limit);
        assert_int_equal(list.due[limit - 1], times[limit - 1]);
    }
    assert_int_equal(inspect(box, 20, 2, &list), 30);
    assert_int_equal(list.count, 2);
}

static void due_rows_can_be_filtered_by_time_and_kind(void **state)
{
    struct det_store_due_query query = { .before = DET_NEVER, .limit = 100, .from = 20 };
    struct box *box = *state;
    const struct det_store_ops *ops = box->store->ops;
    struct due_list list = { 0 };
    det_time next = 77;

    fill(box);
    assert_int_equal(ops->due(box->store, box->machine, &query, add_due, &list, &next), 0);
    assert_int_equal(list.count, 4);
    assert_int_equal(list.due[0], 20);
    query.kind = DET_DUE_TIMERS;
    query.limit = 1;
    list = (struct due_list){ 0 };
    assert_int_equal(ops->due(box->store, box->machine, &query, add_due, &list, &next), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.due[0], 30);
    assert_int_equal(next, 40);
    query.kind = DET_DUE_EFFECTS;
    list = (struct due_list){ 0 };
    assert_int_equal(ops->due(box->store, box->machine, &query, add_due, &list, &next), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.ids[0], "a");
    assert_true(next == DET_NEVER);
    query.from = 21;
    list = (struct due_list){ 0 };
    assert_int_equal(ops->due(box->store, box->machine, &query, add_due, &list, &next), 0);
    assert_int_equal(list.count, 0);
    assert_true(next == DET_NEVER);
}

static void rows_due_at_the_same_time_are_all_listed(void **state)
{
    struct box *box = *state;
    struct due_list list;
    char id[8];

    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof id, "p%d", i);
        subject_set_timer(subject_start(box, id), DET_STATE_TIMER, 50);
    }
    assert_true(inspect(box, 50, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 6);
    assert_int_equal(inspect(box, 50, 4, &list), 50);
    assert_int_equal(list.count, 4);
}

static void taken_cleared_or_moved_rows_are_not_due(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct due_list list;
    struct draft draft;

    subject_set_timer(subject, DET_STATE_TIMER, 10);
    subject_set_timer(subject, PARCEL_REMINDER, 20);
    subject_set_timer(subject, PARCEL_DEADLINE, 30);
    subject_set_effect(subject, 0, 40);
    subject_set_effect(subject, 0, 50);
    draft_init(&draft, subject);
    draft_timer(&draft, DET_STORE_TAKE, DET_STATE_TIMER, 10);
    draft_timer(&draft, DET_STORE_CLEAR, PARCEL_REMINDER, 0);
    draft_timer(&draft, DET_STORE_SET, PARCEL_DEADLINE, 70);
    draft_effect(&draft, DET_STORE_TAKE, 1, 0);
    draft_effect(&draft, DET_STORE_UPDATE, 2, 0)->next = 60;
    assert_int_equal(draft_commit(&draft), 0);
    assert_true(inspect(box, DET_NEVER, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.due[0], 60);
    assert_false(list.is_timer[0]);
    assert_int_equal(list.due[1], 70);
    assert_true(list.is_timer[1]);
}

static void a_dead_effect_is_not_due_until_it_lives_again(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct due_list list;
    struct draft draft;

    subject_set_effect(subject, 0, 10);
    for (int i = 0; i < 3; i++) {
        draft_init(&draft, subject);
        draft_effect(&draft, DET_STORE_UPDATE, 1, 0)->next = 20 + i;
        draft.effects[0].effect.is_dead = i % 2 == 0;
        assert_int_equal(draft_commit(&draft), 0);
        inspect(box, DET_NEVER, 100, &list);
        assert_int_equal(list.count, i % 2);
        if (list.count)
            assert_int_equal(list.due[0], 21);
    }
}

static void rows_of_a_refused_commit_are_not_due(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct due_list list;
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_timer(&draft, DET_STORE_SET, DET_STATE_TIMER, 10);
    draft_effect(&draft, DET_STORE_SET, 1, 0);
    draft.commit.expected = 5;
    assert_int_equal(draft_commit(&draft), DET_ERR_CONFLICT);
    assert_true(inspect(box, DET_NEVER, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 0);
}

static void visitor_result_ends_the_due_list(void **state)
{
    struct box *box = *state;
    struct due_list list = { .stop_at = 2 };
    det_time next;

    fill(box);
    assert_int_equal(
        box->store->ops->due(
            box->store, box->machine, &(struct det_store_due_query){ .before = 1000, .limit = 100 },
            add_due, &list, &next),
        44);
    assert_int_equal(list.count, 2);
}

static void due_timers_are_listed_per_machine(void **state)
{
    static const char *const other[] = { "FSM_NAME parcel", "FSM_NAME crate", NULL };
    struct box *box = *state;
    struct det_spec *spec = parcel_variant(other);
    struct due_list list;
    struct subject *subject;
    struct image *image;

    assert_int_equal(box->store->ops->serve(box->store, det_spec_machine(spec), NULL), 0);
    fill(box);
    box->machine = det_spec_machine(spec);
    image = image_read(box, "a");
    assert_false(image->is_there);
    free(image);
    subject = subject_start(box, "a");
    subject_set_timer(subject, DET_STATE_TIMER, 15);
    assert_true(inspect(box, DET_NEVER, 100, &list) == DET_NEVER);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.due[0], 15);
    box->machine = &parcel_machine;
    inspect(box, DET_NEVER, 100, &list);
    assert_int_equal(list.count, 5);
    image = image_read(box, "a");
    assert_int_equal(image->effect_count, 1);
    free(image);
    box_close_store(box, box->store);
    box->store = NULL;
    det_spec_close(spec);
}

static const struct CMUnitTest dues[] = {
    CASE(nothing_is_due_without_timers_or_effects),
    CASE(only_due_timers_are_listed_oldest_first),
    CASE(due_timers_are_listed_up_to_the_limit),
    CASE(due_rows_can_be_filtered_by_time_and_kind),
    CASE(rows_due_at_the_same_time_are_all_listed),
    CASE(taken_cleared_or_moved_rows_are_not_due),
    CASE(a_dead_effect_is_not_due_until_it_lives_again),
    CASE(rows_of_a_refused_commit_are_not_due),
    CASE(visitor_result_ends_the_due_list),
    CASE(due_timers_are_listed_per_machine),
};
const struct group due_cases = GROUP_OF(dues);
