/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_sim_test.c - children of the simulated world, on the same code as the real ones: their
 * output, their notifications, their signals; over many seeds, each run twice. */
#include "task/child_cases.h"

#include <detent/driver/sim.h>
#include <detent/sim.h>

#include "os/sim/seeds_cases.h"

static struct det_sim *sim;
static struct witness witness;

static det_time later(struct det_world *world, det_time span)
{
    return det_world_now(world, DET_CLOCK_MONOTONIC) + span;
}

/* Prints its arguments, the last one to its error. */
static int program_print(struct det_world *world, int argc, const char *const *argv)
{
    for (int i = 1; i < argc; i++)
        if (det_sim_print(world, i == argc - 1 ? 2 : 1, argv[i]) < 0)
            return 1;
    return argc;
}

/* Waits without memory, which would be lost if the program were killed meanwhile. */
static void rest(struct det_world *world, det_time span)
{
    det_time deadline = later(world, span);

    while (det_sim_wait_caught(world, deadline) >= 0)
        continue;
}

/* Takes a second to be ready, and three to end once it is asked to. */
static int program_service(struct det_world *world, int argc, const char *const *argv)
{
    int signal;

    (void)argc;
    (void)argv;
    rest(world, DET_SECOND);
    det_sim_catch(world, SIGTERM);
    det_sim_catch(world, SIGHUP);
    if (det_sim_notify(world, "READY=1\nSTATUS=up") < 0)
        return 1;
    do {
        signal = det_sim_wait_caught(world, later(world, DET_DAY));
        if (signal == SIGHUP && det_sim_print(world, 1, "reloaded\n") < 0)
            return 1;
    } while (signal == SIGHUP);
    if (signal != SIGTERM || det_sim_caught(world) != 0)
        return 2;
    rest(world, 3 * DET_SECOND);
    return 5;
}

static int program_deaf(struct det_world *world, int argc, const char *const *argv)
{
    (void)argc;
    (void)argv;
    det_sim_catch(world, SIGTERM);
    for (;;)
        if (det_sim_wait_caught(world, later(world, DET_HOUR)) == SIGTERM &&
            det_sim_print(world, 1, "no\n") < 0)
            return 1;
}

/* So many KiB, and with another argument so many messages: more than is held for it at once, and so
 * it waits for its reader. */
static int program_flood(struct det_world *world, int argc, const char *const *argv)
{
    static char text[1025];

    memset(text, 'x', sizeof text - 1);
    for (size_t i = 63; i < sizeof text; i += 64)
        text[i] = '\n';
    for (long i = strtol(argv[1], NULL, 10); i > 0; i--)
        if (det_sim_print(world, 1, text) < 0)
            return 1;
    for (long i = argc > 2 ? strtol(argv[2], NULL, 10) : 0; i > 0; i--)
        if (det_sim_notify(world, "COUNT=1") < 0)
            return 1;
    return 0;
}

static int open_world(uint64_t seed, const struct det_allocator *allocator)
{
    const struct det_sim_options options = { .seed = seed, .allocator = allocator };
    static const struct {
        const char *name;
        det_sim_program_fn *run;
    } programs[] = {
        { "say", program_print },
        { "service", program_service },
        { "deaf", program_deaf },
        { "flood", program_flood },
    };
    int r;

    witness = (struct witness){ 0 };
    r = det_sim_open(&options, &sim, NULL);
    for (size_t i = 0; i < sizeof programs / sizeof *programs && r == 0; i++)
        r = det_sim_program(sim, programs[i].name, programs[i].run);
    if (r == 0)
        r = det_loop_open(det_sim_world(sim), allocator, &witness.loop);
    return r;
}

static void close_world(void)
{
    det_child_close(witness.child);
    det_loop_close(witness.loop);
    det_sim_close(sim);
    witness.child = NULL;
    witness.loop = NULL;
    sim = NULL;
}

static int setup(void **state)
{
    (void)state;
    return open_world(3, NULL);
}

static int teardown(void **state)
{
    (void)state;
    close_world();
    return 0;
}

static int start_child(const struct det_process_spec *spec, const struct det_allocator *allocator)
{
    struct det_child_events events = events_of(&witness);

    return det_child_start(witness.loop, allocator, spec, &events, &witness.child, NULL);
}

static void start_program(const char *const *argv)
{
    assert_int_equal(
        0, start_child(&(struct det_process_spec){ .argv = argv, .has_notify = true }, NULL));
    assert_true(det_child_number(witness.child) > 0);
}

static void program_output_is_received(void **state)
{
    (void)state;
    start_program((const char *const[]){ "say", "one\nt", "wo\n", "oh", NULL });
    ends_with(&witness, 4, 0);
    assert_string_equal("one|two|", witness.printed[DET_STREAM_OUTPUT]);
    assert_string_equal("oh|", witness.printed[DET_STREAM_ERROR]);
}

static void a_service_is_ready_and_ends_when_it_is_asked_to(void **state)
{
    det_time before = later(det_sim_world(sim), 0);

    (void)state;
    start_program((const char *const[]){ "service", NULL });
    turn_until(&witness, has_news, "READY=1,STATUS=up,");
    assert_int_equal(before + DET_SECOND, det_loop_now(witness.loop));
    assert_int_equal(0, det_child_signal(witness.child, SIGHUP));
    turn_until(&witness, has_printed, "reloaded|");
    assert_int_equal(0, det_child_stop(witness.child));
    ends_with(&witness, 5, 0);
    assert_int_equal(before + 4 * DET_SECOND, det_loop_now(witness.loop));
}

