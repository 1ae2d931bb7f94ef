/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_test.c - a program that is kept running: what its states answer, in virtual time with
 * simulated programs. */
#include <detent/driver/sim.h>
#include <signal.h>

#include "kinds/process_test.h"
#include "lib/poor_world.h"

static struct det_sim *sim;
static uint32_t reloads;

static det_time later(struct det_world *world, det_time span)
{
    return det_world_now(world, DET_CLOCK_MONOTONIC) + span;
}

/* Exits after SIGTERM, after the seconds of its argument; counts the requests to reload. */
static int program_server(struct det_world *world, int argc, const char *const *argv)
{
    det_sim_catch(world, SIGTERM);
    det_sim_catch(world, SIGHUP);
    while (det_sim_wait_caught(world, later(world, DET_DAY)) == SIGHUP)
        reloads++;
    if (argc > 1 &&
        det_sim_wait_caught(world, later(world, strtol(argv[1], NULL, 10) * DET_SECOND)) > 0)
        return 1;
    return 0;
}

/* Ends by itself after so many milliseconds, with that code. */
static int program_short(struct det_world *world, int argc, const char *const *argv)
{
    assert_int_equal(argc, 3);
    if (det_sim_wait_caught(world, later(world, strtol(argv[1], NULL, 10) * DET_MILLISECOND)) > 0)
        return 1;
    return (int)strtol(argv[2], NULL, 10);
}

static int program_deaf(struct det_world *world, int argc, const char *const *argv)
{
    (void)argc;
    (void)argv;
    det_sim_catch(world, SIGTERM);
    while (det_sim_wait_caught(world, later(world, DET_HOUR)) != SIGUSR1)
        continue;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    reloads = 0;
    return det_sim_open(NULL, &sim, NULL) || det_sim_program(sim, "server", program_server) ||
           det_sim_program(sim, "short", program_short) ||
           det_sim_program(sim, "deaf", program_deaf);
}

static int tear_down(void **state)
{
    (void)state;
    det_sim_close(sim);
    return 0;
}

/* derive() */

static void a_config_without_a_program_is_refused(void **state)
{
    static struct process_desired config;

    (void)state;
    assert_refused(&process_kind, &config, "argv is missing");
    assert_refused(&process_kind, &config, "such as argv:");
}

static void absent_fields_have_defaults(void **state)
{
    static struct process_desired config;

    (void)state;
    set_arguments(&config, "server", NULL, NULL);
    assert_string_equal(config.stop_signal, "TERM");
    assert_int_equal(config.grace_ms, 4000);
    assert_int_equal(config.steady_ms, 10000);
    assert_int_equal(config.delay_ms, 1000);
    assert_int_equal(config.delay_max_ms, 60000);
}

static void config_errors_name_the_field_and_a_remedy(void **state)
{
    static struct process_desired good, config;

    (void)state;
    set_arguments(&good, "server", NULL, NULL);
    config = good;
    PUT(config.folder, "var/x");
    assert_refused(&process_kind, &config, "folder 'var/x' is relative: write an absolute path");
    config = good;
    config.reload_files_count = 2;
    PUT(config.reload_files[0], "/etc/x");
    PUT(config.reload_files[1], "x");
    assert_refused(&process_kind, &config, "reload_files[1] 'x' is relative");
    config = good;
    PUT(config.stop_signal, "BANG");
    assert_refused(&process_kind, &config, "stop_signal 'BANG' is unknown: use TERM, INT");
    config = good;
    PUT(config.reload_signal, "STOP");
    assert_refused(&process_kind, &config, "reload_signal 'STOP' is unknown");
    config = good;
    config.environment_count = 1;
    PUT(config.environment[0], "9A=secret");
    assert_refused(&process_kind, &config, "environment[0] is not NAME=value");
    PUT(config.environment[0], "secret");
    assert_refused(&process_kind, &config, "such as PORT=8080");
    config = good;
    config.delay_ms = 70000;
    assert_refused(&process_kind, &config, "delay_ms 70000 is more than delay_max_ms 60000");
    config = good;
    config.grace_ms = 3600001;
    assert_refused(&process_kind, &config, "at most 3600000");
}

