/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads.c - one queue, one lock, and places for threads.
 *
 *               start_thread()              ..._give_up()               its job returns
 *     PLACE_FREE -----------> PLACE_MEMBER -------------> PLACE_HUNG ------------------+
 *         ^                                                                            v
 *         +--- joined, when the place is needed again ---------------------------- PLACE_ENDED
 *
 * Invariants
 *   1. Everything here changes under `mutex`; no lock is held while a job runs or its end is
 *      posted.
 *   2. A job is in the queue, or with one thread, or posted; once posted it is not accessed.
 *   3. There is at least one member, so every submitted job will run.
 *   4. members <= threads_max and hung <= hung_max; there are as many places as both together, so
 *      there is always one for a thread that may start.
 *   5. A member in `idle` waits, and is called by the thread that removes it from there. A member
 *      that neither waits there nor runs a job checks the queue before it does either, so as many
 *      jobs as there are such members need no further thread.
 *   6. A thread that has ended its place takes no lock afterwards, so it may be joined under
 *      `mutex`.
 *   7. Once `is_closing` is true no job starts and no thread does. */
#include <detent/driver/loop.h>

#include "worker/worker_threads.h"

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"

enum job_state {
    JOB_UNSUBMITTED, /* not submitted, or posted */
    JOB_QUEUED,
    JOB_RUNNING,
};

enum place_state {
    PLACE_FREE,
    PLACE_MEMBER,
    PLACE_HUNG,
    PLACE_ENDED,
};

struct det_thread_place {
    struct det_worker_threads *pool;
    enum place_state state;
    struct det_thread *thread;
    struct det_condition
        *woken; /* a member is idle, or a job waits; kept until the thread pool closes */
    struct det_worker_threads_job *job;
    bool is_idle;
    struct det_list node; /* of `idle` */
};

struct det_worker_threads {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_loop *loop;
    char *name;
    struct det_mutex *mutex;
    struct det_list queue;
    struct det_list idle; /* the last one in is called first: the others may sleep longer */
    unsigned queued, running, members, hung, idle_count;
    unsigned threads_max, hung_max;
    bool is_closing;
    bool is_held; /* more jobs will be submitted */
    size_t place_count;
    struct det_thread_place *places;
};

static struct det_worker_threads_job *job_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_worker_threads_job, node);
}

static void job_done(void *argument)
{
    struct det_worker_threads_job *job = argument;

    job->done(job->argument);
}

static void post_end(struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    job->post = (struct det_post){ .run = job_done, .argument = job };
    det_loop_post(pool->loop, &job->post);
}

/* Invariants 3 and 4, and the counts; under the mutex, after each change. */
static void assert_threads(const struct det_worker_threads *pool)
{
    det_assert(pool->members > 0 && pool->members <= pool->threads_max);
    det_assert(pool->hung <= pool->hung_max);
    det_assert(pool->running + pool->idle_count <= pool->members);
    det_assert(!pool->queued == det_list_is_empty(&pool->queue));
    det_assert(!pool->idle_count == det_list_is_empty(&pool->idle));
}

static void unqueue(struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    det_assert(job->state == JOB_QUEUED && pool->queued > 0);
    det_list_remove(&job->node);
    job->state = JOB_UNSUBMITTED;
    pool->queued--;
}

static bool may_work(const struct det_thread_place *place)
{
    return place->state == PLACE_MEMBER && !place->pool->is_closing;
}

static void unidle(struct det_thread_place *place)
{
    det_assert(place->is_idle && place->pool->idle_count > 0);
    place->is_idle = false;
    place->pool->idle_count--;
    det_list_remove(&place->node);
}

static void wait_for_call(struct det_thread_place *place)
{
    struct det_worker_threads *pool = place->pool;

    place->is_idle = true;
    pool->idle_count++;
    det_list_prepend(&pool->idle, &place->node);
    (void)det_condition_wait(pool->world, place->woken, pool->mutex, DET_NEVER);
    if (place->is_idle)
        unidle(place);
}

