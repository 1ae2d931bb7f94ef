/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builtin_run_test.c - the built-in kinds under a supervisor, in virtual time: from YAML to the
 * desired state. */
#include <detent/driver/sim.h>
#include <signal.h>

#include "kinds/kinds.h"
#include "lib/test.h"
#include "worker/lab_test.h"

static uint32_t running, reloads;
static bool is_broken;

static int program_server(struct det_world *world, int argc, const char *const *argv)
{
    (void)argc;
    (void)argv;
    if (is_broken)
        return 9;
    running++;
    det_sim_catch(world, SIGTERM);
    det_sim_catch(world, SIGHUP);
    for (;;) {
        int signal =
            det_sim_wait_caught(world, det_world_now(world, DET_CLOCK_MONOTONIC) + DET_DAY);

        reloads += signal == SIGHUP;
        if (signal != SIGTERM)
            continue;
        running--;
        return 0;
    }
}

static int program_deaf(struct det_world *world, int argc, const char *const *argv)
{
    (void)argc;
    (void)argv;
    det_sim_catch(world, SIGTERM);
    while (det_sim_wait_caught(world, det_world_now(world, DET_CLOCK_MONOTONIC) + DET_DAY) !=
           SIGUSR1)
        continue;
    return 0;
}

static void open_lab(struct lab *lab, uint64_t seed)
{
    static const struct det_worker_kind *const kinds[] = { &process_kind, &file_kind, NULL };

    running = reloads = 0;
    is_broken = false;
    lab_open(lab, (struct lab_options){ .seed = seed, .kinds = kinds });
    assert_int_equal(det_sim_program(lab->sim, "/bin/server", program_server), 0);
    assert_int_equal(det_sim_program(lab->sim, "/bin/deaf", program_deaf), 0);
}

static void stop_lab(struct lab *lab)
{
    struct det_error error = { 0 };

    if (det_workers_stop(lab->workers, &error) < 0)
        fail_msg("%s\n%s", error.text, det_buffer_text(&lab->log));
    lab_close(lab);
}

#define SERVER "children: [{name: server, kind: process, config: {argv: [/bin/server"

static void a_process_runs_and_stops_with_its_supervisor(void **state)
{
    struct lab lab;

    (void)state;
    open_lab(&lab, 1);
    lab_apply(&lab, SERVER "]}}]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/server", "running");
    assert_int_equal(running, 1);
    lab_assert_log(&lab, "state_transition lab/server stopped starting");
    lab_assert_log(&lab, "state_transition lab/server starting running");
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_int_equal(running, 0);
    lab_assert_log(&lab, "state_transition lab/server stopping stopped");
    lab_close(&lab);
}

static void changed_arguments_and_files_reach_the_process(void **state)
{
    struct lab lab;

    (void)state;
    open_lab(&lab, 2);
    lab_apply(
        &lab,
        "variables: {PORT: 80}\n"
        "children:\n"
        "- {name: config, kind: file, config: {path: /etc/server, content: 'port {{ .PORT }}'}}\n"
        "- name: server\n"
        "  kind: process\n"
        "  config: {argv: [/bin/server], reload_signal: HUP, reload_files: [/etc/server]}\n");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/config", "in_place");
    lab_assert_state(&lab, "lab/server", "running");
    reloads = 0;
    lab_apply(
        &lab,
        "variables: {PORT: 81}\n"
        "children:\n"
        "- {name: config, kind: file, config: {path: /etc/server, content: 'port {{ .PORT }}'}}\n"
        "- name: server\n"
        "  kind: process\n"
        "  config: {argv: [/bin/server], reload_signal: HUP, reload_files: [/etc/server]}\n");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(reloads, 1);
    lab_assert_no_log(&lab, "running replacing");
    lab_apply(&lab, SERVER ", fast]}}]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_log(&lab, "state_transition lab/server running replacing");
    lab_assert_state(&lab, "lab/server", "running");
    assert_int_equal(running, 1);
    stop_lab(&lab);
}

static void process_that_ends_too_soon_backs_off_and_recovers(void **state)
{
    struct lab lab;

    (void)state;
    open_lab(&lab, 3);
    is_broken = true;
    lab_apply(&lab, SERVER "]}}]");
    lab_run(&lab, 2 * DET_SECOND);
    lab_assert_log(&lab, "state_transition lab/server starting backing_off");
    lab_assert_log(&lab, "ended with code 9, 1 early exit");
    lab_run(&lab, DET_MINUTE);
    /* 1, 2, 4, 8, 16 s, and what an observation takes. */
    assert_true(lab_count(&lab, "starting backing_off") >= 5);
    assert_true(lab_count(&lab, "starting backing_off") <= 7);
    is_broken = false;
    lab_run(&lab, 2 * DET_MINUTE);
    lab_assert_state(&lab, "lab/server", "running");
    assert_int_equal(running, 1);
    stop_lab(&lab);
}

static void wrong_config_is_reported_and_the_last_good_one_kept(void **state)
{
    struct det_worker_status status;
    struct lab lab;

    (void)state;
    open_lab(&lab, 4);
    lab_apply(&lab, SERVER "]}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_apply(&lab, SERVER "], stop_signal: BANG}}]");
    lab_run(&lab, 3 * DET_SECOND);
    status = lab_status(&lab, "lab/server");
    assert_non_null(strstr(status.degraded_by, "stop_signal 'BANG' is unknown: use TERM"));
    assert_int_equal(running, 1);
    lab_apply(&lab, SERVER "], arguments: [x]}}]");
    lab_run(&lab, 3 * DET_SECOND);
    status = lab_status(&lab, "lab/server");
    assert_non_null(strstr(status.degraded_by, "arguments"));
    assert_int_equal(running, 1);
    stop_lab(&lab);
}

