/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* host_check_test.c - what this machine says about a detent.yaml, and what tasks get from it. */
#include <detent/driver/schedule.h>

#include "config/config_test.h"

#include <sys/stat.h>

#include "config/log_file.h"
#include "os/os.h"

struct site {
    char *folder;
    char path[DET_PATH_MAX];
};

static const char *in_folder(struct site *site, const char *name)
{
    (void)snprintf(site->path, sizeof site->path, "%s/%s", site->folder, name);
    return site->path;
}

static int open_site(void **state)
{
    static struct site site;

    site.folder = det_test_folder();
    assert_int_equal(mkdir(in_folder(&site, "bin"), 0755), 0);
    det_test_write_file(in_folder(&site, "bin/tool"), "", 0);
    assert_int_equal(chmod(in_folder(&site, "bin/tool"), 0755), 0);
    det_test_write_file(in_folder(&site, "bin/text"), "", 0);
    assert_int_equal(chmod(in_folder(&site, "bin/text"), 0644), 0);
    *state = &site;
    return 0;
}

static int close_site(void **state)
{
    struct site *site = *state;

    det_test_folder_remove(site->folder);
    return 0;
}

static int no_cron(const char *text, struct det_cron *ret, struct det_error *reterr)
{
    (void)ret;
    return strcmp(text, "never") == 0
               ? det_error_set(reterr, DET_ERR_INVALID, "%s is no time", text)
               : 0;
}

/* Returns the first problem of one task, NULL if there is none; valid until the next call. */
static const char *validate(struct site *site, const char *path, const char *task)
{
    struct config_site asked = { site->folder, path, no_cron };
    static struct cli_problems problems;
    struct project project;
    char text[2048];
    int r;

    (void)snprintf(text, sizeof text, HEAD "  it: %s\n", task);
    open_right(&project, text);
    problems = (struct cli_problems){ 0 };
    r = config_check(&project.config, &asked, &problems);
    close_project(&project);
    assert_int_equal(r, problems.count ? DET_ERR_MALFORMED : 0);
    return problems.count ? problems.items[0].text : NULL;
}

static void programs_are_sought_in_path(void **state)
{
    struct site *site = *state;
    char path[2 * DET_PATH_MAX];

    (void)snprintf(path, sizeof path, "/nowhere:%s/bin::", site->folder);
    assert_null(validate(site, path, "{run: tool}"));
    assert_null(validate(site, NULL, "{run: sh}"));
    assert_non_null(strstr(validate(site, path, "{run: tol}"), "no program 'tol' in PATH"));
    assert_non_null(strstr(validate(site, path, "{run: text}"), "no program 'text' in PATH"));
    assert_non_null(strstr(validate(site, "", "{run: tool}"), "no program 'tool' in PATH"));
    assert_non_null(strstr(
        validate(site, path, "{run: tool, health: {check: no}}"), "no program 'no' in PATH"));
}

static void a_path_is_seen_from_the_folder_of_the_task(void **state)
{
    struct site *site = *state;

    assert_null(validate(site, "", "{run: bin/tool}"));
    assert_null(validate(site, "", "{run: ./tool, folder: bin}"));
    assert_null(validate(site, "", "{run: /bin/sh}"));
    assert_non_null(
        strstr(validate(site, "", "{run: ./tool}"), "/./tool: there is no such program"));
    assert_non_null(strstr(validate(site, "", "{run: bin/text}"), "run: chmod +x"));
    assert_non_null(strstr(validate(site, "", "{run: ./bin}"), "is a folder, not a program"));
    assert_non_null(
        strstr(validate(site, "", "{run: sh, folder: no}"), "/no: there is no such folder"));
    assert_non_null(strstr(validate(site, "", "{run: sh, folder: bin/tool}"), "is not a folder"));
}

