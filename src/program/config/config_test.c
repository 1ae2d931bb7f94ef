/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_test.c - detent.yaml as data: what each key becomes; tests/corpus/yaml is judged as it
 * says itself. */
#include <detent/driver/policy.h>

#include "config/config_internal.h"
#include "config/config_test.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#define CORPUS    DET_SOURCE_DIR "/tests/corpus/yaml/"
#define PATH_SIZE 1024

static const struct config_task *task_of(const struct project *project, const char *name)
{
    for (size_t i = 0; i < project->config.task_count; i++) {
        if (strcmp(project->config.tasks[i].spec.name, name) == 0)
            return &project->config.tasks[i];
    }
    fail_msg("there is no task %s", name);
    return NULL;
}

static char *read_good(void)
{
    size_t size;

    return det_test_read_file(CORPUS "good/all-keys.yaml", &size);
}

static void assert_words(const char *const *argv, const char *const *words)
{
    for (; *words; argv++, words++) {
        assert_non_null(*argv);
        assert_string_equal(*argv, *words);
    }
    assert_null(*argv);
}

#define WORDS(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static void config_keys_set_the_task_spec(void **state)
{
    const struct config_task *web;
    struct project project;
    char *text = read_good();

    (void)state;
    open_right(&project, text);
    web = task_of(&project, "web");
    assert_ptr_equal(web->spec.process, &web->process);
    assert_words(web->process.argv, WORDS("sh", "-c", "exec sleep $SPAN", ""));
    assert_string_equal(web->process.folder, ".");
    assert_words(web->environment, WORDS("SPAN=60", "EMPTY=", "TEXT=a b=c $d"));
    assert_int_equal(web->spec.policy.restart, DET_RESTART_ALWAYS);
    assert_int_equal(web->spec.policy.interval, DET_SECOND);
    assert_true(web->spec.policy.grace == DET_NEVER);
    assert_int_equal(web->process.stop_signal, SIGINT);
    assert_int_equal(web->spec.depends_on_count, 3);
    assert_string_equal(web->spec.depends_on[1].name, "migrate");
    assert_int_equal(web->spec.depends_on[0].when, DET_WHEN_HEALTHY);
    assert_int_equal(web->spec.depends_on[1].when, DET_WHEN_COMPLETED);
    assert_int_equal(web->spec.depends_on[2].when, DET_WHEN_RUNNING);
    assert_string_equal(web->spec.group, "inner");
    assert_int_equal(web->process.success_code_count, 2);
    assert_false(web->process.ends_with_us);
    assert_words(web->env_files, WORDS("web.env"));
    assert_int_equal(web->process.limit_count, 6);
    assert_int_equal(web->process.limits[0].kind, DET_LIMIT_CPU);
    assert_int_equal(web->process.limits[0].most, 90);
    assert_int_equal(web->process.limits[1].most, 1 << 30);
    assert_string_equal(web->log.path, "web.log");
    assert_int_equal(web->log.keep, 3);
    assert_non_null(task_of(&project, "report")->spec.schedule.zone);
    assert_true(task_of(&project, "report")->process.ends_with_us);
    assert_int_equal(web->process.success_codes[1], 4);
    assert_int_equal(web->process.fatal_code_count, 1);
    assert_int_equal(web->process.fatal_codes[0], 64);
    assert_int_equal(web->process.bytes_per_second_max, 1 << 20);
    assert_null(web->slot);
    close_project(&project);
    free(text);
}

static void absent_keys_are_left_to_the_task_layer(void **state)
{
    static const struct det_policy nothing = { 0 };
    const struct config_task *only;
    struct project project;

    (void)state;
    open_right(&project, HEAD "  only: {run: sh}\n");
    only = task_of(&project, "only");
    assert_memory_equal(&only->spec.policy, &nothing, sizeof nothing);
    assert_memory_equal(&project.config.defaults, &nothing, sizeof nothing);
    assert_null(only->environment);
    assert_null(only->process.folder);
    assert_null(only->spec.schedule.cron);
    assert_int_equal(only->spec.schedule.every, 0);
    assert_int_equal(only->spec.readiness.by, DET_READY_WHEN_STARTED);
    assert_int_equal(project.config.limits.concurrent_max, 0);
    assert_int_equal(config_effects(&project.config), CONFIG_EFFECTS);
    close_project(&project);
}

