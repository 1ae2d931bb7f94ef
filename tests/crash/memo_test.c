/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memo_test.c - a disk is known by what was asked of it, and by nothing else. */
#include "crash/memo.h"

#include <string.h>

#include "lib/test.h"

struct fixture {
    struct crash_disk disk;
    struct crash_memo *memo;
    struct crash_model model;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    crash_disk_init(&f->disk);
    crash_disk_create(&f->disk, crash_disk_name(&f->disk, "a"));
    crash_disk_write(&f->disk, 0, 0, "what is there and what is not", 29);
    f->memo = crash_memo_open();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    crash_memo_close(f->memo);
    crash_disk_deinit(&f->disk);
    free(f);
    return 0;
}

/* Somebody asks for the first bytes and for another file, writes over what was read, and says so
 * and so. */
static void look(struct fixture *f, size_t size, unsigned findings)
{
    struct crash_verdict verdict = { .findings = findings, .model = &f->model };

    crash_memo_begin(f->memo, 1, &f->disk);
    crash_memo_ask(f->memo, "a", CRASH_ASK_BYTES, 0, size);
    crash_disk_write(&f->disk, 0, 0, "WHAT", 4);
    crash_memo_ask(f->memo, "b", CRASH_ASK_EXISTS, 0, 0);
    crash_memo_end(f->memo, &verdict);
    crash_disk_write(&f->disk, 0, 0, "what", 4);
}

static void bytes_that_nobody_read_do_not_count(void **state)
{
    struct fixture *f = *state;
    const struct crash_verdict *known;

    f->model.leases[0].token = 7;
    assert_null(crash_memo_find(f->memo, 1, &f->disk));
    look(f, 13, 3);
    f->model.leases[0].token = 8;
    crash_disk_write(&f->disk, 0, 20, "OTHER", 5);
    known = crash_memo_find(f->memo, 1, &f->disk);
    assert_non_null(known);
    assert_int_equal(known->findings, 3);
    assert_int_equal(known->model->leases[0].token, 7);
    assert_null(crash_memo_find(f->memo, 2, &f->disk));
}

static void every_byte_that_was_read_counts(void **state)
{
    struct fixture *f = *state;

    look(f, 13, 0);
    for (uint64_t i = 0; i < 13; i++) {
        uint8_t byte = f->disk.nodes[0].data[i];

        crash_disk_write(&f->disk, 0, i, "#", 1);
        assert_null(crash_memo_find(f->memo, 1, &f->disk));
        crash_disk_write(&f->disk, 0, i, &byte, 1);
        assert_non_null(crash_memo_find(f->memo, 1, &f->disk));
    }
}

static void sizes_and_files_that_were_asked_for_count(void **state)
{
    struct fixture *f = *state;

    look(f, 100, 0);
    assert_non_null(crash_memo_find(f->memo, 1, &f->disk));
    crash_disk_truncate(&f->disk, 0, 28);
    assert_null(crash_memo_find(f->memo, 1, &f->disk));
    crash_disk_write(&f->disk, 0, 28, "t", 1);
    assert_non_null(crash_memo_find(f->memo, 1, &f->disk));
    crash_disk_create(&f->disk, crash_disk_name(&f->disk, "b"));
    assert_null(crash_memo_find(f->memo, 1, &f->disk));
}

static void who_asks_something_else_is_not_remembered(void **state)
{
    struct fixture *f = *state;

    look(f, 13, 0);
    look(f, 12, 5);
    assert_int_equal(crash_memo_find(f->memo, 1, &f->disk)->findings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_that_nobody_read_do_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_byte_that_was_read_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            sizes_and_files_that_were_asked_for_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            who_asks_something_else_is_not_remembered, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
