/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* failure_test.c - no memory, at every place in turn: nothing leaks, and a send that failed has
 * left the instance exactly as it was. */
#include "runtime/runtime_test.h"

#include "runtime/history_test.h"

/* Everything that a scenario needs and that does not fail. */
struct scene {
    struct order_control control;
    struct det_machine *order;
    struct det_sim *sim;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_test_memory *memory;
    bool is_stopped; /* the scenario ends with a stop */
};

static int open_runtime(struct scene *scene, bool is_observed)
{
    det_runtime_close(scene->runtime);
    scene->runtime = NULL;
    return det_runtime_open(
        scene->store,
        &(struct det_runtime_options){ .world = det_sim_world(scene->sim),
                                       .allocator = &scene->memory->allocator,
                                       .user = &scene->control,
                                       .observer = &scene->control,
                                       .observe = is_observed ? order_observe : NULL,
                                       .incident = order_incident,
                                       .shards = 2,
                                       .pool_threads = 1 },
        &scene->runtime, NULL);
}

/* The visible instance; all zero if it does not exist. */
struct sight {
    struct det_instance instance;
    struct order_data data;
    struct listed_timers timers;
    size_t events;
};

static int count_event(void *context, const struct det_event_record *row)
{
    (void)row;
    ++*(size_t *)context;
    return 0;
}

static void inspect(struct scene *scene, const char *id, struct sight *ret)
{
    uint64_t fail_at = scene->memory->fail_at, calls = scene->memory->calls;
    int r;

    /* Allocations of the check neither fail nor count. */
    scene->memory->fail_at = 0;
    memset(ret, 0, sizeof *ret);
    r = det_runtime_get(scene->runtime, scene->order, id, &ret->instance, &ret->data, NULL);
    if (r == 0) {
        assert_int_equal(
            det_runtime_timers(scene->runtime, scene->order, id, list_timer, &ret->timers, NULL),
            0);
        assert_int_equal(
            det_runtime_events(
                scene->runtime, scene->order, id, 0, count_event, &ret->events, NULL),
            0);
    } else {
        assert_int_equal(r, DET_ERR_NOT_FOUND);
    }
    scene->memory->fail_at = fail_at;
    scene->memory->calls = calls;
}

static int try_send(struct scene *scene, const char *id, unsigned kind, const char *event_id)
{
    struct order_event event = { .kind = kind, .as.pay = { .cents = 5 } };
    struct order_event again = { .kind = PING };
    const void *both[] = { &again, &event };
    struct det_send_options options = { .event_id = event_id };
    struct sight before, after;
    int r;

    inspect(scene, id, &before);
    if (kind == TOUCH)
        r = det_runtime_send_all(scene->runtime, scene->order, id, both, 2, &options, NULL, NULL);
    else
        r = det_runtime_send(scene->runtime, scene->order, id, &event, &options, NULL, NULL);
    if (r == 0)
        return 0;
    assert_int_equal(r, DET_ERR_NO_MEMORY);
    inspect(scene, id, &after);
    assert_memory_equal(&before, &after, sizeof before);
    return r;
}

static int pass(struct scene *scene, det_time span)
{
    assert_int_equal(det_sim_advance(scene->sim, span), 0);
    return 0;
}

static int act(struct scene *scene)
{
    struct order_data data = { .cents = 1 };
    int r;

    r = open_runtime(scene, false);
    if (r == 0)
        r = det_runtime_start(
            scene->runtime, scene->order, "o-1", &data,
            &(struct det_send_options){ .event_id = "s" }, NULL, NULL);
    if (r == 0)
        r = try_send(scene, "o-1", TOUCH, "t");
    if (r == 0)
        r = try_send(scene, "o-1", NOTE, NULL);
    if (r == 0)
        r = try_send(scene, "o-1", JUNK, NULL);
    if (r == 0)
        r = try_send(scene, "o-1", PAY, "p");
    if (r == 0)
        r = pass(scene, DET_MINUTE);
    if (r == 0)
        r = open_runtime(scene, true);
    if (r == 0)
        r = det_runtime_serve(scene->runtime, scene->order, NULL);
    if (r == 0)
        r = pass(scene, DET_MINUTE);
    if (r == 0)
        r = try_send(scene, "o-1", SHIP, NULL);
    if (r == 0)
        r = pass(scene, 2 * DET_HOUR);
    if (r == 0)
        r = det_runtime_cancel(scene->runtime, scene->order, "o-1", "end", NULL, NULL, NULL);
    scene->is_stopped = true;
    return r;
}

/* A runtime that finds everything half done: an effect that waits, a deferred event, a timer with a
 * payload. What is there was put there without a failure. */
