/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pool.c - a pool whose number of threads only grows, one queue, one lock.
 *
 * Invariants
 *   1. The queue changes under `mutex`; no lock is held while a job runs or its completion is
 *      posted.
 *   2. A job is in the queue, or with one thread, or posted; once posted it is not touched.
 *   3. Once `is_closing` is true no job starts.
 *   4. While there are jobs in the queue and idle threads, a thread is being woken (`is_waking`),
 *      or the warm one is about to look. Each thread that takes a job and leaves others wakes the
 *      next thread, so a burst of short jobs does not wake all threads.
 *   5. The queue has at most as many jobs as threads are idle or starting, unless there are
 *      `threads_most` threads, or the system provides no more. */
#include <detent/driver/loop.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/loop_loan.h"
#include "os/os.h"
#include "os/pool.h"

struct det_pool {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_mutex *mutex;
    struct det_condition *submitted;
    struct det_job *first;
    struct det_job **last; /* link of the next job */
    unsigned queued;       /* number of jobs from `first` on */
    unsigned starting;     /* threads that have not looked for a job yet */
    unsigned idle;         /* threads that wait for a job, those being woken too */
    bool is_waking;        /* a signal was sent that no thread has handled yet */
    atomic_bool is_closing;
    _Atomic(const void *) warm; /* the thread that calls a `done` and will then look for a job */
    unsigned threads_most;      /* limit of its own growth */
    unsigned threads_capacity;
    unsigned threads_count;
    struct det_thread **threads;
};

static void job_done(void *argument)
{
    struct det_job *job = argument;

    job->done(job->argument);
}

static void finish_job(struct det_job *job, bool is_dropped)
{
    job->is_dropped = is_dropped;
    job->post = (struct det_post){ .run = job_done, .argument = job };
    det_loop_post(job->loop, &job->post);
}

/* Returns true if a job can start or the pool closes. */
static bool has_job(void *argument)
{
    struct det_pool *pool = argument;
    bool is_there;

    det_mutex_lock(pool->world, pool->mutex);
    is_there = pool->first || atomic_load(&pool->is_closing);
    det_mutex_unlock(pool->world, pool->mutex);
    return is_there;
}

/* Completes a job on this thread if the loop sleeps, and runs what follows from it, unless that is
 * a job for this thread. Earlier posts run first, as on the loop's own thread: the job may have
 * posted what its completion frees. The job is not touched afterwards. */
static bool finish_here(struct det_pool *pool, struct det_job *job)
{
    struct det_loop *loop = job->loop;
    bool has_next;

    if (!job->may_borrow || !det_loop_borrow(loop))
        return false;
    (void)det_loop_run_posts(loop);
    atomic_store_explicit(&pool->warm, det_thread_self(pool->world), memory_order_relaxed);
    job->done(job->argument);
    has_next = !atomic_exchange_explicit(&pool->warm, NULL, memory_order_relaxed);
    if (has_next)
        det_loop_return(loop);
    else
        det_loop_work_and_return(loop, has_job, pool);
    return true;
}

/* Under the mutex: returns true if the caller must signal. */
static bool wants_thread(struct det_pool *pool)
{
    if (!pool->first || pool->idle == 0 || pool->is_waking)
        return false;
    pool->is_waking = true;
    return true;
}

/* Returns the next job to start, or NULL when the pool closes. */
static struct det_job *take_job(struct det_pool *pool, bool is_starting)
{
    struct det_job *job = NULL;
    bool has_more = false;

    det_mutex_lock(pool->world, pool->mutex);
    pool->starting -= is_starting;
    while (!pool->first && !atomic_load(&pool->is_closing)) {
        pool->idle++;
        (void)det_condition_wait(pool->world, pool->submitted, pool->mutex, DET_NEVER);
        pool->idle--;
        pool->is_waking = false;
    }
    if (!atomic_load(&pool->is_closing)) {
        job = pool->first;
        pool->first = job->next;
        pool->queued--;
        if (!pool->first)
            pool->last = &pool->first;
        has_more = wants_thread(pool);
    }
    det_mutex_unlock(pool->world, pool->mutex);
    if (has_more)
        det_condition_signal(pool->world, pool->submitted);
    return job;
}

static void pool_main(void *argument)
{
    struct det_pool *pool = argument;
    struct det_job *job;

    for (bool is_starting = true; (job = take_job(pool, is_starting)); is_starting = false) {
        job->run(job->argument);
        if (!finish_here(pool, job))
            finish_job(job, false);
    }
}

/* Under the mutex; `threads` has room for another one. */
static int start_thread(struct det_pool *pool)
{
    int r;

    det_assert(pool->threads_count < pool->threads_capacity);
    r = det_thread_start(
        pool->world, "det-pool", pool_main, pool, &pool->threads[pool->threads_count]);
    if (r < 0)
        return r;
    pool->threads_count++;
    pool->starting++;
    return 0;
}

