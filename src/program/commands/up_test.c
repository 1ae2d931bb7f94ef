/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_test.c - the command up as a whole, in this process: what it prints, how it exits, and that it
 * comes to its end without memory. tests/e2e/up.py has what takes a second process. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal/command.h"
#include "terminal/folder_test.h"
#include "json/reader.h"

extern const struct cli_command cli_command_up;

enum { OPTION_FILE, OPTION_TIMES, OPTION_QUIET, OPTION_JOURNAL };

struct run {
    const char *text, *name;
    const char *journal;
    bool is_quiet, is_json;
};

/* Runs `detent up`; `ret_printed` gets its output, which the caller frees. */
static int run_up(struct fixture *fixture, const struct run *run, char **ret_printed)
{
    const char *operands[] = { run->name, NULL };
    char path[512], *printed = NULL;
    size_t size = 0;
    struct cli cli = fixture->cli;
    struct cli_args args = {
        .values = { [OPTION_QUIET] = run->is_quiet ? "" : NULL, [OPTION_JOURNAL] = run->journal },
        .operands = operands,
        .operand_count = run->name ? 1 : 0,
    };
    int code;

    put_text(fixture, "detent.yaml", run->text);
    snprintf(path, sizeof path, "%s/detent.yaml", fixture->folder);
    args.values[OPTION_FILE] = path;
    cli.command = "up";
    cli.is_json = run->is_json;
    cli.out = open_memstream(&printed, &size);
    assert_non_null(cli.out);
    code = cli_command_up.run(&cli, &args);
    fclose(cli.out);
    fflush(cli.err);
    *ret_printed = printed;
    return code;
}

static void assert_part(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

static void expect_up(
    struct fixture *fixture, const struct run *run, int code, const char *const *parts)
{
    char *printed;

    assert_int_equal(run_up(fixture, run, &printed), code);
    for (; *parts; parts++)
        assert_part(printed, *parts);
    free(printed);
}

static void up_runs_until_all_tasks_are_done(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "tasks:\n"
                "  second: {run: echo two, restart: never, depends_on: {first: completed}}\n"
                "  first: {run: echo one, restart: never}\n",
    };
    struct fixture *fixture = *state;
    char *printed;

    assert_int_equal(run_up(fixture, &run, &printed), CLI_OK);
    assert_string_equal(
        printed, "first  = started\n"
                 "first  | one\n"
                 "first  = completed\n"
                 "second = started\n"
                 "second | two\n"
                 "second = completed\n");
    free(printed);
    assert_part(fixture->printed, "2 tasks. Ctrl-C stops all.");
}

static void failed_tasks_set_the_exit_code(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "tasks:\n"
                "  crash: {run: [sh, -c, 'exit 3'], retries: 1, backoff: {first: 1ms, max: 1ms}}\n"
                "  fatal: {run: [sh, -c, 'exit 4'], fatal_codes: [4]}\n"
                "  late: {run: sleep 60, timeout: 1ms, restart: never}\n",
    };

    expect_up(
        *state, &run, CLI_FAILURE,
        (const char *const[]){
            "crash  = exit code 3; attempt 2 in 1ms\n", "crash  = started, attempt 2\n",
            "crash  = failed permanently after 2 attempts: exit code 3\n",
            "fatal  = failed permanently, not retried: exit code 4\n",
            "late   = failed permanently after 1 attempt: timed out after 1ms\n", NULL });
}

static void tasks_of_slots_and_groups_run(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "groups: {back: {}, inner: {parent: back}}\n"
                "slots: {batch: {}}\n"
                "tasks:\n"
                "  a: {run: echo one, restart: never, group: inner}\n"
                "  b: {run: echo two, restart: never, slot: batch}\n"
                "  c: {run: echo three, restart: never, slot: batch}\n"
                "  d: {run: echo four, slot: batch, admission: drop-if-running}\n",
    };

    expect_up(
        *state, &run, CLI_FAILURE,
        (const char *const[]){ "a      | one\n", "b      | two\n", "c      | three\n",
                               "batch  = does not run d: the slot is busy", NULL });
}

static void names_choose_tasks(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "groups: {back: {}}\n"
                "tasks:\n"
                "  web: {run: echo web, restart: never, depends_on: {store: completed}}\n"
                "  store: {run: echo store, restart: never, group: back}\n"
                "  other: {run: echo other, restart: never}\n",
        .name = "web",
        .is_quiet = true,
    };
    struct fixture *fixture = *state;
    char *printed;

    assert_int_equal(run_up(fixture, &run, &printed), CLI_OK);
    assert_string_equal(printed, "store  | store\nweb    | web\n");
    free(printed);
    run.name = "back";
    assert_int_equal(run_up(fixture, &run, &printed), CLI_OK);
    assert_string_equal(printed, "store  | store\n");
    free(printed);
    run.name = "stare";
    assert_int_equal(run_up(fixture, &run, &printed), CLI_NOT_FOUND);
    free(printed);
    assert_part(fixture->printed, "no task or group 'stare'; did you mean 'store'?");
    run.name = "completely-different";
    assert_int_equal(run_up(fixture, &run, &printed), CLI_NOT_FOUND);
    free(printed);
    assert_part(fixture->printed, "no task or group 'completely-different'\n");
}

