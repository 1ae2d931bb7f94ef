/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_cases.c - the outbox in a commit: effects set, tried again, dead, alive again, taken; and
 * deferred events. */
#include "conform/conform.h"
#include "store/effect_key.h"
#include "store/row.h"

static int take_effect(struct subject *subject, uint64_t sequence, uint16_t index)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_effect(&draft, DET_STORE_TAKE, sequence, index);
    return draft_commit(&draft);
}

static int update_effect(
    struct subject *subject, uint64_t sequence, uint32_t attempts, bool is_dead)
{
    struct draft draft;
    struct det_store_effect *row;

    draft_init(&draft, subject);
    row = draft_effect(&draft, DET_STORE_UPDATE, sequence, 0);
    row->attempts = attempts;
    row->last_error = -(int)attempts;
    row->next = (det_time)attempts * 1000;
    row->is_dead = is_dead;
    return draft_commit(&draft);
}

static void an_effect_is_given_back_as_it_was_set(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct det_store_effect *row;
    struct image *image;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED);
    row = draft_effect(&draft, DET_STORE_SET, 1, 0);
    row->at = 1234567890123456789;
    row->next = 1234567890123456790;
    draft.effect_values[0] = parcel_value(PARCEL_PACK, 3);
    draft_effect(&draft, DET_STORE_SET, 1, 1)->attempts = 4000000000;
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, 2);
    row = &image->effects[0].row;
    assert_int_equal(row->sequence, 1);
    assert_int_equal(row->index, 0);
    assert_int_equal(row->effect, PARCEL_PRINT_LABEL);
    assert_int_equal(row->from, PARCEL_CREATED);
    assert_int_equal(row->to, PARCEL_PACKED);
    assert_int_equal(row->visit, 1);
    assert_int_equal(row->asked, 2);
    assert_true(row->at == 1234567890123456789 && row->next == row->at + 1);
    assert_int_equal(row->attempts, 0);
    assert_int_equal(row->last_error, 0);
    assert_false(row->is_dead || row->is_foreign);
    assert_true(parcel_value_equal(PARCEL_PACK, &image->effects[0].value, &draft.effect_values[0]));
    assert_true(parcel_data_equal(&image->effects[0].data, &draft.effect_data[0]));
    assert_int_equal(image->effects[1].row.effect, PARCEL_TELL_OWNER);
    assert_int_equal(image->effects[1].row.index, 1);
    assert_int_equal(image->effects[1].row.attempts, 4000000000);
    free(image);
}

/* An import writes the origin: the key names the store in which the effect was requested. */
static void an_effect_keeps_its_origin_alive_dead_and_alive_again(void **state)
{
    static const char origin[] = "00112233445566ff";
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED);
    det_row_origin(draft_effect(&draft, DET_STORE_SET, 1, 0), origin);
    draft_effect(&draft, DET_STORE_SET, 1, 1);
    assert_int_equal(draft_commit(&draft), 0);
    for (uint32_t i = 0; i < 5; i++) {
        image = image_read(box, "p");
        assert_int_equal(image->effect_count, 2);
        assert_string_equal(image->effects[0].row.origin, origin);
        assert_string_equal(image->effects[1].row.origin, "");
        free(image);
        /* Tried, dead, tried again, alive. */
        assert_int_equal(update_effect(subject, 1, i + 1, i == 1 || i == 2), 0);
    }
    draft_init(&draft, subject);
    det_row_origin(draft_effect(&draft, DET_STORE_SET, 1, 0), origin);
    draft.effects[0].effect.is_dead = true;
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_true(image->effects[0].row.is_dead);
    assert_string_equal(image->effects[0].row.origin, origin);
    free(image);
}

static void effects_of_two_stores_have_different_keys(void **state)
{
    struct box *box = *state;
    struct det_store *other;
    struct det_store_effect row = { .sequence = 1, .index = det_effect_index(box->store, 0) };
    char keys[2][300];

    /* The stand-in for a shared store has no identity. */
    if (!box->store->identity[0])
        return;
    assert_int_equal(det_store_open("memory:", &other, NULL), 0);
    det_effect_key(keys[0], sizeof keys[0], box->store, "parcel", "p", &row);
    det_effect_key(keys[1], sizeof keys[1], other, "parcel", "p", &row);
    assert_string_not_equal(keys[0], keys[1]);
    assert_string_equal(keys[0] + 16, "/parcel/p/1/0");
    assert_string_equal(keys[1] + 16, "/parcel/p/1/0");
    /* Unless the effect was imported from the other store. */
    (void)snprintf(row.origin, sizeof row.origin, "%.16s", other->identity);
    det_effect_key(keys[0], sizeof keys[0], box->store, "parcel", "p", &row);
    assert_string_equal(keys[0], keys[1]);
    det_store_close(other);
}

