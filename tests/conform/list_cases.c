/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list_cases.c - the instances of a machine: in the order of their ids, by page, state, age. */
#include "conform/conform.h"

struct listed {
    size_t count;
    struct det_store_listed rows[64];
    char ids[64][DET_ID_MAX + 1];
    size_t stop_at;
};

static int add_listed(void *context, const struct det_store_listed *row)
{
    struct listed *listed = context;
    size_t place = listed->count++;

    assert_true(place < 64);
    listed->rows[place] = *row;
    snprintf(listed->ids[place], sizeof listed->ids[place], "%s", row->id);
    assert_true(place == 0 || strcmp(listed->ids[place - 1], row->id) < 0);
    return listed->count == listed->stop_at ? 66 : 0;
}

static struct listed *list(struct box *box, struct det_store_query query)
{
    static struct listed listed;

    memset(&listed, 0, sizeof listed);
    assert_int_equal(
        box->store->ops->list(box->store, box->machine, &query, add_listed, &listed), 0);
    return &listed;
}

/* The ids, one after the other. */
static const char *ids_of(struct box *box, struct det_store_query query)
{
    static char text[512];
    const struct listed *listed = list(box, query);

    text[0] = 0;
    for (size_t i = 0; i < listed->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", listed->ids[i]);
    return text;
}

static void start_in(
    struct box *box, const char *id, unsigned state, det_time moved_at, bool is_stopped)
{
    struct subject *subject = subject_start(box, id);
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_HOLD, DET_OUTCOME_GOTO, state);
    if (is_stopped)
        draft_stop(&draft, "enough");
    draft.head.last_transition_at = moved_at;
    assert_int_equal(draft_commit(&draft), 0);
}

static void fill(struct box *box)
{
    start_in(box, "d", PARCEL_HELD, 40, false);
    start_in(box, "b", PARCEL_PACKED, 20, true);
    start_in(box, "a", PARCEL_HELD, 10, false);
    start_in(box, "e", PARCEL_PACKED, 50, false);
    start_in(box, "c", PARCEL_HELD, 30, true);
}

static void an_empty_machine_lists_none(void **state)
{
    struct box *box = *state;

    assert_string_equal(ids_of(box, (struct det_store_query){ 0 }), "");
}

static void instances_come_in_the_order_of_their_ids_byte_by_byte(void **state)
{
    static const char *const ids[] = { "b",  "a10", "B", "a-1", "a.1", "_a", "a_1",
                                       "a1", "A",   "a", "9",   "a:1", "a2", "10" };
    struct box *box = *state;

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        subject_start(box, ids[i]);
    assert_string_equal(
        ids_of(box, (struct det_store_query){ 0 }), "10 9 A B _a a a-1 a.1 a1 a10 a2 a:1 a_1 b ");
}

static void listed_row_describes_the_instance(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    const struct det_store_listed *row;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_move(subject, PARCEL_COUNT, PARCEL_PACKED);
    row = list(box, (struct det_store_query){ 0 })->rows;
    assert_int_equal(row->state, PARCEL_PACKED);
    assert_int_equal(row->sequence, 2);
    assert_false(row->is_stopped);
    assert_true(row->started_at == subject->head.started_at);
    assert_true(row->moved_at == subject->head.last_transition_at);
}

static void pages_continue_after_the_last_id(void **state)
{
    struct box *box = *state;

    fill(box);
    assert_string_equal(ids_of(box, (struct det_store_query){ .limit = 2 }), "a b ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .after = "b", .limit = 2 }), "c d ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .after = "d", .limit = 2 }), "e ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .after = "e", .limit = 2 }), "");
    assert_string_equal(ids_of(box, (struct det_store_query){ .after = "bb" }), "c d e ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .after = "" }), "a b c d e ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .limit = 5 }), "a b c d e ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .limit = 500 }), "a b c d e ");
}

static void instances_are_filtered_by_state(void **state)
{
    struct box *box = *state;
    struct det_store_query query = { .has_state = true, .state = PARCEL_HELD };

    fill(box);
    assert_string_equal(ids_of(box, query), "a c d ");
    query.limit = 2;
    assert_string_equal(ids_of(box, query), "a c ");
    query.after = "c";
    assert_string_equal(ids_of(box, query), "d ");
    query = (struct det_store_query){ .has_state = true, .state = PARCEL_CREATED };
    assert_string_equal(ids_of(box, query), "");
    query = (struct det_store_query){ .state = PARCEL_HELD };
    assert_string_equal(ids_of(box, query), "a b c d e ");
}