static void json_mode_prints_events_as_objects(void **state)
{
    struct run run = {
        .text = "version: 1\ntasks: {a: {run: echo one, restart: never}}\n",
        .is_json = true,
    };
    struct fixture *fixture = *state;

    expect_up(
        fixture, &run, CLI_OK,
        (const char *const[]){ "{\"kind\":\"event\",\"event\":\"attempt_starting\"",
                               "{\"kind\":\"line\",", "\"event\":\"all_stopped\"", NULL });
    run.is_quiet = true;
    expect_up(fixture, &run, CLI_OK, (const char *const[]){ "{\"kind\":\"line\",", NULL });
}

/* Each line of what was printed is an object with these members, in this order. */
static void assert_log(const char *printed)
{
    for (const char *line = printed; *line; line = strchr(line, '\n') + 1) {
        char *text = strndup(line, strcspn(line, "\n"));
        const struct det_json_value *object = NULL;
        struct det_arena arena;

        det_arena_init(&arena, NULL);
        if (det_json_read(&arena, det_view_text(text), &object, NULL) < 0 ||
            strncmp(text, "{\"time\":\"", 9) != 0 || !strstr(text, ",\"level\":\"") ||
            !strstr(text, ",\"component\":\"") || !strstr(text, ",\"message\":\""))
            fail_msg("this is no line of a log: %s", text);
        det_arena_deinit(&arena);
        free(text);
    }
}

static void a_log_is_an_object_for_each_line_and_note(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "log: {format: json}\n"
                "tasks:\n"
                "  good: {run: [printf, 'a\\033[1m\"b\\n'], restart: never}\n"
                "  bad: {run: \"false\", restart: never}\n",
    };
    struct fixture *fixture = *state;
    char *printed;

    assert_int_equal(run_up(fixture, &run, &printed), CLI_FAILURE);
    assert_log(printed);
    assert_part(
        printed, ",\"level\":\"info\",\"component\":\"output\",\"message\":\"a\\u001b[1m\\\"b\","
                 "\"task\":\"good\",\"stream\":\"output\"}\n");
    assert_part(
        printed, ",\"level\":\"info\",\"component\":\"task\",\"message\":\"started\","
                 "\"task\":\"good\"}\n");
    assert_part(
        printed, ",\"level\":\"warning\",\"component\":\"task\",\"message\":\"failed permanently");
    free(printed);
    run.text = "version: 1\nlog: {format: json, level: warning}\n"
               "tasks: {a: {run: echo one, restart: never}}\n";
    assert_int_equal(run_up(fixture, &run, &printed), CLI_OK);
    assert_string_equal(printed, "");
    free(printed);
}

static void a_journal_that_cannot_be_opened_stops_it(void **state)
{
    struct fixture *fixture = *state;
    char path[512];
    struct run run = {
        .text = "version: 1\ntasks: {a: {run: echo one}}\n",
        .journal = path,
    };

    snprintf(path, sizeof path, "%s/none/journal", fixture->folder);
    expect_up(fixture, &run, CLI_NOT_FOUND, (const char *const[]){ NULL });
    snprintf(path, sizeof path, "%s/journal", fixture->folder);
    expect_up(fixture, &run, CLI_OK, (const char *const[]){ "a      = completed", NULL });
    free(det_test_read_file(path, NULL));
}

static void invalid_file_is_reported(void **state)
{
    struct run run = { .text = "version: 1\ntasks: {a: {rum: echo one}}\n" };
    struct fixture *fixture = *state;

    expect_up(fixture, &run, CLI_USAGE, (const char *const[]){ NULL });
    assert_part(fixture->printed, "detent.yaml:2:");
}

/* Signals of its own tasks reach it as those of a terminal do. */
static void signal_stops_all_tasks(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "tasks: {a: {run: [sh, -c, 'kill -TERM $PPID; exec sleep 60']}}\n",
    };

    expect_up(
        *state, &run, CLI_OK,
        (const char *const[]){ "detent = terminated: stopping all tasks; repeat to kill them\n",
                               "a      = stopped after ", NULL });
}

static void second_signal_kills_the_tasks(void **state)
{
    struct run run = {
        .text =
            "version: 1\n"
            "tasks:\n"
            "  a:\n"
            "    run: [sh, -c, 'trap \"\" TERM; while :; do kill -INT $PPID; sleep 0.01; done']\n"
            "    grace: forever\n",
    };

    expect_up(
        *state, &run, CLI_TIMEOUT,
        (const char *const[]){ "detent = interrupted again: killing all remaining tasks\n",
                               "a      = killed: it did not stop by itself\n", NULL });
}

