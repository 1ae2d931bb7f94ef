/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* thread_test.c - many threads on one file: each commit once, readers beside them. */
/* test: threads */
#include "store/sqlite/senders_cases.h"

static void many_threads_write_and_read_one_file(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    sqlite_store_of(shelf.pad.store)->checkpoint_at = 50;
    run_senders(&shelf, det_world_real());
    shelf_deinit(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_write_and_read_one_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
