/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_test.c - simulated processes: arguments, ends, and what a kill takes with it. */
#include <detent/driver/sim.h>

#include "os/sim/shared_cases.h"

#include <signal.h>

#include "os/sim/seeds_cases.h"

/* Shared by the programs and the test; a program receives only its world. */
static struct shared shared;
static struct det_process *self;

static int program_join(struct det_world *world, int argc, const char *const *argv)
{
    (void)world;
    if (argc != 3 || strcmp(argv[1], "a") != 0 || strcmp(argv[2], "bc") != 0 || argv[3])
        return 1;
    return 0x100 + 42;
}

static void count_up(void *argument)
{
    (void)argument;
    for (;;) {
        det_mutex_lock(shared.world, shared.mutex);
        shared.value++;
        (void)det_condition_wait(
            shared.world, shared.condition, shared.mutex,
            det_world_now(shared.world, DET_CLOCK_MONOTONIC) + DET_SECOND);
        det_mutex_unlock(shared.world, shared.mutex);
    }
}

/* Has a thread that never ends and a file that it never closes; returns on request. */
static int program_busy(struct det_world *world, int argc, const char *const *argv)
{
    struct det_thread *thread;
    struct det_file *file;

    (void)argv;
    if (det_thread_start(world, "count", count_up, NULL, &thread) < 0 ||
        det_file_open(world, "open", DET_FILE_WRITE | DET_FILE_CREATE, &file) < 0)
        return 1;
    det_mutex_lock(world, shared.other_mutex);
    while (!shared.is_ready)
        (void)det_condition_wait(world, shared.other_condition, shared.other_mutex, DET_NEVER);
    det_mutex_unlock(world, shared.other_mutex);
    if (argc > 1)
        /* The way of a program that raises a signal; it does not come back. */
        (void)world->ops->process_kill(world, self, SIGABRT);
    return 7;
}

static int setup(void **state)
{
    struct det_sim *sim = open_sim(1);

    (void)state;
    shared_init(&shared, sim);
    assert_int_equal(0, det_sim_program(sim, "join", program_join));
    assert_int_equal(0, det_sim_program(sim, "busy", program_busy));
    assert_int_equal(DET_ERR_EXISTS, det_sim_program(sim, "busy", program_join));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shared_deinit(&shared);
    det_sim_close(shared.sim);
    return 0;
}

static struct det_process *spawn(const char *const *argv)
{
    const struct det_process_options options = {
        .argv = argv, .input = -1, .output = -1, .error = -1
    };
    struct det_process *process = NULL;

    assert_int_equal(0, shared.world->ops->process_start(shared.world, &options, &process, NULL));
    return process;
}

static void ends_with(struct det_process *process, int code, int signal)
{
    struct det_process_end end;

    assert_int_equal(0, shared.world->ops->process_wait(shared.world, process, DET_NEVER, &end));
    assert_int_equal(code, end.code);
    assert_int_equal(signal, end.signal);
    shared.world->ops->process_close(shared.world, process);
}

static void let_go(void)
{
    det_mutex_lock(shared.world, shared.other_mutex);
    shared.is_ready = true;
    det_condition_broadcast(shared.world, shared.other_condition);
    det_mutex_unlock(shared.world, shared.other_mutex);
}

static void let_all_go(void *argument)
{
    (void)argument;
    let_go();
}

static void a_program_gets_its_arguments_and_gives_its_code(void **state)
{
    struct det_process *process;

    (void)state;
    process = spawn((const char *const[]){ "join", "a", "bc", NULL });
    ends_with(process, 42, 0);
    ends_with(spawn((const char *const[]){ "join", NULL }), 1, 0);
}

static void the_threads_of_a_process_end_with_it(void **state)
{
    struct det_process *process = spawn((const char *const[]){ "busy", NULL });
    int value;

    (void)state;
    assert_int_equal(0, det_sim_advance(shared.sim, 10 * DET_SECOND));
    assert_true(shared.value >= 10);
    let_go();
    ends_with(process, 7, 0);
    value = shared.value;
    assert_int_equal(0, det_sim_advance(shared.sim, 10 * DET_SECOND));
    assert_int_equal(value, shared.value);
}

static void a_kill_takes_all_threads_wherever_they_are(void **state)
{
    uint64_t count = seeds_count(200);

    for (uint64_t i = 0; i < count; i++) {
        struct det_process *process = spawn((const char *const[]){ "busy", NULL });

        assert_int_equal(
            0, det_sim_advance(shared.sim, (det_time)det_sim_random_below(shared.sim, DET_SECOND)));
        assert_int_equal(0, shared.world->ops->process_kill(shared.world, process, SIGKILL));
        assert_int_equal(0, shared.world->ops->process_kill(shared.world, process, SIGTERM));
        ends_with(process, -1, SIGKILL);
    }
    (void)state;
}