/* The next job of this thread; NULL: its thread must end. */
static struct det_worker_threads_job *take_job(struct det_thread_place *place)
{
    struct det_worker_threads *pool = place->pool;
    struct det_worker_threads_job *job = NULL;

    det_mutex_lock(pool->world, pool->mutex);
    while (may_work(place) && det_list_is_empty(&pool->queue))
        wait_for_call(place);
    if (may_work(place)) {
        job = job_of(pool->queue.next);
        unqueue(pool, job);
        job->state = JOB_RUNNING;
        job->place = place;
        place->job = job;
        pool->running++;
    }
    assert_threads(pool);
    det_mutex_unlock(pool->world, pool->mutex);
    return job;
}

/* From here on the job cannot be abandoned, so `is_late` is final. Returns whether the thread
 * continues: if not, a holder of the lock may join it at once. */
static bool end_job(struct det_thread_place *place, struct det_worker_threads_job *job)
{
    struct det_worker_threads *pool = place->pool;
    bool is_late;

    det_mutex_lock(pool->world, pool->mutex);
    det_assert(place->job == job && job->place == place && job->state == JOB_RUNNING);
    job->is_late = is_late = place->state == PLACE_HUNG;
    job->state = JOB_UNSUBMITTED;
    job->place = NULL;
    place->job = NULL;
    det_assert(is_late ? pool->hung > 0 : pool->running > 0);
    if (is_late) {
        place->state = PLACE_ENDED;
        pool->hung--;
    } else
        pool->running--;
    assert_threads(pool);
    det_mutex_unlock(pool->world, pool->mutex);
    post_end(pool, job);
    return !is_late;
}

static void run_job(struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    atomic_store(&job->started_at, det_world_now(pool->world, DET_CLOCK_MONOTONIC));
    atomic_store(&job->is_started, true);
    job->run(job->argument);
}

static void thread_main(void *argument)
{
    struct det_thread_place *place = argument;
    struct det_worker_threads_job *job;

    do {
        job = take_job(place);
        if (job)
            run_job(place->pool, job);
    } while (job && end_job(place, job));
}

/* A place for a new thread. Joins an abandoned thread that has ended. */
static struct det_thread_place *free_place(struct det_worker_threads *pool)
{
    for (size_t i = 0; i < pool->place_count; i++) {
        struct det_thread_place *place = &pool->places[i];

        if (place->state == PLACE_ENDED) {
            det_thread_join(pool->world, place->thread);
            place->thread = NULL;
            place->state = PLACE_FREE;
        }
        if (place->state == PLACE_FREE)
            return place;
    }
    return NULL;
}

static int start_thread(struct det_worker_threads *pool)
{
    struct det_thread_place *place = free_place(pool);
    int r = 0;

    det_assert(place && !pool->is_closing);
    if (!place->woken)
        r = det_condition_open(pool->world, &place->woken);
    if (r < 0)
        return r;
    place->pool = pool;
    place->state = PLACE_MEMBER;
    place->is_idle = false;
    r = det_thread_start(pool->world, pool->name, thread_main, place, &place->thread);
    if (r < 0) {
        place->state = PLACE_FREE;
        return r;
    }
    pool->members++;
    return 0;
}

static int open_parts(struct det_worker_threads *pool, const char *name)
{
    int r;

    pool->name = det_string_copy(pool->allocator, name);
    if (!pool->name)
        return DET_ERR_NO_MEMORY;
    pool->places = DET_NEW_ARRAY(pool->allocator, pool->place_count, struct det_thread_place);
    if (!pool->places)
        return DET_ERR_NO_MEMORY;
    r = det_mutex_open(pool->world, &pool->mutex);
    if (r < 0)
        return r;
    det_mutex_lock(pool->world, pool->mutex);
    r = start_thread(pool);
    det_mutex_unlock(pool->world, pool->mutex);
    return r;
}