static void a_secret_of_the_environment_is_never_shown(void **state)
{
    static struct process_desired config;
    struct bench_derive derive;
    char text[4096];

    (void)state;
    set_arguments(&config, "server", NULL, NULL);
    config.environment_count = 1;
    PUT(config.environment[0], "hunter2");
    assert_null(strstr(bench_derive(&process_kind, &config, &derive), "hunter2"));
    (void)det_record_print(process_desired_record(), &config, 0, text, sizeof text);
    assert_null(strstr(text, "hunter2"));
}

/* In virtual time. */

static void a_program_is_started_kept_and_stopped(void **state)
{
    static struct process_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "server", NULL, NULL);
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "running");
    assert_reason(&bench, "runs as ");
    assert_true(seen_of(&bench)->is_running && seen_of(&bench)->pid > 0);
    bench_run(&bench, DET_MINUTE);
    assert_int_equal(seen_of(&bench)->starts, 1);
    assert_int_equal(bench.actions[PROCESS_START], 1);
    bench_stop(&bench);
    assert_false(seen_of(&bench)->is_running);
    assert_true(seen_of(&bench)->has_exit_code && seen_of(&bench)->exit_code == 0);
    assert_int_equal(bench.actions[PROCESS_STOP], 1);
    assert_int_equal(bench.actions[PROCESS_KILL], 0);
    bench_close(&bench);
}

static void process_that_ran_long_is_restarted_at_once(void **state)
{
    static struct process_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "short", "15050", "3");
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, 15 * DET_SECOND);
    assert_state(&bench, "running");
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "running");
    assert_int_equal(seen_of(&bench)->starts, 2);
    assert_int_equal(seen_of(&bench)->exit_code, 3);
    assert_int_equal(seen_of(&bench)->early_exits, 0);
    bench_stop(&bench);
    bench_close(&bench);
}

static void process_that_ends_too_soon_backs_off(void **state)
{
    static struct process_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "short", "50", "3");
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, 500 * DET_MILLISECOND);
    assert_state(&bench, "backing_off");
    assert_reason(&bench, "ended with code 3, 1 early exit");
    /* 1 + 2 + 4 + 8 + 16 s and a little each: the sixth comes after 31 s. */
    bench_run(&bench, 30 * DET_SECOND);
    assert_int_equal(seen_of(&bench)->starts, 5);
    bench_run(&bench, 5 * DET_SECOND);
    assert_int_equal(seen_of(&bench)->starts, 6);
    bench_run(&bench, 10 * DET_MINUTE);
    assert_int_equal(seen_of(&bench)->starts, 16);
    /* Mended, it is tried at once, and has to prove itself. */
    assert_state(&bench, "backing_off");
    set_arguments(&desired, "server", NULL, NULL);
    bench_run(&bench, 100 * DET_MILLISECOND);
    assert_true(seen_of(&bench)->is_running);
    assert_state(&bench, "starting");
    assert_reason(&bench, "being watched");
    bench_run(&bench, 10 * DET_SECOND);
    assert_state(&bench, "running");
    assert_int_equal(seen_of(&bench)->early_exits, 0);
    bench_stop(&bench);
    bench_close(&bench);
}

static void process_ignoring_the_stop_signal_is_killed(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    det_time began;

    (void)state;
    set_arguments(&desired, "deaf", NULL, NULL);
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, DET_SECOND);
    began = bench_now(&bench);
    bench_stop(&bench);
    assert_true(bench_now(&bench) - began >= 4 * DET_SECOND);
    assert_true(bench_now(&bench) - began <= 5 * DET_SECOND);
    assert_string_equal(seen_of(&bench)->exit_signal, "KILL");
    assert_int_equal(bench.actions[PROCESS_STOP], 1);
    assert_int_equal(bench.actions[PROCESS_KILL], 1);
    bench_close(&bench);
}