static void policies_have_keywords_for_none_and_unlimited(void **state)
{
    const struct det_policy *policy;
    struct project project;
    char *text = read_good();

    (void)state;
    open_right(&project, text);
    policy = &task_of(&project, "database")->spec.policy;
    assert_true(policy->backoff.first == DET_NO_DELAY);
    assert_true(policy->backoff.factor == 1.5);
    assert_int_equal(policy->backoff.jitter, DET_JITTER_DECORRELATED);
    assert_true(policy->backoff.stable_after == DET_NEVER);
    policy = &project.config.defaults;
    assert_int_equal(policy->interval, 1);
    assert_true(policy->retries_max == DET_RETRIES_UNLIMITED);
    assert_true(policy->timeout == DET_NO_TIMEOUT);
    assert_int_equal(policy->backoff.max, 30 * DET_SECOND);
    assert_int_equal(task_of(&project, "other")->spec.policy.retries_max, 3);
    assert_int_equal(project.config.limits.concurrent_max, 8);
    assert_int_equal(project.config.limits.tasks_max, 100);
    assert_int_equal(project.config.limits.slot_depth_max, 20);
    assert_int_equal(config_effects(&project.config), 12);
    assert_int_equal(project.config.limits.grace, 30 * DET_SECOND);
    close_project(&project);
    free(text);
}

static void one_check_serves_readiness_and_health(void **state)
{
    const struct det_readiness *readiness;
    struct project project;
    char *text = read_good();

    (void)state;
    open_right(&project, text);
    readiness = &task_of(&project, "web")->spec.readiness;
    assert_int_equal(readiness->by, DET_READY_BY_NOTIFY);
    assert_true(readiness->within == DET_NEVER);
    assert_words(readiness->check.argv, WORDS("true"));
    assert_int_equal(readiness->check.every, 5 * DET_SECOND);
    assert_int_equal(readiness->check.fails_max, 2);
    assert_false(readiness->check.only_readiness);
    assert_true(task_of(&project, "web")->process.has_notify);
    readiness = &task_of(&project, "database")->spec.readiness;
    assert_int_equal(readiness->by, DET_READY_BY_CHECK);
    assert_true(readiness->check.only_readiness);
    assert_words(readiness->check.argv, WORDS("sh", "-c", "exit 0"));
    assert_int_equal(readiness->within, DET_MINUTE);
    readiness = &task_of(&project, "other")->spec.readiness;
    assert_int_equal(readiness->by, DET_READY_BY_CHECK);
    assert_false(readiness->check.only_readiness);
    assert_words(readiness->check.argv, WORDS("true"));
    assert_true(task_of(&project, "told")->process.has_notify);
    assert_false(task_of(&project, "other")->process.has_notify);
    close_project(&project);
    free(text);
}

static void words_are_split_without_a_shell(void **state)
{
    struct project project;
    char *text = read_good();

    (void)state;
    open_right(&project, text);
    assert_words(
        task_of(&project, "database")->process.argv,
        WORDS("sh", "-c", "sleep \"60\"", "a b", "c d", "", "\"\\"));
    assert_words(task_of(&project, "report")->process.argv, WORDS("sh", "-c", "date"));
    close_project(&project);
    open_right(&project, HEAD "  a: {run: \"\\tx'$`*'y \\\"\\\\a\\\" a~b ./A=b \\\\* \"}\n");
    assert_words(task_of(&project, "a")->process.argv, WORDS("x$`*y", "\\a", "a~b", "./A=b", "*"));
    close_project(&project);
    free(text);
}

static void schedules_and_slots_are_kept(void **state)
{
    const struct config_task *report, *often;
    struct project project;
    char *text = read_good();

    (void)state;
    open_right(&project, text);
    report = task_of(&project, "report");
    often = task_of(&project, "often");
    assert_string_equal(report->spec.schedule.cron, "30 4 * * *");
    assert_int_equal(report->spec.schedule.missed, DET_MISSED_ONCE);
    assert_int_equal(report->spec.schedule.spread, 10 * DET_MINUTE);
    assert_null(report->slot);
    assert_string_equal(task_of(&project, "job")->slot, "batch");
    assert_int_equal(task_of(&project, "job")->admission, DET_ADMIT_DROP_IF_RUNNING);
    assert_int_equal(often->spec.schedule.every, 90 * DET_MINUTE);
    assert_int_equal(task_of(&project, "single")->admission, DET_ADMIT_QUEUE);
    assert_int_equal(project.config.slot_count, 3);
    assert_string_equal(project.config.slots[0].name, "batch");
    assert_int_equal(project.config.slots[0].options.width, 2);
    assert_true(project.config.slots[0].options.depth_max == UINT32_MAX);
    assert_int_equal(project.config.slots[1].options.depth_max, 0);
    close_project(&project);
    free(text);
}

