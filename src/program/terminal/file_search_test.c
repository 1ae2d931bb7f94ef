/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_search_test.c - the files of an operand. */
#include "terminal/file_search.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal/folder_test.h"

static const char *const specs[] = { CLI_SPEC_SUFFIX, NULL };

static void put_file(struct fixture *fixture, const char *name)
{
    put_text(fixture, name, "");
}

static void put_folder(struct fixture *fixture, const char *name)
{
    assert_int_equal(mkdir(path_of(fixture, name), 0777), 0);
}

/* Compares the names without the fixture's folder, each preceded by a space. */
static void assert_names(const struct fixture *fixture, struct cli_names names, const char *wanted)
{
    char found[2048] = "";
    size_t used = 0, skipped = strlen(fixture->folder) + 1;

    for (size_t i = 0; i < names.count; i++)
        used +=
            (size_t)snprintf(found + used, sizeof found - used, " %s", names.items[i] + skipped);
    assert_string_equal(found, wanted);
}

static void assert_printed(struct fixture *fixture, const char *part)
{
    fflush(fixture->cli.err);
    if (!strstr(fixture->printed, part))
        fail_msg("no '%s' in: %s", part, fixture->printed);
}

static void folder_operand_lists_its_files_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct cli_names names = { 0 };
    const char *const operands[] = { fixture->folder, NULL };

    put_folder(fixture, "sub");
    put_folder(fixture, "sub/more");
    put_folder(fixture, "folder.fsm");
    put_file(fixture, "folder.fsm/e.fsm");
    put_file(fixture, "sub/more/d.fsm");
    put_file(fixture, "sub/c.fsm");
    put_file(fixture, "b.fsm");
    put_file(fixture, "a.fsm");
    put_file(fixture, "c.txt");
    assert_int_equal(cli_files_list(&fixture->cli, operands, specs, &names), CLI_OK);
    assert_names(fixture, names, " a.fsm b.fsm folder.fsm/e.fsm sub/c.fsm sub/more/d.fsm");
    cli_names_free(&fixture->cli, &names);
}

static void hidden_build_and_linked_folders_are_skipped(void **state)
{
    struct fixture *fixture = *state;
    struct cli_names names = { 0 };
    const char *const operands[] = { fixture->folder, NULL };

    put_folder(fixture, ".git");
    put_folder(fixture, "build");
    put_folder(fixture, "node_modules");
    put_folder(fixture, "real");
    put_file(fixture, ".git/a.fsm");
    put_file(fixture, "build/a.fsm");
    put_file(fixture, "node_modules/a.fsm");
    put_file(fixture, "real/a.fsm");
    put_file(fixture, ".a.fsm");
    assert_int_equal(symlink(".", path_of(fixture, "circle")), 0);
    assert_int_equal(symlink("real", path_of(fixture, "link.fsm")), 0);
    assert_int_equal(symlink("real/a.fsm", path_of(fixture, "file.fsm")), 0);
    assert_int_equal(cli_files_list(&fixture->cli, operands, specs, &names), CLI_OK);
    assert_names(fixture, names, " file.fsm real/a.fsm");
    cli_names_free(&fixture->cli, &names);
}

static void folder_named_explicitly_is_always_listed(void **state)
{
    static const char *const named[] = { ".git", "build", "circle" };
    struct fixture *fixture = *state;

    put_folder(fixture, ".git");
    put_folder(fixture, "build");
    put_file(fixture, ".git/a.fsm");
    put_file(fixture, "build/a.fsm");
    assert_int_equal(symlink("build", path_of(fixture, "circle")), 0);
    for (size_t i = 0; i < 3; i++) {
        struct cli_names names = { 0 };
        const char *const operands[] = { path_of(fixture, named[i]), NULL };

        assert_int_equal(cli_files_list(&fixture->cli, operands, specs, &names), CLI_OK);
        assert_int_equal(names.count, 1);
        cli_names_free(&fixture->cli, &names);
    }
}

static void files_keep_their_place_among_folders(void **state)
{
    struct fixture *fixture = *state;
    static const char *const both[] = { ".fsm", ".rec", NULL };
    struct cli_names names = { 0 };
    const char *const operands[] = { "-", fixture->folder, "no/such.file", NULL };

    put_file(fixture, "b.fsm");
    put_file(fixture, "a.rec");
    assert_int_equal(cli_files_list(&fixture->cli, operands, both, &names), CLI_OK);
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[0], "-");
    assert_string_equal(names.items[1], path_of(fixture, "a.rec"));
    assert_string_equal(names.items[2], path_of(fixture, "b.fsm"));
    assert_string_equal(names.items[3], "no/such.file");
    cli_names_free(&fixture->cli, &names);
}