static void invalid_store_url_is_reported_at_its_place(void **state)
{
    static const char tasks[] = "\ntasks:\n  a: {run: /bin/sh}\n";
    struct site *site = *state;
    struct config_site asked = { .folder = site->folder, .path = "" };
    struct project project;
    char text[256];

    (void)snprintf(text, sizeof text, "version: 1\nstore: sqlite:a.db%s", tasks);
    open_right(&project, text);
    assert_int_equal(config_check(&project.config, &asked, &project.problems), 0);
    close_project(&project);
    (void)snprintf(text, sizeof text, "version: 1\nstore: mysql://h/d%s", tasks);
    open_right(&project, text);
    assert_int_equal(config_check(&project.config, &asked, &project.problems), DET_ERR_MALFORMED);
    assert_int_equal(project.problems.items[0].line, 2);
    assert_int_equal(project.problems.items[0].column, 8);
    assert_non_null(strstr(project.problems.items[0].text, "unknown kind of store \"mysql\""));
    close_project(&project);
}

static void paths_that_are_too_long_are_reported(void **state)
{
    struct config_site asked = { .folder = "x", .path = "" };
    struct project project;
    char text[3 * DET_PATH_MAX];

    (void)state;
    (void)snprintf(text, sizeof text, HEAD "  a: {run: ./%*s}\n", DET_PATH_MAX, "x");
    memset(strchr(text, '/') + 1, 'x', DET_PATH_MAX);
    open_right(&project, text);
    assert_int_equal(config_check(&project.config, &asked, &project.problems), DET_ERR_MALFORMED);
    assert_string_equal(project.problems.items[0].text, "the path of the program is too long");
    close_project(&project);
    (void)snprintf(text, sizeof text, HEAD "  a: {run: sh, folder: /%*s}\n", DET_PATH_MAX, "x");
    memset(strchr(text, '/') + 1, 'x', DET_PATH_MAX);
    open_right(&project, text);
    assert_int_equal(config_check(&project.config, &asked, &project.problems), DET_ERR_MALFORMED);
    assert_string_equal(project.problems.items[0].text, "the path is too long");
    assert_int_equal(
        config_settle(&project.config, &project.arena, "x", (const char *const[]){ NULL }),
        DET_ERR_LIMIT);
    close_project(&project);
}

/* Returns true if a task may log to a file in the folder of the site whose whole path has this many
 * characters. */
static const char *validate_log(struct site *site, size_t size)
{
    struct config_site asked = { site->folder, NULL, no_cron };
    static struct cli_problems problems;
    struct project project;
    char name[DET_PATH_MAX + 1] = "", text[2 * DET_PATH_MAX];
    size_t rest = size - strlen(site->folder) - 1;
    int r;

    /* "./" again and again is the same folder. */
    for (size_t i = 0; i < rest; i++)
        name[i] = "./"[i % 2];
    name[rest - 1] = 'x';
    if (rest % 2 == 0)
        name[rest - 2] = 'x';
    (void)snprintf(text, sizeof text, HEAD "  it: {run: sh, log: %s}\n", name);
    open_right(&project, text);
    problems = (struct cli_problems){ 0 };
    r = config_check(&project.config, &asked, &problems);
    assert_int_equal(r, problems.count ? DET_ERR_MALFORMED : 0);
    close_project(&project);
    return problems.count ? problems.items[0].text : NULL;
}

static void a_log_file_has_room_for_the_names_of_rotated_ones(void **state)
{
    struct site *site = *state;

    assert_null(validate_log(site, LOG_FILE_PATH_MAX));
    assert_string_equal(
        validate_log(site, LOG_FILE_PATH_MAX + 1), "the path has more than 4080 characters");
    assert_string_equal(
        validate_log(site, DET_PATH_MAX + 1), "the path has more than 4080 characters");
}

static void users_and_cron_expressions_are_checked_on_the_host(void **state)
{
    struct site *site = *state;

    assert_null(validate(site, NULL, "{run: sh, user: root}"));
    assert_string_equal(
        validate(site, NULL, "{run: sh, user: no-such-user}"), "there is no user 'no-such-user'");
    assert_null(validate(site, NULL, "{run: sh, schedule: {cron: '@daily'}}"));
    assert_string_equal(
        validate(site, NULL, "{run: sh, schedule: {cron: never}}"), "never is no time");
}

