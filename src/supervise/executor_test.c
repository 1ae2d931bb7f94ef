/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* executor_test.c - many components on one loop: turns, budgets, wakes, ends. */
#include "supervise/pump_test.h"

static const struct det_supervise_options bare = { .without_handle = true };

static struct pump *add(struct fixture *fixture, struct pump *pump)
{
    memset(pump, 0, sizeof *pump);
    assert_int_equal(pump_supervise(fixture->executor, pump, &bare, NULL, NULL), 0);
    return pump;
}

static uint64_t turns_of(struct fixture *fixture)
{
    return det_executor_counts(fixture->executor).turns;
}

static void a_component_is_two_cache_lines(void **unused)
{
    (void)unused;
    assert_true(sizeof(struct det_component) <= 128);
}

static void many_wakes_run_one_turn_and_none_runs_none(void **state)
{
    struct fixture *fixture = *state;
    uint64_t turns;

    run_it(fixture);
    turns = turns_of(fixture);
    turn(fixture);
    assert_int_equal(turns_of(fixture), turns);
    for (int i = 0; i < 100; i++)
        det_component_wake(&fixture->pump.component);
    turn(fixture);
    assert_int_equal(turns_of(fixture), turns + 1);
    assert_string_equal(fixture->pump.trace, "run_step ");
}

static void wake_itself(struct pump *pump)
{
    det_component_wake(&pump->component);
    pump->in_step = NULL;
}

static void wake_during_a_turn_schedules_another(void **state)
{
    struct fixture *fixture = *state;

    run_it(fixture);
    fixture->pump.in_step = wake_itself;
    det_component_wake(&fixture->pump.component);
    assert_int_equal(det_loop_turn(fixture->loop, 0), 1);
    assert_string_equal(fixture->pump.trace, "run_step ");
    assert_int_equal(det_loop_turn(fixture->loop, 0), 1);
    assert_string_equal(fixture->pump.trace, "run_step run_step ");
    assert_int_equal(det_loop_turn(fixture->loop, 0), 0);
}

static int wake_in_action(struct pump *pump, const char *name)
{
    if (strcmp(name, "count_tick") == 0)
        det_component_wake(&pump->component);
    return 0;
}

static void wake_before_the_dispatch_function_causes_no_extra_turn(void **state)
{
    struct fixture *fixture = *state;
    uint64_t turns;

    run_it(fixture);
    fixture->pump.fate = wake_in_action;
    assert_int_equal(offered(fixture, &fixture->pump, pump_tick()), 0);
    turns = turns_of(fixture);
    turn(fixture);
    assert_int_equal(turns_of(fixture), turns);
    assert_string_equal(fixture->pump.trace, "count_tick count_tick run_step ");
}

struct rope {
    char text[64];
    struct pump *pumps;
};

static void pull(struct pump *pump)
{
    struct rope *rope = pump->user;
    size_t length = strlen(rope->text);

    if (length < 9)
        pump->answer = DET_DIRECTIVE_AGAIN;
    snprintf(rope->text + length, sizeof rope->text - length, "%d", (int)(pump - rope->pumps));
}

static void again_yields_to_other_components(void **state)
{
    struct fixture *fixture = *state;
    static struct pump pumps[3];
    struct rope rope = { "", pumps };

    for (int i = 0; i < 3; i++) {
        add(fixture, &pumps[i]);
        assert_int_equal(offered(fixture, &pumps[i], start_event()), 0);
    }
    for (int i = 0; i < 3; i++) {
        pumps[i].in_step = pull;
        pumps[i].user = &rope;
        det_component_wake(&pumps[i].component);
    }
    turn(fixture);
    assert_string_equal(rope.text, "012012012012");
}

static void transition_again(struct pump *pump)
{
    pump->answer = DET_DIRECTIVE_TRANSITION;
    pump->event = pump_tick();
}