static void a_process_can_kill_itself(void **state)
{
    (void)state;
    self = spawn((const char *const[]){ "busy", "abort", NULL });
    let_go();
    ends_with(self, -1, SIGABRT);
}

static void a_wait_for_a_process_ends_at_its_deadline(void **state)
{
    struct det_process *process;
    struct det_process_end end;

    (void)state;
    process = spawn((const char *const[]){ "busy", NULL });
    assert_int_equal(
        DET_ERR_TIMEOUT, shared.world->ops->process_wait(
                             shared.world, process,
                             det_world_now(shared.world, DET_CLOCK_MONOTONIC) + DET_MINUTE, &end));
    assert_int_equal(0, shared.world->ops->process_kill(shared.world, process, SIGTERM));
    ends_with(process, -1, SIGTERM);
}

static int program_stuck(struct det_world *world, int argc, const char *const *argv)
{
    struct det_poll_event event;

    (void)argc;
    (void)argv;
    while (!shared.is_ready)
        (void)world->ops->poller_wait(world, shared.poller, &event, 1, DET_NEVER);
    return 0;
}

static void a_process_that_is_stuck_is_dropped_with_its_simulation(void **state)
{
    struct det_process *process;
    struct det_process_end end;

    (void)state;
    assert_int_equal(0, det_sim_program(shared.sim, "stuck", program_stuck));
    process = spawn((const char *const[]){ "stuck", NULL });
    assert_int_equal(
        DET_ERR_DEADLOCK, shared.world->ops->process_wait(shared.world, process, DET_NEVER, &end));
    /* Closing waits too, and fails in the same way. */
    shared.world->ops->process_close(shared.world, process);
}

/* Leaves a thread that has ended and was not joined. */
static int program_forget(struct det_world *world, int argc, const char *const *argv)
{
    struct det_thread *thread;

    (void)argc;
    (void)argv;
    if (det_thread_start(world, "let go", let_all_go, NULL, &thread) < 0)
        return 1;
    det_mutex_lock(world, shared.other_mutex);
    while (!shared.is_ready)
        (void)det_condition_wait(world, shared.other_condition, shared.other_mutex, DET_NEVER);
    det_mutex_unlock(world, shared.other_mutex);
    return det_world_sleep(world, DET_SECOND) < 0 ? 2 : 0;
}

static void ended_thread_is_released_with_its_process(void **state)
{
    (void)state;
    assert_int_equal(0, det_sim_program(shared.sim, "forget", program_forget));
    ends_with(spawn((const char *const[]){ "forget", NULL }), 0, 0);
}

#define LONG 3000

static int program_measure(struct det_world *world, int argc, const char *const *argv)
{
    (void)world;
    return argc == 2 && strlen(argv[1]) == LONG ? 42 : 1;
}

static int use_processes(struct det_test_memory *memory, void *argument)
{
    const struct det_process_options options = { .argv = argument };
    struct det_process *process = NULL;
    struct det_process_end end;
    struct det_world *world;
    struct det_sim *sim;
    int r;

    r = det_sim_open(&(struct det_sim_options){ .allocator = &memory->allocator }, &sim, NULL);
    if (r < 0)
        return r;
    world = det_sim_world(sim);
    r = det_sim_program(sim, "measure", program_measure);
    if (r == 0)
        r = world->ops->process_start(world, &options, &process, NULL);
    if (r == 0) {
        assert_int_equal(0, world->ops->process_wait(world, process, DET_NEVER, &end));
        assert_int_equal(42, end.code);
        world->ops->process_close(world, process);
    }
    det_sim_close(sim);
    return r;
}

static void simulated_processes_survive_every_failed_allocation(void **state)
{
    char word[LONG + 1] = "";
    const char *argv[] = { "measure", word, NULL };

    (void)state;
    memset(word, 'a', LONG);
    det_test_each_failure(use_processes, argv);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_program_gets_its_arguments_and_gives_its_code),
        CASE(the_threads_of_a_process_end_with_it),
        CASE(a_kill_takes_all_threads_wherever_they_are),
        CASE(a_process_can_kill_itself),
        CASE(a_wait_for_a_process_ends_at_its_deadline),
        CASE(a_process_that_is_stuck_is_dropped_with_its_simulation),
        CASE(ended_thread_is_released_with_its_process),
        CASE(simulated_processes_survive_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