static int start_threads(struct det_pool *pool, unsigned threads)
{
    int r = 0;

    det_mutex_lock(pool->world, pool->mutex);
    while (r == 0 && pool->threads_count < threads)
        r = start_thread(pool);
    det_mutex_unlock(pool->world, pool->mutex);
    return r;
}

/* Under the mutex: establishes invariant 5. Returns false if a job waits for a thread. */
static bool provide_threads(struct det_pool *pool)
{
    while (pool->queued > pool->idle + pool->starting) {
        if (pool->threads_count >= pool->threads_most || atomic_load(&pool->is_closing) ||
            start_thread(pool) < 0)
            return false;
    }
    return true;
}

int det_pool_open(
    struct det_world *world, const struct det_allocator *allocator, unsigned threads,
    struct det_pool **ret)
{
    return det_pool_open_growing(world, allocator, threads, threads, ret);
}

int det_pool_open_growing(
    struct det_world *world, const struct det_allocator *allocator, unsigned threads, unsigned most,
    struct det_pool **ret)
{
    struct det_pool *pool;
    int r;

    det_assert(threads > 0 && threads <= most);
    pool = DET_NEW(allocator, struct det_pool);
    if (!pool)
        return DET_ERR_NO_MEMORY;
    pool->world = world = det_world_or_real(world);
    pool->allocator = allocator;
    pool->last = &pool->first;
    pool->threads_most = pool->threads_capacity = most;
    pool->threads = DET_NEW_ARRAY(allocator, most, struct det_thread *);
    r = pool->threads ? det_mutex_open(world, &pool->mutex) : DET_ERR_NO_MEMORY;
    if (r == 0)
        r = det_condition_open(world, &pool->submitted);
    if (r == 0)
        r = start_threads(pool, threads);
    if (r < 0) {
        det_pool_close(pool);
        return r;
    }
    *ret = pool;
    return 0;
}

/* Only the thread that grows or closes the pool accesses the list of threads. */
bool det_pool_grow(struct det_pool *pool, unsigned threads)
{
    struct det_thread **more;

    if (threads > pool->threads_capacity) {
        more = DET_NEW_ARRAY(pool->allocator, threads, struct det_thread *);
        if (!more)
            return false;
        memcpy(more, pool->threads, pool->threads_count * sizeof *more);
        DET_DELETE_ARRAY(pool->allocator, pool->threads, pool->threads_capacity);
        pool->threads = more;
        pool->threads_capacity = threads;
    }
    return start_threads(pool, threads) == 0;
}

/* Wakes all threads and joins them; afterwards only this thread uses the queue. */
static void stop_threads(struct det_pool *pool)
{
    det_mutex_lock(pool->world, pool->mutex);
    atomic_store(&pool->is_closing, true);
    det_condition_broadcast(pool->world, pool->submitted);
    det_mutex_unlock(pool->world, pool->mutex);
    for (unsigned i = 0; i < pool->threads_count; i++)
        det_thread_join(pool->world, pool->threads[i]);
}

void det_pool_close(struct det_pool *pool)
{
    if (!pool)
        return;
    if (pool->submitted)
        stop_threads(pool);
    for (struct det_job *job = pool->first, *next; job; job = next) {
        next = job->next;
        finish_job(job, true);
    }
    det_condition_close(pool->world, pool->submitted);
    det_mutex_close(pool->world, pool->mutex);
    if (pool->threads)
        DET_DELETE_ARRAY(pool->allocator, pool->threads, pool->threads_capacity);
    DET_DELETE(pool->allocator, pool);
}

bool det_pool_is_closing(const struct det_pool *pool)
{
    return atomic_load(&pool->is_closing);
}

/* Returns true if the calling thread will take the next job by itself. */
static bool is_warm(struct det_pool *pool)
{
    const void *warm = atomic_load_explicit(&pool->warm, memory_order_relaxed);

    if (!warm || warm != det_thread_self(pool->world))
        return false;
    atomic_store_explicit(&pool->warm, NULL, memory_order_relaxed);
    return true;
}

bool det_pool_submit(struct det_pool *pool, struct det_job *job)
{
    bool has_thread;

    det_assert(job->run && job->done && job->loop);
    job->next = NULL;
    det_mutex_lock(pool->world, pool->mutex);
    *pool->last = job;
    pool->last = &job->next;
    pool->queued++;
    if (!is_warm(pool) && wants_thread(pool))
        det_condition_signal(pool->world, pool->submitted);
    has_thread = provide_threads(pool);
    det_mutex_unlock(pool->world, pool->mutex);
    return has_thread;
}

bool det_pool_is_short(struct det_pool *pool, unsigned *ret_threads)
{
    bool is_short;

    det_mutex_lock(pool->world, pool->mutex);
    is_short = !provide_threads(pool);
    *ret_threads = pool->threads_count;
    det_mutex_unlock(pool->world, pool->mutex);
    return is_short;
}

void det_job_drop(struct det_job *job)
{
    det_assert(job->done && job->loop);
    finish_job(job, true);
}
