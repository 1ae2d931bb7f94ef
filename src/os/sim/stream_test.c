/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream_test.c - what simulated programs say and catch, read and watched from outside. */
#include <detent/driver/sim.h>

#include "os/sim/shared_cases.h"

#include <signal.h>

static struct det_sim *sim;
static struct det_world *world;
static struct det_poller *poller;
static char text[40000];

static int program_speak(struct det_world *inside, int argc, const char *const *argv)
{
    (void)argc;
    (void)argv;
    if (det_sim_print(inside, 1, "out") < 0 || det_sim_print(inside, 2, "") < 0 ||
        det_sim_notify(inside, "") < 0 || det_sim_notify(inside, "four") < 0 ||
        det_sim_notify(inside, "to be cut") < 0 || det_sim_notify(inside, "five5") < 0)
        return 1;
    memset(text, 'x', sizeof text - 1);
    return det_sim_notify(inside, text) == DET_ERR_LIMIT ? 0 : 2;
}

/* Ends with the signals that it caught, as bits of its code. */
static int program_catch(struct det_world *inside, int argc, const char *const *argv)
{
    det_time deadline = det_world_now(inside, DET_CLOCK_MONOTONIC) + DET_SECOND;
    int code = 0, signal;

    (void)argc;
    (void)argv;
    det_sim_catch(inside, SIGINT);
    det_sim_catch(inside, SIGHUP);
    det_sim_catch(inside, SIGCONT);
    if (det_sim_caught(inside) != 0 || det_sim_wait_caught(inside, 0) != DET_ERR_TIMEOUT)
        return 99;
    while (det_world_now(inside, DET_CLOCK_MONOTONIC) < deadline) {
        signal = det_sim_wait_caught(inside, deadline);
        code |= signal < 0 ? 0 : 1 << signal;
    }
    return code;
}

static int program_wait(struct det_world *inside, int argc, const char *const *argv)
{
    (void)argc;
    (void)argv;
    return det_sim_wait_caught(inside, DET_NEVER) < 0 ? 1 : 2;
}

static int setup(void **state)
{
    (void)state;
    sim = open_sim(1);
    world = det_sim_world(sim);
    assert_int_equal(0, det_sim_program(sim, "speak", program_speak));
    assert_int_equal(0, det_sim_program(sim, "catch", program_catch));
    assert_int_equal(0, det_sim_program(sim, "wait", program_wait));
    return world->ops->poller_open(world, &poller);
}

static int teardown(void **state)
{
    (void)state;
    world->ops->poller_close(world, poller);
    det_sim_close(sim);
    return 0;
}

static struct det_process *run(const char *name, bool has_streams)
{
    const struct det_process_options options = { .argv = (const char *const[]){ name, NULL },
                                                 .has_streams = has_streams,
                                                 .has_notify = has_streams };
    struct det_process *process = NULL;

    assert_int_equal(0, world->ops->process_start(world, &options, &process, NULL));
    return process;
}

static int code_of(struct det_process *process)
{
    struct det_process_end end;

    assert_int_equal(0, world->ops->process_wait(world, process, DET_NEVER, &end));
    world->ops->process_close(world, process);
    return end.code;
}

static int64_t read_from(
    struct det_process *process, enum det_process_stream stream, char *target, size_t size)
{
    return world->ops->process_read(world, process, stream, target, size);
}

static void bytes_and_messages_are_read_until_their_end(void **state)
{
    struct det_process *process = run("speak", true), *silent = run("wait", true);
    char word[8] = "";

    (void)state;
    assert_int_equal(0, det_sim_settle(sim));
    assert_int_equal(DET_ERR_BUSY, read_from(silent, DET_PROCESS_OUTPUT, word, sizeof word));
    assert_int_equal(0, world->ops->process_kill(world, silent, SIGKILL));
    assert_int_equal(-1, code_of(silent));
    assert_int_equal(2, read_from(process, DET_PROCESS_OUTPUT, word, 2));
    assert_int_equal(1, read_from(process, DET_PROCESS_OUTPUT, word + 2, 6));
    assert_string_equal("out", word);
    assert_int_equal(0, read_from(process, DET_PROCESS_OUTPUT, word, 8));
    assert_int_equal(0, read_from(process, DET_PROCESS_ERROR, word, 8));
    /* One of no bytes and one that does not fit are passed over. */
    assert_int_equal(4, read_from(process, DET_PROCESS_NOTIFY, word, 5));
    assert_memory_equal("four", word, 4);
    assert_int_equal(5, read_from(process, DET_PROCESS_NOTIFY, word, 5));
    assert_memory_equal("five5", word, 5);
    assert_int_equal(DET_ERR_BUSY, read_from(process, DET_PROCESS_NOTIFY, word, 5));
    assert_int_equal(0, code_of(process));
}

static void streams_not_requested_have_no_descriptor(void **state)
{
    struct det_process *process = run("speak", false);

    (void)state;
    for (int i = 0; i < DET_PROCESS_STREAMS; i++)
        assert_int_equal(
            -1, world->ops->process_stream(world, process, (enum det_process_stream)i));
    /* Without a reader a message is dropped, so one that is too long is not an error. */
    assert_int_equal(2, code_of(process));
}

