/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memo_test.c - a disk is identified by its reads, and by nothing else. */
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
    crash_disk_write(&f->disk, 0, 0, "what the first file contained", 29);
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

/* Reads the first bytes and another file, overwrites what was read, and ends with this verdict. */
static void inspect(struct fixture *f, size_t size, unsigned findings)
{
    struct crash_verdict verdict = { .findings = findings, .model = &f->model };

    crash_memo_begin(f->memo, 1, &f->disk);
    crash_memo_read(f->memo, "a", CRASH_ASK_BYTES, 0, size);
    crash_disk_write(&f->disk, 0, 0, "WHAT", 4);
    crash_memo_read(f->memo, "b", CRASH_ASK_EXISTS, 0, 0);
    crash_memo_end(f->memo, &verdict);
    crash_disk_write(&f->disk, 0, 0, "what", 4);
}

static void bytes_that_were_not_read_do_not_count(void **state)
{
    struct fixture *f = *state;
    const struct crash_verdict *known;

    f->model.leases[0].token = 7;
    assert_null(crash_memo_find(f->memo, 1, &f->disk));
    inspect(f, 13, 3);
    f->model.leases[0].token = 8;
    crash_disk_write(&f->disk, 0, 20, "OTHER", 5);
    known = crash_memo_find(f->memo, 1, &f->disk);
    assert_non_null(known);
    assert_int_equal(known->findings, 3);
    assert_int_equal(known->model->leases[0].token, 7);
    assert_null(crash_memo_find(f->memo, 2, &f->disk));
}

static void memo_depends_on_every_byte_that_was_read(void **state)
{
    struct fixture *f = *state;

    inspect(f, 13, 0);
    for (uint64_t i = 0; i < 13; i++) {
        uint8_t byte = f->disk.nodes[0].data[i];

        crash_disk_write(&f->disk, 0, i, "#", 1);
        assert_null(crash_memo_find(f->memo, 1, &f->disk));
        crash_disk_write(&f->disk, 0, i, &byte, 1);
        assert_non_null(crash_memo_find(f->memo, 1, &f->disk));
    }
}

static void memo_depends_on_queried_sizes_and_files(void **state)
{
    struct fixture *f = *state;

    inspect(f, 100, 0);
    assert_non_null(crash_memo_find(f->memo, 1, &f->disk));
    crash_disk_truncate(&f->disk, 0, 28);
    assert_null(crash_memo_find(f->memo, 1, &f->disk));
    crash_disk_write(&f->disk, 0, 28, "d", 1);
    assert_non_null(crash_memo_find(f->memo, 1, &f->disk));
    crash_disk_create(&f->disk, crash_disk_name(&f->disk, "b"));
    assert_null(crash_memo_find(f->memo, 1, &f->disk));
}

static void memo_ignores_a_run_with_other_questions(void **state)
{
    struct fixture *f = *state;

    inspect(f, 13, 0);
    inspect(f, 12, 5);
    assert_int_equal(crash_memo_find(f->memo, 1, &f->disk)->findings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_that_were_not_read_do_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            memo_depends_on_every_byte_that_was_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memo_depends_on_queried_sizes_and_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memo_ignores_a_run_with_other_questions, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
