/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_commit_test.c - every call is in exactly one batch, with any leader. */
/* test: threads */
#include "store/group_commit_cases.h"

static void each_commit_of_many_threads_is_written_once(void **state)
{
    (void)state;
    for (unsigned writers = 1; writers <= 4; writers++) {
        struct desk desk = { .world = det_world_real(), .writers = writers, .items_max = 16 };

        run_senders(&desk);
        assert_true(atomic_load(&desk.largest) == 20);
    }
}

static void one_sender_alone_allocates_nothing(void **state)
{
    struct desk desk = { .world = det_world_real(), .writers = 1 };
    struct det_store_commit commit = { .expected = 5 };
    struct det_store_commit *const one = &commit;
    struct det_test_memory memory;
    uint64_t calls;

    (void)state;
    det_test_memory_init(&memory);
    assert_int_equal(desk_open(&desk, &memory.allocator), 0);
    calls = memory.calls;
    assert_int_equal(det_group_commit(desk.group, &one, 1), 0);
    assert_int_equal(commit.result, 5);
    assert_int_equal(det_group_alone(desk.group, run_alone, &desk), 7);
    assert_int_equal(memory.calls, calls);
    det_group_close(desk.group);
    det_group_close(NULL);
    det_test_memory_deinit(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_commit_of_many_threads_is_written_once),
        cmocka_unit_test(one_sender_alone_allocates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
