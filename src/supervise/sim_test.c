/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim_test.c - seeded runs: pumps whose functions fail, answer nonsense and wait as the seed says,
 * while others send, wake, hang up, abort and wait, and pumps offer events to one another. Every
 * step is one that the table allows from where the pump was, every pump completes exactly once, and
 * every waiter returns. Every seed is run twice and must leave the same trace. */
#include <detent/tool/machine.h>

#include "supervise/pump_test.h"

#include "os/os.h"
#include "os/sim/seeds_cases.h"

#define PUMPS   4
#define CLIENTS 2
#define ACTS    12

struct world {
    struct det_sim *sim;
    struct det_world *world;
    struct det_loop *loop;
    struct det_executor *executor;
    struct pump pumps[PUMPS];
    struct det_handle *handles[PUMPS];
    int last_state[PUMPS]; /* as the observer saw it; -1: not started */
    uint64_t seen;         /* steps */
    bool is_running[PUMPS];
};

/* The results are for the trace; the test checks the pumps at the end. */
static void note_result(struct world *world, int result)
{
    det_sim_note(world->sim, &result, sizeof result);
}

static struct world *world_of(const struct pump *pump)
{
    return pump->user;
}

static size_t number_of(const struct pump *pump)
{
    return (size_t)(pump - world_of(pump)->pumps);
}

/* A completion that fails, or an action on the way of a failure, is as likely as any other. */
static int fate(struct pump *pump, const char *name)
{
    struct det_sim *sim = world_of(pump)->sim;

    (void)name;
    pump->trace[0] = '\0';
    if (det_sim_chance(sim, 60000))
        return det_component_fail(&pump->component, DET_ERR_IO, "the seed says so");
    if (det_sim_chance(sim, 20000))
        return 7;
    return 0;
}

/* One call of a pump's dispatch function: an answer, sometimes a timer, sometimes an offer. */
static void in_step(struct pump *pump)
{
    struct world *world = world_of(pump);
    size_t other = det_sim_random_below(world->sim, PUMPS), self = number_of(pump);

    pump->answer = (int)det_sim_random_below(world->sim, 5) - 1;
    if (pump->answer == DET_DIRECTIVE_TERMINATE && det_sim_chance(world->sim, 700000))
        pump->answer = DET_DIRECTIVE_CONTINUE;
    pump->event = (struct pump_event){ .kind = (enum pump_event_kind)det_sim_random_below(
                                           world->sim, pump_event_count + 1) };
    if (det_sim_chance(world->sim, 200000))
        note_result(
            world, det_component_wake_at(
                       &pump->component, det_loop_now(world->loop) + (det_time)det_sim_random_below(
                                                                         world->sim, DET_SECOND)));
    world->is_running[self] = true;
    if (!world->is_running[other] && det_sim_chance(world->sim, 200000))
        note_result(world, pump_offer(&world->pumps[other], pump_tick()));
    world->is_running[self] = false;
}

/* Each step begins where the last one ended, and is in the table. */
static void observe(
    void *observer, const struct det_component *component, unsigned from, unsigned to, int event)
{
    struct world *world = observer;
    const struct pump *pump = (const void *)component;
    size_t number = number_of(pump);
    const struct det_transition *transition;
    const struct det_choice *choice = NULL;
    bool is_in_table;

    assert_int_equal(pump->completions, 0);
    world->seen += event >= 0;
    det_sim_note(world->sim, &event, sizeof event);
    det_sim_note(world->sim, &to, sizeof to);
    if (event < 0) {
        assert_int_equal(world->last_state[number], -1);
        world->last_state[number] = (int)to;
        return;
    }
    assert_int_equal(world->last_state[number], from);
    transition = det_machine_step(&pump_machine, from, (unsigned)event);
    is_in_table = transition->outcome != DET_OUTCOME_UNHANDLED && transition->to == to;
    while (!is_in_table &&
           (choice = det_machine_choice(&pump_machine, from, (unsigned)event, choice)))
        is_in_table = choice->transition.to == to;
    assert_true(is_in_table);
    world->last_state[number] = (int)to;
}

/* Any, but more often one that brings a broken pump back. */
static struct pump_event any_event(struct det_sim *sim)
{
    struct pump_event event = { .kind = (enum pump_event_kind)det_sim_random_below(
                                    sim, pump_event_count) };

    if (det_sim_chance(sim, 300000))
        return pump_reset();
    event.start.number = (uint32_t)det_sim_random_below(sim, 4);
    return event;
}