static void effects_come_oldest_first(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (int i = 0; i < 12; i++)
        subject_set_effect(subject, 0, 1000 - i);
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, 12);
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(image->effects[i].row.sequence, i + 1);
    free(image);
}

static void an_effect_keeps_the_data_of_its_commit(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct parcel_data expected = parcel_data_value(10);
    struct draft draft;
    struct image *image;

    subject_set_effect(subject, 0, 1);
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_data(&draft, 500);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_true(parcel_data_equal(&image->effects[0].data, &expected));
    free(image);
}

static void an_effect_is_taken_once(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    assert_int_equal(take_effect(subject, 1, 0), DET_ERR_NOT_FOUND);
    subject_set_effect(subject, 0, 1);
    subject_set_effect(subject, 1, 1);
    assert_int_equal(take_effect(subject, 1, 1), DET_ERR_NOT_FOUND);
    assert_int_equal(take_effect(subject, 2, 0), DET_ERR_NOT_FOUND);
    assert_int_equal(take_effect(subject, 1, 0), 0);
    assert_int_equal(take_effect(subject, 1, 0), DET_ERR_NOT_FOUND);
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, 1);
    assert_int_equal(image->effects[0].row.sequence, 2);
    free(image);
}

static void the_end_of_an_effect_and_its_product_are_one_commit(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    subject_set_effect(subject, 0, 1);
    for (int i = 0; i < 2; i++) {
        draft_init(&draft, subject);
        draft_event(&draft, PARCEL_CHECKED, DET_OUTCOME_STAY, PARCEL_CREATED)->cause =
            "parcel/p/1/0";
        draft_effect(&draft, DET_STORE_TAKE, 1, 0);
        assert_int_equal(draft_commit(&draft), i == 0 ? 0 : DET_ERR_NOT_FOUND);
    }
    image = image_read(box, "p");
    assert_int_equal(image->event_count, 2);
    assert_string_equal(image->events[1].cause, "parcel/p/1/0");
    free(image);
}

static void effect_update_changes_only_its_own_fields(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *before, *after;

    assert_int_equal(update_effect(subject, 1, 3, false), DET_ERR_NOT_FOUND);
    subject_set_effect(subject, 0, 1);
    subject_set_effect(subject, 0, 1);
    before = image_read(box, "p");
    assert_int_equal(update_effect(subject, 1, 3, false), 0);
    after = image_read(box, "p");
    assert_int_equal(after->effects[0].row.attempts, 3);
    assert_int_equal(after->effects[0].row.last_error, -3);
    assert_int_equal(after->effects[0].row.next, 3000);
    before->effects[0].row.attempts = 3;
    before->effects[0].row.last_error = -3;
    before->effects[0].row.next = 3000;
    image_assert_equal(after, before);
    free(before);
    free(after);
}

static int explain_effect(struct subject *subject, const char *reason, bool is_dead)
{
    struct draft draft;
    struct det_store_effect *row;

    draft_init(&draft, subject);
    row = draft_effect(&draft, DET_STORE_UPDATE, 1, 0);
    row->attempts = 2;
    row->reason = reason;
    row->is_dead = is_dead;
    return draft_commit(&draft);
}

/* The reason is stored with the dead letter, for operators. */
static void reason_of_the_last_attempt_is_kept_alive_and_dead(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    char longest[DET_REASON_MAX + 1];
    const char *const printed[] = { "exit code 1: no such account", NULL, longest, "d'o\"h,{}\\" };

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    subject_set_effect(subject, 0, 1);
    /* All changes between alive and dead. */
    for (unsigned i = 0; i < 16; i++) {
        const char *reason = printed[i % 4];
        struct image *image;

        assert_int_equal(explain_effect(subject, reason, i & 1 || i & 4), 0);
        image = image_read(box, "p");
        assert_string_equal(image->effects[0].reason, reason ? reason : "");
        assert_true(image->effects[0].row.is_dead == (i & 1 || i & 4));
        free(image);
    }
}