int det_worker_threads_open(
    const struct det_allocator *allocator, struct det_loop *loop, const char *name,
    unsigned threads, unsigned hung_max, struct det_worker_threads **ret)
{
    struct det_worker_threads *pool;
    int r;

    det_assert(threads > 0 && loop);
    pool = DET_NEW(allocator, struct det_worker_threads);
    if (!pool)
        return DET_ERR_NO_MEMORY;
    pool->world = det_loop_world(loop);
    pool->allocator = allocator;
    pool->loop = loop;
    pool->threads_max = threads;
    pool->hung_max = hung_max;
    pool->place_count = (size_t)threads + hung_max;
    det_list_init(&pool->queue);
    det_list_init(&pool->idle);
    r = open_parts(pool, name);
    if (r < 0) {
        det_worker_threads_close(pool);
        return r;
    }
    *ret = pool;
    return 0;
}

/* After this no thread is left, and the queue needs no lock. */
static void stop_threads(struct det_worker_threads *pool)
{
    det_mutex_lock(pool->world, pool->mutex);
    pool->is_closing = true;
    for (size_t i = 0; i < pool->place_count; i++) {
        struct det_thread_place *place = &pool->places[i];

        if (place->job)
            atomic_store(&place->job->is_cancelled, true);
        if (place->woken)
            det_condition_signal(pool->world, place->woken);
    }
    det_mutex_unlock(pool->world, pool->mutex);
    for (size_t i = 0; i < pool->place_count; i++)
        if (pool->places[i].thread)
            det_thread_join(pool->world, pool->places[i].thread);
}

static void drop_queue(struct det_worker_threads *pool)
{
    while (!det_list_is_empty(&pool->queue)) {
        struct det_worker_threads_job *job = job_of(pool->queue.next);

        unqueue(pool, job);
        job->is_dropped = true;
        post_end(pool, job);
    }
}

void det_worker_threads_close(struct det_worker_threads *pool)
{
    if (!pool)
        return;
    if (pool->mutex)
        stop_threads(pool);
    drop_queue(pool);
    if (pool->places) {
        for (size_t i = 0; i < pool->place_count; i++)
            det_condition_close(pool->world, pool->places[i].woken);
        DET_DELETE_ARRAY(pool->allocator, pool->places, pool->place_count);
    }
    det_mutex_close(pool->world, pool->mutex);
    det_free_string(pool->allocator, pool->name);
    DET_DELETE(pool->allocator, pool);
}

/* A sleeping thread, to be woken without the lock, which it would only wait for; NULL: enough are
 * awake, or all are busy. */
static struct det_condition *wake_place(struct det_worker_threads *pool)
{
    unsigned awake = pool->members - pool->running - pool->idle_count;
    struct det_thread_place *place;

    if (pool->queued <= awake || pool->is_closing)
        return NULL;
    if (pool->idle_count > 0) {
        place = DET_CONTAINER(pool->idle.next, struct det_thread_place, node);
        unidle(place);
        return place->woken;
    }
    /* Without a new thread the existing ones run the job; the next submit tries again. */
    if (pool->members < pool->threads_max)
        (void)start_thread(pool);
    return NULL;
}

/* Jobs per awake thread before another one is woken: most jobs are short, and waking a thread costs
 * more than a job. */
#define HELD_MAX 64

static bool may_wait(const struct det_worker_threads *pool)
{
    return pool->is_held && pool->queued < HELD_MAX * (pool->members - pool->idle_count + 1);
}

void det_worker_threads_hold(struct det_worker_threads *pool)
{
    if (!pool)
        return;
    det_mutex_lock(pool->world, pool->mutex);
    pool->is_held = true;
    det_mutex_unlock(pool->world, pool->mutex);
}

void det_worker_threads_release(struct det_worker_threads *pool)
{
    struct det_condition *called;
    unsigned members;
    bool has_started;

    if (!pool)
        return;
    do {
        det_mutex_lock(pool->world, pool->mutex);
        pool->is_held = false;
        members = pool->members;
        called = wake_place(pool);
        has_started = pool->members != members;
        det_mutex_unlock(pool->world, pool->mutex);
        if (called)
            det_condition_signal(pool->world, called);
    } while (called || has_started);
}