static void task_that_does_not_stop_in_time_is_killed(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "limits: {shutdown: 10ms}\n"
                "tasks: {a: {run: [sh, -c, 'trap \"\" TERM; kill -INT $PPID; exec sleep 60']}}\n",
    };

    expect_up(
        *state, &run, CLI_TIMEOUT,
        (const char *const[]){ "detent = did not stop in time and were killed: a\n", NULL });
}

static void process_that_left_its_group_is_killed_at_the_end(void **state)
{
    struct run run = {
        .text = "version: 1\n"
                "tasks:\n"
                "  a:\n"
                "    run: [sh, -c, 'setsid sh -c \": >away; exec sleep 60\" &\n"
                "      until test -e away; do :; done']\n",
    };

    expect_up(
        *state, &run, CLI_OK,
        (const char *const[]){ "detent = killing 1 process left running by a task\n", NULL });
}

static void the_file_is_found_from_a_folder_below(void **state)
{
    struct fixture *fixture = *state;
    struct cli_args args = { .operand_count = 0 };
    char before[DET_PATH_MAX];

    put_text(fixture, "detent.yaml", "version: 1\ntasks: {a: {run: [sh, -c, ': >here']}}\n");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(mkdir(path_of(fixture, "below"), 0777), 0);
    assert_int_equal(chdir(path_of(fixture, "below")), 0);
    assert_int_equal(cli_command_up.run(&fixture->cli, &args), CLI_OK);
    assert_int_equal(chdir(fixture->folder), 0);
    assert_int_equal(unlink("here"), 0);
    assert_int_equal(cli_command_up.run(&fixture->cli, &args), CLI_OK);
    assert_int_equal(unlink("here"), 0);
    assert_int_equal(unlink("detent.yaml"), 0);
    assert_int_equal(cli_command_up.run(&fixture->cli, &args), CLI_NOT_FOUND);
    assert_int_equal(chdir(before), 0);
}

/* The program writes to a pipe without a reader. */
static void up_stops_when_its_output_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    struct sigaction ignored = { .sa_handler = SIG_IGN }, before;
    struct cli cli = fixture->cli;
    struct cli_args args = { .operand_count = 0 };
    char path[512];
    int ends[2];

    put_text(fixture, "detent.yaml", "version: 1\ntasks: {a: {run: sleep 60}}\n");
    snprintf(path, sizeof path, "%s/detent.yaml", fixture->folder);
    args.values[OPTION_FILE] = path;
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    sigaction(SIGPIPE, &ignored, &before);
    cli.out = fdopen(ends[1], "w");
    assert_non_null(cli.out);
    assert_int_equal(cli_command_up.run(&cli, &args), CLI_FAILURE);
    assert_int_equal(cli.out_error, EPIPE);
    (void)fclose(cli.out);
    sigaction(SIGPIPE, &before, NULL);
}

static int run_without_memory(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    struct run run = {
        .text = "version: 1\n"
                "groups: {g: {}}\n"
                "slots: {s: {}}\n"
                "tasks:\n"
                "  a: {run: echo one, restart: never, group: g}\n"
                "  b: {run: echo two, restart: never, slot: s}\n",
    };
    char *printed;
    int code;

    /* A shortage that stays is waited for: a start is put off, second by second. */
    memory->fail_sticky = false;
    fixture->cli.allocator = &memory->allocator;
    code = run_up(fixture, &run, &printed);
    fixture->cli.allocator = NULL;
    if (code != CLI_OK)
        assert_true(memory->failed);
    else if (!memory->failed)
        assert_part(printed, "two\n");
    free(printed);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void up_survives_failed_allocations(void **state)
{
    /* A run forks the guard, which takes a tenth of a second under a sanitizer. */
    det_test_some_failures(run_without_memory, *state, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(up_runs_until_all_tasks_are_done),
        TEST(failed_tasks_set_the_exit_code),
        TEST(tasks_of_slots_and_groups_run),
        TEST(names_choose_tasks),
        TEST(json_mode_prints_events_as_objects),
        TEST(a_log_is_an_object_for_each_line_and_note),
        TEST(a_journal_that_cannot_be_opened_stops_it),
        TEST(invalid_file_is_reported),
        TEST(signal_stops_all_tasks),
        TEST(second_signal_kills_the_tasks),
        TEST(task_that_does_not_stop_in_time_is_killed),
        TEST(process_that_left_its_group_is_killed_at_the_end),
        TEST(the_file_is_found_from_a_folder_below),
        TEST(up_stops_when_its_output_is_not_read),
        TEST(up_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
