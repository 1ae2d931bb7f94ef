/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_ring_test.c - the ring of the last events, with all parts of an event. */
#include "store/pad_test.h"

/* Payloads of both sizes, ids and causes, in turn, so that a place in the ring holds each
 * of them. */
static int send_numbered(struct pad *pad, uint64_t number)
{
    char id[32], cause[32];

    snprintf(id, sizeof id, "id-%d", (int)number);
    snprintf(cause, sizeof cause, "pad/p/%d/0", (int)number);
    begin(pad);
    memset(&pad->value, 0, sizeof pad->value);
    add_event(pad, (unsigned)(number * 7 % 3));
    if (pad->value.kind == SMALL)
        pad->value.as.small = number * 3;
    if (pad->value.kind == TEXT)
        snprintf(pad->value.as.note.text, 100, "text %d", (int)number);
    if (number % 4 == 0)
        pad->event.event_id = id;
    if (number % 5 == 0)
        pad->event.cause = cause;
    return commit(pad);
}

static void the_last_events_are_kept_with_all_they_carry(void **state)
{
    static const uint32_t kept[] = { 1, 3, 5, 64 };

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct pad *pad = pad_open(&(struct det_store_options){ .events_kept = kept[k] });
        struct rows rows = { 0 };

        for (uint64_t i = 1; i <= 100; i++) {
            size_t expected = i < kept[k] ? (size_t)i : kept[k];

            assert_int_equal(send_numbered(pad, i), 0);
            assert_int_equal(walk(pad, 0, &rows), 0);
            assert_int_equal(rows.count, expected);
            assert_int_equal(rows.last, i);
        }
        assert_int_equal(walk(pad, 99, &rows), 0);
        assert_int_equal(rows.count, 1);
        assert_int_equal(walk(pad, 100, &rows), 0);
        assert_int_equal(rows.count, 0);
        rows.stop_at = 100;
        assert_int_equal(walk(pad, 0, &rows), 99);
        pad_close(pad);
    }
}

static void a_commit_of_more_events_than_are_kept_keeps_the_last(void **state)
{
    struct pad *pad = pad_open(&(struct det_store_options){ .events_kept = 3 });
    struct det_store_event events[8];
    struct pad_event values[8];
    struct rows rows = { 0 };

    (void)state;
    /* Each place has held something, but not all of them what the first of these events carry. */
    for (uint64_t i = 1; i <= 8; i++)
        assert_int_equal(send_numbered(pad, i), 0);
    begin(pad);
    for (int i = 0; i < 8; i++) {
        memset(&pad->value, 0, sizeof pad->value);
        add_event(pad, i < 5 || i == 6 ? TEXT : SMALL);
        if (pad->value.kind == TEXT)
            snprintf(pad->value.as.note.text, 100, "text %d", i + 9);
        else
            pad->value.as.small = (uint64_t)(i + 9) * 3;
        values[i] = pad->value;
        events[i] = pad->event;
        events[i].value = &values[i];
    }
    pad->commit.events = events;
    pad->commit.event_count = 8;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.first, 14);
    assert_int_equal(rows.last, 16);
    pad_close(pad);
}

static int walk_all(struct det_test_memory *memory, void *argument)
{
    struct rows rows = { 0 };
    struct pad pad;
    int r;

    r = pad_open_in(&pad, &(struct det_store_options){ .allocator = &memory->allocator }, argument);
    for (uint64_t i = 1; r == 0 && i <= 3; i++)
        r = send_numbered(&pad, i);
    if (r == 0) {
        r = walk(&pad, 0, &rows);
        assert_int_equal(rows.count, r == 0 ? 3 : 0);
    }
    det_store_close(pad.store);
    return r;
}

static void event_walk_without_memory_visits_nothing(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(walk_all, machine);
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_events_are_kept_with_all_they_carry),
        cmocka_unit_test(a_commit_of_more_events_than_are_kept_keeps_the_last),
        cmocka_unit_test(event_walk_without_memory_visits_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
