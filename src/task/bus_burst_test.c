/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_burst_test.c - many tasks at once: what subscribers see of them, what is lost and counted,
 * and what waits for a subscriber that must see everything. */
#include "task/behaviour_test.h"
#include "task/bus.h"
#include "task/event_queue.h"

#define BURST 10000

struct watcher {
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *changed;
    uint64_t events, ends, lost, last_sequence;
    bool has_gap;
    bool is_open; /* else callbacks wait */
};

static int watch(void *user, const struct det_task_event *event)
{
    struct watcher *watcher = user;

    det_mutex_lock(watcher->world, watcher->mutex);
    while (!watcher->is_open)
        (void)det_condition_wait(watcher->world, watcher->changed, watcher->mutex, DET_NEVER);
    watcher->events++;
    watcher->ends += event->kind == DET_TASK_EVENT_TASK_FINISHED;
    if (event->kind == DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED)
        watcher->lost += event->count;
    else if (watcher->last_sequence && event->sequence != watcher->last_sequence + 1)
        watcher->has_gap = true;
    watcher->last_sequence = event->sequence;
    det_mutex_unlock(watcher->world, watcher->mutex);
    return 0;
}

static void watcher_open(struct watcher *watcher, struct lab *lab)
{
    *watcher = (struct watcher){ .world = lab->world, .is_open = true };
    assert_int_equal(det_mutex_open(lab->world, &watcher->mutex), 0);
    assert_int_equal(det_condition_open(lab->world, &watcher->changed), 0);
}

static void watcher_let_go(struct watcher *watcher, bool is_open)
{
    det_mutex_lock(watcher->world, watcher->mutex);
    watcher->is_open = is_open;
    det_condition_broadcast(watcher->world, watcher->changed);
    det_mutex_unlock(watcher->world, watcher->mutex);
}

/* After a shutdown there are no callbacks, and the world exists until the end. */
static void close_all(struct lab *lab, struct watcher *watcher)
{
    (void)det_tasks_shutdown(lab->tasks, NULL);
    det_condition_close(watcher->world, watcher->changed);
    det_mutex_close(watcher->world, watcher->mutex);
    lab_close(lab);
}

static int done_at_once(struct det_task_context *context, void *argument)
{
    (void)context;
    (void)argument;
    return DET_STEP_DONE;
}

static const struct det_task_spec instant = { .step = done_at_once,
                                              .policy = { .restart = DET_RESTART_NEVER } };

static int add_instant(struct lab *lab, unsigned i)
{
    struct det_task_spec spec = instant;
    char name[16];

    (void)snprintf(name, sizeof name, "t%u", i);
    spec.name = name;
    return det_tasks_add(lab->tasks, &spec, NULL, NULL, NULL);
}

/* 60,000 events, on a loop of ours, in one turn. */
static void burst(struct lab *lab)
{
    for (unsigned i = 0; i < BURST; i++)
        assert_int_equal(add_instant(lab, i), 0);
    while (det_tasks_counts(lab->tasks).registered > 0)
        assert_true(det_loop_turn(lab->loop, DET_NEVER) >= 0);
    while (det_loop_turn(lab->loop, 0) > 0)
        continue;
}

static struct lab *open_on_loop(struct watcher *watcher, bool is_lossless)
{
    struct lab *lab = calloc(1, sizeof *lab);
    struct det_subscriber subscriber = { .name = "watcher",
                                         .delivery = DET_DELIVER_LOOP,
                                         .is_lossless = is_lossless,
                                         .on_event = watch,
                                         .user = watcher };

    assert_non_null(lab);
    lab->world = det_world_real();
    assert_int_equal(det_loop_open(lab->world, NULL, &lab->loop), 0);
    lab_set_up(lab, NULL);
    assert_int_equal(det_subscription_stop(lab->audit, 0), 0);
    watcher_open(watcher, lab);
    assert_int_equal(det_bus_subscribe(det_tasks_bus(lab->tasks), &subscriber, NULL, NULL), 0);
    return lab;
}

static void a_subscriber_on_the_loop_sees_every_end_of_a_burst_and_how_much_it_lost(void **unused)
{
    struct watcher watcher;
    struct lab *lab = open_on_loop(&watcher, false);

    (void)unused;
    burst(lab);
    assert_int_equal(watcher.ends, BURST);
    assert_true(watcher.events > 50000);
    assert_int_equal(det_tasks_counts(lab->tasks).events_lost, watcher.lost);
    assert_true(watcher.lost > 0);
    close_all(lab, &watcher);
}

