/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_section_test.c - the flows of a detent.yaml. */
#include "config/config_test.h"

static const char text[] = "version: 1\n"
                           "flows:\n"
                           "  plain: {}\n"
                           "  readings:\n"
                           "    file: specs/readings.flow\n"
                           "    module: ./readings.so\n"
                           "    durability: os\n"
                           "    start: manual\n"
                           "    retain: {size: 1GiB, age: 7d}\n"
                           "    window: 100\n"
                           "    threads: 2\n"
                           "    stages: {read: {path: a.csv}, print: {}}\n"
                           "    stop_timeout: 5s\n"
                           "    retries: 3\n"
                           "    backoff: {first: 1s, max: 1m}\n";

static void a_flow_without_keys_has_the_defaults(void **state)
{
    struct project project;
    const struct config_flow *flow;

    (void)state;
    open_right(&project, text);
    assert_int_equal(project.config.flow_count, 2);
    assert_false(project.config.is_bare);
    flow = &project.config.flows[0];
    assert_string_equal(flow->name, "plain");
    assert_string_equal(flow->file, "plain.flow");
    assert_int_equal(flow->durability, CONFIG_DURABILITY_DISK);
    assert_false(flow->is_manual);
    assert_int_equal(flow->policy.restart, DET_RESTART_INHERIT);
    close_project(&project);
}

static void each_key_of_a_flow_is_read(void **state)
{
    struct project project;
    const struct config_flow *flow;

    (void)state;
    open_right(&project, text);
    flow = &project.config.flows[1];
    assert_string_equal(flow->file, "specs/readings.flow");
    assert_string_equal(flow->module, "./readings.so");
    assert_int_equal(flow->durability, CONFIG_DURABILITY_OS);
    assert_true(flow->is_manual);
    assert_int_equal(flow->retain_size, (uint64_t)1 << 30);
    assert_int_equal(flow->retain_age, 7 * DET_DAY);
    assert_int_equal(flow->window, 100);
    assert_int_equal(flow->threads, 2);
    assert_int_equal(flow->stop_timeout, 5 * DET_SECOND);
    assert_int_equal(flow->policy.retries_max, 3);
    assert_int_equal(flow->policy.backoff.max, 60 * DET_SECOND);
    assert_int_equal(flow->stage_count, 2);
    assert_string_equal(flow->stages[0].name, "read");
    assert_string_equal(det_datum_get(flow->stages[0].settings, "path")->text, "a.csv");
    close_project(&project);
}

static void wrong_values_are_reported_at_their_place(void **state)
{
    (void)state;
    expect_wrong(
        "version: 1\nflows: [a]\n", 2, 8, "write flows: {readings: {file: readings.flow}}");
    expect_wrong("version: 1\nflows:\n  a: {durability: dsk}\n", 3, 19, "did you mean 'disk'");
    expect_wrong("version: 1\nflows:\n  a: {restart: always}\n", 3, 16, "never, on-failure");
    expect_wrong("version: 1\nflows:\n  a: {window: 0}\n", 3, 15, "'window'");
    expect_wrong("version: 1\nflows:\n  a: {retain: {size: 1B}}\n", 3, 22, "'size'");
    expect_wrong("version: 1\nflows:\n  a: {stages: {read: a.csv}}\n", 3, 22, "{path: a.csv}");
    expect_wrong("version: 1\nflows:\n  a: {fil: x}\n", 3, 7, "did you mean 'file'");
    expect_wrong(
        "version: 1\nflows:\n  a: {restart: never, retries: 2}\n", 3, 23, "does not go with");
    expect_wrong(
        "version: 1\nflows:\n  a: {durability: memory, retain: {age: 1d}}\n", 3, 27,
        "nothing is on disk");
    expect_wrong("version: 1\nflows: {}\n", 1, 1, "needs 'tasks'");
}

static void a_missing_file_is_reported(void **state)
{
    char *folder = det_test_folder(), path[1024];
    struct config_site site = { .folder = folder };
    struct cli_problems problems = { 0 };
    struct project project;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/here.flow", folder);
    det_test_write_file(path, "", 0);
    open_right(&project, "version: 1\nflows:\n  here: {}\n  gone: {}\n");
    assert_int_equal(config_check(&project.config, &site, &problems), DET_ERR_MALFORMED);
    assert_int_equal(problems.count, 1);
    assert_int_equal(problems.items[0].line, 4);
    assert_non_null(strstr(problems.items[0].text, "gone.flow: there is no such flow"));
    assert_int_equal(
        config_settle(&project.config, &project.arena, "/here", (const char *const[]){ NULL }), 0);
    assert_string_equal(project.config.flows[0].file, "/here/here.flow");
    close_project(&project);
    det_test_folder_remove(folder);
}

static int read_all(struct det_test_memory *memory, void *argument)
{
    struct project project;
    int r;

    (void)argument;
    r = open_project(&project, &memory->allocator, text);
    close_project(&project);
    return r;
}

static void reading_survives_each_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(read_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_without_keys_has_the_defaults),
        cmocka_unit_test(each_key_of_a_flow_is_read),
        cmocka_unit_test(wrong_values_are_reported_at_their_place),
        cmocka_unit_test(a_missing_file_is_reported),
        cmocka_unit_test(reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