static void unresponsive_process_is_killed_within_the_grace(void **state)
{
    struct lab lab;

    (void)state;
    open_lab(&lab, 5);
    lab_apply(
        &lab, "children: [{name: deaf, kind: process, config: {argv: [/bin/deaf], "
              "grace_ms: 2000}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/deaf", "running");
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    lab_assert_log(&lab, "action_completed lab/deaf kill");
    lab_close(&lab);
}

/* A stop at any moment of a start leaves nothing behind. */
static void a_stop_in_the_middle_of_a_start_leaves_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lab lab;

        open_lab(&lab, seed);
        lab_apply(&lab, SERVER "]}}]");
        lab_run(&lab, (det_time)seed * 30 * DET_MILLISECOND);
        lab_apply(&lab, "children: []");
        lab_run(&lab, 3 * DET_SECOND);
        assert_false(lab_has(&lab, "lab/server"));
        assert_int_equal(running, 0);
        stop_lab(&lab);
    }
}

static void disabled_process_does_not_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct lab lab;

        open_lab(&lab, seed);
        lab_apply(&lab, SERVER "]}}]");
        lab_run(&lab, (det_time)seed * 50 * DET_MILLISECOND);
        lab_apply(
            &lab, "children: [{name: server, kind: process, disabled: true, config: {argv: "
                  "[/bin/server]}}]");
        lab_run(&lab, 3 * DET_SECOND);
        lab_assert_state(&lab, "lab/server", "stopped");
        assert_int_equal(running, 0);
        lab_apply(&lab, SERVER "]}}]");
        lab_run(&lab, 3 * DET_SECOND);
        assert_int_equal(running, 1);
        stop_lab(&lab);
    }
}

static void file_drift_is_corrected_and_reported(void **state)
{
    struct lab lab;
    char *data;
    size_t size;

    (void)state;
    open_lab(&lab, 6);
    lab_apply(
        &lab, "children: [{name: motd, kind: file, config: {path: /etc/motd, content: hello}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/motd", "in_place");
    assert_int_equal(det_file_replace(lab.world, "/etc/motd", "hallo", 5), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_log(&lab, "state_transition lab/motd in_place drifted");
    lab_assert_log(&lab, "its content differs: 5 bytes");
    lab_assert_state(&lab, "lab/motd", "in_place");
    assert_int_equal(det_file_load(lab.world, NULL, "/etc/motd", 100, &data, &size), 0);
    assert_string_equal(data, "hello");
    free(data);
    stop_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_runs_and_stops_with_its_supervisor),
        cmocka_unit_test(changed_arguments_and_files_reach_the_process),
        cmocka_unit_test(process_that_ends_too_soon_backs_off_and_recovers),
        cmocka_unit_test(wrong_config_is_reported_and_the_last_good_one_kept),
        cmocka_unit_test(unresponsive_process_is_killed_within_the_grace),
        cmocka_unit_test(a_stop_in_the_middle_of_a_start_leaves_nothing),
        cmocka_unit_test(disabled_process_does_not_run),
        cmocka_unit_test(file_drift_is_corrected_and_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
