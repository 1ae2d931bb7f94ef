/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pool.h - threads that run blocking user code, so that loops never block.
 *
 * A job runs on one of the pool's threads; when it is done its `done` runs on the loop that was
 * named, as a posted message. Jobs start in the order submitted. A pool has so many threads, or
 * grows by itself up to a limit, as jobs need threads; no thread ends before the pool closes.
 *
 * A job with `may_borrow` may have its `done` called by the thread of the pool, which has borrowed
 * the loop (loop_loan.h): no switch of threads, and what that submits next runs on the same
 * thread. */
#ifndef DET_OS_POOL_H
#define DET_OS_POOL_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

struct det_pool;

/* In the submitter's memory until `done` is called. */
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
/* A pool that starts with `threads`, and starts others when jobs would wait, up to `most`. */
DET_MUST_CHECK int det_pool_open_growing(
    struct det_world *world, const struct det_allocator *allocator, unsigned threads, unsigned most,
    struct det_pool **ret);
/* Starts threads until the pool has `threads` of them. False: one could not be started; the pool
 * keeps those it has. One caller at a time. Not for one that grows by itself. */
DET_MUST_CHECK bool det_pool_grow(struct det_pool *pool, unsigned threads);
/* Jobs that have not started are not run: their `done` is posted with `is_dropped` true. Waits for
 * running ones. The `done` of either may run after this has returned. */
void det_pool_close(struct det_pool *pool);
/* For jobs that take long: whether they should come to an end. Only while the pool is open, which
 * it is for a running job. */
bool det_pool_is_closing(const struct det_pool *pool);
/* From any thread; never fails. A job that is submitted by a running one while the pool closes is
 * dropped as well. False: all threads are in use, and a job has to wait for one. */
bool det_pool_submit(struct det_pool *pool, struct det_job *job);
/* Whether jobs wait for a thread now. Tries again to start those that the system did not provide.
 * `ret_threads`: how many there are. */
bool det_pool_is_short(struct det_pool *pool, unsigned *ret_threads);
/* What a pool that closes does with a job that has not started, for one that no pool has. */
void det_job_drop(struct det_job *job);

#endif