static void dependencies_are_added_before_their_dependents(void **state)
{
    static const char *const order[] = { "database", "migrate", "other", "web",
                                         "told",     "report",  "often" };
    struct project project;
    char *text = read_good();

    (void)state;
    open_right(&project, text);
    assert_int_equal(project.config.task_count, 9);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(project.config.order[i]->spec.name, order[i]);
    assert_int_equal(project.config.group_count, 3);
    assert_string_equal(project.config.group_order[0]->spec.name, "outer");
    assert_string_equal(project.config.group_order[1]->spec.name, "inner");
    assert_string_equal(project.config.group_order[2]->spec.name, "alone");
    assert_int_equal(project.config.group_order[0]->spec.strategy, DET_STRATEGY_REST_FOR_ONE);
    assert_int_equal(project.config.group_order[0]->spec.intensity.count, 3);
    assert_int_equal(project.config.group_order[0]->spec.intensity.window, DET_MINUTE);
    assert_string_equal(project.config.group_order[1]->spec.parent, "outer");
    close_project(&project);
    free(text);
}

#define LINKS 2400

/* Tasks that depend on the next one each, the last one on `last`. */
static char *make_chain(const char *last)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    fputs(HEAD, stream);
    for (int i = 0; i < LINKS; i++)
        fprintf(stream, "  t%d: {run: sh, depends_on: [t%d]}\n", i, i + 1);
    fprintf(stream, "  t%d: {run: sh, depends_on: [%s]}\n", LINKS, last);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void long_dependency_chains_and_cycles_need_no_deep_stack(void **state)
{
    struct project project;
    char *text = make_chain("");

    (void)state;
    open_right(&project, text);
    assert_string_equal(project.config.order[0]->spec.name, "t2400");
    assert_string_equal(project.config.order[LINKS]->spec.name, "t0");
    close_project(&project);
    free(text);
    text = make_chain("t0");
    assert_int_equal(open_project(&project, NULL, text), DET_ERR_MALFORMED);
    assert_int_equal(project.problems.count, 1);
    assert_non_null(strstr(project.problems.items[0].text, "form a cycle: t0 (line 3) -> t1 "));
    close_project(&project);
    free(text);
}

/* Each task depends on one that does not exist; the list of problems fills before the last one. */
static void more_problems_than_the_list_can_hold_are_cut(void **state)
{
    struct project project;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    (void)state;
    assert_non_null(stream);
    fputs(HEAD, stream);
    for (int i = 0; i < 2 * CLI_PROBLEMS_MAX; i++)
        fprintf(stream, "  t%d: {run: sh, depends_on: [missing%d]}\n", i, i);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(open_project(&project, NULL, text), DET_ERR_MALFORMED);
    assert_int_equal(project.problems.count, CLI_PROBLEMS_MAX);
    assert_true(project.problems.is_cut);
    close_project(&project);
    free(text);
}

/* Returns the next expectation in the file; NULL: none. */
static const char *next_expectation(const char *text)
{
    static const char mark[] = "# expect: ";
    const char *at = strstr(text, mark);

    return at ? at + strlen(mark) : NULL;
}

static void assert_problem(
    const char *name, const struct det_yaml_error *found, const char *expected)
{
    char line[DET_ERROR_TEXT_MAX + 64];
    size_t size = strcspn(expected, "\n");

    (void)snprintf(line, sizeof line, "%u:%u: %s", found->line, found->column, found->text);
    if (strlen(line) != size || strncmp(line, expected, size) != 0)
        fail_msg("%s: says %s\nnot %.*s", name, line, (int)size, expected);
}

static void check_bad(const char *name, const char *text, size_t size)
{
    struct config_site site = { .folder = CORPUS "bad", .path = "/usr/bin:/bin" };
    const char *expected = text;
    struct project project;
    size_t count = 0;
    int r = open_project_n(&project, NULL, text, size);

    if (r == 0 && strcmp(name, "machine-check.yaml") == 0) {
        assert_int_equal(chdir(site.folder), 0);
        site.folder = ".";
        r = config_check(&project.config, &site, &project.problems);
    }
    assert_int_equal(r, DET_ERR_MALFORMED);
    while ((expected = next_expectation(expected))) {
        if (strncmp(expected, "more\n", 5) == 0) {
            assert_true(project.problems.is_cut);
            continue;
        }
        if (count == project.problems.count)
            fail_msg("%s does not say %.*s", name, (int)strcspn(expected, "\n"), expected);
        assert_problem(name, &project.problems.items[count++], expected);
    }
    if (count < project.problems.count)
        fail_msg("%s also says %s", name, project.problems.items[count].text);
    close_project(&project);
}

