/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop_deadline_test.c - a program that hangs while it stops ends one second after the next signal,
 * whatever requested the stop. */
/* test: threads */
#include "lib/patience.h"
#include "lib/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/project_internal.h"
#include "daemon/run.h"
#include "os/os.h"

static void pass_by(det_time span)
{
    det_time until = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + span;

    while (det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) < until)
        (void)poll(NULL, 0, 10);
}

/* Returns when the deadline thread has taken the signal: its time starts there. */
static void send_first(int forwarded)
{
    struct pollfd taken = { .fd = forwarded, .events = POLLIN };

    (void)kill(getpid(), SIGTERM);
    (void)poll(&taken, 1, -1);
}

/* A program whose loop hangs: it does not read forwarded signals. */
static _Noreturn void hang(bool is_asked_first)
{
    struct cli cli = { .world = det_world_real() };
    static struct up_project project;
    struct up *up = calloc(1, sizeof *up);
    int ends[2];
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    if (!up || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        _exit(99);
    up->cli = &cli;
    up->project = &project;
    project.file.config.limits.grace = DET_HOUR;
    if (up_deadline_open(up, signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK), ends[1]) < 0)
        _exit(98);
    if (is_asked_first)
        up_deadline_arm(up);
    else
        send_first(ends[0]);
    pass_by(UP_SAME_STOP + 50 * DET_MILLISECOND);
    (void)kill(getpid(), SIGTERM);
    for (;;)
        (void)pause();
}

static void expect_end(bool is_asked_first)
{
    pid_t child = fork();
    struct pollfd ended = { .events = POLLIN };
    int status = 0;

    if (child == 0)
        hang(is_asked_first);
    assert_true(child > 0);
    ended.fd = pidfd_open(child, 0);
    assert_true(ended.fd >= 0);
    if (poll(&ended, 1, (int)(DET_TEST_HANG / DET_MILLISECOND)) != 1)
        (void)kill(child, SIGKILL);
    close(ended.fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CLI_TIMEOUT)
        fail_msg("the program ended with status 0x%x", (unsigned)status);
}

static void a_second_signal_ends_a_program_that_hangs(void **state)
{
    (void)state;
    expect_end(false);
}

static void first_signal_after_a_stop_request_acts_as_the_second(void **state)
{
    (void)state;
    expect_end(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_signal_ends_a_program_that_hangs),
        cmocka_unit_test(first_signal_after_a_stop_request_acts_as_the_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