static void act(struct world *world, struct det_handle *handle)
{
    det_time deadline = det_world_now(world->world, DET_CLOCK_MONOTONIC) +
                        (det_time)det_sim_random_below(world->sim, DET_SECOND);

    switch (det_sim_random_below(world->sim, 16)) {
    case 0:
        det_handle_hang_up(handle);
        break;
    case 1:
        if (det_sim_chance(world->sim, 300000))
            det_handle_abort(handle);
        break;
    case 2:
        det_handle_wake(handle);
        break;
    case 3:
        note_result(world, det_handle_wait_change(handle, det_handle_changes(handle), deadline));
        break;
    case 4:
        note_result(world, det_handle_wait(handle, deadline, NULL));
        break;
    default:
        note_result(world, pump_handle_send(handle, any_event(world->sim)));
        break;
    }
}

static void client(void *argument)
{
    struct world *world = argument;

    for (int i = 0; i < ACTS; i++)
        act(world, world->handles[det_sim_random_below(world->sim, PUMPS)]);
}

static void world_open(struct world *world, uint64_t seed)
{
    struct det_executor_options options = { .observe = observe,
                                            .observer = world,
                                            .budget = 1 + (uint32_t)(seed % 8) };
    struct det_supervise_options supervise = { .control_capacity = 3 };

    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &world->sim, NULL), 0);
    world->world = det_sim_world(world->sim);
    assert_int_equal(det_loop_open(world->world, NULL, &world->loop), 0);
    assert_int_equal(det_executor_open(world->loop, &options, &world->executor, NULL), 0);
    for (int i = 0; i < PUMPS; i++) {
        struct pump *pump = &world->pumps[i];

        pump->user = world;
        pump->fate = fate;
        pump->in_step = in_step;
        world->last_state[i] = -1;
        assert_int_equal(
            pump_supervise(world->executor, pump, &supervise, &world->handles[i], NULL), 0);
        assert_int_equal(pump_handle_send(world->handles[i], start_event()), 0);
    }
    assert_int_equal(det_loop_start(world->loop, "loop"), 0);
}

/* The half of them that did not end by themselves in a minute is aborted; the rest is for close. */
static void await(struct world *world)
{
    struct det_component_end end;

    for (int i = 0; i < PUMPS; i++) {
        det_time deadline = det_world_now(world->world, DET_CLOCK_MONOTONIC) + DET_MINUTE;

        if (det_handle_wait(world->handles[i], deadline, &end) == 0 || i % 2)
            continue;
        det_handle_abort(world->handles[i]);
        assert_int_equal(det_handle_wait(world->handles[i], DET_NEVER, &end), 0);
        assert_true(end.failure.code != 0);
    }
    det_loop_stop(world->loop);
}

static void world_close(struct world *world)
{
    struct det_executor_counts counts = det_executor_counts(world->executor);

    assert_int_equal(counts.steps, world->seen);
    det_executor_close(world->executor);
    for (int i = 0; i < PUMPS; i++) {
        const struct pump *pump = &world->pumps[i];
        struct det_component_end end;

        assert_int_equal(pump->completions, 1);
        assert_int_equal(det_handle_wait(world->handles[i], 0, &end), 0);
        assert_int_equal(end.state, pump->end.state);
        assert_int_equal(det_handle_state(world->handles[i]), end.state);
        if (end.failure.source != DET_FAILURE_COMPLETION)
            assert_string_equal(end.failure.text, pump->end.failure.text);
        det_sim_note(world->sim, end.failure.text, strlen(end.failure.text));
        det_handle_close(world->handles[i]);
    }
    det_loop_close(world->loop);
    det_sim_close(world->sim);
}

static uint64_t run(uint64_t seed)
{
    struct world *world = calloc(1, sizeof *world);
    struct det_thread *threads[CLIENTS];
    uint64_t hash;

    assert_non_null(world);
    world_open(world, seed);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(det_thread_start(world->world, "client", client, world, &threads[i]), 0);
    for (int i = 0; i < CLIENTS; i++)
        det_thread_join(world->world, threads[i]);
    await(world);
    hash = det_sim_hash(world->sim);
    world_close(world);
    free(world);
    return hash;
}

static void random_runs_follow_the_table_and_complete_once(void **unused)
{
    uint64_t count = seeds_count(10000);

    (void)unused;
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t hash = run(seed);

        if (hash != run(seed))
            fail_msg("seed %llu leaves two traces", (unsigned long long)seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs_follow_the_table_and_complete_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