static void a_lossless_subscriber_on_the_loop_sees_all_of_a_burst(void **unused)
{
    struct watcher watcher;
    struct lab *lab = open_on_loop(&watcher, true);

    (void)unused;
    burst(lab);
    assert_int_equal(watcher.ends, BURST);
    assert_int_equal(watcher.events, BURST * 6);
    assert_false(watcher.has_gap);
    assert_int_equal(det_tasks_counts(lab->tasks).events_lost, 0);
    close_all(lab, &watcher);
}

static struct lab *open_lossless_thread(struct watcher *watcher, struct det_subscription **ret)
{
    struct lab *lab = lab_open(NULL);

    watcher_open(watcher, lab);
    watcher->is_open = false;
    assert_int_equal(
        det_bus_subscribe(
            det_tasks_bus(lab->tasks),
            &(struct det_subscriber){ .name = "slow",
                                      .capacity = 8,
                                      .is_lossless = true,
                                      .on_event = watch,
                                      .user = watcher },
            ret, NULL),
        0);
    return lab;
}

/* Until nothing more is taken. */
static unsigned fill(struct lab *lab)
{
    struct det_task_spec spec = instant;
    struct det_error error = { 0 };
    char name[16];
    unsigned count = 0;
    int r = 0;

    for (; r == 0 && count < 100; count++) {
        (void)snprintf(name, sizeof name, "x%u", count);
        spec.name = name;
        r = det_tasks_try_add(lab->tasks, &spec, NULL, NULL, &error);
    }
    assert_int_equal(r, DET_ERR_BUSY);
    assert_non_null(strstr(error.text, "lossless subscriber"));
    return count - 1;
}

static void nonblocking_adds_fail_while_a_lossless_subscriber_lags(void **unused)
{
    struct watcher watcher;
    struct det_subscription *subscription;
    struct lab *lab = open_lossless_thread(&watcher, &subscription);
    unsigned count = fill(lab);

    (void)unused;
    assert_true(count > 0 && count < 10);
    watcher_let_go(&watcher, true);
    lab_settle(lab);
    /* It has caught up: all of them have run, and there is room again. */
    assert_int_equal(watcher.ends, count);
    assert_int_equal(add_instant(lab, 1000), 0);
    lab_settle(lab);
    assert_int_equal(watcher.ends, count + 1);
    assert_false(watcher.has_gap);
    assert_int_equal(det_subscription_counts(subscription).dropped, 0);
    close_all(lab, &watcher);
}

struct adder {
    struct lab *lab;
    int result;
    atomic_bool has_returned;
};

static void add_in_thread(void *argument)
{
    struct adder *adder = argument;

    adder->result = add_instant(adder->lab, 2000);
    atomic_store(&adder->has_returned, true);
}

static void an_add_waits_for_a_lossless_subscriber_and_a_shutdown_ends_the_wait(void **unused)
{
    (void)unused;
    for (int is_shutdown = 0; is_shutdown < 2; is_shutdown++) {
        struct watcher watcher;
        struct det_subscription *subscription;
        struct lab *lab = open_lossless_thread(&watcher, &subscription);
        struct adder adder = { .lab = lab };
        struct det_thread *thread;

        (void)fill(lab);
        assert_int_equal(det_thread_start(lab->world, "adder", add_in_thread, &adder, &thread), 0);
        lab_settle(lab);
        assert_false(atomic_load(&adder.has_returned));
        if (is_shutdown)
            (void)det_tasks_shutdown(lab->tasks, NULL);
        watcher_let_go(&watcher, true);
        det_thread_join(lab->world, thread);
        assert_int_equal(adder.result, is_shutdown ? DET_ERR_CLOSED : 0);
        assert_int_equal(det_subscription_stop(subscription, DET_NEVER), 0);
        close_all(lab, &watcher);
    }
}

