/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* send.c - sends to instances in memory: lookup by id, guard, hooks, data, history, timer, commit.
 *
 * The limits are the least possible work: the instance is looked up by its id in a hash table,
 * steps, and changes its data; first without locks, so that the processor waits for the memory of
 * several instances at once; then each under a lock, with a row for the event in a ring of the
 * instance, which fills the memory.
 *
 * An instance keeps its last 64 events and allocates until it has as many, which with 100,000
 * instances lasts for the whole bench: hence a few allocations per hundred sends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "bench.h"
#include "load.h"

#define INSTANCES 100000
#define SMALL     64
#define ORDER     1048576 /* a power of two */
#define SENDS     300000
#define GOAL_NS   150

/* As many events as the store in memory keeps, and as large. */
#define ROWS     64
#define ROW_SIZE 40

struct plain {
    const char *id;
    unsigned state, next;
    struct load_data data;
    char *rows;
};

static struct load load;
static struct det_map map;
static struct plain *plains;
static uint32_t *order; /* order of the instances, random */

/* The target of a case: the ring, or the swinging instances, which are the second half. */
struct method {
    unsigned threads;
    uint32_t instances;
    bool is_plain;
};

/* One sender: its part of the order. */
struct sender {
    pthread_t thread;
    const struct method *method;
    uint64_t first, count;
    int r;
};

static struct plain *plain_send(uint64_t number)
{
    struct plain *plain = det_map_get(&map, load.ids[order[number % ORDER]]);

    plain->state = det_machine_step(&load_machine, plain->state, LOAD_NEXT)->to;
    plain->data.amount = number;
    plain->data.count++;
    return plain;
}

static int run_plain(struct bench_lap *lap)
{
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++)
        (void)plain_send(i);
    bench_lap_end(lap);
    return 0;
}

/* With a lock around each change: the processor cannot look up the next instance while it still
 * waits for this one. And the event is recorded. */
static int run_recorded(struct bench_lap *lap)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        struct plain *plain;

        (void)pthread_mutex_lock(&mutex);
        plain = plain_send(i);
        memset(plain->rows + (size_t)plain->next * ROW_SIZE, (int)plain->state, ROW_SIZE);
        plain->next = (plain->next + 1) % ROWS;
        (void)pthread_mutex_unlock(&mutex);
    }
    bench_lap_end(lap);
    return 0;
}

static void *send_part(void *argument)
{
    struct sender *sender = argument;

    for (uint64_t i = sender->first; i < sender->first + sender->count && sender->r == 0; i++) {
        const struct method *method = sender->method;
        uint32_t first = method->is_plain ? INSTANCES : 0;
        const char *id = load.ids[first + order[i % ORDER] % method->instances];
        const struct amount amount = { .amount = i };
        struct load_event event = method->is_plain ? load_swing(amount) : load_next(amount);
        struct det_sent sent;

        sender->r = load_send(load.runtime, id, event, &sent);
    }
    return NULL;
}

/* The first sender is this thread, each other one a separate thread. */
static int run_sends(struct bench_lap *lap)
{
    const struct method *method = lap->argument;
    uint64_t part = lap->operations / method->threads;
    struct sender senders[2] = { 0 };
    int r = 0;

    lap->operations = part * method->threads;
    bench_lap_begin(lap);
    for (unsigned i = 0; i < method->threads; i++) {
        senders[i] =
            (struct sender){ .method = method, .first = (uint64_t)i * (ORDER / 2), .count = part };
        if (i > 0 && pthread_create(&senders[i].thread, NULL, send_part, &senders[i]) != 0)
            return bench_lap_fail(lap, DET_ERR_NO_MEMORY, "no thread");
    }
    send_part(&senders[0]);
    for (unsigned i = 1; i < method->threads; i++)
        (void)pthread_join(senders[i].thread, NULL);
    bench_lap_end(lap);
    for (unsigned i = 0; i < method->threads; i++)
        r = r < 0 ? r : senders[i].r;
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

static int open_plains(void)
{
    plains = calloc(INSTANCES, sizeof *plains);
    order = calloc(ORDER, sizeof *order);
    det_map_init(&map, NULL, 1, offsetof(struct plain, id));
    if (!plains || !order)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < INSTANCES; i++) {
        int r;

        plains[i].id = load.ids[i];
        plains[i].rows = calloc(ROWS, ROW_SIZE);
        if (!plains[i].rows)
            return DET_ERR_NO_MEMORY;
        r = det_map_put(&map, &plains[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static void close_send(void)
{
    det_map_deinit(&map);
    for (size_t i = 0; plains && i < INSTANCES; i++)
        free(plains[i].rows);
    free(plains);
    free(order);
    load_close(&load);
}

static int open_send(char *note)
{
    struct det_runtime_options options = { 0 };
    struct det_error error;
    uint64_t seed = 11;
    int r = load_open(&load, 2 * INSTANCES, &options, &error);

    if (r < 0) {
        (void)snprintf(note, BENCH_NOTE_MAX, "%.150s", error.text);
        return r;
    }
    r = open_plains();
    for (uint32_t i = INSTANCES; r == 0 && i < 2 * INSTANCES; i++)
        r = load_send(load.runtime, load.ids[i], load_leave(), NULL);
    if (r < 0) {
        close_send();
        return r;
    }
    for (size_t i = 0; i < ORDER; i++)
        order[i] = (uint32_t)(bench_random(&seed) % INSTANCES);
    return 0;
}

static const struct method one_many = { 1, INSTANCES, false }, one_few = { 1, SMALL, false },
                           two_many = { 2, INSTANCES, false }, two_few = { 2, SMALL, false },
                           plain_many = { 1, INSTANCES, true }, plain_few = { 1, SMALL, true },
                           plain_two = { 2, INSTANCES, true };

#define GOAL                        \
    {                               \
        BENCH_NS_MAX, GOAL_NS, NULL \
    }
#define NO_HEAP                        \
    {                                  \
        BENCH_ALLOCATIONS_MAX, 0, NULL \
    }

static const struct bench_case cases[] = {
    { "lookup and step, 100,000", BENCH_LIMIT, run_plain, NULL, SENDS, .clock = BENCH_WALL },
    { "the same, locked, and a row of 40 bytes", BENCH_LIMIT, run_recorded, NULL, SENDS,
      .clock = BENCH_WALL },
    { "1 thread, 100,000 instances", BENCH_OURS, run_sends, &one_many, SENDS,
      .goals = { GOAL, NO_HEAP } },
    { "1 thread, 64 instances", BENCH_OURS, run_sends, &one_few, SENDS,
      .goals = { GOAL, NO_HEAP } },
    { "2 threads, 100,000 instances", BENCH_OURS, run_sends, &two_many, SENDS,
      .goals = { GOAL, NO_HEAP } },
    { "2 threads, 64 instances", BENCH_OURS, run_sends, &two_few, SENDS, .goals = { NO_HEAP } },
    { "no user code, 1 thread, 100,000", BENCH_OURS, run_sends, &plain_many, SENDS,
      .goals = { GOAL, NO_HEAP } },
    { "no user code, 1 thread, 64", BENCH_OURS, run_sends, &plain_few, SENDS,
      .goals = { GOAL, NO_HEAP } },
    { "no user code, 2 threads, 100,000", BENCH_OURS, run_sends, &plain_two, SENDS,
      .goals = { GOAL, NO_HEAP } },
};

extern const struct bench bench_send;
const struct bench bench_send = {
    .title = "sends to instances in memory, with guard, hooks, data, history and timer",
    .operation = "send",
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_send,
    .close = close_send,
};
