/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_test.c - `detent journal`: what it prints of a journal, of one that is damaged, of none;
 * with every allocation failing once. */
#include <detent/journal.h>

#include "lib/test.h"
#include "terminal/args.h"

struct place {
    char *folder;
    char path[600];
    char *text; /* what the last command printed */
};

static int run_words(
    struct place *place, const struct det_allocator *allocator, const char *const *words)
{
    const struct cli_command *command = cli_command_find("journal");
    struct cli cli = { .allocator = allocator, .world = det_world_real(), .command = "journal" };
    struct det_error error = { 0 };
    struct cli_args args;
    size_t size;
    int code = CLI_FAILURE, r;

    free(place->text);
    cli.out = open_memstream(&place->text, &size);
    assert_non_null(cli.out);
    cli.err = cli.in = cli.out;
    r = cli_args_read(command, words, allocator, &args, &error);
    if (r == 0) {
        cli.is_json = args.wants_json;
        code = command->run(&cli, &args);
        cli_args_deinit(&args, allocator);
    }
    if (cli.has_failed)
        code = CLI_FAILURE;
    fclose(cli.out);
    return code;
}

#define RUN(place, ...) run_words(place, NULL, (const char *const[]){ __VA_ARGS__, NULL })

static void place_open(struct place *place)
{
    struct det_journal *journal;
    struct det_journal_row rows[3] = {
        { .data = "one", .size = 3, .kind = 7 },
        { .data = "two \x1b[31m", .size = 9, .parent = 1, .correlation = 1 },
        { .data = "\xff\x01", .size = 2, .event_time = DET_SECOND },
    };
    char url[640];

    *place = (struct place){ .folder = det_test_folder() };
    (void)snprintf(place->path, sizeof place->path, "%s/log", place->folder);
    (void)snprintf(url, sizeof url, "file:%s", place->path);
    assert_int_equal(0, det_journal_open(url, NULL, &journal, NULL));
    assert_int_equal(0, det_journal_stream(journal, "other", &rows[1].stream, NULL));
    assert_int_equal(0, det_journal_append(journal, rows, 3, NULL, NULL));
    det_journal_close(journal);
}

static void place_close(struct place *place)
{
    free(place->text);
    det_test_folder_remove(place->folder);
}

static void assert_has(const struct place *place, const char *part)
{
    if (!strstr(place->text, part))
        print_error("'%s' is not in:\n%s", part, place->text);
    assert_non_null(strstr(place->text, part));
}

static void rows_are_printed_with_what_is_known_of_them(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    assert_int_equal(CLI_OK, RUN(&place, "cat", place.path));
    assert_has(&place, "main 1  kind 7  one\n");
    assert_has(&place, "other 1  from 1  two \\x1b[31m\n");
    assert_has(&place, "main 2  \\xff\\x01\n");
    assert_int_equal(CLI_OK, RUN(&place, "cat", "--stream", "other", place.path));
    assert_null(strstr(place.text, "one"));
    assert_int_equal(CLI_OK, RUN(&place, "export", "--from", "2", "--until", "3", place.path));
    assert_has(&place, "\"position\":2,\"stream\":\"other\",\"sequence\":1,");
    assert_has(&place, "\"event_time\":\"1970-01-01T00:00:01Z\",\"is_group_end\":true,");
    assert_has(&place, "\"hex\":\"ff01\"}");
    assert_null(strstr(place.text, "\"position\":1,"));
    assert_int_equal(CLI_OK, RUN(&place, "cat", "--follow", "--until", "2", place.path));
    assert_null(strstr(place.text, "main 2"));
    assert_int_equal(CLI_OK, RUN(&place, "top", place.path));
    assert_has(&place, "main       2              3\n");
    assert_int_equal(CLI_OK, RUN(&place, "top", "--json", place.path));
    assert_has(
        &place, "{\"type\":\"stream\",\"stream\":\"other\",\"sequence\":1,\"position\":2}\n");
    place_close(&place);
}

static void damage_is_reported_with_file_and_offset(void **state)
{
    struct place place;
    char path[640], *data;
    size_t size;

    (void)state;
    place_open(&place);
    assert_int_equal(CLI_OK, RUN(&place, "verify", place.path));
    assert_has(&place, "3 rows, position 1 to 3, in 1 segment: every checksum is right\n");
    (void)snprintf(path, sizeof path, "%s/segment-00000001", place.path);
    data = det_test_read_file(path, &size);
    data[size - 30] ^= 1;
    det_test_write_file(path, data, size);
    free(data);
    assert_int_equal(CLI_FAILURE, RUN(&place, "verify", place.path));
    assert_has(&place, "/segment-00000001: offset ");
    assert_int_equal(CLI_OK, RUN(&place, "cat", "--accept-loss", place.path));
    place_close(&place);
}

static void what_is_not_a_journal_is_refused(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    assert_int_equal(CLI_NOT_FOUND, RUN(&place, "cat", place.folder));
    assert_has(&place, " is no journal: ");
    assert_has(&place, "/head: not found");
    assert_int_equal(CLI_NOT_FOUND, RUN(&place, "cat", "file:no/such"));
    assert_has(&place, "no/such is no journal: there is no such folder\n");
    assert_null(strstr(place.text, "file:"));
    assert_int_equal(CLI_USAGE, RUN(&place, "cut", place.path));
    assert_has(&place, "unknown verb 'cut': use cat, verify, export or top; did you mean 'cat'?");
    assert_int_equal(CLI_USAGE, RUN(&place, "cat", "--from", "x", place.path));
    assert_int_equal(CLI_NOT_FOUND, RUN(&place, "cat", "--stream", "x", place.path));
    assert_int_equal(CLI_USAGE, RUN(&place, "verify", "--follow", place.path));
    place_close(&place);
}

static int run_all(struct det_test_memory *memory, void *argument)
{
    struct place *place = argument;
    static const char *const verbs[] = { "cat", "verify", "export", "top" };

    for (int i = 0; i < 4; i++) {
        const char *const words[] = { verbs[i], place->path, NULL };

        if (run_words(place, &memory->allocator, words) != CLI_OK)
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

static void failed_allocation_is_an_error(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    det_test_each_failure(run_all, &place);
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_printed_with_what_is_known_of_them),
        cmocka_unit_test(damage_is_reported_with_file_and_offset),
        cmocka_unit_test(what_is_not_a_journal_is_refused),
        cmocka_unit_test(failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
