/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_section_test.c - the store and the machines of a detent.yaml. */
#include "config/config_test.h"

static const char text[] = "version: 1\n"
                           "store: sqlite:orders.db\n"
                           "machines:\n"
                           "  order: {}\n"
                           "  parcel: {spec: specs/box.fsm}\n";

static void machine_spec_defaults_to_the_machine_name(void **state)
{
    struct project project;

    (void)state;
    open_right(&project, text);
    assert_string_equal(project.config.store, "sqlite:orders.db");
    assert_int_equal(project.config.task_count, 0);
    assert_int_equal(project.config.machine_count, 2);
    assert_string_equal(project.config.machines[0].name, "order");
    assert_string_equal(project.config.machines[0].spec, "order.fsm");
    assert_string_equal(project.config.machines[1].spec, "specs/box.fsm");
    close_project(&project);
}

static void missing_spec_is_reported_at_its_place(void **state)
{
    char *folder = det_test_folder(), path[1024];
    struct config_site site = { .folder = folder };
    struct cli_problems problems = { 0 };
    struct project project;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/order.fsm", folder);
    det_test_write_file(path, "", 0);
    open_right(&project, text);
    assert_int_equal(config_check(&project.config, &site, &problems), DET_ERR_MALFORMED);
    assert_int_equal(problems.count, 1);
    assert_int_equal(problems.items[0].line, 5);
    assert_non_null(strstr(problems.items[0].text, "specs/box.fsm: there is no such spec"));
    close_project(&project);
    det_test_folder_remove(folder);
}

static void a_durable_slot_has_a_store_and_no_tasks_of_the_file(void **state)
{
    struct project project;

    (void)state;
    open_right(
        &project, "version: 1\nstore: sqlite:a.db\nslots: {a: {durable: yes}, b: {durable: no}}\n"
                  "tasks:\n  t: {run: x, slot: b}\n");
    assert_true(project.config.slots[0].is_durable && !project.config.slots[1].is_durable);
    close_project(&project);
    assert_int_equal(
        open_project(
            &project, NULL,
            "version: 1\nslots: {a: {durable: yes}}\ntasks:\n  t: {run: x, slot: a}\n"),
        DET_ERR_MALFORMED);
    assert_int_equal(project.problems.count, 2);
    assert_int_equal(project.problems.items[0].line, 2);
    assert_non_null(strstr(project.problems.items[0].text, "needs a 'store'"));
    assert_int_equal(project.problems.items[1].line, 4);
    assert_non_null(strstr(project.problems.items[1].text, "is a durable slot"));
    close_project(&project);
}

/* Neither tasks nor machines are needed beside it. */
static const char scheduled[] = "version: 1\nstore: sqlite:a.db\nslots:\n  a:\n    durable: yes\n"
                                "    schedules:\n"
                                "      n: {cron: '@daily', missed: all, run: [sh, -c, x]}\n"
                                "      e: {every: 1h, run: ./none, folder: bin, retries: 2,"
                                " timeout: 5s}\n";

static void a_durable_slot_has_schedules(void **state)
{
    struct config_site site = { .folder = "/" };
    struct cli_problems problems = { 0 };
    const struct config_job *jobs;
    struct project project;

    (void)state;
    open_right(&project, scheduled);
    assert_true(config_has_durable(&project.config));
    assert_int_equal(project.config.slots[0].job_count, 2);
    jobs = project.config.slots[0].jobs;
    assert_string_equal(jobs[0].name, "a.n");
    assert_string_equal(jobs[0].schedule.cron, "@daily");
    assert_int_equal(jobs[0].schedule.missed, DET_MISSED_ALL);
    assert_string_equal(jobs[0].argv[2], "x");
    assert_int_equal(jobs[1].schedule.every, DET_HOUR);
    assert_int_equal(jobs[1].retries, 2);
    assert_int_equal(jobs[1].timeout, 5 * DET_SECOND);
    assert_int_equal(config_check(&project.config, &site, &problems), DET_ERR_MALFORMED);
    assert_int_equal(problems.count, 1);
    assert_int_equal(problems.items[0].line, 8);
    assert_non_null(strstr(problems.items[0].text, "/bin/./none: there is no such program"));
    assert_int_equal(
        config_settle(&project.config, &project.arena, "/here", (const char *const[]){ NULL }), 0);
    assert_string_equal(jobs[0].folder, "/here");
    assert_string_equal(jobs[1].folder, "/here/bin");
    close_project(&project);
}

static int read_all(struct det_test_memory *memory, void *argument)
{
    struct project project;
    int r;

    r = open_project(&project, &memory->allocator, *(const char *const *)argument);
    close_project(&project);
    return r;
}

static void reading_survives_each_failed_allocation(void **state)
{
    const char *texts[] = { text, scheduled };

    (void)state;
    det_test_each_failure(read_all, &texts[0]);
    det_test_each_failure(read_all, &texts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_spec_defaults_to_the_machine_name),
        cmocka_unit_test(missing_spec_is_reported_at_its_place),
        cmocka_unit_test(a_durable_slot_has_a_store_and_no_tasks_of_the_file),
        cmocka_unit_test(a_durable_slot_has_schedules),
        cmocka_unit_test(reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
