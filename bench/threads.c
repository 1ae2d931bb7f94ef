/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* threads.c - tasks from another thread than the one that owns them: added, cancelled, submitted to
 * slots, restarted; beside taskvisor on a Tokio runtime with two worker threads.
 *
 * The supervisor has its own thread. The time is that from the first call to the last answer. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <detent/slot.h>

#include "bench.h"

#define OPERATIONS   5000
#define BATCH        256
#define SLOTS        8

#define PEER_LIFE    "taskvisor: add, wait"
#define PEER_LIVES   "taskvisor: 256 at a time"
#define PEER_CANCEL  "taskvisor: add, cancel"
#define PEER_SUBMIT  "taskvisor: submit"
#define PEER_SLOT    "taskvisor: submit, wait"
#define PEER_SLOTS   "taskvisor: 256, 8 slots"
#define PEER_RESTART "taskvisor: restart"

struct method {
    unsigned size;     /* tasks of one round */
    unsigned slots;    /* 0: no slot */
    bool is_cancelled; /* then waited for; else they end without a request */
    bool is_unwatched; /* without a wait for their ends */
    bool is_function;  /* on the pool; else a step */
    bool is_posted;    /* without an answer */
};

static int ends(struct det_task_context *context, void *argument)
{
    (void)context;
    (void)argument;
    return 0;
}

static int waits(struct det_task_context *context, void *argument)
{
    (void)argument;
    return det_task_is_cancelled(context) ? DET_ERR_CANCELLED : DET_STEP_WAIT;
}

struct pool {
    struct det_tasks *tasks;
    const struct method *method;
    struct det_waiter *waiters[BATCH];
    uint64_t count; /* so far: names are not used twice */
};

static struct det_task_spec spec_of(const struct pool *pool, const char *name)
{
    struct det_task_spec spec = { .name = name, .policy = { .restart = DET_RESTART_NEVER } };

    if (pool->method->is_function)
        spec.function = ends;
    else
        spec.step = pool->method->is_cancelled ? waits : ends;
    return spec;
}

static int submit_one(struct pool *pool, struct det_waiter **waiter, struct det_error *error)
{
    char name[32], slot[32];
    struct det_task_spec spec = spec_of(pool, name);

    (void)snprintf(name, sizeof name, "task-%llu", (unsigned long long)pool->count);
    (void)snprintf(
        slot, sizeof slot, "slot-%llu", (unsigned long long)(pool->count % pool->method->slots));
    if (pool->method->is_posted)
        return det_slot_post_submit(
            pool->tasks, &(struct det_submission){ .slot = slot, .task = &spec }, NULL);
    return det_slot_submit(
        pool->tasks, &(struct det_submission){ .slot = slot, .task = &spec }, waiter, NULL, error);
}

static int add_one(struct pool *pool, struct det_waiter **waiter, struct det_error *error)
{
    char name[32];
    struct det_task_spec spec = spec_of(pool, name);
    det_task_id id = 0;
    int r;

    (void)snprintf(name, sizeof name, "task-%llu", (unsigned long long)pool->count);
    if (!pool->method->is_cancelled)
        return det_tasks_add(pool->tasks, &spec, waiter, NULL, error);
    r = det_tasks_add(pool->tasks, &spec, NULL, &id, error);
    if (r == 0)
        r = det_tasks_stop(pool->tasks, id, DET_NEVER);
    return r < 0 ? r : 0;
}

static int begin_one(struct pool *pool, unsigned i, struct det_error *error)
{
    struct det_waiter **waiter = pool->method->is_unwatched ? NULL : &pool->waiters[i];

    pool->count++;
    return pool->method->slots > 0 ? submit_one(pool, waiter, error) : add_one(pool, waiter, error);
}

static int wait_for_ends(struct pool *pool)
{
    int r = 0;

    for (unsigned i = 0; i < pool->method->size; i++) {
        if (r == 0 && pool->waiters[i])
            r = det_waiter_wait(pool->waiters[i], DET_NEVER, NULL);
        det_waiter_close(pool->waiters[i]);
        pool->waiters[i] = NULL;
    }
    return r;
}

static int run_round(struct pool *pool, struct det_error *error)
{
    int r = 0;

    for (unsigned i = 0; i < pool->method->size && r == 0; i++)
        r = begin_one(pool, i, error);
    return r < 0 ? r : wait_for_ends(pool);
}