static void no_attempt_starts_while_a_lossless_subscriber_cannot_keep_up(void **unused)
{
    struct watcher watcher;
    struct det_subscription *subscription;
    struct lab *lab = open_lossless_thread(&watcher, &subscription);
    struct script script = { .acts = "f" };
    struct det_policy policy = { .backoff = { .first = DET_SECOND, .jitter = DET_JITTER_NONE } };
    struct det_waiter *waiter = lab_add(lab, &script, "again", &policy);
    unsigned runs;

    (void)unused;
    lab_settle(lab);
    (void)fill(lab);
    lab_settle(lab);
    runs = atomic_load(&script.runs);
    lab_advance(lab, DET_HOUR);
    assert_int_equal(atomic_load(&script.runs), runs);
    assert_string_equal(lab_inspect(lab, script.id).state, "waiting");
    /* The end of the subscription ends the wait. */
    watcher_let_go(&watcher, true);
    assert_int_equal(det_subscription_stop(subscription, DET_NEVER), 0);
    lab_advance(lab, DET_MINUTE);
    assert_true(atomic_load(&script.runs) > runs);
    det_waiter_close(waiter);
    close_all(lab, &watcher);
}

static void stopping_lossless_subscriber_blocks_no_publisher(void **unused)
{
    struct watcher watcher;
    struct det_subscription *subscription;
    struct lab *lab = open_lossless_thread(&watcher, &subscription);

    (void)unused;
    (void)fill(lab);
    assert_int_equal(det_subscription_stop(subscription, 0), DET_ERR_TIMEOUT);
    assert_int_equal(add_instant(lab, 1000), 0);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "t1000"), 1);
    watcher_let_go(&watcher, true);
    assert_int_equal(det_subscription_stop(subscription, DET_NEVER), 0);
    close_all(lab, &watcher);
}

/* The reader drains its queue while the publisher finds it full: the later one decides. */
static void lossless_subscriber_that_caught_up_blocks_nothing(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct watcher watcher;
        struct lab *lab = lab_open_seed(seed, NULL);
        struct det_subscriber subscriber = {
            .name = "quick", .capacity = 2, .is_lossless = true, .on_event = watch, .user = &watcher
        };

        watcher_open(&watcher, lab);
        assert_int_equal(det_bus_subscribe(det_tasks_bus(lab->tasks), &subscriber, NULL, NULL), 0);
        for (unsigned i = 0; i < 10; i++) {
            assert_int_equal(add_instant(lab, i), 0);
            lab_settle(lab);
            assert_false(det_bus_is_pressed(det_tasks_bus(lab->tasks)));
        }
        assert_int_equal(watcher.ends, 10);
        close_all(lab, &watcher);
    }
}

static void event_queue_returns_what_was_put(void **unused)
{
    struct det_test_memory memory;
    struct det_event_queue queue;
    struct det_task_event event = { .kind = DET_TASK_EVENT_TASK_ADDED, .name = "n" }, back;

    (void)unused;
    det_test_memory_init(&memory);
    det_event_queue_init(&queue, &memory.allocator);
    memset(event.reason, 'r', DET_TASK_REASON_MAX);
    assert_false(det_event_queue_take(&queue, &back));
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 500; i++) {
            event.sequence = i;
            event.reason[i % DET_TASK_REASON_MAX] = 0;
            assert_int_equal(det_event_queue_put(&queue, &event), 0);
            event.reason[i % DET_TASK_REASON_MAX] = 'r';
        }
        for (unsigned i = 0; i < 500; i++) {
            assert_true(det_event_queue_take(&queue, &back));
            assert_int_equal(back.sequence, i);
            assert_string_equal(back.name, "n");
            assert_int_equal(strlen(back.reason), i % DET_TASK_REASON_MAX);
        }
        assert_false(det_event_queue_take(&queue, &back));
    }
    assert_int_equal(det_event_queue_put(&queue, &event), 0);
    det_event_queue_deinit(&queue);
    memory.fail_at = memory.calls + 1;
    assert_int_equal(det_event_queue_put(&queue, &event), DET_ERR_NO_MEMORY);
    det_test_memory_deinit(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_subscriber_on_the_loop_sees_every_end_of_a_burst_and_how_much_it_lost),
        cmocka_unit_test(a_lossless_subscriber_on_the_loop_sees_all_of_a_burst),
        cmocka_unit_test(nonblocking_adds_fail_while_a_lossless_subscriber_lags),
        cmocka_unit_test(an_add_waits_for_a_lossless_subscriber_and_a_shutdown_ends_the_wait),
        cmocka_unit_test(no_attempt_starts_while_a_lossless_subscriber_cannot_keep_up),
        cmocka_unit_test(lossless_subscriber_that_caught_up_blocks_nothing),
        cmocka_unit_test(stopping_lossless_subscriber_blocks_no_publisher),
        cmocka_unit_test(event_queue_returns_what_was_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
