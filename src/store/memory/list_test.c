/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */

/* list_test.c - lists and due work in the memory store: order, pages, and lists while other threads
 * write. */
#include <pthread.h>

#include "store/pad_test.h"

/* Starts an instance with this id in the pad's store. */
static int start(struct pad *pad, const char *id, const struct det_store_timer_change *timer)
{
    struct det_store_head head = { .visit = 1, .started_at = 7, .last_transition_at = 7 };
    struct det_store_commit made = {
        .machine = pad->machine,
        .id = id,
        .is_new = true,
        .head = &head,
        .data = &pad->data,
        .timers = timer,
        .timer_count = timer ? 1 : 0,
    };
    struct det_store_commit *const one = &made;
    int r;

    r = pad->store->ops->commit(pad->store, &one, 1);
    return r < 0 ? r : made.result;
}

struct seen {
    char last[DET_ID_MAX + 1];
    size_t count;
    det_time due;
    size_t stop_at;
};

static int see(void *context, const struct det_store_listed *row)
{
    struct seen *seen = context;

    assert_true(strcmp(row->id, seen->last) > 0);
    snprintf(seen->last, sizeof seen->last, "%s", row->id);
    return ++seen->count == seen->stop_at ? 77 : 0;
}

static int list(struct pad *pad, struct det_store_query query, struct seen *seen)
{
    return pad->store->ops->list(pad->store, pad->machine, &query, see, seen);
}

static void new_ones_are_merged_into_the_order(void **state)
{
    struct pad *pad = pad_open(NULL);
    uint64_t seed = 3;
    size_t count = 1;
    char id[24];

    (void)state;
    for (int round = 0; round < 30; round++) {
        struct seen seen = { 0 };

        for (uint64_t n = det_test_random(&seed) % 40; n; n--) {
            snprintf(id, sizeof id, "%d", (int)(det_test_random(&seed) % 4000));
            count += start(pad, id, NULL) == 0;
        }
        assert_int_equal(list(pad, (struct det_store_query){ 0 }, &seen), 0);
        assert_int_equal(seen.count, count);
    }
    pad_close(pad);
}

static void pages_of_any_size_list_each_instance_once(void **state)
{
    struct pad *pad = pad_open(NULL);
    char id[24];

    (void)state;
    for (int i = 0; i < 199; i++) {
        snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(start(pad, id, NULL), 0);
    }
    for (size_t limit = 1; limit < 300; limit += 1 + limit / 3) {
        struct seen seen = { 0 };
        size_t before;
        char after[DET_ID_MAX + 1];

        do {
            before = seen.count;
            memcpy(after, seen.last, sizeof after);
            assert_int_equal(
                list(pad, (struct det_store_query){ .after = after, .limit = limit }, &seen), 0);
            assert_true(seen.count - before <= limit);
        } while (seen.count > before);
        assert_int_equal(seen.count, 200);
    }
    pad_close(pad);
}

static void visitor_result_ends_the_list(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct seen seen = { .stop_at = 1 };

    (void)state;
    assert_int_equal(start(pad, "q", NULL), 0);
    assert_int_equal(list(pad, (struct det_store_query){ 0 }, &seen), 77);
    assert_int_equal(seen.count, 1);
    pad_close(pad);
}

static int see_due(void *context, const struct det_store_due *row)
{
    struct seen *seen = context;

    assert_true(row->due > seen->due || (row->due == seen->due && strcmp(row->id, seen->last) > 0));
    seen->due = row->due;
    snprintf(seen->last, sizeof seen->last, "%s", row->id);
    return ++seen->count == seen->stop_at ? 77 : 0;
}

static void due_timers_are_listed_with_the_next_due_time(void **state)
{
    struct pad *pad = pad_open(NULL);
    uint64_t seed = 9;
    char id[24];

    (void)state;
    for (int i = 0; i < 300; i++) {
        struct det_store_timer_change timer = {
            DET_STORE_SET, { .timer = DET_STATE_TIMER, .event = BARE, .visit = 1 }
        };

        timer.timer.due = 1 + (det_time)(det_test_random(&seed) % 100);
        snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(start(pad, id, &timer), 0);
    }
    for (size_t limit = 0; limit < 400; limit += 1 + limit / 2) {
        struct seen all = { 0 }, seen = { 0 };
        det_time next = 0, last = 0;

        assert_int_equal(
            pad->store->ops->due(
                pad->store, pad->machine,
                &(struct det_store_due_query){ .before = DET_NEVER, .limit = SIZE_MAX }, see_due,
                &all, &last),
            0);
        assert_int_equal(
            pad->store->ops->due(
                pad->store, pad->machine,
                &(struct det_store_due_query){ .before = 60, .limit = limit }, see_due, &seen,
                &next),
            0);
        assert_int_equal(all.count, 300);
        assert_true(last == DET_NEVER);
        assert_true(seen.count <= limit && seen.due <= 60 && next >= seen.due && next <= 61);
        assert_true(seen.count == limit || next > 60);
    }
    pad_close(pad);
}