static void program_ignoring_the_stop_ends_when_killed(void **state)
{
    (void)state;
    start_program((const char *const[]){ "deaf", NULL });
    /* It catches nothing before it has run: a stop at once may end it. */
    assert_int_equal(0, det_sim_settle(sim));
    assert_int_equal(0, det_child_stop(witness.child));
    turn_until(&witness, has_printed, "no|");
    assert_int_equal(0, witness.ends);
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
}

static void a_program_that_prints_more_than_its_pipe_holds_waits(void **state)
{
    (void)state;
    start_program((const char *const[]){ "flood", "1024", "5000", NULL });
    ends_with(&witness, 0, 0);
    assert_int_equal(1 << 20, witness.bytes + witness.lines);
    assert_int_equal((1 << 20) / 64, witness.lines);
    assert_true(strlen(witness.news) > 16000);
    det_child_close(witness.child);
    witness = (struct witness){ .loop = witness.loop };
    start_program((const char *const[]){ "flood", "1024", NULL });
    assert_int_equal(0, det_sim_settle(sim));
    assert_int_equal(0, det_child_kill(witness.child));
    ends_with(&witness, -1, SIGKILL);
    assert_int_equal(65536, witness.bytes + witness.lines);
}

static void program_without_a_reader_discards_its_output(void **state)
{
    struct det_child_events events = events_of(&witness);
    const struct det_process_spec spec = { .argv = (const char *const[]){ "flood", "1024", "5000",
                                                                          NULL } };

    (void)state;
    events.on_line = NULL;
    assert_int_equal(0, det_child_start(witness.loop, NULL, &spec, &events, &witness.child, NULL));
    ends_with(&witness, 0, 0);
    assert_int_equal(0, witness.lines);
    assert_string_equal("", witness.news);
}

static void missing_program_is_reported(void **state)
{
    const struct det_process_spec spec = { .argv = (const char *const[]){ "none", NULL } };
    struct det_child_events events = events_of(&witness);
    struct det_error error;

    (void)state;
    assert_int_equal(
        DET_ERR_NOT_FOUND,
        det_child_start(witness.loop, NULL, &spec, &events, &witness.child, &error));
    assert_non_null(strstr(error.text, "det_sim_program()"));
}

static void a_child_can_be_closed_before_its_end(void **state)
{
    (void)state;
    start_program((const char *const[]){ "deaf", NULL });
    det_child_close(witness.child);
    witness.child = NULL;
    assert_int_equal(0, det_loop_turn(witness.loop, 0));
    assert_int_equal(0, witness.ends);
}

/* Starts, stops and kills at times that the seed chooses; returns the hash of all of it. */
static uint64_t run_seed(uint64_t seed)
{
    const char *const programs[] = { "service", "deaf", "flood" };
    uint64_t hash;

    assert_int_equal(0, open_world(seed, NULL));
    for (int i = 0; i < 5; i++) {
        const char *argv[] = { programs[det_sim_random_below(sim, 3)], "70", "20", NULL };
        det_time deadline;

        start_program(argv);
        for (int asked = 0; !witness.ends; asked++) {
            deadline =
                later(det_sim_world(sim), (det_time)det_sim_random_below(sim, 2 * DET_SECOND));
            while (!witness.ends && det_loop_now(witness.loop) < deadline)
                assert_true(det_loop_turn(witness.loop, deadline) >= 0);
            if (!witness.ends && asked < 3)
                assert_int_equal(0, det_child_stop(witness.child));
            else if (!witness.ends)
                assert_int_equal(0, det_child_kill(witness.child));
        }
        assert_int_equal(1, witness.ends);
        det_child_close(witness.child);
        det_sim_note(sim, &witness.end, sizeof witness.end);
        det_sim_note(sim, &witness.bytes, sizeof witness.bytes);
        witness = (struct witness){ .loop = witness.loop };
    }
    hash = det_sim_hash(sim);
    close_world();
    return hash;
}

static void every_seed_gives_the_same_run_twice(void **state)
{
    uint64_t count = seeds_count(300);

    (void)state;
    for (uint64_t seed = 1; seed <= count; seed++)
        assert_int_equal(run_seed(seed), run_seed(seed));
}

/* A program that misses memory says so with its code: what it could print is all that is there. */
static int use_prints(struct det_test_memory *memory, void *argument)
{
    const struct det_process_spec spec = { .argv = argument, .has_notify = true };
    int r;

    r = open_world(1, &memory->allocator);
    if (r == 0)
        r = start_child(&spec, &memory->allocator);
    if (r == 0) {
        turn_until(&witness, has_ended, NULL);
        r = witness.end.code == 0 ? 0 : DET_ERR_NO_MEMORY;
    }
    close_world();
    return r;
}

static void children_survive_every_failed_allocation(void **state)
{
    const char *argv[] = { "flood", "100", "10", NULL };

    (void)state;
    det_test_each_failure(use_prints, argv);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(program_output_is_received),
        CASE(a_service_is_ready_and_ends_when_it_is_asked_to),
        CASE(program_ignoring_the_stop_ends_when_killed),
        CASE(a_program_that_prints_more_than_its_pipe_holds_waits),
        CASE(program_without_a_reader_discards_its_output),
        CASE(missing_program_is_reported),
        CASE(a_child_can_be_closed_before_its_end),
        cmocka_unit_test(every_seed_gives_the_same_run_twice),
        cmocka_unit_test(children_survive_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