static void changed_arguments_replace_the_process(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    int64_t pid;

    (void)state;
    set_arguments(&desired, "server", NULL, NULL);
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, DET_SECOND);
    pid = seen_of(&bench)->pid;
    set_arguments(&desired, "server", "1", NULL);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "running");
    assert_int_equal(seen_of(&bench)->starts, 2);
    assert_int_not_equal(seen_of(&bench)->pid, pid);
    assert_int_equal(seen_of(&bench)->early_exits, 0);
    /* Members about how it is ended need no restart. */
    desired.grace_ms = 7000;
    bench_run(&bench, DET_SECOND);
    assert_int_equal(seen_of(&bench)->starts, 2);
    bench_stop(&bench);
    bench_close(&bench);
}

static void changed_reload_file_signals_the_process(void **state)
{
    static struct process_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "server", NULL, NULL);
    PUT(desired.reload_signal, "HUP");
    desired.reload_files_count = 1;
    PUT(desired.reload_files[0], "/etc/server.conf");
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, DET_SECOND);
    assert_int_equal(det_file_replace(det_sim_world(sim), "/etc/server.conf", "a", 1), 0);
    bench_run(&bench, DET_SECOND);
    assert_int_equal(reloads, 1);
    PUT(desired.revision, "2");
    bench_run(&bench, DET_SECOND);
    assert_int_equal(reloads, 2);
    assert_int_equal(bench.actions[PROCESS_RELOAD], 2);
    assert_int_equal(seen_of(&bench)->starts, 1);
    /* Without a signal it is replaced. */
    desired.reload_signal[0] = '\0';
    PUT(desired.revision, "3");
    bench_run(&bench, DET_SECOND);
    assert_int_equal(seen_of(&bench)->starts, 2);
    assert_state(&bench, "running");
    bench_stop(&bench);
    bench_close(&bench);
}

static void missing_program_is_reported_and_retried(void **state)
{
    static struct process_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "no_such_program", NULL, NULL);
    bench_open(&bench, &process_kind, sim, &desired);
    bench_run(&bench, 300 * DET_MILLISECOND);
    assert_state(&bench, "backing_off");
    assert_reason(&bench, "it cannot be started: ");
    assert_reason(&bench, "no_such_program");
    bench_run(&bench, DET_MINUTE);
    assert_int_equal(bench.actions[PROCESS_START], 6);
    assert_int_equal(seen_of(&bench)->starts, 0);
    bench_stop(&bench);
    bench_close(&bench);
}

static void a_start_that_was_cancelled_starts_nothing(void **state)
{
    static struct process_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "server", NULL, NULL);
    bench_open(&bench, &process_kind, sim, &desired);
    bench.is_cancelled = true;
    bench_act(&bench, PROCESS_START);
    assert_int_equal(bench.view.last_action.code, DET_ERR_CANCELLED);
    bench_collect(&bench);
    assert_int_equal(seen_of(&bench)->starts, 0);
    bench_close(&bench);
}

static void allocation_failures_are_reported(void **state)
{
    static struct process_desired desired;
    struct det_test_memory memory;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "server", NULL, NULL);
    desired.environment_count = 1;
    PUT(desired.environment[0], "A=b");
    det_test_memory_init(&memory);
    bench_open(&bench, &process_kind, sim, &desired);
    bench.context.allocator = &memory.allocator;
    (void)det_test_memory_fail(&memory, 1, true);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "backing_off");
    assert_reason(&bench, "environment: out of memory");
    (void)det_test_memory_fail(&memory, 0, false);
    bench_run(&bench, 5 * DET_SECOND);
    assert_true(seen_of(&bench)->is_running);
    bench_stop(&bench);
    bench_close(&bench);
    det_test_memory_deinit(&memory);
}