static void all_tasks_are_checked(void **state)
{
    struct site *site = *state;
    struct config_site asked = { .folder = site->folder, .path = "" };
    struct project project;

    open_right(&project, HEAD "  a: {run: x, user: no-such-user}\n  b: {run: y, folder: z}\n");
    assert_int_equal(config_check(&project.config, &asked, &project.problems), DET_ERR_MALFORMED);
    assert_int_equal(project.problems.count, 3);
    assert_int_equal(project.problems.items[2].line, 4);
    close_project(&project);
}

static const char *const base[] = { "PATH=/bin", "LANG=C", "PATHS=x", "ODD", NULL };

static void tasks_get_their_folder_and_environment(void **state)
{
    const struct det_process_spec *process;
    struct project project;

    (void)state;
    open_right(
        &project, HEAD "  a: {run: sh, folder: sub, environment: {PATH: /x, NEW: 1}}\n"
                       "  b: {run: sh, folder: /abs}\n"
                       "  c: {run: sh}\n");
    assert_int_equal(config_settle(&project.config, &project.arena, "/srv", base), 0);
    process = &project.config.tasks[0].process;
    assert_string_equal(process->folder, "/srv/sub");
    assert_string_equal(process->environment[0], "LANG=C");
    assert_string_equal(process->environment[1], "PATHS=x");
    assert_string_equal(process->environment[2], "ODD");
    assert_string_equal(process->environment[3], "PATH=/x");
    assert_string_equal(process->environment[4], "NEW=1");
    assert_null(process->environment[5]);
    process = &project.config.tasks[1].process;
    assert_string_equal(process->folder, "/abs");
    assert_null(process->environment);
    assert_string_equal(project.config.tasks[2].process.folder, "/srv");
    close_project(&project);
}

static int settle(struct det_test_memory *memory, void *argument)
{
    struct project project;
    int r = open_project(&project, NULL, argument);
    struct det_arena arena;

    assert_int_equal(r, 0);
    det_arena_init(&arena, &memory->allocator);
    r = config_settle(&project.config, &arena, "/a/folder/with/a/name", base);
    det_arena_deinit(&arena);
    close_project(&project);
    return r;
}

static void config_settling_survives_every_failed_allocation(void **state)
{
    char text[4096] = HEAD;

    (void)state;
    for (int i = 0; i < 40; i++) {
        size_t used = strlen(text);

        (void)snprintf(
            text + used, sizeof text - used, "  t%d: {run: sh, environment: {A: b}}\n", i);
    }
    det_test_each_failure(settle, text);
}

/* The file is right: an error that blames it would send its reader to look for nothing. */
static void variables_of_a_file_without_memory_say_so(void **state)
{
    struct site *site = *state;
    char text[2 * DET_PATH_MAX], variables[8192] = "";

    for (int i = 0; i < 300; i++) {
        size_t used = strlen(variables);

        (void)snprintf(variables + used, sizeof variables - used, "VARIABLE_%d=value-%d\n", i, i);
    }
    det_test_write_file(in_folder(site, "env"), variables, strlen(variables));
    (void)snprintf(text, sizeof text, HEAD "  it: {run: sh, env_file: %s/env}\n", site->folder);
    det_test_each_failure(settle, text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_site, close_site)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(programs_are_sought_in_path),
        TEST(a_path_is_seen_from_the_folder_of_the_task),
        TEST(invalid_store_url_is_reported_at_its_place),
        TEST(paths_that_are_too_long_are_reported),
        TEST(users_and_cron_expressions_are_checked_on_the_host),
        TEST(all_tasks_are_checked),
        TEST(tasks_get_their_folder_and_environment),
        TEST(config_settling_survives_every_failed_allocation),
        TEST(variables_of_a_file_without_memory_say_so),
        TEST(a_log_file_has_room_for_the_names_of_rotated_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
