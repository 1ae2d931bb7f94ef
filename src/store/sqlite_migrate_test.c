/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_migrate_test.c - migration of a SQLite file. */
#include "store/migrate_cases.h"

static char *folder;
static unsigned files;

static void new_url(char *target, size_t capacity)
{
    (void)snprintf(target, capacity, "sqlite:%s/%u.db", folder, files++);
}

static int open_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

/* The store is a file, which a run without memory must leave as it was or migrated. */
static int migrate_poorly(struct det_test_memory *memory, void *argument)
{
    struct fixture *f = argument;
    const struct det_store_options options = { .allocator = &memory->allocator };
    struct det_store *store;
    uint64_t rows;
    int r = det_store_open_with(f->url, &options, &store, NULL);

    if (r < 0)
        return r;
    r = store->ops->migrate(store, det_spec_machine(f->new), swaps, 4, &rows, NULL);
    det_store_close(store);
    return r;
}

static void without_memory_nothing_is_half_done(void **state)
{
    struct fixture *f = open_fixture(SWAPPED);

    (void)state;
    /* Every run that succeeds exchanges the names once more. */
    det_test_each_failure(migrate_poorly, f);
    open_store(f, false);
    assert_int_equal(f->store->ops->check(f->store, count_finding, NULL, NULL), 0);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MIGRATE_CASES,
        cmocka_unit_test(without_memory_nothing_is_half_done),
    };

    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
