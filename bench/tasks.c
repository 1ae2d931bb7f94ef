/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks.c - restarts, lifecycles, and a hundred thousand registered tasks.
 *
 * The limit of a restart is a loop that calls a function again, through a heap of timers, as
 * hand-written code would. Ours also has the policy, the backoff with jitter, and the events on the
 * bus. Many tasks wait for a short time, so the loop never sleeps. The supervisor of Erlang/OTP has
 * no backoff and publishes nothing; its time is wall time. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "house.h"

#define TASKS  10000
#define MANY   100000
#define ERLANG "Erlang supervisor, 1,000 children"

/* Hand-written: a function that fails, a deadline in a heap, the next one that is due. */
struct by_hand {
    struct det_heap_node node;
    int (*step)(void *argument);
    uint32_t failures;
};

static int fail_by_hand(void *argument)
{
    bench_use((uint64_t)(uintptr_t)argument);
    return DET_ERR_IO;
}

static int run_by_hand(struct bench_lap *lap)
{
    struct by_hand *tasks = calloc(TASKS, sizeof *tasks);
    uint64_t seed = 1, done = 0;
    struct det_heap heap;

    if (!tasks)
        return bench_lap_fail(lap, DET_ERR_NO_MEMORY, "no memory");
    det_heap_init(&heap, NULL);
    for (size_t i = 0; i < TASKS; i++) {
        tasks[i].step = fail_by_hand;
        det_heap_node_init(&tasks[i].node);
        if (det_heap_insert(&heap, &tasks[i].node, (int64_t)i) < 0)
            return bench_lap_fail(lap, DET_ERR_NO_MEMORY, "no memory");
    }
    bench_lap_begin(lap);
    for (; done < lap->operations; done++) {
        struct by_hand *task = (struct by_hand *)(void *)det_heap_first(&heap);

        if (task->step(task) < 0)
            task->failures++;
        det_heap_rekey(
            &heap, &task->node, task->node.key + 1000 + (int64_t)(bench_random(&seed) % 1000));
    }
    bench_lap_end(lap);
    det_heap_deinit(&heap);
    free(tasks);
    return 0;
}

static int reported(void *user, const struct det_task_event *event)
{
    struct bench_house *house = user;

    house->reported += event->sequence;
    return 0;
}

static int listen(struct bench_house *house, struct det_error *error)
{
    struct det_subscription *subscription;

    return det_bus_subscribe(
        det_tasks_bus(house->tasks),
        &(struct det_subscriber){
            .delivery = DET_DELIVER_LOOP, .capacity = 65536, .on_event = reported, .user = house },
        &subscription, error);
}

static int fails(struct det_task_context *context, void *argument)
{
    struct bench_house *house = argument;

    (void)context;
    house->calls++;
    return DET_ERR_IO;
}

/* This many restarts of this many tasks that always fail, each after its backoff. */
static int measure_restarts(
    struct bench_lap *lap, struct bench_house *house, uint32_t count, struct det_error *error)
{
    const struct det_task_spec pattern = {
        .step = fails,
        .argument = house,
        .policy = { .restart = DET_RESTART_ON_FAILURE,
                    .backoff = { .first = DET_MILLISECOND,
                                 /* is the floor */ .max = DET_MILLISECOND } },
    };
    int r;

    r = bench_house_add(house, count, &pattern, error);
    if (r == 0)
        r = bench_house_turn(house, count, error);
    return r < 0 ? r : bench_house_lap(lap, house, error);
}

struct restarts {
    uint32_t tasks;
    bool is_received;
};