static void visitor_result_ends_the_due_rows(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct det_store_timer_change timer = {
        DET_STORE_SET, { .timer = DET_STATE_TIMER, .event = BARE, .visit = 1, .due = 5 }
    };
    struct seen seen = { .stop_at = 1 };
    det_time next = 33;

    (void)state;
    assert_int_equal(start(pad, "q", &timer), 0);
    assert_int_equal(
        pad->store->ops->due(
            pad->store, pad->machine, &(struct det_store_due_query){ .before = 5, .limit = 9 },
            see_due, &seen, &next),
        77);
    assert_int_equal(next, 33);
    pad_close(pad);
}

static int look_without_memory(struct det_test_memory *memory, void *argument)
{
    struct det_store_timer_change timer = { DET_STORE_SET,
                                            { .timer = 0, .event = BARE, .visit = 1, .due = 5 } };
    struct seen seen = { 0 }, due = { 0 };
    det_time next;
    struct pad pad;
    char id[24];
    int r;

    r = pad_open_in(&pad, &(struct det_store_options){ .allocator = &memory->allocator }, argument);
    for (int i = 0; r == 0 && i < 40; i++) {
        snprintf(id, sizeof id, "i%d", i);
        r = start(&pad, id, &timer);
    }
    if (r == 0)
        r = list(&pad, (struct det_store_query){ 0 }, &seen);
    if (r == 0) {
        assert_int_equal(seen.count, 41);
        r = pad.store->ops->due(
            pad.store, pad.machine, &(struct det_store_due_query){ .before = 5, .limit = 50 },
            see_due, &due, &next);
    }
    if (r == 0)
        assert_int_equal(due.count, 40);
    det_store_close(pad.store);
    return r;
}

static void listing_survives_each_failed_allocation(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(look_without_memory, machine);
    det_machine_close(machine);
}

/* Writes to the pad's own instance: timers, effects, new ones beside it. */
static void *write_all_the_time(void *argument)
{
    struct pad *pad = argument;
    struct pad_event value = { .kind = SMALL };
    char id[24];

    for (uint64_t i = 1; i <= 2000; i++) {
        struct det_store_timer_change timers[] = {
            { i % 3 ? DET_STORE_SET : DET_STORE_CLEAR,
              { .timer = DET_STATE_TIMER, .event = BARE, .visit = 1, .due = (det_time)i } },
            { DET_STORE_SET, { .timer = 0, .event = BARE, .visit = 1, .due = (det_time)i } },
        };
        struct det_store_effect_change effects[] = {
            { DET_STORE_SET, { .sequence = i, .data = &pad->data, .event = &value } },
            { DET_STORE_TAKE, { .sequence = i - 1 } },
        };

        begin(pad);
        add_event(pad, BARE);
        pad->commit.timers = timers;
        pad->commit.timer_count = 1 + i % 2;
        pad->commit.effects = effects;
        pad->commit.effect_count = i > 1 ? 2 : 1;
        if (commit(pad) < 0)
            return pad;
        snprintf(id, sizeof id, "w%d", (int)i);
        if (i % 16 == 0 && start(pad, id, NULL) < 0)
            return pad;
    }
    return NULL;
}

static int nothing_due(void *context, const struct det_store_due *row)
{
    (void)row;
    ++*(size_t *)context;
    return 0;
}

static void listing_is_allowed_while_another_thread_writes(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct det_store_lease lease;
    size_t count = 0;
    pthread_t writer;
    void *failed;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, write_all_the_time, pad), 0);
    for (int i = 0; i < 300; i++) {
        struct seen seen = { 0 };
        det_time next;

        assert_int_equal(list(pad, (struct det_store_query){ 0 }, &seen), 0);
        assert_int_equal(
            pad->store->ops->due(
                pad->store, pad->machine,
                &(struct det_store_due_query){ .before = DET_NEVER, .limit = 8 }, nothing_due,
                &count, &next),
            0);
        assert_int_equal(
            pad->store->ops->lock(
                pad->store, pad->machine,
                &(struct det_store_lease_change){ .verb = DET_LEASE_READ, .name = "p" }, &lease),
            0);
        assert_true(lease.sequence <= 2000);
    }
    pthread_join(writer, &failed);
    assert_null(failed);
    assert_int_equal(load(pad)->effect_count, 1);
    pad_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_ones_are_merged_into_the_order),
        cmocka_unit_test(pages_of_any_size_list_each_instance_once),
        cmocka_unit_test(visitor_result_ends_the_list),
        cmocka_unit_test(due_timers_are_listed_with_the_next_due_time),
        cmocka_unit_test(visitor_result_ends_the_due_rows),
        cmocka_unit_test(listing_survives_each_failed_allocation),
        cmocka_unit_test(listing_is_allowed_while_another_thread_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
