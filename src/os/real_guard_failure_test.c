/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_failure_test.c - a guard whose helper cannot be started, and a search among processes
 * whose numbers are given away meanwhile. The functions of the C library that start the helper are
 * replaced here, so that they fail on request. */
/* test: alone */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "os/real_guard.h"

#define IN_PLACE_OF(function) __asm__(#function)

pid_t fork_or_fail(void) IN_PLACE_OF(fork);
int open_process_or_fail(pid_t number, unsigned flags) IN_PLACE_OF(pidfd_open);

static int fork_error, pidfd_error; /* errno; 0: it succeeds */

pid_t fork_or_fail(void)
{
    errno = fork_error;
    return fork_error ? -1 : _Fork();
}

int open_process_or_fail(pid_t number, unsigned flags)
{
    errno = pidfd_error;
    return pidfd_error ? -1 : (int)syscall(SYS_pidfd_open, number, flags);
}

static char *folder, path[4096];

static int setup(void **state)
{
    (void)state;
    folder = det_test_folder();
    (void)snprintf(path, sizeof path, "%s/processes", folder);
    fork_error = pidfd_error = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static void kill_helper(struct det_process_guard *guard)
{
    siginfo_t info;

    assert_int_equal(0, kill(guard->helper, SIGKILL));
    assert_int_equal(0, waitid(P_PID, (id_t)guard->helper, &info, WEXITED | WNOWAIT));
}

static void a_helper_that_cannot_be_started_again_is_reported_until_it_can(void **state)
{
    const struct det_process_guard_options options = { .path = path };
    struct det_process_guard *guard;
    pid_t before;

    (void)state;
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    assert_int_equal(0, det_process_guard_tend(guard));
    assert_int_equal(0, det_process_guard_start(guard, &options, NULL));
    before = guard->helper;
    kill_helper(guard);
    fork_error = EAGAIN;
    for (int i = 0; i < 3; i++)
        assert_int_equal(DET_ERR_LIMIT, det_process_guard_tend(guard));
    assert_false(det_process_guard_is_helper(guard, before));
    fork_error = 0;
    assert_int_equal(1, det_process_guard_tend(guard));
    assert_int_equal(0, det_process_guard_tend(guard));
    assert_int_equal(0, kill(guard->helper, 0));
    det_process_guard_close(guard);
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
}

static void a_start_that_fails_may_be_tried_again(void **state)
{
    const struct det_process_guard_options options = { .path = path };
    struct det_error error = { 0 };
    struct det_process_guard *guard;
    struct stat status;

    (void)state;
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    fork_error = EAGAIN;
    assert_int_equal(DET_ERR_LIMIT, det_process_guard_start(guard, &options, &error));
    assert_non_null(strstr(error.text, "Resource temporarily unavailable"));
    fork_error = 0;
    pidfd_error = EMFILE;
    assert_int_equal(DET_ERR_LIMIT, det_process_guard_start(guard, &options, &error));
    pidfd_error = 0;
    /* As before the start: nothing is recorded. */
    assert_null(det_real_guard(det_process_guard_world(guard)));
    assert_int_equal(0, det_process_guard_tend(guard));
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(status.st_size, 0);
    assert_int_equal(0, det_process_guard_start(guard, &options, &error));
    assert_true(guard->helper > 0);
    det_process_guard_close(guard);
}

/* A folder like /proc, with processes that never existed. */

#define FIRST    4000001
#define SECOND   4000002
#define CHILD    4000003
#define STRANGER 77

struct fake {
    int64_t called[4];
    int count;
};

static void write_process(pid_t number, pid_t parent, unsigned start)
{
    char name[4200], text[256];

    (void)snprintf(name, sizeof name, "%s/proc/%d", folder, (int)number);
    (void)mkdir(name, 0700);
    (void)snprintf(name, sizeof name, "%s/proc/%d/stat", folder, (int)number);
    (void)snprintf(
        text, sizeof text, "%d (sleep) S %d %d 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %u 0 0\n",
        (int)number, (int)parent, (int)number, start);
    det_test_write_file(name, text, strlen(text));
}

/* After the first process is found, the numbers of the others are reused by strangers. */
static void give_away(void *user, const struct det_process_guard_seen *seen, const char *command)
{
    struct fake *fake = user;

    (void)command;
    assert_true(fake->count < 4);
    fake->called[fake->count++] = seen->number;
    for (pid_t number = FIRST; number <= CHILD; number++)
        if (number != seen->number)
            write_process(number, 1, STRANGER);
}

static struct det_process_guard_scan open_scan(
    const struct det_process_guard_run *run, struct det_process_guard_record *record)
{
    struct det_process_guard_scan scan;
    char name[4200];

    (void)snprintf(name, sizeof name, "%s/proc", folder);
    assert_int_equal(0, mkdir(name, 0700));
    assert_int_equal(0, det_process_guard_scan_init(&scan, run, record, 2, true));
    close(scan.proc);
    scan.proc = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(scan.proc >= 0);
    return scan;
}

static struct det_process_guard_record *new_record(void)
{
    struct det_process_guard_record *record = calloc(1, DET_GUARD_SIZE(2));

    assert_non_null(record);
    record->count = 2;
    for (uint32_t i = 0; i < 2; i++)
        record->slots[i] = (struct det_process_guard_slot){ .state = DET_GUARD_LIVE,
                                                            .number = FIRST + i,
                                                            .start = 5 };
    return record;
}

static void process_number_reused_during_a_scan_is_not_killed(void **state)
{
    struct det_process_guard_record *record = new_record();
    const struct det_process_guard_run run = { .name = "00000000000000000000000000000007" };
    struct det_process_guard_scan scan = open_scan(&run, record);
    struct fake fake = { .count = 0 };

    (void)state;
    write_process(FIRST, 1, 5);
    write_process(SECOND, 1, 5);
    write_process(CHILD, FIRST, 6);
    assert_int_equal(3, det_process_guard_scan_run(&scan, 0, NULL, NULL));
    /* One is called, and the other two are strangers by then. */
    assert_int_equal(1, det_process_guard_scan_run(&scan, 0, give_away, &fake));
    assert_int_equal(1, fake.count);
    det_process_guard_scan_deinit(&scan);
    free(record);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_helper_that_cannot_be_started_again_is_reported_until_it_can),
        CASE(a_start_that_fails_may_be_tried_again),
        CASE(process_number_reused_during_a_scan_is_not_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
