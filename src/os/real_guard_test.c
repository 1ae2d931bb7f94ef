/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_test.c - processes of a guarded world are recorded, die with their program, and are
 * ended by the next one. */
/* test: threads */
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "os/real_guard.h"

static char *folder, path[4096];

static int setup(void **state)
{
    (void)state;
    folder = det_test_folder();
    (void)snprintf(path, sizeof path, "%s/processes", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static struct det_process_guard *begin(det_time grace)
{
    const struct det_process_guard_options options = { .path = path, .grace = grace };
    struct det_process_guard *guard;
    struct det_error error = { 0 };

    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    assert_int_equal(0, det_process_guard_start(guard, &options, &error));
    return guard;
}

static struct det_process *run_program(
    struct det_process_guard *guard, const char *const *argv, bool ends_with_us)
{
    const struct det_process_options options = {
        .argv = argv,
        .input = -1,
        .output = -1,
        .error = -1,
        .new_group = true,
        .ends_with_us = ends_with_us,
    };
    struct det_world *world = det_process_guard_world(guard);
    struct det_process *process = NULL;

    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    return process;
}

static const char *const sleeper[] = { "sleep", "600", NULL };

static void end(struct det_process_guard *guard, struct det_process *process)
{
    struct det_world *world = det_process_guard_world(guard);

    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    world->ops->process_close(world, process);
}

/* Content of the file; the caller frees it. */
static struct det_process_guard_record *inspect(void)
{
    return (struct det_process_guard_record *)(void *)det_test_read_file(path, NULL);
}

static void started_process_is_recorded_until_it_is_reaped(void **state)
{
    struct det_process_guard *guard = begin(0);
    struct det_process *process = run_program(guard, sleeper, false);
    struct det_world *world = det_process_guard_world(guard);
    struct det_process_guard_record *record = inspect();
    struct stat status;

    (void)state;
    assert_int_equal(record->owner, getpid());
    assert_int_equal(record->slots[0].state, DET_GUARD_LIVE);
    assert_int_equal(record->slots[0].number, world->ops->process_number(world, process));
    assert_true(record->slots[0].start >= record->owner_start);
    assert_true(record->slots[0].is_kept);
    assert_string_equal(record->slots[0].command, "sleep 600");
    free(record);
    end(guard, process);
    record = inspect();
    assert_int_equal(record->slots[0].state, DET_GUARD_FREE);
    free(record);
    end(guard, run_program(guard, sleeper, true));
    record = inspect();
    assert_int_equal(record->count, 1);
    free(record);
    det_process_guard_close(guard);
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(status.st_size, 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void process_that_fails_to_start_leaves_no_record(void **state)
{
    const struct det_process_options options = {
        .argv = (const char *const[]){ "/no/such/program", NULL }, .input = -1, .output = -1
    };
    struct det_process_guard *guard = begin(0);
    struct det_world *world = det_process_guard_world(guard);
    struct det_process *process;
    struct det_process_guard_record *record;

    (void)state;
    assert_int_equal(DET_ERR_NOT_FOUND, world->ops->process_start(world, &options, &process, NULL));
    record = inspect();
    assert_int_equal(record->slots[0].state, DET_GUARD_FREE);
    free(record);
    det_process_guard_close(guard);
}

static void record_holds_the_maximum_of_the_format(void **state)
{
    const struct det_process_options options = { .argv = sleeper };
    struct det_process_guard *guard = begin(0);
    struct det_process_guard_slot *slot = NULL, *first = NULL;

    (void)state;
    for (uint32_t i = 0; i < DET_PROCESS_GUARD_MAX; i++) {
        assert_int_equal(0, det_process_guard_claim(guard, &options, &slot));
        first = first ? first : slot;
    }
    assert_int_equal(DET_ERR_LIMIT, det_process_guard_claim(guard, &options, &slot));
    det_process_guard_release(guard, first);
    assert_int_equal(0, det_process_guard_claim(guard, &options, &slot));
    assert_ptr_equal(slot, first);
    det_process_guard_close(guard);
}

/* A program that starts some and is killed. Returns the pidfd of one that it has started. */
static int run_and_die(const char *const *argv, bool ends_with_us, bool with_helper)
{
    int numbers[2];
    pid_t us, number = 0;

    assert_int_equal(0, pipe2(numbers, O_CLOEXEC));
    us = fork();
    if (us == 0) {
        struct det_process_guard *guard = begin(0);
        struct det_world *world = det_process_guard_world(guard);
        struct det_process *process = run_program(guard, argv, ends_with_us);

        number = (pid_t)world->ops->process_number(world, process);
        (void)!write(numbers[1], &number, sizeof number);
        if (!with_helper)
            (void)kill(guard->helper, SIGKILL);
        (void)pause();
    }
    assert_int_equal(sizeof number, read(numbers[0], &number, sizeof number));
    close(numbers[0]);
    close(numbers[1]);
    int descriptor = pidfd_open(number, 0);

    assert_int_equal(0, kill(us, SIGKILL));
    assert_int_equal(us, waitpid(us, NULL, 0));
    return descriptor;
}

static bool is_over(int descriptor, int span_ms)
{
    struct pollfd one = { .fd = descriptor, .events = POLLIN };

    return poll(&one, 1, span_ms) == 1;
}

static void process_dies_with_its_program(void **state)
{
    int one = run_and_die(sleeper, true, true), two = run_and_die(sleeper, true, false);

    (void)state;
    assert_true(is_over(one, 30000));
    assert_true(is_over(two, 30000));
    close(one);
    close(two);
}

struct seen {
    int64_t number;
    char command[64];
    int count;
};

static void on_left(void *user, int64_t number, const char *command)
{
    struct seen *seen = user;

    seen->number = number;
    (void)snprintf(seen->command, sizeof seen->command, "%s", command);
    seen->count++;
}

static void kept_process_is_ended_by_the_next_program(void **state)
{
    struct seen seen = { 0 };
    const struct det_process_guard_options options = {
        .path = path, .grace = DET_SECOND, .on_left = on_left, .user = &seen
    };
    int one = run_and_die(sleeper, false, true);
    struct det_process_guard *guard;
    struct det_error error = { 0 };

    (void)state;
    assert_false(is_over(one, 0));
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    assert_int_equal(0, det_process_guard_start(guard, &options, &error));
    assert_true(is_over(one, 0));
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.command, "sleep 600");
    close(one);
    det_process_guard_close(guard);
}

/* The next run reads the record while the previous run is about to end. */
static void record_is_readable_while_its_owner_empties_it(void **state)
{
    struct det_process_guard *guard = begin(0);
    struct det_process *process = run_program(guard, sleeper, true);
    struct det_process_guard_run run;
    struct det_process_guard_record *record;
    size_t size = 0;

    (void)state;
    assert_int_equal(0, det_process_guard_record_load(path, &run, &record, &size));
    assert_non_null(record);
    end(guard, process);
    det_process_guard_close(guard);
    assert_int_equal(record->count, 1);
    assert_string_equal(record->slots[0].command, "sleep 600");
    det_process_guard_record_unload(record, size);
    assert_int_equal(0, det_process_guard_record_load(path, &run, &record, &size));
    assert_null(record);
}

static void claimed_empty_slot_is_waited_for_briefly(void **state)
{
    const struct det_process_options options = { .argv = sleeper };
    struct det_process_guard *guard = begin(0);
    struct det_process_guard_slot *slot;
    struct det_process_guard_run run;
    struct det_process_guard_record *record;
    size_t size = 0;

    (void)state;
    assert_int_equal(0, det_process_guard_claim(guard, &options, &slot));
    assert_int_equal(0, det_process_guard_record_load(path, &run, &record, &size));
    assert_non_null(record);
    assert_int_equal(record->slots[0].state, DET_GUARD_CLAIMED);
    det_process_guard_record_unload(record, size);
    det_process_guard_release(guard, slot);
    det_process_guard_close(guard);
}

/* A stop was asked for, and its deadline has passed. */
static void kill_ends_kept_processes_too(void **state)
{
    struct det_process_guard *guard = begin(0);
    struct det_world *world = det_process_guard_world(guard);
    struct det_process *kept = run_program(guard, sleeper, false);
    struct det_process *tied = run_program(guard, sleeper, true);
    struct det_process_end ended = { 0 };

    (void)state;
    det_process_guard_kill(guard, DET_MINUTE);
    assert_int_equal(0, world->ops->process_wait(world, kept, 0, &ended));
    assert_int_equal(SIGKILL, ended.signal);
    assert_int_equal(0, world->ops->process_wait(world, tied, 0, &ended));
    assert_int_equal(SIGKILL, ended.signal);
    assert_int_equal(0, det_process_guard_tend(guard));
    world->ops->process_close(world, kept);
    world->ops->process_close(world, tied);
    det_process_guard_close(guard);
    /* One that was not started has nothing to kill. */
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    det_process_guard_kill(guard, DET_MINUTE);
    det_process_guard_close(guard);
}

/* The run is known from the moment when its record was made. Nothing is sent here: a name of a run
 * that is empty would be found in every process. */
static void damaged_record_never_selects_a_foreign_process(void **state)
{
    struct det_process_guard *guard = begin(0);
    struct det_process *one = run_program(guard, sleeper, true), *two;
    pid_t stranger = fork();
    struct det_process_guard_scan scan;

    (void)state;
    if (stranger == 0) {
        (void)execlp("sleep", "sleep", "600", NULL);
        _exit(1);
    }
    memset(guard->record, 0, sizeof *guard->record);
    assert_int_equal(
        0, det_process_guard_scan_init(
               &scan, &guard->run, guard->record, DET_PROCESS_GUARD_MAX, true));
    assert_int_equal(1, det_process_guard_scan_run(&scan, 0, NULL, NULL));
    two = run_program(guard, sleeper, true);
    assert_int_equal(2, det_process_guard_scan_run(&scan, 0, NULL, NULL));
    det_process_guard_scan_deinit(&scan);
    assert_int_equal(0, waitpid(stranger, NULL, WNOHANG));
    end(guard, one);
    end(guard, two);
    det_process_guard_close(guard);
    (void)kill(stranger, SIGKILL);
    assert_int_equal(stranger, waitpid(stranger, NULL, 0));
}

/* As in a service that sees only processes in /proc. */
static void forget_boot(void)
{
    struct det_process_guard_record *record;
    size_t size = 0;
    FILE *file;

    record = (struct det_process_guard_record *)(void *)det_test_read_file(path, &size);
    memset(record->boot, 0, sizeof record->boot);
    record->checksum = det_process_guard_record_checksum(record);
    file = fopen(path, "r+e");
    assert_non_null(file);
    assert_int_equal(1, fwrite(record, sizeof *record, 1, file));
    assert_int_equal(0, fclose(file));
    free(record);
}

static void missing_boot_id_falls_back_to_the_file_time(void **state)
{
    struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    int one = run_and_die(sleeper, false, true);

    (void)state;
    forget_boot();
    assert_int_equal(0, utimensat(AT_FDCWD, path, old, 0));
    det_process_guard_close(begin(DET_SECOND));
    assert_false(is_over(one, 0));
    (void)pidfd_send_signal(one, SIGKILL, NULL, 0);
    close(one);
    one = run_and_die(sleeper, false, true);
    forget_boot();
    det_process_guard_close(begin(DET_SECOND));
    assert_true(is_over(one, 0));
    close(one);
}

static void left_process_that_ignores_sigterm_is_killed(void **state)
{
    const char *const argv[] = { "/bin/sh", "-c", "trap : TERM; while :; do sleep 600; done",
                                 NULL };
    int one = run_and_die(argv, false, true);

    (void)state;
    det_process_guard_close(begin(50 * DET_MILLISECOND));
    assert_true(is_over(one, 0));
    close(one);
}

/* Starts a process that starts another one in its own session, and ends. Returns the pidfd of the
 * other. */
static int leave_one(struct det_process_guard *guard, bool ends_with_us)
{
    char file[4200], script[9000];
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    struct det_world *world = det_process_guard_world(guard);
    struct det_process *process;
    struct det_process_end end;
    char *text;
    int descriptor;

    (void)snprintf(file, sizeof file, "%s/left", folder);
    (void)snprintf(
        script, sizeof script,
        "setsid sh -c 'echo $$ > %s.new; mv %s.new %s; exec sleep 600' & "
        "while ! test -e %s; do :; done",
        file, file, file, file);
    process = run_program(guard, argv, ends_with_us);
    assert_int_equal(0, world->ops->process_wait(world, process, DET_NEVER, &end));
    world->ops->process_close(world, process);
    text = det_test_read_file(file, NULL);
    descriptor = pidfd_open((pid_t)strtol(text, NULL, 10), 0);
    free(text);
    assert_int_equal(0, unlink(file));
    assert_false(is_over(descriptor, 0));
    return descriptor;
}

static void close_kills_descendants_in_other_sessions(void **state)
{
    struct det_process_guard *guard = begin(0);
    int one = leave_one(guard, true);
    struct stat status;

    (void)state;
    det_process_guard_close(guard);
    assert_true(is_over(one, 0));
    close(one);
    assert_int_equal(0, stat(path, &status));
    assert_int_equal(0, status.st_size);
}

static void kept_process_survives_close_and_is_ended_at_next_start(void **state)
{
    struct det_process_guard *guard = begin(0);
    int one = leave_one(guard, false);

    (void)state;
    det_process_guard_close(guard);
    assert_false(is_over(one, 0));
    det_process_guard_close(begin(DET_SECOND));
    assert_true(is_over(one, 0));
    close(one);
}

static void guard_helper_is_recognized_and_replaced(void **state)
{
    struct det_process_guard *guard = begin(0);
    pid_t helper = guard->helper;
    siginfo_t info;

    (void)state;
    assert_true(det_process_guard_is_helper(guard, helper));
    assert_false(det_process_guard_is_helper(guard, getpid()));
    assert_int_equal(0, det_process_guard_tend(guard));
    assert_int_equal(0, kill(helper, SIGKILL));
    assert_int_equal(0, waitid(P_PID, (id_t)helper, &info, WEXITED | WNOWAIT));
    assert_int_equal(1, det_process_guard_tend(guard));
    assert_false(det_process_guard_is_helper(guard, helper));
    det_process_guard_close(guard);
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
}

static void damaged_process_record_is_refused(void **state)
{
    const struct det_process_guard_options options = { .path = path };
    static const char zeros[600];
    struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    struct det_process_guard *guard;
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    det_test_write_file(path, zeros, 5);
    assert_int_equal(DET_ERR_CORRUPT, det_process_guard_start(guard, &options, &error));
    det_test_write_file(path, zeros, sizeof zeros);
    assert_int_equal(DET_ERR_CORRUPT, det_process_guard_start(guard, &options, &error));
    assert_non_null(strstr(error.text, "is damaged"));
    /* A record of another boot. */
    assert_int_equal(0, utimensat(AT_FDCWD, path, old, 0));
    assert_int_equal(0, det_process_guard_start(guard, &options, &error));
    det_process_guard_close(guard);
}

static void missing_folder_is_reported(void **state)
{
    const struct det_process_guard_options options = { .path = "/no/such/folder/processes" };
    struct det_process_guard *guard;
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    assert_int_equal(DET_ERR_NOT_FOUND, det_process_guard_start(guard, &options, &error));
    assert_non_null(strstr(error.text, "/no/such/folder/processes"));
    /* Before the start nothing is recorded. */
    end(guard, run_program(guard, sleeper, true));
    det_process_guard_close(guard);
    det_process_guard_close(NULL);
}

static void a_link_in_the_place_of_the_record_is_not_followed(void **state)
{
    const struct det_process_guard_options options = { .path = path };
    char target[4200];
    struct det_process_guard *guard;
    struct det_error error = { 0 };

    (void)state;
    (void)snprintf(target, sizeof target, "%s/target", folder);
    det_test_write_file(target, "kept", 4);
    assert_int_equal(0, symlink(target, path));
    assert_int_equal(0, det_process_guard_open(NULL, &guard));
    assert_int_equal(DET_ERR_IO, det_process_guard_start(guard, &options, &error));
    det_process_guard_close(guard);
}

#define STARTERS 4
#define STARTS   4

struct starter {
    struct det_process_guard *guard; /* NULL: the world has none */
    struct det_thread *thread;
    struct det_process *kept; /* its last one */
};

static struct det_world *world_of(const struct starter *starter)
{
    return starter->guard ? det_process_guard_world(starter->guard) : det_world_real();
}

static struct det_process *start_sleeper(struct det_world *world)
{
    const struct det_process_options options = {
        .argv = sleeper,
        .input = -1,
        .output = -1,
        .error = -1,
        .new_group = true,
        .ends_with_us = true,
    };
    struct det_process *process = NULL;

    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    return process;
}

static void start_some(void *argument)
{
    struct starter *starter = argument;
    struct det_world *world = world_of(starter);

    for (int i = 0; i < STARTS; i++) {
        struct det_process *process = start_sleeper(world);

        assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
        world->ops->process_close(world, process);
    }
    starter->kept = start_sleeper(world);
}

/* A parent-death signal is of the thread that has forked. */
static void run_starters(struct det_process_guard *guard)
{
    struct starter starters[STARTERS];
    struct det_world *real = det_world_real();

    for (int i = 0; i < STARTERS; i++) {
        starters[i] = (struct starter){ .guard = guard };
        assert_int_equal(
            0, det_thread_start(real, "starter", start_some, &starters[i], &starters[i].thread));
    }
    for (int i = 0; i < STARTERS; i++)
        det_thread_join(real, starters[i].thread);
    for (int i = 0; i < STARTERS; i++) {
        struct det_world *world = world_of(&starters[i]);
        int number = (int)world->ops->process_number(world, starters[i].kept);
        int descriptor = pidfd_open(number, 0);

        assert_false(is_over(descriptor, 0));
        close(descriptor);
        assert_int_equal(0, world->ops->process_kill(world, starters[i].kept, SIGKILL));
        world->ops->process_close(world, starters[i].kept);
    }
}

static void processes_outlive_the_threads_that_started_them(void **state)
{
    struct det_process_guard *guard = begin(0);

    (void)state;
    run_starters(guard);
    det_process_guard_close(guard);
    run_starters(NULL);
}

static int scenario(struct det_test_memory *memory, void *argument)
{
    const struct det_process_guard_options options = { .path = path };
    const struct det_process_options process_options = {
        .argv = sleeper, .input = -1, .output = -1, .error = -1, .new_group = true
    };
    struct det_process *process;
    struct det_process_guard *guard = NULL;
    struct det_world *world;
    int r;

    (void)argument;
    r = det_process_guard_open(&memory->allocator, &guard);
    if (r < 0)
        return r;
    r = det_process_guard_start(guard, &options, NULL);
    world = det_process_guard_world(guard);
    if (r == 0)
        r = world->ops->process_start(world, &process_options, &process, NULL);
    if (r == 0)
        end(guard, process);
    det_process_guard_close(guard);
    return r;
}

static void process_guard_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(scenario, NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(started_process_is_recorded_until_it_is_reaped),
        CASE(process_that_fails_to_start_leaves_no_record),
        CASE(record_holds_the_maximum_of_the_format),
        CASE(process_dies_with_its_program),
        CASE(kept_process_is_ended_by_the_next_program),
        CASE(record_is_readable_while_its_owner_empties_it),
        CASE(claimed_empty_slot_is_waited_for_briefly),
        CASE(kill_ends_kept_processes_too),
        CASE(damaged_record_never_selects_a_foreign_process),
        CASE(missing_boot_id_falls_back_to_the_file_time),
        CASE(left_process_that_ignores_sigterm_is_killed),
        CASE(close_kills_descendants_in_other_sessions),
        CASE(kept_process_survives_close_and_is_ended_at_next_start),
        CASE(guard_helper_is_recognized_and_replaced),
        CASE(damaged_process_record_is_refused),
        CASE(missing_folder_is_reported),
        CASE(a_link_in_the_place_of_the_record_is_not_followed),
        CASE(processes_outlive_the_threads_that_started_them),
        CASE(process_guard_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