static void component_that_never_parks_is_limited_by_a_budget(void **state)
{
    struct fixture *fixture = *state;
    static struct pump greedy, modest;
    unsigned steps;

    add(fixture, &greedy);
    add(fixture, &modest);
    assert_int_equal(offered(fixture, &greedy, start_event()), 0);
    assert_int_equal(offered(fixture, &modest, start_event()), 0);
    turn(fixture);
    greedy.in_step = transition_again;
    modest.trace[0] = '\0';
    det_component_wake(&greedy.component);
    det_component_wake(&modest.component);
    assert_int_equal(det_loop_turn(fixture->loop, 0), 1);
    assert_string_equal(modest.trace, "run_step ");
    steps = greedy.ticks / 2;
    assert_int_equal(steps, 64);
    assert_int_equal(det_loop_turn(fixture->loop, 0), 1);
    assert_int_equal(greedy.ticks / 2, 2 * steps);
    greedy.in_step = NULL;
    turn(fixture);
}

static void thousands_share_a_loop(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 5000 };
    struct pump *pumps = calloc(COUNT, sizeof *pumps);
    struct det_executor_counts counts;

    assert_non_null(pumps);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pump_supervise(fixture->executor, &pumps[i], &bare, NULL, NULL), 0);
    turn(fixture);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(offered(fixture, &pumps[i], start_event()), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(offered(fixture, &pumps[i], pump_pause()), 0);
    /* Five seconds later all of them go on. */
    pass(fixture, 6 * DET_SECOND);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(det_component_state(&pumps[i].component), PUMP_RUNNING);
        assert_int_equal(offered(fixture, &pumps[i], i % 2 ? pump_quit() : pump_drain()), 0);
        assert_int_equal(pumps[i].completions, 1);
    }
    counts = det_executor_counts(fixture->executor);
    assert_int_equal(counts.supervised, COUNT + 1);
    assert_int_equal(counts.ended, COUNT);
    assert_int_equal(counts.failed, 0);
    free(pumps);
}

/* Offers down a chain of pumps, each from an action of the one before. */
static int pass_on(struct pump *pump)
{
    struct pump *other = pump->user;

    return other && pump->ticks == 1 ? pump_offer(other, pump_tick()) : 0;
}

static void nested_offers_are_limited_in_depth(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = DET_COMPONENT_DEPTH_MAX + 1 };
    static struct pump pumps[COUNT];

    for (int i = 0; i < COUNT; i++) {
        add(fixture, &pumps[i]);
        assert_int_equal(offered(fixture, &pumps[i], start_event()), 0);
        pumps[i].in_tick = pass_on;
        pumps[i].user = i + 1 < COUNT ? &pumps[i + 1] : NULL;
    }
    assert_int_equal(offered(fixture, &pumps[1], pump_tick()), 0);
    assert_int_equal(pumps[COUNT - 1].ticks, 2);
    for (int i = 0; i < COUNT; i++)
        pumps[i].ticks = 0;
    assert_int_equal(det_component_state(&pumps[1].component), PUMP_RUNNING);
    /* One more is too deep: all of them get the error, as each returns it. */
    assert_int_equal(offered(fixture, &pumps[0], pump_tick()), DET_ERR_LIMIT);
    assert_int_equal(pumps[COUNT - 1].ticks, 0);
    assert_int_equal(pumps[COUNT - 2].reported.code, DET_ERR_LIMIT);
    assert_int_equal(det_component_state(&pumps[0].component), PUMP_BROKEN);
}

/* To itself, and by way of another one. */
static int offer_to_itself(struct pump *pump)
{
    struct pump *other = pump->user;

    assert_int_equal(pump_offer(pump, pump_tick()), DET_ERR_BUSY);
    assert_int_equal(pump_offer(other, pump_tick()), 0);
    return 0;
}

static int offer_back(struct pump *pump)
{
    struct pump *other = pump->user;

    assert_int_equal(pump_offer(other, pump_tick()), DET_ERR_BUSY);
    return 0;
}

