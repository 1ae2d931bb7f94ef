/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pool.h - threads that run blocking user code, so that loops never block.
 *
 * A job runs on a thread of the pool; then its `done` runs on the given loop, as a posted message.
 * Jobs start in the order submitted. A pool has a fixed number of threads, or grows up to a limit
 * as jobs need threads; no thread ends before the pool closes.
 *
 * The `done` of a job with `may_borrow` may run on the thread of the pool, which has then borrowed
 * the loop (loop_loan.h): no thread switch, and a job submitted by `done` runs next on the same
 * thread. */
#ifndef DET_OS_POOL_H
#define DET_OS_POOL_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

struct det_pool;

/* Stays in the submitter's memory until `done` is called. */
struct det_job {
    void (*run)(void *argument);  /* on the pool */
    void (*done)(void *argument); /* on the loop */
    void *argument;
    struct det_loop *loop;
    bool may_borrow;
    bool is_dropped;      /* set by the pool before `done`: the pool closed and `run` did not run */
    struct det_job *next; /* the pool's */
    struct det_post post; /* the pool's */
};

DET_MUST_CHECK int det_pool_open(
    struct det_world *world, const struct det_allocator *allocator, unsigned threads,
    struct det_pool **ret);
/* Opens a pool that starts with `threads` and adds threads, up to `most`, when jobs would wait. */
DET_MUST_CHECK int det_pool_open_growing(
    struct det_world *world, const struct det_allocator *allocator, unsigned threads, unsigned most,
    struct det_pool **ret);
/* Starts threads until the pool has `threads` of them. Returns false if one could not be started;
 * the pool keeps the others. One caller at a time. Not for a growing pool. */
DET_MUST_CHECK bool det_pool_grow(struct det_pool *pool, unsigned threads);
/* Drops jobs that have not started: posts their `done` with `is_dropped` true. Waits for running
 * jobs. The `done` of either may run after the return. */
void det_pool_close(struct det_pool *pool);
/* For long jobs: returns true if they should end. Only while the pool is open, which it is for a
 * running job. */
bool det_pool_is_closing(const struct det_pool *pool);
/* Callable from any thread; never fails. A job submitted by a running job while the pool closes is
 * dropped too. Returns false if all threads are busy and a job must wait. */
bool det_pool_submit(struct det_pool *pool, struct det_job *job);
/* Returns true if jobs wait for a thread. Tries again to start threads that the system refused.
 * `ret_threads`: number of threads. */
bool det_pool_is_short(struct det_pool *pool, unsigned *ret_threads);
/* Drops a job as a closing pool does, for a job that was never submitted. */
void det_job_drop(struct det_job *job);

#endif
