/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_file_test.c - a detent.yaml from the disk, and what is said about it. */
#include "terminal/folder_test.h"

#include "config/project_file.h"

#define RIGHT "version: 1\ntasks:\n  web: {run: sh -c true, folder: .}\n"

static const char *printed(struct fixture *fixture)
{
    fflush(fixture->cli.err);
    return fixture->printed;
}

static int open_file(struct fixture *fixture, const char *name, struct config_file *file)
{
    return config_file_open(&fixture->cli, path_of(fixture, name), file);
}

static void valid_file_is_loaded(void **state)
{
    struct fixture *fixture = *state;
    struct config_file file;

    put_text(fixture, "detent.yaml", RIGHT);
    assert_int_equal(open_file(fixture, "detent.yaml", &file), CLI_OK);
    assert_int_equal(file.config.task_count, 1);
    assert_int_equal(file.problem_count, 0);
    assert_string_equal(printed(fixture), "");
    config_file_close(&fixture->cli, &file);
}

static void problems_are_reported_with_their_lines(void **state)
{
    struct fixture *fixture = *state;
    struct config_file file;

    put_text(fixture, "a.yaml", "version: 1\ntasks:\n  web: {run: sh, timeout: soon}\n");
    assert_int_equal(open_file(fixture, "a.yaml", &file), CLI_USAGE);
    assert_int_equal(file.problem_count, 1);
    assert_non_null(strstr(printed(fixture), "a.yaml:3:27: error: expected a duration such as"));
    assert_non_null(strstr(printed(fixture), "    3 |   web: {run: sh, timeout: soon}\n"));
    config_file_close(&fixture->cli, &file);
    put_text(fixture, "b.yaml", "version: 1\ntasks:\n  web: {run: no-such-program-here}\n");
    assert_int_equal(open_file(fixture, "b.yaml", &file), CLI_USAGE);
    assert_non_null(strstr(printed(fixture), "b.yaml:3:14: error: there is no program 'no-such"));
    config_file_close(&fixture->cli, &file);
    put_text(fixture, "c.yaml", "a: [\n");
    assert_int_equal(open_file(fixture, "c.yaml", &file), CLI_USAGE);
    assert_non_null(strstr(printed(fixture), "error: not YAML"));
    config_file_close(&fixture->cli, &file);
}

static void only_the_first_problems_are_reported(void **state)
{
    struct fixture *fixture = *state;
    char text[1024] = "version: 1\ntasks:\n";
    struct config_file file;

    for (int i = 0; i < 30; i++) {
        size_t used = strlen(text);

        (void)snprintf(text + used, sizeof text - used, "  t%d: {}\n", i);
    }
    put_text(fixture, "many.yaml", text);
    assert_int_equal(open_file(fixture, "many.yaml", &file), CLI_USAGE);
    assert_int_equal(file.problem_count, CLI_PROBLEMS_MAX);
    assert_non_null(strstr(printed(fixture), "only the first 20 problems are shown\n"));
    config_file_close(&fixture->cli, &file);
}

static void missing_file_is_not_found(void **state)
{
    struct fixture *fixture = *state;
    struct config_file file;

    assert_int_equal(open_file(fixture, "none.yaml", &file), CLI_NOT_FOUND);
    assert_non_null(strstr(printed(fixture), "none.yaml: there is no such file"));
    config_file_close(&fixture->cli, &file);
}

static void config_file_is_recognized_by_its_extension(void **state)
{
    (void)state;
    assert_true(config_file_is_one("a/detent.yaml"));
    assert_true(config_file_is_one("x.yml"));
    assert_false(config_file_is_one("x.test.yaml"));
    assert_false(config_file_is_one("x.fsm"));
    assert_false(config_file_is_one("-"));
}

static int load(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    struct cli cli = fixture->cli;
    struct config_file file;
    int code;

    cli.allocator = &memory->allocator;
    code = config_file_open(&cli, path_of(fixture, "detent.yaml"), &file);
    config_file_close(&cli, &file);
    assert_true(code == CLI_OK || code == CLI_FAILURE);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void config_file_load_survives_failed_allocations(void **state)
{
    struct fixture *fixture = *state;

    put_text(fixture, "detent.yaml", RIGHT);
    det_test_each_failure(load, fixture);
    assert_non_null(strstr(printed(fixture), "out of memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(valid_file_is_loaded),
        TEST(problems_are_reported_with_their_lines),
        TEST(only_the_first_problems_are_reported),
        TEST(missing_file_is_not_found),
        TEST(config_file_is_recognized_by_its_extension),
        TEST(config_file_load_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
