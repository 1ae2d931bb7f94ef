/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_files_test.c - folders and files of the tests come, hold bytes and go. */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/test.h"

#define LARGE 100001

static void a_file_holds_what_was_written(void **state)
{
    char *folder = det_test_folder();
    char path[256];
    char *data;
    size_t size;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/file", folder);
    det_test_write_file(path, "a\0b", 3);
    data = det_test_read_file(path, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4);
    free(data);
    det_test_write_file(path, NULL, 0);
    data = det_test_read_file(path, NULL);
    assert_string_equal(data, "");
    free(data);
    det_test_folder_remove(folder);
}

static void a_large_file_is_read_whole(void **state)
{
    static char large[LARGE];
    char *folder = det_test_folder();
    char path[256];
    char *data;
    size_t size;

    (void)state;
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)('a' + i % 23);
    (void)snprintf(path, sizeof path, "%s/large", folder);
    det_test_write_file(path, large, LARGE);
    data = det_test_read_file(path, &size);
    assert_int_equal(size, LARGE);
    assert_memory_equal(data, large, LARGE);
    free(data);
    det_test_folder_remove(folder);
}

static void test_folder_is_removed_with_its_content(void **state)
{
    char *folder = det_test_folder();
    char path[256], name[256];

    (void)state;
    (void)snprintf(name, sizeof name, "%s", folder);
    (void)snprintf(path, sizeof path, "%s/inner", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/inner/file", folder);
    det_test_write_file(path, "x", 1);
    /* A link is removed, not followed. */
    (void)snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink("/", path), 0);
    det_test_folder_remove(folder);
    assert_int_not_equal(access(name, F_OK), 0);
    det_test_folder_remove(NULL);
}

static void read_nothing(void *argument)
{
    free(det_test_read_file(argument, NULL));
}

static void write_nowhere(void *argument)
{
    det_test_write_file(argument, "x", 1);
}

static void remove_nothing(void *argument)
{
    det_test_folder_remove(argument);
}

static void impossible_file_operation_fails_the_test(void **state)
{
    char missing[] = "/nowhere/at/all";

    (void)state;
    assert_true(det_test_aborts(read_nothing, missing, "cannot open /nowhere/at/all"));
    assert_true(det_test_aborts(write_nowhere, missing, "cannot open /nowhere/at/all"));
    assert_true(det_test_aborts(remove_nothing, missing, "cannot remove the folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_holds_what_was_written),
        cmocka_unit_test(a_large_file_is_read_whole),
        cmocka_unit_test(test_folder_is_removed_with_its_content),
        cmocka_unit_test(impossible_file_operation_fails_the_test),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
