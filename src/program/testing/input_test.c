/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input_test.c - files as the commands see them. */
#include "terminal/input.h"

#include <sys/stat.h>
#include <unistd.h>

#include "terminal/folder_test.h"
#include "testing/stubs.h"

static void a_file_is_loaded_up_to_its_limit(void **state)
{
    struct fixture *fixture = *state;
    struct det_error error = { 0 };
    struct cli_text text;

    put_text(fixture, "a", "hello");
    assert_int_equal(cli_text_load(&fixture->cli, path_of(fixture, "a"), 5, &text, &error), 0);
    assert_int_equal(text.size, 5);
    assert_string_equal(text.data, "hello");
    cli_text_free(&fixture->cli, &text);
    assert_int_equal(
        cli_text_load(&fixture->cli, path_of(fixture, "a"), 4, &text, &error), DET_ERR_LIMIT);
    assert_int_equal(
        cli_text_load(&fixture->cli, path_of(fixture, "b"), 4, &text, &error), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "there is no such file"));
    assert_int_equal(cli_text_load(&fixture->cli, fixture->folder, 4, &text, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "is a folder"));
}

static void standard_input_is_read_to_its_end(void **state)
{
    struct fixture *fixture = *state;
    struct det_error error = { 0 };
    struct cli_text text;

    assert_int_equal(cli_text_load(&fixture->cli, "-", 100, &text, &error), 0);
    assert_int_equal(text.size, 0);
    cli_text_free(&fixture->cli, &text);
    fclose(fixture->cli.in);
    fixture->cli.in = fopen("/dev/zero", "r");
    assert_non_null(fixture->cli.in);
    assert_int_equal(cli_text_load(&fixture->cli, "-", 100, &text, &error), DET_ERR_LIMIT);
}

static void non_regular_file_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct det_error error = { 0 };
    struct cli_text text;
    const char *path = path_of(fixture, "pipe");

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(cli_text_load(&fixture->cli, path, 100, &text, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "is not a regular file; '-' reads the standard input"));
    assert_int_equal(cli_text_load(&fixture->cli, "/dev/zero", 100, &text, &error), DET_ERR_IO);
}

static void writing_keeps_the_mode_and_follows_a_link(void **state)
{
    struct fixture *fixture = *state;
    char link[600];
    struct stat status;
    char *text;

    put_text(fixture, "a", "old");
    assert_int_equal(chmod(path_of(fixture, "a"), 0604), 0);
    snprintf(link, sizeof link, "%s/link", fixture->folder);
    assert_int_equal(symlink("a", link), 0);
    assert_int_equal(cli_file_write(&fixture->cli, link, "new", 3), CLI_OK);
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat(path_of(fixture, "a"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0604);
    text = det_test_read_file(path_of(fixture, "a"), NULL);
    assert_string_equal(text, "new");
    free(text);
    assert_int_equal(cli_file_write(&fixture->cli, fixture->folder, "x", 1), CLI_FAILURE);
    assert_int_equal(
        cli_file_write(&fixture->cli, path_of(fixture, "no/where"), "x", 1), CLI_NOT_FOUND);
}

static void a_machine_with_too_many_functions_is_refused(void **state)
{
    static char text[64 * 1024];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "#define FSM_NAME m\n#define FSM_PREFIX M\nSTATE(A, a, INITIAL) EVENT(E, e) STAY(A, E)\n");
    struct det_error error = { 0 };
    struct det_spec *spec;

    (void)state;
    for (unsigned i = 0; i <= CLI_STUBS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "HOOK(h%u)\n", i);
    assert_int_equal(det_spec_read("m", text, used, NULL, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    assert_int_equal(cli_stubs_bind(det_spec_machine(spec), &error), DET_ERR_LIMIT);
    assert_string_equal(error.text, "more than 256 hooks: too many to simulate");
    det_spec_close(spec);
}

static int load_scenario(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    struct cli cli = fixture->cli;
    struct cli_text text = { 0 };
    struct det_error error;
    int r;

    cli.allocator = &memory->allocator;
    r = cli_text_load(&cli, path_of(fixture, "a"), 100, &text, &error);
    cli_text_free(&cli, &text);
    if (r == 0)
        r = cli_text_load(&cli, "-", 100, &text, &error);
    cli_text_free(&cli, &text);
    return r;
}

static void loading_survives_every_failed_allocation(void **state)
{
    put_text(*state, "a", "text");
    det_test_each_failure(load_scenario, *state);
}

static void existence_and_identity_of_files_are_detected(void **state)
{
    struct fixture *fixture = *state;
    char link[600];

    put_text(fixture, "a", "");
    snprintf(link, sizeof link, "%s/link", fixture->folder);
    assert_int_equal(symlink("a", link), 0);
    assert_true(cli_is_there(path_of(fixture, "a")));
    assert_false(cli_is_there(path_of(fixture, "a/x")));
    assert_false(cli_is_there(path_of(fixture, "b")));
    assert_true(cli_is_same_file(path_of(fixture, "a"), link));
    assert_false(cli_is_same_file(fixture->folder, link));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_loaded_up_to_its_limit),
        TEST(standard_input_is_read_to_its_end),
        TEST(non_regular_file_is_refused),
        TEST(writing_keeps_the_mode_and_follows_a_link),
        TEST(existence_and_identity_of_files_are_detected),
        TEST(a_machine_with_too_many_functions_is_refused),
        TEST(loading_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