/* Opens and runs a worker for three seconds, with one request to reload. */
static int run_with(struct det_test_memory *memory, void *argument)
{
    static struct process_desired desired;
    struct bench bench;
    int r = 0;

    (void)argument;
    set_arguments(&desired, "server", NULL, NULL);
    desired.environment_count = desired.reload_files_count = 1;
    PUT(desired.environment[0], "A=b");
    PUT(desired.reload_files[0], "/etc/server.conf");
    PUT(desired.reload_signal, "HUP");
    assert_int_equal(det_file_replace(det_sim_world(sim), "/etc/server.conf", "a", 1), 0);
    reloads = 0;
    bench_open(&bench, &process_kind, sim, &desired);
    bench.context.allocator = &memory->allocator;
    bench_run(&bench, 200 * DET_MILLISECOND);
    if (bench.view.last_action.code < 0)
        r = bench.view.last_action.code;
    bench_run(&bench, 1200 * DET_MILLISECOND);
    assert_state(&bench, "running");
    assert_int_equal(seen_of(&bench)->starts, 1);
    assert_int_equal(seen_of(&bench)->early_exits, 0);
    assert_int_equal(reloads, 0);
    assert_int_equal(det_file_replace(det_sim_world(sim), "/etc/server.conf", "b", 1), 0);
    bench_run(&bench, DET_SECOND);
    assert_int_equal(reloads, 1);
    assert_int_equal(seen_of(&bench)->starts, 1);
    bench_stop(&bench);
    bench_close(&bench);
    return r;
}

static void each_allocation_may_fail_and_nothing_is_reloaded_or_replaced_for_it(void **state)
{
    struct det_test_memory memory;
    uint64_t number = 1;
    unsigned failed = 0;
    bool has_failed = true;

    (void)state;
    for (; has_failed; number++) {
        det_test_memory_init(&memory);
        (void)det_test_memory_fail(&memory, number, false);
        failed += run_with(&memory, NULL) < 0;
        has_failed = det_test_memory_fail(&memory, 0, false);
        det_test_memory_deinit(&memory);
    }
    assert_true(failed >= 2); /* a start: for its environment, and for its file */
    assert_true(number > 30);
}

/* A minute of it would be six early exits, and a delay of half a minute. */
static void local_shortage_is_not_counted_as_an_early_end(void **state)
{
    static const int codes[] = { DET_ERR_LIMIT, DET_ERR_NO_MEMORY };
    static struct process_desired desired;
    struct det_test_poor_world poor;
    struct bench bench;

    (void)state;
    det_test_poor_world_open(&poor, det_sim_world(sim));
    for (size_t i = 0; i < 2; i++) {
        set_arguments(&desired, "server", NULL, NULL);
        bench_open(&bench, &process_kind, sim, &desired);
        poor.start_fails_with = codes[i];
        bench_run(&bench, DET_MINUTE);
        assert_state(&bench, "backing_off");
        assert_reason(&bench, "it cannot be started: too many open files");
        assert_int_equal(seen_of(&bench)->early_exits, 0);
        poor.start_fails_with = 0;
        bench_run(&bench, 1200 * DET_MILLISECOND);
        assert_state(&bench, "running");
        assert_int_equal(seen_of(&bench)->starts, 1);
        bench_stop(&bench);
        bench_close(&bench);
    }
    det_test_poor_world_close(&poor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_without_a_program_is_refused),
        cmocka_unit_test(absent_fields_have_defaults),
        cmocka_unit_test(config_errors_name_the_field_and_a_remedy),
        cmocka_unit_test(a_secret_of_the_environment_is_never_shown),
        cmocka_unit_test_setup_teardown(a_program_is_started_kept_and_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            process_that_ran_long_is_restarted_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(process_that_ends_too_soon_backs_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            process_ignoring_the_stop_signal_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changed_arguments_replace_the_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changed_reload_file_signals_the_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_program_is_reported_and_retried, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_start_that_was_cancelled_starts_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(allocation_failures_are_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            each_allocation_may_fail_and_nothing_is_reloaded_or_replaced_for_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            local_shortage_is_not_counted_as_an_early_end, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
