/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.c - publishing an event: without subscribers, to subscribers on the loop and on their own
 * threads.
 *
 * The limit is a bare ring of small records with four cursors that other threads would move. The
 * time is that of the publishing thread with its turns of the loop: the cost for the owner. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "task/bus.h"

#define EVENTS    200000
#define TURN      64 /* events between two turns of the loop */
#define CAPACITY  1024
#define GEN_EVENT "Erlang gen_event, 4 handlers"

struct setup {
    unsigned subscribers;
    enum det_delivery delivery;
    bool is_delivered; /* the turns are measured too */
};

/* A typical event: an id, a few numbers, a short name. */
static const struct det_task_event sample = {
    .kind = DET_TASK_EVENT_ATTEMPT_STARTING,
    .at = 1,
    .id = 42,
    .attempt = 3,
    .name = "worker-17",
};

static int take(void *user, const struct det_task_event *event)
{
    atomic_uint_least64_t *sum = user;

    atomic_store_explicit(
        sum, atomic_load_explicit(sum, memory_order_relaxed) + event->id, memory_order_relaxed);
    return 0;
}

static int fail(struct bench_lap *lap, int code)
{
    return bench_lap_fail(lap, code, "%s", det_error_text(code));
}

/* Hand-written: twelve words into a ring, and its place into four queues. */
static int run_ring(struct bench_lap *lap)
{
    static _Atomic(uint64_t) entries[CAPACITY][16], queues[4][CAPACITY], tails[4];

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        _Atomic(uint64_t) *entry = entries[i % CAPACITY];
        uint64_t words[12];

        memcpy(words, &sample, sizeof words);
        for (int k = 0; k < 12; k++)
            atomic_store_explicit(&entry[k], words[k], memory_order_relaxed);
        atomic_store_explicit(&entry[15], i, memory_order_release);
        for (int k = 0; k < 4; k++) {
            uint64_t tail = atomic_load_explicit(&tails[k], memory_order_relaxed);

            atomic_store_explicit(&queues[k][tail % CAPACITY], i, memory_order_relaxed);
            atomic_store_explicit(&tails[k], tail + 1, memory_order_release);
        }
    }
    bench_lap_end(lap);
    return 0;
}

static int publish_all(
    struct bench_lap *lap, struct det_loop *loop, struct det_bus *bus, bool turns)
{
    struct det_task_event event = sample;
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r >= 0; i++) {
        event.id = i;
        det_bus_publish(bus, &event);
        if (turns && i % TURN == 0)
            r = det_loop_turn(loop, 0);
    }
    bench_lap_end(lap);
    return r < 0 ? fail(lap, r) : 0;
}

static int subscribe(struct det_bus *bus, const struct setup *setup, atomic_uint_least64_t *sums)
{
    int r = 0;

    for (unsigned i = 0; i < setup->subscribers && r == 0; i++) {
        struct det_subscriber subscriber = {
            .delivery = setup->delivery,
            .capacity = EVENTS,
            .on_event = take,
            .user = &sums[i * 8],
        };

        r = det_bus_subscribe(bus, &subscriber, NULL, NULL);
    }
    return r;
}

static int run_publish(struct bench_lap *lap)
{
    static atomic_uint_least64_t sums[8 * 8];
    const struct setup *setup = lap->argument;
    struct det_bus *bus = NULL;
    DET_SCOPED(loop) loop = NULL;
    int r;

    r = det_loop_open(NULL, NULL, &loop);
    if (r == 0)
        r = det_bus_open(loop, NULL, CAPACITY, &bus);
    if (r == 0)
        r = subscribe(bus, setup, sums);
    r = r < 0 ? fail(lap, r) : publish_all(lap, loop, bus, setup->is_delivered);
    if (bus)
        (void)det_bus_end(bus, DET_NEVER);
    det_bus_close(bus);
    return r;
}

static int run_gen_event(struct bench_lap *lap)
{
    char count[24];
    const char *words[] = { "escript", BENCH_PEERS "/gen_event.escript", "4", count, NULL };

    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, words);
}

static const struct setup no_subscriber = { 0, DET_DELIVER_LOOP, true };
static const struct setup loop_1 = { 1, DET_DELIVER_LOOP, false };
static const struct setup loop_4 = { 4, DET_DELIVER_LOOP, false };
static const struct setup loop_8 = { 8, DET_DELIVER_LOOP, false };
static const struct setup loop_4_delivered = { 4, DET_DELIVER_LOOP, true };
static const struct setup thread_1 = { 1, DET_DELIVER_THREAD, true };
static const struct setup thread_4 = { 4, DET_DELIVER_THREAD, true };
static const struct setup thread_8 = { 8, DET_DELIVER_THREAD, true };

#define COMMON EVENTS, .clock = BENCH_OWN
#define GOALS                              \
    {                                      \
        { BENCH_NS_MAX, 45, NULL },        \
        {                                  \
            BENCH_ALLOCATIONS_MAX, 0, NULL \
        }                                  \
    }

static const struct bench_case cases[] = {
    { "a hand-written ring and 4 queues", BENCH_LIMIT, run_ring, NULL, COMMON },
    { "publish, no subscriber", BENCH_OURS, run_publish, &no_subscriber, COMMON },
    { "publish, 1 on the loop", BENCH_OURS, run_publish, &loop_1, COMMON },
    { "publish, 4 on the loop", BENCH_OURS, run_publish, &loop_4, COMMON, .goals = GOALS },
    { "publish, 8 on the loop", BENCH_OURS, run_publish, &loop_8, COMMON },
    { "the same, 4, and delivered", BENCH_OURS, run_publish, &loop_4_delivered, COMMON,
      .goals = { { BENCH_AHEAD_OF, 0, GEN_EVENT } } },
    { "publish and wake, 1 thread", BENCH_OURS, run_publish, &thread_1, COMMON },
    { "publish and wake, 4 threads", BENCH_OURS, run_publish, &thread_4, COMMON },
    { "publish and wake, 8 threads", BENCH_OURS, run_publish, &thread_8, COMMON },
    { GEN_EVENT, BENCH_PEER, run_gen_event, NULL, EVENTS / 10, .has_no_allocations = true },
};

extern const struct bench bench_bus;
const struct bench bench_bus = {
    .title = "bus: one event to all subscribers",
    .operation = "event",
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
