/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_real_test.c - a program that is kept running, with real programs: nothing of them is left
 * behind. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kinds/process_test.h"

static void wait_for_end(const struct bench *bench)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)seen_of(bench)->pid, &info, WEXITED | WNOWAIT), 0);
}

static bool is_there(int64_t pid)
{
    return kill((pid_t)pid, 0) == 0;
}

static void real_program_runs_and_leaves_no_process(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    int64_t pid;

    (void)state;
    set_arguments(&desired, "/bin/sleep", "600", NULL);
    desired.environment_count = 1;
    PUT(desired.environment[0], "WHO=me");
    PUT(desired.folder, "/");
    bench_open(&bench, &process_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "running");
    pid = seen_of(&bench)->pid;
    assert_true(is_there(pid));
    bench.stop_wanted = true;
    bench_step(&bench);
    bench_step(&bench);
    wait_for_end(&bench);
    bench_stop(&bench);
    assert_string_equal(seen_of(&bench)->exit_signal, "TERM");
    assert_false(is_there(pid));
    bench_close(&bench);
}

static void real_process_end_is_reported_with_its_code(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    siginfo_t info;

    (void)state;
    set_arguments(&desired, "/bin/sh", "-c", "test \"$WHO$PWD\" = me/ && exit 7");
    desired.environment_count = 1;
    PUT(desired.environment[0], "WHO=me");
    PUT(desired.folder, "/");
    desired.output = PROCESS_OUTPUT_LOG;
    bench_open(&bench, &process_kind, NULL, &desired);
    bench_step(&bench);
    bench_step(&bench);
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    bench_settle(&bench);
    assert_state(&bench, "backing_off");
    assert_int_equal(seen_of(&bench)->exit_code, 7);
    bench_close(&bench);
}

/* Both hold the pipe open: its end comes when both are gone. */
static void children_of_the_process_are_killed_with_it(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    char *folder = det_test_folder(), command[512], fifo[256], byte;
    int64_t pid;
    int reader;

    (void)state;
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    (void)snprintf(command, sizeof command, "exec 3>%s; sleep 600 & echo >&3; wait", fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    set_arguments(&desired, "/bin/sh", "-c", command);
    bench_open(&bench, &process_kind, NULL, &desired);
    bench_settle(&bench);
    pid = seen_of(&bench)->pid;
    reader = open(fifo, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(reader, &byte, 1), 1);
    /* Taken down in the middle. */
    bench_close(&bench);
    assert_false(is_there(pid));
    assert_int_equal(read(reader, &byte, 1), 0);
    close(reader);
    det_test_folder_remove(folder);
}

/* Kills a separate process with its program: neither of them remains. */
static void process_ends_with_its_supervisor(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    char *folder = det_test_folder(), command[512], fifo[256], byte;
    int reader;
    pid_t us;

    (void)state;
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    (void)snprintf(command, sizeof command, "exec 3>%s; echo >&3; exec sleep 600", fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    set_arguments(&desired, "/bin/sh", "-c", command);
    us = fork();
    if (us == 0) {
        bench_open(&bench, &process_kind, NULL, &desired);
        bench_settle(&bench);
        for (;;)
            (void)pause();
    }
    reader = open(fifo, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(reader, &byte, 1), 1);
    assert_int_equal(kill(us, SIGKILL), 0);
    assert_int_equal(waitpid(us, NULL, 0), us);
    assert_int_equal(read(reader, &byte, 1), 0);
    close(reader);
    det_test_folder_remove(folder);
}

static void process_runs_as_another_user(void **state)
{
    static struct process_desired desired;
    struct bench bench;
    siginfo_t info;

    (void)state;
    if (getuid() != 0)
        skip();
    set_arguments(&desired, "/bin/sh", "-c", "test \"$(id -un)\" = nobody && exit 7");
    PUT(desired.user, "nobody");
    bench_open(&bench, &process_kind, NULL, &desired);
    bench_step(&bench);
    bench_step(&bench);
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    bench_settle(&bench);
    assert_int_equal(seen_of(&bench)->exit_code, 7);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_program_runs_and_leaves_no_process),
        cmocka_unit_test(real_process_end_is_reported_with_its_code),
        cmocka_unit_test(children_of_the_process_are_killed_with_it),
        cmocka_unit_test(process_ends_with_its_supervisor),
        cmocka_unit_test(process_runs_as_another_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