static void caught_signals_queue_and_others_kill_the_process(void **state)
{
    struct det_process *process = run("catch", false);

    (void)state;
    assert_int_equal(0, det_sim_settle(sim));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGINT));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGHUP));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGHUP));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGSTOP));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGWINCH));
    assert_int_equal(DET_ERR_INVALID, world->ops->process_kill(world, process, 12345));
    assert_int_equal(DET_ERR_INVALID, world->ops->process_kill(world, process, -1));
    assert_int_equal(1 << SIGHUP | 1 << SIGINT, code_of(process));
    process = run("catch", false);
    assert_int_equal(0, det_sim_settle(sim));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGTERM));
    assert_int_equal(-1, code_of(process));
}

static int watch(int descriptor, unsigned events, void *tag)
{
    return world->ops->poller_watch(world, poller, descriptor, events, tag);
}

static int ready(struct det_poll_event *events, int capacity)
{
    return world->ops->poller_wait(world, poller, events, capacity, 0);
}

static void pollers_watch_processes_and_nothing_else(void **state)
{
    struct det_process *process = run("wait", true);
    int end = world->ops->process_descriptor(world, process), tag = 0, other = 0;
    struct det_poll_event event;

    (void)state;
    assert_int_equal(DET_ERR_UNSUPPORTED, watch(0, DET_POLL_READ, &tag));
    assert_int_equal(DET_ERR_UNSUPPORTED, watch(end + 4, DET_POLL_READ, &tag));
    assert_int_equal(DET_ERR_UNSUPPORTED, watch(end, DET_POLL_WRITE, &tag));
    assert_int_equal(0, watch(end, 0, &tag));
    assert_int_equal(0, watch(end, DET_POLL_READ, &tag));
    assert_int_equal(0, ready(&event, 1));
    assert_int_equal(0, watch(end, DET_POLL_READ, &other));
    assert_int_equal(0, world->ops->process_kill(world, process, SIGKILL));
    assert_int_equal(1, ready(&event, 1));
    assert_ptr_equal(&other, event.tag);
    assert_int_equal(DET_POLL_READ, event.events);
    /* The socket stays readable until it is unwatched; a closed process is not watched. */
    assert_int_equal(1, ready(&event, 1));
    assert_int_equal(0, watch(end, 0, &other));
    assert_int_equal(0, ready(&event, 1));
    assert_int_equal(0, watch(end, DET_POLL_READ, &tag));
    assert_int_equal(-1, code_of(process));
    assert_int_equal(0, ready(&event, 1));
    assert_int_equal(DET_ERR_UNSUPPORTED, watch(end, DET_POLL_READ, &tag));
}

static void a_poller_may_be_closed_while_it_watches(void **state)
{
    struct det_process *process = run("speak", false);
    struct det_poller *other;

    (void)state;
    assert_int_equal(0, world->ops->poller_open(world, &other));
    assert_int_equal(
        0, world->ops->poller_watch(
               world, other, world->ops->process_descriptor(world, process), DET_POLL_READ, &sim));
    world->ops->poller_close(world, other);
    assert_int_equal(2, code_of(process));
}

static void events_that_did_not_fit_come_first_next_time(void **state)
{
    struct det_process *processes[3];
    struct det_poll_event events[2];
    int seen[3] = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        processes[i] = run("wait", false);
        assert_int_equal(
            0, watch(world->ops->process_descriptor(world, processes[i]), DET_POLL_READ, &seen[i]));
        assert_int_equal(0, world->ops->process_kill(world, processes[i], SIGKILL));
    }
    for (int round = 0; round < 3; round++) {
        assert_int_equal(2, ready(events, 2));
        for (int i = 0; i < 2; i++)
            (*(int *)events[i].tag)++;
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(2, seen[i]);
        assert_int_equal(-1, code_of(processes[i]));
    }
}

static void a_waiting_poller_returns_when_a_process_ends(void **state)
{
    struct det_process *process = run("catch", false);
    struct det_poll_event event;
    int tag;

    (void)state;
    assert_int_equal(0, watch(world->ops->process_descriptor(world, process), DET_POLL_READ, &tag));
    assert_int_equal(1, world->ops->poller_wait(world, poller, &event, 1, DET_NEVER));
    assert_int_equal(0, code_of(process));
}

static void numbers_are_never_used_again(void **state)
{
    int64_t last = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct det_process *process = run("speak", true);
        int64_t number = world->ops->process_number(world, process);

        assert_true(number > last);
        last = number;
        assert_int_equal(0, code_of(process));
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(bytes_and_messages_are_read_until_their_end),
        CASE(streams_not_requested_have_no_descriptor),
        CASE(caught_signals_queue_and_others_kill_the_process),
        CASE(pollers_watch_processes_and_nothing_else),
        CASE(a_poller_may_be_closed_while_it_watches),
        CASE(events_that_did_not_fit_come_first_next_time),
        CASE(a_waiting_poller_returns_when_a_process_ends),
        CASE(numbers_are_never_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
