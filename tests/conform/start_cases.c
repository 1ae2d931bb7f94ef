/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* start_cases.c - the start of an instance: stored as long as its first event, and covered by the
 * chain of its events. */
#include "conform/conform.h"

static int ask(struct subject *subject, struct parcel_data *data, struct det_store_start *ret)
{
    *ret = (struct det_store_start){ .data = data };
    return subject->store->ops->start(subject->store, subject->instance, ret);
}

static void assert_has_none(struct subject *subject)
{
    struct det_store_start start;
    struct parcel_data data;

    assert_int_equal(ask(subject, &data, &start), DET_ERR_NOT_FOUND);
}

/* Three events, with other data since. */
static struct subject *three(struct box *box, const char *id)
{
    struct subject *subject = subject_start(box, id);
    struct draft draft;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_HOLD, DET_OUTCOME_GOTO, PARCEL_HELD);
    draft_data(&draft, 55);
    assert_int_equal(draft_commit(&draft), 0);
    subject_move(subject, PARCEL_COUNT, PARCEL_HELD);
    return subject;
}

static void start_is_kept_whatever_follows(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct parcel_data began = subject->data, data;
    struct det_store_start start;

    for (int i = 0; i < 2; i++) {
        memset(&data, 0xa5, sizeof data);
        assert_int_equal(ask(subject, &data, &start), 0);
        assert_true(parcel_data_equal(&data, &began));
        assert_int_equal(start.state, PARCEL_CREATED);
        assert_int_equal(start.version, box->machine->version);
        assert_true(start.at == subject->head.started_at);
        if (i == 0) {
            subject = three(box, "q");
            box_reopen(box);
            subject = subject_find(box, box->store, "q");
        }
    }
}

static void unknown_start_is_not_returned(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_new(box, "p");
    struct draft draft;

    draft_start(&draft, subject);
    draft.commit.is_start_unknown = true;
    assert_int_equal(draft_commit(&draft), 0);
    assert_has_none(subject);
    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    box_reopen(box);
    assert_has_none(subject_find(box, box->store, "p"));
    /* An instance with a history has an unknown start. */
    subject = subject_new(box, "q");
    draft_start(&draft, subject);
    draft.head.sequence = 7;
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
    assert_has_none(subject);
}

static void start_is_pruned_with_the_first_event(void **state)
{
    struct box *box = *state;
    struct subject *subject = three(box, "p");
    struct det_store_start start;
    struct parcel_data data;
    struct draft draft;
    uint64_t gone;

    draft_init(&draft, subject);
    draft_snapshot(&draft);
    assert_int_equal(draft_commit(&draft), 0);
    assert_int_equal(box->store->ops->prune(box->store, subject->instance, 0, 0, &gone), 0);
    assert_int_equal(gone, 0);
    assert_int_equal(ask(subject, &data, &start), 0);
    assert_int_equal(box->store->ops->prune(box->store, subject->instance, 1, 0, &gone), 0);
    assert_int_equal(gone, 1);
    assert_has_none(subject);
}

/* At least one finding for each of d0, d1, ... and none for others. */
static int note_finding(void *context, const struct det_store_finding *row)
{
    unsigned *found = context;

    assert_non_null(row->id);
    assert_int_equal(row->id[0], 'd');
    assert_true(row->sequence <= 1);
    *found |= 1u << (row->id[1] - '0');
    return 0;
}

static void the_check_finds_a_start_that_was_changed(void **state)
{
    static const char *const damages[] = {
        "UPDATE @starts SET state = 'packed'",
        "UPDATE @starts SET version = version + 1",
        "UPDATE @starts SET at = at + 1",
        "UPDATE @starts SET data = (SELECT data FROM @instances WHERE id = 'whole')",
        "DELETE FROM @starts",
    };
    size_t count = sizeof damages / sizeof damages[0];
    struct box *box = *state;
    unsigned found = 0;
    char id[8], sql[256];

    if (!box->driver->execute)
        return;
    (void)three(box, "whole");
    for (size_t i = 0; i < 2 * count; i++) {
        snprintf(id, sizeof id, "d%zu", i);
        (void)(i < count ? subject_start(box, id) : three(box, id));
    }
    for (size_t i = 0; i < 2 * count; i++) {
        snprintf(
            sql, sizeof sql, "%s WHERE instance = (SELECT key FROM @instances WHERE id = 'd%zu')",
            damages[i % count], i);
        box_damage(box, sql);
    }
    box->store = box_open_store(box);
    assert_int_equal(box->store->ops->check(box->store, note_finding, NULL, &found), 0);
    assert_int_equal(found, (1u << 2 * count) - 1);
}

static const struct CMUnitTest starts[] = {
    CASE(start_is_kept_whatever_follows),
    CASE(unknown_start_is_not_returned),
    CASE(start_is_pruned_with_the_first_event),
    CASE(the_check_finds_a_start_that_was_changed),
};
const struct group start_cases = GROUP_OF(starts);