static int run_restarts(struct bench_lap *lap)
{
    const struct restarts *restarts = lap->argument;
    struct det_error error = { .code = 0 };
    struct bench_house house;
    int r;

    r = bench_house_open(&house, (struct det_tasks_options){ 0 }, &error);
    if (r == 0 && restarts->is_received)
        r = listen(&house, &error);
    if (r == 0)
        r = measure_restarts(lap, &house, restarts->tasks, &error);
    bench_house_close(&house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

/* Added, started, done, removed. */
static int succeeds(struct det_task_context *context, void *argument)
{
    struct bench_house *house = argument;

    (void)context;
    house->calls++;
    return DET_STEP_DONE;
}

static int measure_lives(struct bench_lap *lap, struct bench_house *house, struct det_error *error)
{
    const struct det_task_spec pattern = { .step = succeeds,
                                           .argument = house,
                                           .policy = { .restart = DET_RESTART_NEVER } };
    uint64_t left = lap->operations;
    int r = 0;

    bench_lap_begin(lap);
    while (r >= 0 && left > 0) {
        uint64_t some = left < 100 ? left : 100;

        left -= some;
        r = bench_house_add(house, some, &pattern, error);
        while (r >= 0 && det_tasks_counts(house->tasks).registered > 0)
            r = det_loop_turn(house->loop, DET_NEVER);
    }
    bench_lap_end(lap);
    return r < 0 ? r : 0;
}

static int run_lives(struct bench_lap *lap)
{
    const bool *is_received = lap->argument;
    struct det_error error = { .code = 0 };
    struct bench_house house;
    int r;

    r = bench_house_open(&house, (struct det_tasks_options){ 0 }, &error);
    if (r == 0 && *is_received)
        r = listen(&house, &error);
    if (r == 0)
        r = measure_lives(lap, &house, &error);
    bench_house_close(&house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

/* A hundred thousand that wait. */
static int waits(struct det_task_context *context, void *argument)
{
    (void)argument;
    return det_task_is_cancelled(context) ? DET_ERR_CANCELLED : DET_STEP_WAIT;
}

/* Bytes that malloc() has allocated, including its own overhead. */
static double heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)(info.uordblks + info.hblkhd);
}

static int run_add(struct bench_lap *lap)
{
    const struct det_task_spec pattern = { .step = waits };
    struct det_error error = { .code = 0 };
    struct bench_house house;
    double before;
    int r;

    r = bench_house_open(&house, (struct det_tasks_options){ 0 }, &error);
    if (r == 0) {
        before = heap_bytes();
        bench_lap_begin(lap);
        r = bench_house_add(&house, lap->operations, &pattern, &error);
        bench_lap_end(lap);
        lap->kept_bytes = heap_bytes() - before;
    }
    bench_house_close(&house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

static int measure_cancel(struct bench_lap *lap, struct bench_house *house, struct det_error *error)
{
    const struct det_task_spec pattern = { .step = waits };
    int r;

    r = bench_house_add(house, lap->operations, &pattern, error);
    while (r >= 0 && det_tasks_counts(house->tasks).running < lap->operations)
        r = det_loop_turn(house->loop, DET_NEVER);
    if (r < 0)
        return r;
    bench_lap_begin(lap);
    for (det_task_id id = 1; id <= lap->operations && r >= 0; id++)
        r = det_tasks_remove(house->tasks, id);
    while (r >= 0 && det_tasks_counts(house->tasks).registered > 0)
        r = det_loop_turn(house->loop, DET_NEVER);
    bench_lap_end(lap);
    return r < 0 ? r : 0;
}

static int run_cancel(struct bench_lap *lap)
{
    struct det_error error = { .code = 0 };
    struct bench_house house;
    int r;

    r = bench_house_open(&house, (struct det_tasks_options){ 0 }, &error);
    if (r == 0)
        r = measure_cancel(lap, &house, &error);
    bench_house_close(&house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

/* As many children as restarts, so that each fails once or twice. */
static int run_erlang(struct bench_lap *lap)
{
    char count[24];
    const char *words[] = {
        "escript", BENCH_PEERS "/supervisor.escript", "1000", "0", count, NULL
    };

    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, words);
}

static const bool is_received = true, is_not_received = false;
static const struct restarts restarts_of_1000 = { 1000, true };
static const struct restarts restarts_of_10000 = { TASKS, true };
static const struct restarts restarts_unheard = { TASKS, false };

static const struct bench_case cases[] = {
    { "hand-written restart, a heap", BENCH_LIMIT, run_by_hand, NULL, 100000, .clock = BENCH_OWN },
    { "restart, 1,000 tasks", BENCH_OURS, run_restarts, &restarts_of_1000, 100000,
      .clock = BENCH_OWN,
      .goals = { { BENCH_NS_MAX, 700, NULL },
                 { BENCH_AHEAD_OF, 0, ERLANG },
                 { BENCH_ALLOCATIONS_MAX, 0, NULL } } },
    { "restart, 10,000 tasks", BENCH_OURS, run_restarts, &restarts_of_10000, 100000,
      .clock = BENCH_OWN, .goals = { { BENCH_NS_MAX, 700, NULL } } },
    { "the same, no subscriber", BENCH_OURS, run_restarts, &restarts_unheard, 100000,
      .clock = BENCH_OWN },
    { "lifecycle, one subscriber", BENCH_OURS, run_lives, &is_received, 50000, .clock = BENCH_OWN,
      .goals = { { BENCH_NS_MAX, 2000, NULL } } },
    { "lifecycle, no subscriber", BENCH_OURS, run_lives, &is_not_received, 50000,
      .clock = BENCH_OWN },
    { "add, 100,000 registered", BENCH_OURS, run_add, NULL, MANY, .clock = BENCH_OWN,
      .goals = { { BENCH_BYTES_MAX, 512, NULL } } },
    { "cancel, 100,000 registered", BENCH_OURS, run_cancel, NULL, MANY, .clock = BENCH_OWN },
    { ERLANG, BENCH_PEER, run_erlang, NULL, 1000, .has_no_allocations = true },
};

extern const struct bench bench_tasks;
const struct bench bench_tasks = {
    .title = "tasks: restarts, lifecycles, many registered",
    .operation = "task",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