static void event_offered_to_its_own_component_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    static struct pump pumps[2];

    for (int i = 0; i < 2; i++) {
        add(fixture, &pumps[i]);
        assert_int_equal(offered(fixture, &pumps[i], start_event()), 0);
        pumps[i].user = &pumps[1 - i];
    }
    pumps[0].in_tick = offer_to_itself;
    pumps[1].in_tick = offer_back;
    assert_int_equal(offered(fixture, &pumps[0], pump_tick()), 0);
    assert_int_equal(det_component_state(&pumps[0].component), PUMP_RUNNING);
    assert_int_equal(det_component_state(&pumps[1].component), PUMP_RUNNING);
}

static void close_aborts_live_components_in_start_order(void **state)
{
    struct fixture *fixture = *state;
    struct det_executor *executor;
    struct det_handle *handle;
    struct det_component_end end;
    static struct pump first, second;

    assert_int_equal(det_executor_open(fixture->loop, NULL, &executor, NULL), 0);
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    assert_int_equal(pump_supervise(executor, &first, NULL, &handle, NULL), 0);
    assert_int_equal(pump_supervise(executor, &second, &bare, NULL, NULL), 0);
    det_executor_close(executor);
    assert_int_equal(first.completions, 1);
    assert_int_equal(second.completions, 1);
    assert_int_equal(second.end.failure.source, DET_FAILURE_ABORTED);
    assert_int_equal(det_handle_wait(handle, 0, &end), 0);
    assert_int_equal(end.failure.code, DET_ERR_CANCELLED);
    assert_int_equal(pump_handle_send(handle, start_event()), DET_ERR_CLOSED);
    det_handle_close(handle);
    det_executor_close(NULL);
    det_handle_close(NULL);
    turn(fixture);
}

static int supervise_in_completion(struct pump *pump, const char *name)
{
    struct pump *other = pump->user;

    if (strcmp(name, "completed") == 0)
        pump->error = pump_supervise(pump->component.internal.executor, other, &bare, NULL, NULL);
    return 0;
}

static void closed_executor_refuses_new_components(void **state)
{
    struct fixture *fixture = *state;
    struct det_executor *executor;
    static struct pump pump, other;

    memset(&other, 0, sizeof other);
    assert_int_equal(det_executor_open(fixture->loop, NULL, &executor, NULL), 0);
    memset(&pump, 0, sizeof pump);
    assert_int_equal(pump_supervise(executor, &pump, &bare, NULL, NULL), 0);
    pump.fate = supervise_in_completion;
    pump.user = &other;
    det_executor_close(executor);
    assert_int_equal(pump.error, DET_ERR_CLOSED);
    assert_false(det_component_is_supervised(&other.component));
    turn(fixture);
}

/* The status of a component in a function that another one called by an offer. */
static int blame(struct pump *pump)
{
    struct pump *other = pump->user;

    assert_int_equal(det_component_failure(&other->component)->code, 0);
    assert_int_equal(
        det_component_fail(&other->component, DET_ERR_IO, "seen from %s", "below"), DET_ERR_IO);
    return 0;
}

static void pass_on_and_fail(struct pump *pump)
{
    struct pump *other = pump->user;

    assert_int_equal(pump_offer(other, pump_tick()), 0);
    pump->answer = DET_ERR_IO;
}

static void failure_text_belongs_to_its_component(void **state)
{
    struct fixture *fixture = *state;
    static struct pump inner;
    struct pump *outer = &fixture->pump;

    run_it(fixture);
    add(fixture, &inner);
    assert_int_equal(offered(fixture, &inner, start_event()), 0);
    outer->in_step = pass_on_and_fail;
    outer->user = &inner;
    inner.in_tick = blame;
    inner.user = outer;
    det_component_wake(&outer->component);
    turn(fixture);
    assert_string_equal(
        outer->reported.text, "dispatch of running: seen from below: input or output failed");
    assert_int_equal(det_component_state(&inner.component), PUMP_RUNNING);
}

static void start_another(struct pump *pump)
{
    struct pump *other = pump->user;

    pump->answer = pump_supervise(pump->component.internal.executor, other, &bare, NULL, NULL);
}