void det_worker_threads_submit(struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    struct det_condition *called;

    det_assert(job->run && job->done);
    job->is_dropped = job->is_late = false;
    atomic_store_explicit(&job->is_started, false, memory_order_relaxed);
    atomic_store_explicit(&job->is_cancelled, false, memory_order_relaxed);
    det_mutex_lock(pool->world, pool->mutex);
    det_assert(job->state == JOB_UNSUBMITTED);
    job->state = JOB_QUEUED;
    job->place = NULL;
    det_list_append(&pool->queue, &job->node);
    pool->queued++;
    called = may_wait(pool) ? NULL : wake_place(pool);
    det_mutex_unlock(pool->world, pool->mutex);
    if (called)
        det_condition_signal(pool->world, called);
}

bool det_worker_threads_withdraw(
    struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    bool is_mine;

    det_mutex_lock(pool->world, pool->mutex);
    is_mine = job->state == JOB_QUEUED;
    if (is_mine)
        unqueue(pool, job);
    det_mutex_unlock(pool->world, pool->mutex);
    return is_mine;
}

void det_worker_threads_cancel(struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    det_mutex_lock(pool->world, pool->mutex);
    atomic_store(&job->is_cancelled, true);
    if (job->place)
        det_condition_signal(pool->world, job->place->woken);
    det_mutex_unlock(pool->world, pool->mutex);
}

static int replace_thread(struct det_worker_threads *pool, struct det_thread_place *place)
{
    int r;

    if (!place || place->state == PLACE_HUNG)
        return DET_ERR_NOT_FOUND;
    det_assert(place->state == PLACE_MEMBER && place->job);
    if (pool->hung >= pool->hung_max)
        return DET_ERR_LIMIT;
    r = start_thread(pool);
    if (r < 0)
        return r;
    place->state = PLACE_HUNG;
    pool->members--;
    pool->running--;
    pool->hung++;
    assert_threads(pool);
    return 0;
}

int det_worker_threads_abandon(struct det_worker_threads *pool, struct det_worker_threads_job *job)
{
    int r;

    det_mutex_lock(pool->world, pool->mutex);
    r = replace_thread(pool, job->place);
    det_mutex_unlock(pool->world, pool->mutex);
    return r;
}

int det_worker_threads_wait(
    struct det_worker_threads *pool, struct det_worker_threads_job *job, det_time deadline)
{
    bool is_cancelled;
    int r = 0;

    det_mutex_lock(pool->world, pool->mutex);
    det_assert(job->place && job->place->job == job);
    while (!atomic_load(&job->is_cancelled) && r != DET_ERR_TIMEOUT)
        r = det_condition_wait(pool->world, job->place->woken, pool->mutex, deadline);
    is_cancelled = atomic_load(&job->is_cancelled);
    det_mutex_unlock(pool->world, pool->mutex);
    return is_cancelled ? DET_ERR_CANCELLED : 0;
}

static unsigned read_count(
    struct det_worker_threads *pool, const unsigned *count, const unsigned *more)
{
    unsigned sum;

    det_mutex_lock(pool->world, pool->mutex);
    sum = *count + (more ? *more : 0);
    det_mutex_unlock(pool->world, pool->mutex);
    return sum;
}

unsigned det_worker_threads_queued(struct det_worker_threads *pool)
{
    return read_count(pool, &pool->queued, NULL);
}

unsigned det_worker_threads_running(struct det_worker_threads *pool)
{
    return read_count(pool, &pool->running, NULL);
}

unsigned det_worker_threads_hung(struct det_worker_threads *pool)
{
    return read_count(pool, &pool->hung, NULL);
}

unsigned det_worker_threads_count(struct det_worker_threads *pool)
{
    return read_count(pool, &pool->members, &pool->hung);
}
