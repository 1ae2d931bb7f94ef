/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* ring_test.c - credit over the slowest reader; memory that grows with the lag. */
#include "flow/ring.h"

#include "lib/test.h"

static void write_rows(struct det_ring *ring, uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t number = ++ring->written;

        det_ring_slot(ring, number)->sequence = number;
        memcpy(det_ring_value(ring, number), &number, sizeof number);
    }
}

static void assert_rows(const struct det_ring *ring, uint64_t first, uint64_t last)
{
    for (uint64_t number = first; number <= last; number++) {
        assert_int_equal(det_ring_slot(ring, number)->sequence, number);
        assert_memory_equal(det_ring_value(ring, number), &number, sizeof number);
    }
}

static void credit_follows_the_slowest_reader(void **state)
{
    struct det_ring_reader fast = { 0 }, slow = { 0 };
    struct det_ring ring;

    (void)state;
    assert_int_equal(det_ring_init(&ring, NULL, 8, 10), 0);
    assert_int_equal(det_ring_add(&ring, &fast), 0);
    assert_int_equal(det_ring_add(&ring, &slow), 0);
    assert_int_equal(det_ring_credit(&ring), 10);
    write_rows(&ring, 10);
    fast.read = 10;
    assert_int_equal(det_ring_credit(&ring), 0);
    slow.read = 3;
    assert_int_equal(det_ring_credit(&ring), 3);
    det_ring_remove(&ring, &slow);
    assert_int_equal(det_ring_credit(&ring), 10);
    det_ring_deinit(&ring);
}

static void slots_grow_with_the_lag_up_to_the_window(void **state)
{
    struct det_ring_reader reader = { 0 };
    struct det_ring ring;

    (void)state;
    assert_int_equal(det_ring_init(&ring, NULL, 8, 1000), 0);
    assert_int_equal(det_ring_add(&ring, &reader), 0);
    assert_true(det_ring_slots(&ring, false) < 200);
    while (det_ring_slots(&ring, false) > 0)
        write_rows(&ring, det_ring_slots(&ring, false));
    assert_int_equal(ring.written, 1000);
    assert_rows(&ring, 1, 1000);
    reader.read = 990;
    write_rows(&ring, 20);
    assert_rows(&ring, 991, 1020);
    det_ring_deinit(&ring);
}

static void a_ring_without_lag_stays_small(void **state)
{
    struct det_ring_reader reader = { 0 };
    struct det_ring ring;

    (void)state;
    assert_int_equal(det_ring_init(&ring, NULL, 8, 100000), 0);
    assert_int_equal(det_ring_add(&ring, &reader), 0);
    for (int i = 0; i < 10000; i++) {
        write_rows(&ring, 50);
        reader.read = ring.written;
        assert_true(det_ring_slots(&ring, false) > 0);
    }
    assert_true(det_ring_capacity(&ring) < 200);
    det_ring_deinit(&ring);
}

static int fill_ring(struct det_test_memory *memory, void *argument)
{
    struct det_ring_reader reader = { 0 };
    struct det_ring ring;
    int r;

    (void)argument;
    r = det_ring_init(&ring, &memory->allocator, 8, 1000);
    if (r < 0)
        return r;
    r = det_ring_add(&ring, &reader);
    while (r == 0 && det_ring_credit(&ring) > 0) {
        uint64_t slots = det_ring_slots(&ring, true);

        write_rows(&ring, slots);
        if (slots == 0)
            r = DET_ERR_NO_MEMORY;
    }
    assert_rows(&ring, 1, ring.written);
    det_ring_deinit(&ring);
    return r;
}

static void a_ring_that_cannot_grow_keeps_its_rows(void **state)
{
    (void)state;
    det_test_each_failure(fill_ring, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_follows_the_slowest_reader),
        cmocka_unit_test(slots_grow_with_the_lag_up_to_the_window),
        cmocka_unit_test(a_ring_without_lag_stays_small),
        cmocka_unit_test(a_ring_that_cannot_grow_keeps_its_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