static void a_dead_effect_can_be_made_alive_again(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct parcel_data data = parcel_data_value(10);
    struct parcel_event value = parcel_value(PARCEL_COUNT, 10);

    subject_set_effect(subject, 0, 1);
    subject_set_effect(subject, 0, 1);
    for (uint32_t i = 0; i < 6; i++) {
        struct image *image;

        assert_int_equal(update_effect(subject, 1, i, i % 3 != 2), 0);
        image = image_read(box, "p");
        assert_int_equal(image->effect_count, 2);
        assert_int_equal(image->effects[0].row.sequence, 1);
        assert_true(image->effects[0].row.is_dead == (i % 3 != 2));
        assert_int_equal(image->effects[0].row.attempts, i);
        assert_int_equal(image->effects[0].row.last_error, -(int)i);
        assert_true(parcel_data_equal(&image->effects[0].data, &data));
        assert_true(parcel_value_equal(PARCEL_COUNT, &image->effects[0].value, &value));
        assert_false(image->effects[1].row.is_dead);
        free(image);
    }
    assert_int_equal(update_effect(subject, 1, 1, false), 0);
    assert_int_equal(take_effect(subject, 1, 0), 0);
    assert_int_equal(update_effect(subject, 1, 1, false), DET_ERR_NOT_FOUND);
}

static void oldest_dead_effect_is_removed_over_the_limit(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (unsigned i = 1; i <= DET_DEAD_MAX + 3; i++) {
        subject_set_effect(subject, 0, 1);
        assert_int_equal(update_effect(subject, i, 8, true), 0);
    }
    subject_set_effect(subject, 0, 1);
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, DET_DEAD_MAX + 1);
    assert_int_equal(image->effects[0].row.sequence, 4);
    assert_int_equal(image->effects[DET_DEAD_MAX].row.sequence, DET_DEAD_MAX + 4);
    free(image);
}

static void dead_effect_limit_holds_when_many_die_at_once(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    for (unsigned i = 0; i < DET_DEAD_MAX + ROWS_MAX; i++)
        subject_set_effect(subject, 0, 1);
    for (uint64_t sequence = 0; sequence < DET_DEAD_MAX + ROWS_MAX;) {
        struct draft draft;

        draft_init(&draft, subject);
        for (int i = 0; i < ROWS_MAX; i++)
            draft_effect(&draft, DET_STORE_UPDATE, ++sequence, 0)->is_dead = true;
        assert_int_equal(draft_commit(&draft), 0);
    }
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, DET_DEAD_MAX);
    assert_int_equal(image->effects[0].row.sequence, ROWS_MAX + 1);
    free(image);
}

static int set_effect(struct subject *subject, uint64_t sequence, const char *reason, bool is_dead)
{
    struct draft draft;
    struct det_store_effect *row;

    draft_init(&draft, subject);
    row = draft_effect(&draft, DET_STORE_SET, sequence, 0);
    row->attempts = 5;
    row->last_error = DET_ERR_IO;
    row->reason = reason;
    row->is_dead = is_dead;
    row->next = 7000;
    return draft_commit(&draft);
}

/* An import sets it in one commit with everything else. */
static void an_effect_can_be_set_dead_and_with_a_reason(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct parcel_data data = parcel_data_value(10);
    struct parcel_event value = parcel_value(PARCEL_COUNT, 10);

    subject_set_effect(subject, 0, 1);
    subject_set_effect(subject, 0, 1);
    /* Replaces an effect that is alive or dead by one that is alive or dead. */
    for (unsigned i = 0; i < 16; i++) {
        const char *reason = i & 2 ? "status 503" : NULL;
        bool is_dead = i & 1 || i & 4;
        struct image *image;

        assert_int_equal(set_effect(subject, 1, reason, is_dead), 0);
        image = image_read(box, "p");
        assert_int_equal(image->effect_count, 2);
        assert_int_equal(image->effects[0].row.sequence, 1);
        assert_true(image->effects[0].row.is_dead == is_dead);
        assert_string_equal(image->effects[0].reason, reason ? reason : "");
        assert_int_equal(image->effects[0].row.attempts, 5);
        assert_int_equal(image->effects[0].row.last_error, DET_ERR_IO);
        assert_int_equal(image->effects[0].row.next, 7000);
        assert_true(parcel_data_equal(&image->effects[0].data, &data));
        assert_true(parcel_value_equal(PARCEL_COUNT, &image->effects[0].value, &value));
        assert_false(image->effects[1].row.is_dead);
        free(image);
    }
    assert_int_equal(take_effect(subject, 1, 0), 0);
    assert_int_equal(take_effect(subject, 1, 0), DET_ERR_NOT_FOUND);
}

