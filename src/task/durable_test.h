/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_test.h - processes in the simulator on one shared store, each with a durable queue, for
 * its suites: they die, are cut off, pause and come back. A ledger sees every piece of work begin
 * and end, and fails the test when one is done twice at the same time, or more at once than the
 * queue has places, or in another order than they were submitted. */
#ifndef DET_TASK_DURABLE_TEST_H
#define DET_TASK_DURABLE_TEST_H

#include "lib/shared_store.h"
#include "lib/test.h"

#include <detent/durable.h>

#include "os/os.h"
#include "store/store.h"

#define JOBS_MAX    64
#define PROCESS_MAX 3
#define LEASE       (12 * DET_SECOND)

struct ledger {
    unsigned begun[JOBS_MAX], done[JOBS_MAX], now[JOBS_MAX], attempt[JOBS_MAX];
    unsigned running, peak, width;
    int last; /* that was begun */
    bool is_ordered;
    det_time takes; /* a piece of work */
    unsigned fails; /* the first so many of each fail */
};

/* A process: a node of the store, its tasks, its queue. */
struct process {
    struct det_store *store;
    struct det_tasks *tasks;
    struct det_durable *durable;
};

struct world {
    struct det_sim *sim;
    struct det_world *world;
    struct det_shared *shared;
    struct process processes[PROCESS_MAX];
    const struct det_durable_schedule *schedules;
    size_t schedule_count;
    bool is_made;                          /* the work is prepared for each job */
    det_time kept;                         /* 0: as long as it is usual */
    det_time lease;                        /* 0: LEASE */
    void (*wrap)(struct det_store *store); /* NULL: it is as it is */
    struct ledger ledger;
};

/* The works know the ledger through this: functions of tasks have one argument, the job. */
static struct ledger *ledger_of_all;

static inline int number_of(const struct det_durable_job *job)
{
    char *end;
    long number;

    assert_memory_equal(job->id, "job-", 4);
    number = strtol(job->id + 4, &end, 10);
    assert_ptr_not_equal(end, job->id + 4);
    assert_in_range(number, 0, JOBS_MAX - 1);
    return (int)number;
}

static inline int work(struct det_task_context *context, void *argument)
{
    const struct det_durable_job *job = argument;
    struct det_world *world = det_task_world(context);
    struct ledger *ledger = ledger_of_all;
    int number = number_of(job), r;

    assert_int_equal(ledger->now[number], 0);
    assert_true(job->attempt > ledger->attempt[number]);
    assert_true(!ledger->is_ordered || number >= ledger->last);
    ledger->attempt[number] = job->attempt;
    ledger->last = number;
    ledger->now[number]++;
    ledger->begun[number]++;
    ledger->running++;
    if (ledger->running > ledger->peak)
        ledger->peak = ledger->running;
    assert_true(ledger->running <= ledger->width);
    r = det_task_wait(context, det_world_now(world, DET_CLOCK_MONOTONIC) + ledger->takes);
    ledger->running--;
    ledger->now[number]--;
    if (r < 0)
        return r;
    if (ledger->begun[number] <= ledger->fails)
        return det_task_fatal(context, DET_ERR_IO, "not this time");
    ledger->done[number]++;
    return 0;
}

static const struct det_task_spec spec = { .function = work };
static const struct det_durable_work works[] = { { .name = "work", .spec = &spec } };

/* A work whose spec is made for each job; the body "bad" is refused. */
static unsigned finished;

static inline int prepare(
    void *user, const struct det_durable_job *job, struct det_task_spec *made, void **ret_handle,
    struct det_error *reterr)
{
    assert_ptr_equal(user, &finished);
    if (job->size == 3 && memcmp(job->body, "bad", 3) == 0)
        return det_error_set(reterr, DET_ERR_MALFORMED, "that is no work");
    made->function = work;
    *ret_handle = user;
    return 0;
}

static inline void finish(void *user, void *handle)
{
    assert_ptr_equal(user, handle);
    finished++;
}

static const struct det_task_spec empty;
static const struct det_durable_work made_works[] = {
    { .name = "work", .spec = &empty, .prepare = prepare, .finish = finish, .user = &finished }
};

static inline void start(struct world *world, unsigned number)
{
    struct process *process = &world->processes[number];
    struct det_error error = { 0 };

    process->store = det_shared_node(world->shared);
    if (world->wrap)
        world->wrap(process->store);
    assert_int_equal(
        det_tasks_open(
            &(struct det_tasks_options){ .world = world->world }, &process->tasks, &error),
        0);
    if (det_durable_open(
            &(struct det_durable_options){ .tasks = process->tasks,
                                           .store = process->store,
                                           .queue = "q",
                                           .width = world->ledger.width,
                                           .works = world->is_made ? made_works : works,
                                           .work_count = 1,
                                           .schedules = world->schedules,
                                           .schedule_count = world->schedule_count,
                                           .lease = world->lease ? world->lease : LEASE,
                                           .kept = world->kept },
            &process->durable, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void stop(struct world *world, unsigned number)
{
    struct process *process = &world->processes[number];

    det_durable_close(process->durable);
    det_tasks_close(process->tasks);
    det_store_close(process->store);
    *process = (struct process){ 0 };
}

static inline void open_world(struct world *world, uint64_t seed, unsigned width)
{
    *world = (struct world){ .ledger = { .width = width, .takes = DET_SECOND } };
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &world->sim, NULL), 0);
    world->world = det_sim_world(world->sim);
    world->shared = det_shared_open(world->sim, world->world);
    ledger_of_all = &world->ledger;
}

static inline void close_world(struct world *world)
{
    for (unsigned i = 0; i < PROCESS_MAX; i++) {
        if (world->processes[i].durable)
            stop(world, i);
    }
    det_shared_close(world->shared);
    det_sim_close(world->sim);
}

static inline void pass(struct world *world, det_time span)
{
    assert_int_equal(det_sim_advance(world->sim, span), 0);
}

static inline int submit_to(struct process *process, int number, det_time run_at)
{
    char id[16];

    snprintf(id, sizeof id, "job-%d", number);
    return det_durable_submit(
        process->durable,
        &(struct det_durable_submission){
            .id = id, .work = "work", .body = "x", .size = 1, .run_at = run_at },
        NULL, NULL);
}

/* With one process, and job-0, which takes it an hour. */
static inline void open_at_work(struct world *world, uint64_t seed)
{
    open_world(world, seed, 1);
    world->ledger.takes = DET_HOUR;
    start(world, 0);
    assert_int_equal(submit_to(&world->processes[0], 0, 0), 0);
}

/* The contents of a row of the store. */
struct found {
    const char *id;
    struct det_job_row row;
    char reason[DET_REASON_MAX + 1];
    unsigned count;
};

static inline int find_one(void *context, const struct det_job_row *row)
{
    struct found *found = context;

    if (found->id && strcmp(row->id, found->id) != 0)
        return 0;
    found->count++;
    found->row = *row;
    snprintf(found->reason, sizeof found->reason, "%s", row->reason);
    return 0;
}

static inline struct found find(struct world *world, const char *id)
{
    struct det_store *store = det_shared_node(world->shared);
    struct found found = { .id = id };

    assert_int_equal(
        store->ops->jobs->list(store, &(struct det_job_query){ .limit = 1000 }, find_one, &found),
        0);
    det_store_close(store);
    return found;
}

#endif