static void bad_files_report_all_their_problems(void **state)
{
    struct dirent **entries;
    size_t checked = 0;
    int found = scandir(CORPUS "bad", &entries, NULL, alphasort);

    (void)state;
    assert_true(found > 0);
    for (int i = 0; i < found; i++) {
        const char *name = entries[i]->d_name;
        char path[PATH_SIZE];
        size_t size;
        char *text;

        if (strstr(name, ".yaml")) {
            (void)snprintf(path, sizeof path, CORPUS "bad/%s", name);
            text = det_test_read_file(path, &size);
            check_bad(name, text, size);
            free(text);
            checked++;
        }
        free(entries[i]);
    }
    free((void *)entries);
    assert_true(checked >= 30);
}

static void expect_delays(
    const struct project *project, const char *name, det_time first, det_time max)
{
    struct det_policy policy;
    int r = det_policy_resolve(
        &task_of(project, name)->spec.policy, &project->config.defaults, &policy, NULL);

    assert_int_equal(r, 0);
    assert_int_equal(policy.backoff.first, first);
    assert_int_equal(policy.backoff.max, max);
}

static void unset_backoff_delay_follows_the_other(void **state)
{
    static const struct {
        const char *path, *task;
        det_time first, max;
    } cases[] = {
        { "backoff.yaml", "short", 100 * DET_MILLISECOND, 100 * DET_MILLISECOND },
        { "backoff.yaml", "long", DET_MINUTE, DET_MINUTE },
        { "backoff-inherited.yaml", "plain", 100 * DET_MILLISECOND, 100 * DET_MILLISECOND },
        { "backoff-inherited.yaml", "long", 2 * DET_SECOND, 2 * DET_SECOND },
        { "backoff-default-first.yaml", "plain", DET_MINUTE, DET_MINUTE },
        { "backoff-default-first.yaml", "short", DET_SECOND, DET_SECOND },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct project project;
        char path[PATH_SIZE], *text;
        size_t size;

        (void)snprintf(path, sizeof path, CORPUS "good/%s", cases[i].path);
        text = det_test_read_file(path, &size);
        open_right(&project, text);
        expect_delays(&project, cases[i].task, cases[i].first, cases[i].max);
        close_project(&project);
        free(text);
    }
}

#define TASK    "version: 1\ntasks:\n  a:\n    run: sh\n"
#define MACHINE "version: 1\nmachines:\n  order:\n"
#define EFFECT  MACHINE "    effects:\n      charge:\n"

/* A file whose last line is a key that is called so, but for its value. */
static const struct {
    const char *what, *head, *key;
} places[] = {
    { "'defaults'", TASK, "defaults" },
    { "'limits'", TASK, "limits" },
    { "'tasks'", "version: 1\n", "tasks" },
    { "a task", "version: 1\ntasks:\n", "  shop" },
    { "'environment'", TASK, "    environment" },
    { "'backoff'", TASK, "    backoff" },
    { "'backoff'", TASK "workers:\n  limits:\n", "    action_backoff" },
    { "'health'", TASK, "    health" },
    { "'schedule'", TASK, "    schedule" },
    { "'limits' of a task", TASK, "    limits" },
    { "'log' of a task", TASK, "    log" },
    { "'machines'", "version: 1\n", "machines" },
    { "a machine", "version: 1\nmachines:\n", "  order" },
    { "'effects'", MACHINE, "    effects" },
    { "an effect", MACHINE "    effects:\n", "      charge" },
    { "'exits'", EFFECT "        command: ./charge\n", "        exits" },
    { "'statuses'", EFFECT "        http: 'http://localhost/'\n", "        statuses" },
    { "'headers'", EFFECT "        http: 'http://localhost/'\n", "        headers" },
    { "'secret'", EFFECT "        http: 'http://localhost/'\n", "        secret" },
    { "'groups'", TASK, "groups" },
    { "a group", TASK "groups:\n", "  all" },
    { "'intensity'", TASK "groups:\n  all:\n", "    intensity" },
    { "'intensity'", TASK "workers:\n  limits:\n", "    restarts" },
    { "'slots'", TASK, "slots" },
    { "a slot", TASK "slots:\n", "  batch" },
    { "'schedules'", "version: 1\nstore: sqlite:a.db\nslots:\n  b:\n    durable: yes\n",
      "    schedules" },
    { "a schedule",
      "version: 1\nstore: sqlite:a.db\nslots:\n  b:\n    durable: yes\n    schedules:\n",
      "      nightly" },
    { "'workers'", "version: 1\n", "workers" },
    { "'flows'", "version: 1\n", "flows" },
    { "a flow", "version: 1\nflows:\n", "  readings" },
    { "'stages'", "version: 1\nflows:\n  readings:\n", "    stages" },
    { "the settings of a stage", "version: 1\nflows:\n  readings:\n    stages:\n", "      read" },
    { "'retain'", "version: 1\nflows:\n  readings:\n", "    retain" },
    { "'variables'", TASK "workers:\n", "  variables" },
    { "'globals'", TASK "workers:\n", "  globals" },
    { "'limits' of 'workers'", TASK "workers:\n", "  limits" },
    { "'http'", TASK, "http" },
    { "'tls'", TASK "http:\n", "  tls" },
    { "'limits' of 'http'", TASK "http:\n", "  limits" },
    { "'log'", TASK, "log" },
    { "'traces'", TASK, "traces" },
};