static void instances_are_filtered_by_last_transition(void **state)
{
    struct box *box = *state;

    fill(box);
    assert_string_equal(ids_of(box, (struct det_store_query){ .moved_before = 31 }), "a b c ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .moved_before = 30 }), "a b ");
    assert_string_equal(ids_of(box, (struct det_store_query){ .moved_before = 5 }), "");
    assert_string_equal(ids_of(box, (struct det_store_query){ .moved_before = 99 }), "a b c d e ");
}

static void instances_are_filtered_by_running_or_stopped(void **state)
{
    struct box *box = *state;
    struct det_store_query all = { .stopped = DET_STORE_STOPPED,
                                   .has_state = true,
                                   .state = PARCEL_HELD,
                                   .moved_before = 35,
                                   .after = "a",
                                   .limit = 3 };

    fill(box);
    assert_string_equal(
        ids_of(box, (struct det_store_query){ .stopped = DET_STORE_RUNNING }), "a d e ");
    assert_string_equal(
        ids_of(box, (struct det_store_query){ .stopped = DET_STORE_STOPPED }), "b c ");
    assert_string_equal(ids_of(box, all), "c ");
}

/* A driver that cannot tell lists others too. */
static void instances_with_dead_effects_are_listed(void **state)
{
    struct box *box = *state;
    struct det_store_query query = { .has_dead = true };
    const struct listed *listed;
    unsigned found = 0;

    for (int i = 0; i < 4; i++) {
        char id[8];
        struct subject *subject;
        struct draft draft;

        snprintf(id, sizeof id, "p%d", i);
        subject = subject_start(box, id);
        subject_set_effect(subject, 0, 5);
        draft_init(&draft, subject);
        draft_effect(&draft, DET_STORE_UPDATE, 1, 0)->is_dead = i % 2;
        assert_int_equal(draft_commit(&draft), 0);
    }
    listed = list(box, query);
    for (size_t i = 0; i < listed->count; i++)
        found += strcmp(listed->ids[i], "p1") == 0 || strcmp(listed->ids[i], "p3") == 0;
    assert_int_equal(found, 2);
    if (strcmp(box->driver->scheme, "memory") == 0)
        assert_int_equal(listed->count, 2);
}

static void visitor_result_ends_the_list(void **state)
{
    struct box *box = *state;
    struct listed listed = { .stop_at = 3 };

    fill(box);
    assert_int_equal(
        box->store->ops->list(
            box->store, box->machine, &(struct det_store_query){ 0 }, add_listed, &listed),
        66);
    assert_int_equal(listed.count, 3);
}

static void pages_find_each_of_many_once(void **state)
{
    struct box *box = *state;
    struct det_store_query query = { .limit = 60 };
    char after[DET_ID_MAX + 1] = "";
    size_t total = 0, pages = 0;

    for (int i = 0; i < 150; i++) {
        char id[12];

        snprintf(id, sizeof id, "i%d", i * 7919 % 150);
        subject_start(box, id);
    }
    for (const struct listed *page; (page = list(box, query))->count; pages++) {
        assert_true(strcmp(page->ids[0], after) > 0);
        total += page->count;
        snprintf(after, sizeof after, "%s", page->ids[page->count - 1]);
        query.after = after;
    }
    assert_int_equal(total, 150);
    assert_int_equal(pages, 3);
}

static const struct CMUnitTest lists[] = {
    CASE(an_empty_machine_lists_none),
    CASE(instances_come_in_the_order_of_their_ids_byte_by_byte),
    CASE(listed_row_describes_the_instance),
    CASE(pages_continue_after_the_last_id),
    CASE(instances_are_filtered_by_state),
    CASE(instances_are_filtered_by_last_transition),
    CASE(instances_are_filtered_by_running_or_stopped),
    CASE(instances_with_dead_effects_are_listed),
    CASE(visitor_result_ends_the_list),
    CASE(pages_find_each_of_many_once),
};
const struct group list_cases = GROUP_OF(lists);
