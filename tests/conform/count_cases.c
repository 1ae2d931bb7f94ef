/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count_cases.c - counts by machine and state, and sizes in bytes. */
#include <detent/tool/store.h>

#include "conform/conform.h"

struct reported {
    char text[512];
    int answer;
};

static int write_count(void *context, const struct det_store_counted *row)
{
    struct reported *reported = context;
    size_t length = strlen(reported->text);

    snprintf(
        reported->text + length, sizeof reported->text - length, "%s/%s %d+%d %d %d %d; ",
        row->machine, row->state ? row->state : "", (int)row->running, (int)row->stopped,
        (int)row->timers, (int)row->effects, (int)row->dead);
    return reported->answer;
}

static const char *count(struct box *box, uint64_t *ret_bytes)
{
    static struct reported reported;

    memset(&reported, 0, sizeof reported);
    assert_int_equal(det_store_count(box->store, write_count, &reported, ret_bytes), 0);
    return reported.text;
}

static bool has_count(const struct box *box)
{
    return box->store->ops->count != NULL;
}

static void count_is_unsupported_by_stand_in_stores(void **state)
{
    struct box *box = *state;
    uint64_t bytes = 7;

    if (has_count(box))
        return;
    assert_int_equal(det_store_count(box->store, write_count, NULL, &bytes), DET_ERR_UNSUPPORTED);
    assert_int_equal(bytes, 7);
}

static void move_to(struct subject *subject, unsigned to, bool is_stopped)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_HOLD, DET_OUTCOME_GOTO, to);
    if (is_stopped)
        draft_stop(&draft, "enough");
    assert_int_equal(draft_commit(&draft), 0);
}

static void instances_are_counted_by_state_and_what_waits_by_machine(void **state)
{
    struct box *box = *state;
    struct subject *subjects[6];
    struct draft draft;
    uint64_t bytes = 1;

    if (!has_count(box))
        return;
    assert_string_equal(count(box, &bytes), "parcel/ 0+0 0 0 0; ");
    for (int i = 0; i < 6; i++) {
        char id[8];

        snprintf(id, sizeof id, "p%d", i);
        subjects[i] = subject_start(box, id);
    }
    assert_string_equal(count(box, &bytes), "parcel/ 6+0 0 0 0; parcel/created 6+0 0 0 0; ");
    move_to(subjects[0], PARCEL_HELD, false);
    move_to(subjects[1], PARCEL_HELD, true);
    move_to(subjects[2], PARCEL_PACKED, true);
    subject_set_timer(subjects[3], DET_STATE_TIMER, 1000);
    subject_set_timer(subjects[3], PARCEL_DEADLINE, 1000);
    subject_set_timer(subjects[4], DET_STATE_TIMER, 1000);
    subject_set_effect(subjects[4], 0, 5);
    subject_set_effect(subjects[4], 0, 5);
    subject_set_effect(subjects[5], 0, 5);
    draft_init(&draft, subjects[4]);
    draft_effect(&draft, DET_STORE_UPDATE, 1, 0)->is_dead = true;
    assert_int_equal(draft_commit(&draft), 0);
    assert_string_equal(
        count(box, &bytes), "parcel/ 4+2 3 2 1; parcel/created 3+0 0 0 0; parcel/held 1+1 0 0 0; "
                            "parcel/is_packed 0+1 0 0 0; ");
    if (box->driver->is_kept)
        assert_true(bytes > 4096);
    else
        assert_int_equal(bytes, 0);
}

static void visitor_result_ends_a_count(void **state)
{
    struct box *box = *state;
    struct reported reported = { .answer = 66 };
    uint64_t bytes = 7;

    if (!has_count(box))
        return;
    subject_start(box, "p");
    assert_int_equal(det_store_count(box->store, write_count, &reported, &bytes), 66);
    assert_string_equal(reported.text, "parcel/ 1+0 0 0 0; ");
    assert_int_equal(bytes, 7);
}

static const struct CMUnitTest counts[] = {
    CASE(count_is_unsupported_by_stand_in_stores),
    CASE(instances_are_counted_by_state_and_what_waits_by_machine),
    CASE(visitor_result_ends_a_count),
};
const struct group count_cases = GROUP_OF(counts);