static void dead_effect_limit_holds_for_effects_set_dead(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    uint16_t index = 0;
    struct image *image;

    subject_set_effect(subject, 0, 1);
    while (index < DET_DEAD_MAX + 3) {
        struct draft draft;

        draft_init(&draft, subject);
        for (int i = 0; i < ROWS_MAX && index < DET_DEAD_MAX + 3; i++)
            draft_effect(&draft, DET_STORE_SET, 1, index++)->is_dead = true;
        assert_int_equal(draft_commit(&draft), 0);
    }
    image = image_read(box, "p");
    assert_int_equal(image->effect_count, DET_DEAD_MAX);
    assert_int_equal(image->effects[0].row.index, 3);
    assert_int_equal(image->effects[DET_DEAD_MAX - 1].row.index, DET_DEAD_MAX + 2);
    free(image);
}

static int take_deferred(struct subject *subject, uint64_t sequence)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_deferred(&draft, DET_STORE_TAKE, sequence);
    return draft_commit(&draft);
}

static void deferred_events_are_kept_oldest_first_until_they_are_taken(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *image;

    assert_int_equal(take_deferred(subject, 1), DET_ERR_NOT_FOUND);
    for (int i = 0; i < DET_DEFERRED_MAX; i++)
        subject_defer(subject);
    assert_int_equal(take_deferred(subject, 2), 0);
    assert_int_equal(take_deferred(subject, 2), DET_ERR_NOT_FOUND);
    image = image_read(box, "p");
    assert_int_equal(image->deferred_count, DET_DEFERRED_MAX - 1);
    for (size_t i = 0; i < DET_DEFERRED_MAX - 1; i++) {
        assert_int_equal(image->deferred[i].sequence, i == 0 ? 1 : i + 2);
        assert_int_equal(value_number(&image->deferred[i].value), image->deferred[i].sequence);
    }
    free(image);
}

static void a_deferred_event_has_its_whole_payload(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_PACK, DET_OUTCOME_DEFERRED, PARCEL_CREATED);
    draft_deferred(&draft, DET_STORE_SET, 1);
    draft.deferred_values[0] = draft.values[0];
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_true(parcel_value_equal(PARCEL_PACK, &image->deferred[0].value, &draft.values[0]));
    free(image);
}

static void an_event_is_deferred_in_place_of_the_one_of_the_same_name(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;
    struct image *image;

    subject_defer(subject);
    subject_defer(subject);
    draft_init(&draft, subject);
    draft_deferred(&draft, DET_STORE_SET, 1);
    draft.deferred_values[0] = parcel_value(PARCEL_PACK, 7);
    assert_int_equal(draft_commit(&draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->deferred_count, 2);
    assert_int_equal(image->deferred[0].sequence, 1);
    assert_true(
        parcel_value_equal(PARCEL_PACK, &image->deferred[0].value, &draft.deferred_values[0]));
    free(image);
}

static const struct CMUnitTest effects[] = {
    CASE(an_effect_is_given_back_as_it_was_set),
    CASE(an_effect_keeps_its_origin_alive_dead_and_alive_again),
    CASE(effects_of_two_stores_have_different_keys),
    CASE(effects_come_oldest_first),
    CASE(an_effect_keeps_the_data_of_its_commit),
    CASE(an_effect_is_taken_once),
    CASE(the_end_of_an_effect_and_its_product_are_one_commit),
    CASE(effect_update_changes_only_its_own_fields),
    CASE(reason_of_the_last_attempt_is_kept_alive_and_dead),
    CASE(a_dead_effect_can_be_made_alive_again),
    CASE(oldest_dead_effect_is_removed_over_the_limit),
    CASE(dead_effect_limit_holds_when_many_die_at_once),
    CASE(an_effect_can_be_set_dead_and_with_a_reason),
    CASE(dead_effect_limit_holds_for_effects_set_dead),
    CASE(deferred_events_are_kept_oldest_first_until_they_are_taken),
    CASE(a_deferred_event_has_its_whole_payload),
    CASE(an_event_is_deferred_in_place_of_the_one_of_the_same_name),
};
const struct group effect_cases = GROUP_OF(effects);
