/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count_test.c - numbers by machine and state, with and without memory. */
#include <detent/tool/store.h>

#include "store/count.h"

#include "store/pad_test.h"

struct reported {
    char text[256];
    int left; /* rows until it answers 66; 0: it does not */
};

static int write_row(void *context, const struct det_store_counted *row)
{
    struct reported *reported = context;
    size_t length = strlen(reported->text);

    snprintf(
        reported->text + length, sizeof reported->text - length, "%s/%s %d+%d %d; ", row->machine,
        row->state ? row->state : "", (int)row->running, (int)row->stopped, (int)row->timers);
    return reported->left && --reported->left == 0 ? 66 : 0;
}

static int add_all(struct det_test_memory *memory, void *argument)
{
    static const struct det_store_counted rows[] = {
        { .machine = "b", .state = "y", .running = 1 },
        { .machine = "b", .state = "x", .stopped = 2 },
        { .machine = "b", .state = "y", .running = 3 },
        { .machine = "a", .timers = 4 },
        { .machine = "a", .timers = 1 },
    };
    struct reported reported = { .left = 0 };
    struct det_count count;
    int r = 0;

    (void)argument;
    det_count_init(&count, &memory->allocator);
    for (size_t i = 0; r == 0 && i < sizeof rows / sizeof *rows; i++)
        r = det_count_add(&count, &rows[i]);
    if (r == 0) {
        assert_int_equal(det_count_report(&count, write_row, &reported), 0);
        assert_string_equal(reported.text, "a/ 0+0 5; b/ 4+2 0; b/x 0+2 0; b/y 4+0 0; ");
        reported = (struct reported){ .left = 2 };
        assert_int_equal(det_count_report(&count, write_row, &reported), 66);
        assert_string_equal(reported.text, "a/ 0+0 5; b/ 4+2 0; ");
    }
    det_count_deinit(&count);
    return r;
}

static void counts_are_summed_and_reported_in_order(void **state)
{
    (void)state;
    det_test_each_failure(add_all, NULL);
}

static void empty_counts_report_nothing(void **state)
{
    struct det_count count;

    (void)state;
    det_count_init(&count, NULL);
    assert_int_equal(det_count_report(&count, write_row, NULL), 0);
    det_count_deinit(&count);
}

static int count_memory(struct det_test_memory *memory, void *argument)
{
    struct det_store_options options = { .allocator = &memory->allocator };
    struct reported reported = { .left = 0 };
    struct det_store *store = NULL;
    uint64_t bytes = 7;
    int r;

    r = det_store_open_with("memory:", &options, &store, NULL);
    if (r == 0)
        r = store->ops->serve(store, argument, NULL);
    if (r == 0)
        r = det_store_count(store, write_row, &reported, &bytes);
    if (r == 0) {
        assert_string_equal(reported.text, "pad/ 0+0 0; ");
        assert_int_equal(bytes, 0);
    }
    det_store_close(store);
    return r;
}

static void store_counts_survive_every_failed_allocation(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(count_memory, machine);
    det_machine_close(machine);
}

static void store_that_served_nothing_counts_nothing(void **state)
{
    struct reported reported = { .left = 0 };
    struct det_store *store = NULL;
    uint64_t bytes = 7;

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    assert_int_equal(det_store_count(store, write_row, &reported, &bytes), 0);
    assert_string_equal(reported.text, "");
    det_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_summed_and_reported_in_order),
        cmocka_unit_test(empty_counts_report_nothing),
        cmocka_unit_test(store_counts_survive_every_failed_allocation),
        cmocka_unit_test(store_that_served_nothing_counts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