static void a_component_may_supervise_another(void **state)
{
    struct fixture *fixture = *state;
    static struct pump other;

    memset(&other, 0, sizeof other);
    run_it(fixture);
    fixture->pump.in_step = start_another;
    fixture->pump.user = &other;
    det_component_wake(&fixture->pump.component);
    turn(fixture);
    assert_int_equal(det_component_state(&fixture->pump.component), PUMP_RUNNING);
    assert_int_equal(offered(fixture, &other, start_event()), 0);
    assert_int_equal(det_component_state(&other.component), PUMP_RUNNING);
}

/* Breaks a pump, mends it, pauses it, drains it. Both states that have a timeout may lack memory:
 * the broken one while it handles a failure, which ends it. */
static int live(struct det_loop *loop, struct pump *pump)
{
    int r;

    assert_int_equal(pump_offer(pump, start_event()), 0);
    while (det_loop_turn(loop, 0) > 0)
        continue;
    pump->broken = "count_tick";
    pump->error = DET_ERR_IO;
    assert_int_equal(pump_offer(pump, pump_tick()), DET_ERR_IO);
    r = pump_offer(pump, pump_reset());
    if (r == DET_ERR_CLOSED) {
        assert_true(pump->end.failure.is_last_resort);
        return pump->end.failure.code;
    }
    assert_int_equal(r, 0);
    r = pump_offer(pump, pump_pause());
    if (r < 0) {
        assert_int_equal(pump->reported.code, r);
        return r;
    }
    r = det_component_wake_at(&pump->component, 1000 * DET_SECOND);
    if (r == 0)
        assert_int_equal(pump_offer(pump, pump_drain()), 0);
    return r;
}

/* Everything that takes memory, once, with what the machine makes of its lack. */
static int scenario(struct det_test_memory *memory, void *argument)
{
    struct det_executor_options options = { .allocator = &memory->allocator };
    struct det_executor *executor = NULL;
    struct det_handle *handle = NULL;
    struct det_loop *loop = NULL;
    struct det_sim *sim;
    static struct pump pumps[2];
    int r;

    (void)argument;
    memset(pumps, 0, sizeof pumps);
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    r = det_loop_open(det_sim_world(sim), &memory->allocator, &loop);
    if (r == 0)
        r = det_executor_open(loop, &options, &executor, NULL);
    if (r == 0)
        r = pump_supervise(executor, &pumps[0], NULL, &handle, NULL);
    if (r == 0)
        r = pump_supervise(executor, &pumps[1], &bare, NULL, NULL);
    for (int i = 0; r == 0 && i < 2; i++) {
        r = live(loop, &pumps[i]);
        /* The last failure may be one that there was no memory to keep. */
        if (r == 0 && pumps[i].end.failure.code != DET_ERR_IO)
            r = pumps[i].end.failure.code;
    }
    det_handle_close(handle);
    det_executor_close(executor);
    det_loop_close(loop);
    det_sim_close(sim);
    assert_int_equal(pumps[0].completions, executor && handle ? 1 : 0);
    return r;
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    det_test_each_failure(scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_component_is_two_cache_lines),
        PUMP_TEST(many_wakes_run_one_turn_and_none_runs_none),
        PUMP_TEST(wake_during_a_turn_schedules_another),
        PUMP_TEST(wake_before_the_dispatch_function_causes_no_extra_turn),
        PUMP_TEST(again_yields_to_other_components),
        PUMP_TEST(component_that_never_parks_is_limited_by_a_budget),
        PUMP_TEST(thousands_share_a_loop),
        PUMP_TEST(nested_offers_are_limited_in_depth),
        PUMP_TEST(event_offered_to_its_own_component_is_an_error),
        PUMP_TEST(close_aborts_live_components_in_start_order),
        PUMP_TEST(closed_executor_refuses_new_components),
        PUMP_TEST(failure_text_belongs_to_its_component),
        PUMP_TEST(a_component_may_supervise_another),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