/* A message about a list at the wrong place ends with the example, which is valid there. */
static void check_example(const char *head, const char *key, const struct reader_example *example)
{
    char text[1024], hint[256];
    struct project project;

    (void)snprintf(text, sizeof text, "%s%s: %s\n", head, key, example->text);
    open_right(&project, text);
    close_project(&project);
    (void)snprintf(text, sizeof text, "%s%s: [[5]]\n", head, key);
    (void)snprintf(
        hint, sizeof hint, "%s is a mapping, not a sequence; write %s: %s", example->what,
        key + strspn(key, " "), example->text);
    assert_int_equal(open_project(&project, NULL, text), DET_ERR_MALFORMED);
    assert_string_equal(project.problems.items[0].text, hint);
    close_project(&project);
}

static void every_example_is_right_where_it_is_given(void **state)
{
    (void)state;
    for (const struct reader_example *example = config_examples; example->what; example++) {
        size_t count = 0;

        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            if (strcmp(places[i].what, example->what) != 0)
                continue;
            check_example(places[i].head, places[i].key, example);
            count++;
        }
        if (count == 0)
            fail_msg("where does %s stand?", example->what);
    }
}

static int read_it(struct det_test_memory *memory, void *argument)
{
    struct project project;
    int r = open_project(&project, &memory->allocator, argument);

    if (r == DET_ERR_NO_MEMORY) {
        assert_true(project.problems.count > 0);
        assert_string_equal(
            project.problems.items[project.problems.count - 1].text, "out of memory");
    }
    close_project(&project);
    return r;
}

static void config_reading_survives_every_failed_allocation(void **state)
{
    char *text = read_good();

    (void)state;
    det_test_each_failure(read_it, text);
    free(text);
}

/* An arena gives many blocks from one piece of memory; its limit stops at each of them. */
static void every_arena_limit_is_reported(void **state)
{
    struct det_yaml_error error;
    struct project project = { 0 };
    struct det_datum *root;
    char *text = read_good();
    size_t before, failures = 0;
    int r;

    (void)state;
    det_arena_init(&project.arena, NULL);
    assert_int_equal(det_yaml_read(&project.arena, text, strlen(text), &root, &error), 0);
    do {
        before = project.arena.used;
        project.arena.limit = before + 1 + failures * 16;
        r = config_read(&project.arena, root, &project.config, &project.problems);
        failures += r == DET_ERR_NO_MEMORY;
        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
        assert_true(r == 0 || project.problems.count == 1);
    } while (r < 0);
    assert_true(failures > 100);
    det_arena_deinit(&project.arena);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_keys_set_the_task_spec),
        cmocka_unit_test(absent_keys_are_left_to_the_task_layer),
        cmocka_unit_test(policies_have_keywords_for_none_and_unlimited),
        cmocka_unit_test(one_check_serves_readiness_and_health),
        cmocka_unit_test(words_are_split_without_a_shell),
        cmocka_unit_test(schedules_and_slots_are_kept),
        cmocka_unit_test(dependencies_are_added_before_their_dependents),
        cmocka_unit_test(long_dependency_chains_and_cycles_need_no_deep_stack),
        cmocka_unit_test(more_problems_than_the_list_can_hold_are_cut),
        cmocka_unit_test(bad_files_report_all_their_problems),
        cmocka_unit_test(unset_backoff_delay_follows_the_other),
        cmocka_unit_test(every_example_is_right_where_it_is_given),
        cmocka_unit_test(config_reading_survives_every_failed_allocation),
        cmocka_unit_test(every_arena_limit_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
