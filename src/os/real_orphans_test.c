/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_orphans_test.c - processes that left the group of a child are found, ended and reaped;
 * others are left alone. */
#include "lib/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/nasty.h"
#include "os/os.h"
#include "os/real_orphans.h"

static int group_setup(void **state)
{
    return find_nasty(state) ? -1 : det_orphans_adopt();
}

static struct det_process *run(const char *behaviour)
{
    const struct det_process_options options = {
        .argv = (const char *const[]){ nasty, behaviour, NULL },
        .input = -1,
        .output = -1,
        .error = -1,
        .new_group = true,
    };
    struct det_world *world = det_world_real();
    struct det_process *process = NULL;

    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    return process;
}

static void end(struct det_process *process)
{
    struct det_world *world = det_world_real();
    struct det_process_end unused;

    assert_int_equal(0, world->ops->process_wait(world, process, DET_NEVER, &unused));
    world->ops->process_close(world, process);
}

static bool is_this(void *user, int64_t number)
{
    return user && number == *(int64_t *)user;
}

static void has_no_children(void)
{
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
    assert_int_equal(ECHILD, errno);
}

static void processes_that_left_the_group_are_found_and_ended(void **state)
{
    (void)state;
    assert_int_equal(0, det_orphans_sweep(is_this, NULL, 0));
    end(run("runaway"));
    assert_int_equal(1, det_orphans_sweep(is_this, NULL, 0));
    assert_int_equal(1, det_orphans_sweep(is_this, NULL, SIGTERM));
    /* It does not listen, and the deadline is over. */
    assert_int_equal(DET_ERR_TIMEOUT, det_orphans_end(is_this, NULL, 0));
    assert_int_equal(0, det_orphans_end(is_this, NULL, DET_NEVER));
    assert_int_equal(0, det_orphans_sweep(is_this, NULL, 0));
    has_no_children();
}

static void processes_killed_with_the_group_are_reaped(void **state)
{
    (void)state;
    end(run("family"));
    assert_int_equal(
        0,
        det_orphans_end(
            is_this, NULL, det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + 10 * DET_MINUTE));
    has_no_children();
}

static void own_children_are_left_alone(void **state)
{
    struct det_world *world = det_world_real();
    struct det_process *process = run("deaf");
    int64_t number = world->ops->process_number(world, process);

    (void)state;
    assert_true(number > 0);
    assert_int_equal(0, det_orphans_sweep(is_this, &number, SIGKILL));
    assert_int_equal(0, det_orphans_end(is_this, &number, DET_NEVER));
    assert_int_equal(0, world->ops->process_kill(world, process, 0));
    assert_int_equal(1, det_orphans_sweep(is_this, NULL, 0));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    end(process);
    has_no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_that_left_the_group_are_found_and_ended),
        cmocka_unit_test(processes_killed_with_the_group_are_reaped),
        cmocka_unit_test(own_children_are_left_alone),
    };

    return cmocka_run_group_tests(tests, group_setup, NULL);
}