static void folder_without_matching_files_is_reported(void **state)
{
    struct fixture *fixture = *state;
    struct cli_names names = { 0 };
    static const char *const both[] = { ".fsm", ".rec", NULL };
    char empty[600];
    const char *const operands[] = { empty, fixture->folder, NULL };

    snprintf(empty, sizeof empty, "%s/empty", fixture->folder);
    put_folder(fixture, "empty");
    put_file(fixture, "a.fsm");
    assert_int_equal(cli_files_list(&fixture->cli, operands, specs, &names), CLI_NOT_FOUND);
    assert_int_equal(names.count, 1);
    assert_printed(fixture, "there is no .fsm file in ");
    cli_names_free(&fixture->cli, &names);
    assert_int_equal(cli_files_list(&fixture->cli, operands, both, &names), CLI_NOT_FOUND);
    assert_printed(fixture, "there is no .fsm or .rec file in ");
    assert_printed(fixture, "/empty or below it\n");
    cli_names_free(&fixture->cli, &names);
}

static void unreadable_folder_is_reported_and_the_rest_listed(void **state)
{
    struct fixture *fixture = *state;
    struct cli_names names = { 0 };
    const char *const operands[] = { fixture->folder, "z.fsm", NULL };
    struct rlimit before, none;
    int code;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    code = cli_files_list(&fixture->cli, operands, specs, &names);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, CLI_FAILURE);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.items[0], "z.fsm");
    assert_printed(fixture, ": Too many open files\n");
    cli_names_free(&fixture->cli, &names);
}

static void path_that_is_too_long_is_reported(void **state)
{
    struct fixture *fixture = *state;
    struct cli_names names = { 0 };
    char folder[DET_PATH_MAX];
    const char *const operands[] = { folder, NULL };
    size_t size = strlen(fixture->folder);

    /* Opens the folder by the longest possible path. */
    put_file(fixture, "a.fsm");
    memcpy(folder, fixture->folder, size);
    while (size + 3 < sizeof folder)
        folder[size++] = '/';
    folder[size] = '\0';
    assert_int_equal(cli_files_list(&fixture->cli, operands, specs, &names), CLI_FAILURE);
    assert_int_equal(names.count, 0);
    assert_printed(fixture, ": a path in it is too long\n");
    cli_names_free(&fixture->cli, &names);
}

static void missing_file_gets_the_nearest_name(void **state)
{
    struct fixture *fixture = *state;
    struct cli *cli = &fixture->cli;
    char near[DET_PATH_MAX];

    put_file(fixture, "lock.fsm");
    put_file(fixture, "lokc.txt");
    put_folder(fixture, "lokcc.fsm");
    assert_true(cli_nearest_file(cli, path_of(fixture, "lokc.fsm"), CLI_SPEC_SUFFIX, near));
    assert_string_equal(near, "lock.fsm");
    assert_false(cli_nearest_file(cli, path_of(fixture, "elevator.fsm"), CLI_SPEC_SUFFIX, near));
    assert_false(cli_nearest_file(cli, path_of(fixture, "no/lock.fsm"), CLI_SPEC_SUFFIX, near));
}

static int list_scenario(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    struct cli cli = fixture->cli;
    const char *const operands[] = { fixture->folder, "x", NULL };
    struct cli_names names = { 0 };
    char near[DET_PATH_MAX];
    int r;

    cli.allocator = &memory->allocator;
    r = cli_files_list(&cli, operands, specs, &names) == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
    if (r == 0)
        assert_int_equal(names.count, 12);
    if (r == 0 && !cli_nearest_file(&cli, path_of(fixture, "aa.fsm"), ".fsm", near))
        r = DET_ERR_NO_MEMORY;
    cli_names_free(&cli, &names);
    return r;
}

static void listing_survives_every_failed_allocation(void **state)
{
    struct fixture *fixture = *state;
    char name[] = "a.fsm";

    put_folder(fixture, "sub");
    put_file(fixture, "sub/x.fsm");
    for (; name[0] <= 'j'; name[0]++)
        put_file(fixture, name);
    det_test_each_failure(list_scenario, fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folder_operand_lists_its_files_in_order),
        TEST(hidden_build_and_linked_folders_are_skipped),
        TEST(folder_named_explicitly_is_always_listed),
        TEST(files_keep_their_place_among_folders),
        TEST(folder_without_matching_files_is_reported),
        TEST(unreadable_folder_is_reported_and_the_rest_listed),
        TEST(path_that_is_too_long_is_reported),
        TEST(missing_file_gets_the_nearest_name),
        TEST(listing_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