static int find_again(struct scene *scene)
{
    uint64_t fail_at = scene->memory->fail_at, calls = scene->memory->calls;
    int r;

    scene->memory->fail_at = 0;
    scene->control.effect_failures = 0;
    r = open_runtime(scene, false);
    if (r == 0)
        r = det_runtime_start(scene->runtime, scene->order, "o-1", NULL, NULL, NULL, NULL);
    if (r == 0)
        r = try_send(scene, "o-1", PAY, NULL);
    if (r == 0)
        r = pass(scene, DET_SECOND);
    if (r == 0)
        r = try_send(scene, "o-1", SHIP, NULL);
    if (r == 0)
        r = try_send(scene, "o-1", NOTE, NULL);
    scene->control.effect_failures = 1;
    if (r == 0)
        r = det_runtime_start(scene->runtime, scene->order, "o-2", NULL, NULL, NULL, NULL);
    if (r == 0)
        r = try_send(scene, "o-2", PAY, NULL);
    if (r == 0)
        r = pass(scene, DET_MILLISECOND);
    assert_int_equal(r, 0);
    scene->memory->fail_at = fail_at;
    scene->memory->calls = calls;
    r = open_runtime(scene, false);
    if (r == 0)
        r = det_runtime_serve(scene->runtime, scene->order, NULL);
    if (r == 0)
        r = pass(scene, 2 * DET_HOUR);
    if (r == 0 && !scene->memory->failed) {
        struct sight first, second;

        inspect(scene, "o-1", &first);
        inspect(scene, "o-2", &second);
        assert_int_equal(first.instance.sequence, 5);
        assert_int_equal(first.instance.deferred_count, 1);
        assert_int_equal(second.instance.state, PAID);
    }
    return r;
}

/* The first writer of a runtime that has only looked so far. */
static int send_to_found(struct scene *scene)
{
    uint64_t fail_at = scene->memory->fail_at, calls = scene->memory->calls;
    int r;

    scene->memory->fail_at = 0;
    assert_int_equal(open_runtime(scene, false), 0);
    r = det_runtime_start(scene->runtime, scene->order, "o-1", NULL, NULL, NULL, NULL);
    assert_int_equal(r, 0);
    assert_int_equal(open_runtime(scene, false), 0);
    scene->memory->fail_at = fail_at;
    scene->memory->calls = calls;
    return try_send(scene, "o-1", PING, NULL);
}

static void finish(struct scene *scene, int r)
{
    struct sight sight;

    if (scene->runtime) {
        inspect(scene, "o-1", &sight);
        scene->memory->fail_at = 0;
        if (sight.instance.visit)
            check_history(scene->runtime, scene->order, "o-1");
        if (r == 0 && !scene->memory->failed && scene->is_stopped) {
            assert_true(sight.instance.is_stopped);
            assert_int_equal(sight.instance.sequence, 10);
        }
    }
    det_runtime_close(scene->runtime);
    det_store_close(scene->store);
    det_sim_close(scene->sim);
    free(scene);
}

static int run_scene(
    struct det_test_memory *memory, void *argument, int (*play)(struct scene *scene))
{
    struct scene *scene = calloc(1, sizeof *scene);
    int r;

    assert_non_null(scene);
    scene->memory = memory;
    scene->order = argument;
    scene->control.product = CHARGED;
    scene->control.effect_result = DET_EFFECT_PRODUCED;
    scene->control.effect_failures = 1;
    /* The world's own memory fails too: its mutexes, conditions and threads. */
    r = det_sim_open(
        &(struct det_sim_options){ .seed = 3, .allocator = &memory->allocator }, &scene->sim, NULL);
    if (r == 0)
        r = det_store_open_with(
            "memory:",
            &(struct det_store_options){ .world = det_sim_world(scene->sim),
                                         .allocator = &memory->allocator },
            &scene->store, NULL);
    if (r == 0)
        r = play(scene);
    finish(scene, r);
    return r;
}

static int act_scene(struct det_test_memory *memory, void *argument)
{
    return run_scene(memory, argument, act);
}

static int find_scene(struct det_test_memory *memory, void *argument)
{
    return run_scene(memory, argument, find_again);
}

static int found_scene(struct det_test_memory *memory, void *argument)
{
    return run_scene(memory, argument, send_to_found);
}

static void a_failed_allocation_leaves_no_half_state_and_no_leak(void **state)
{
    struct det_machine *order = order_machine(true);

    (void)state;
    det_test_each_failure(act_scene, order);
    det_machine_close(order);
}

static void a_failed_allocation_while_loading_is_made_good_later(void **state)
{
    struct det_machine *order = order_machine(true);

    (void)state;
    det_test_each_failure(find_scene, order);
    det_machine_close(order);
}

static void allocation_failure_in_a_turn_is_the_error_of_its_sender(void **state)
{
    struct det_machine *order = order_machine(true);

    (void)state;
    det_test_each_failure(found_scene, order);
    det_machine_close(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_while_loading_is_made_good_later),
        cmocka_unit_test(a_failed_allocation_leaves_no_half_state_and_no_leak),
        cmocka_unit_test(allocation_failure_in_a_turn_is_the_error_of_its_sender),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