static int run_worker_threads(struct bench_lap *lap)
{
    struct pool pool = { .method = lap->argument };
    struct det_error error = { .code = 0 };
    int r;

    r = det_tasks_open(NULL, &pool.tasks, &error);
    bench_lap_begin(lap);
    while (r == 0 && pool.count < lap->operations)
        r = run_round(&pool, &error);
    bench_lap_end(lap);
    lap->operations = pool.count;
    det_tasks_close(pool.tasks);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.text) : 0;
}

/* A function that fails, and is called again at once. */
struct failing {
    uint64_t calls, calls_max;
};

static int fails(struct det_task_context *context, void *argument)
{
    struct failing *failing = argument;

    (void)context;
    return ++failing->calls > failing->calls_max ? 0 : DET_ERR_IO;
}

static int run_restarts(struct bench_lap *lap)
{
    struct failing failing = { .calls_max = lap->operations };
    const struct det_task_spec spec = {
        .name = "task",
        .function = fails,
        .argument = &failing,
        .policy = { .restart = DET_RESTART_ON_FAILURE, .backoff = { .first = DET_NO_DELAY } },
    };
    struct det_waiter *waiter = NULL;
    struct det_tasks *tasks = NULL;
    struct det_error error = { .code = 0 };
    int r;

    r = det_tasks_open(NULL, &tasks, &error);
    bench_lap_begin(lap);
    if (r == 0)
        r = det_tasks_add(tasks, &spec, &waiter, NULL, &error);
    if (r == 0)
        r = det_waiter_wait(waiter, DET_NEVER, NULL);
    bench_lap_end(lap);
    det_waiter_close(waiter);
    det_tasks_close(tasks);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.text) : 0;
}

static int run_taskvisor(struct bench_lap *lap)
{
    char count[24];
    const char *words[] = { BENCH_TASKVISOR, lap->argument, count, NULL };

    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, words);
}

static const struct method life = { .size = 1 };
static const struct method lives = { .size = BATCH };
static const struct method cancels = { .size = 1, .is_cancelled = true };
static const struct method submits = { .size = BATCH, .slots = OPERATIONS, .is_unwatched = true };
static const struct method posts = {
    .size = BATCH, .slots = OPERATIONS, .is_unwatched = true, .is_posted = true
};
static const struct method slot = { .size = 1, .slots = 1 };
static const struct method slots = { .size = BATCH, .slots = SLOTS };
static const struct method function = { .size = 1, .is_function = true };

#define OURS(method, peer)                                 \
    BENCH_OURS, run_worker_threads, &(method), OPERATIONS, \
        .against = (peer), .goals = { { BENCH_AHEAD_OF, 0, peer } }
#define PEER(word) \
    BENCH_PEER, run_taskvisor, word, OPERATIONS, .against = "", .has_no_allocations = true

static const struct bench_case cases[] = {
    { "add, wait", OURS(life, PEER_LIFE) },
    { PEER_LIFE, PEER("life") },
    { "add, wait, 256 at a time", OURS(lives, PEER_LIVES) },
    { PEER_LIVES, PEER("lives") },
    { "add, cancel", OURS(cancels, PEER_CANCEL) },
    { PEER_CANCEL, PEER("cancel") },
    /* The peer returns when its queue has the submission, like a posted one; the answered one
     * returns with the answer of the slot. */
    { "submit, posted", OURS(posts, PEER_SUBMIT) },
    { "submit, answered", OURS(submits, PEER_SUBMIT) },
    { PEER_SUBMIT, PEER("submit") },
    { "submit, wait", OURS(slot, PEER_SLOT) },
    { PEER_SLOT, PEER("slot") },
    { "submit, wait, 256, 8 slots", OURS(slots, PEER_SLOTS) },
    { PEER_SLOTS, PEER("slots") },
    { "restart a function", BENCH_OURS, run_restarts, NULL, OPERATIONS, .against = PEER_RESTART,
      .goals = { { BENCH_AHEAD_OF, 0, PEER_RESTART } } },
    { PEER_RESTART, PEER("restart") },
    { "add a function, wait", BENCH_OURS, run_worker_threads, &function, OPERATIONS,
      .against = "" },
};

extern const struct bench bench_threads;
const struct bench bench_threads = {
    .title = "threads: tasks from another thread",
    .operation = "task",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
