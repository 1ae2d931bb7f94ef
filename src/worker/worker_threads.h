/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads.h - threads that run blocking user code; a thread that does not return is
 * replaced.
 *
 *                       +--------------- ..._withdraw() --> not submitted
 *     submit --> queued --thread takes it--> running --run() returns--> done()
 *                   |                           |                         ^
 *                   |                           +-- ..._give_up() --> hung --run() returns
 *                   +-- ..._close(): is_dropped --------------------------^    is_late
 *
 * A job runs on one of the threads; afterwards its `done` runs on the loop, as a posted message.
 * Jobs start in the order submitted. The first thread is started when the pool is opened, the
 * others when a job finds no free one; a thread ends before the pool is closed only if it was given
 * up.
 *
 * The job itself is the generation. Its memory belongs to it from submit to `done`, so the
 * replacement of an abandoned job is another job with another argument; a late run() writes to its
 * own argument, and its `done` has `is_late` set. After that the thread belongs to that job alone,
 * and runs no other. So a late job cannot write to shared memory, provided that the submitter gives
 * every job its own memory for results, copies them in `done`, and drops them when `is_late` is
 * true. */
#ifndef DET_WORKER_THREADS_H
#define DET_WORKER_THREADS_H

#include <stdatomic.h>

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "base/list.h"

struct det_worker_threads;
struct det_thread_place;

/* In the submitter's memory until `done` is called. Zero it, set the first three. */
struct det_worker_threads_job {
    void (*run)(void *argument);  /* on a thread of the thread pool */
    void (*done)(void *argument); /* on the loop, once */
    void *argument;

    /* Readable at any time. Timeouts count from `started_at`, not from the submit. */
    atomic_bool is_started;       /* once true, `started_at` is valid */
    _Atomic(det_time) started_at; /* monotonic */
    atomic_bool is_cancelled;     /* for run(), which must end then */

    /* For `done`. */
    bool is_dropped; /* the thread pool was closed and run() did not run */
    bool is_late;    /* it was abandoned before it returned */

    /* Private to the thread pool. */
    uint8_t state;
    struct det_thread_place *place;
    struct det_list node;
    struct det_post post;
};

/* In the world of the loop. At most `threads` (> 0) at once, and at most `hung_max` more that were
 * abandoned. These are only limits: threads are started on demand. Threads get `name`. */
DET_MUST_CHECK int det_worker_threads_open(
    const struct det_allocator *allocator, struct det_loop *loop, const char *name,
    unsigned threads, unsigned hung_max, struct det_worker_threads **ret);
/* Cancels running jobs and waits for them, including abandoned ones: a thread cannot be stopped by
 * force. Jobs that have not started are dropped: their `done` is posted with `is_dropped` true. Any
 * `done` may run after this has returned, so close the loop later. Not from a job. Accepts NULL. */
void det_worker_threads_close(struct det_worker_threads *pool);

/* Any thread, also from a job; never waits for a job, never fails, has no limit. If no further
 * thread can be started, the existing ones run the job. A job submitted while the thread pool
 * closes is dropped. */
void det_worker_threads_submit(struct det_worker_threads *pool, struct det_worker_threads_job *job);
/* Many jobs are about to be submitted: threads sleep until det_worker_threads_release(), or until
 * very many jobs wait. Both accept NULL. */
void det_worker_threads_hold(struct det_worker_threads *pool);
void det_worker_threads_release(struct det_worker_threads *pool);
/* Takes back a job that has not started: true, and its `done` will not run. False: it runs, has
 * run, or was never submitted. */
bool det_worker_threads_withdraw(
    struct det_worker_threads *pool, struct det_worker_threads_job *job);
/* Cancels the job, and wakes it in det_worker_threads_wait(). Does not wait. A job that has not
 * started yet still starts and finds itself cancelled; withdraw it first. */
void det_worker_threads_cancel(struct det_worker_threads *pool, struct det_worker_threads_job *job);
/* On the loop. Replaces the thread of a job that does not end; the old thread ends when the job
 * returns; its `done` runs then, or when the thread pool is closed, with `is_late` true. This does
 * not cancel the job.
 *   DET_ERR_LIMIT      the limit of abandoned jobs is reached
 *   DET_ERR_NOT_FOUND  it does not run: it has not started, was abandoned before, or its `done` is
 *                      under way
 *   another            no thread could be started, for example DET_ERR_NO_MEMORY
 * After an error nothing has changed, and the call may be repeated later. */
DET_MUST_CHECK int det_worker_threads_abandon(
    struct det_worker_threads *pool, struct det_worker_threads_job *job);

/* In run(), on its thread: blocks until the monotonic deadline (0), or until the job is cancelled
 * (DET_ERR_CANCELLED, which wins if both are true). */
DET_MUST_CHECK int det_worker_threads_wait(
    struct det_worker_threads *pool, struct det_worker_threads_job *job, det_time deadline);

/* Current numbers; any thread. */
unsigned det_worker_threads_queued(
    struct det_worker_threads *pool); /* jobs that have not started */
unsigned det_worker_threads_running(
    struct det_worker_threads *pool); /* jobs that run, without abandoned ones */
unsigned det_worker_threads_hung(
    struct det_worker_threads *pool); /* abandoned jobs that still run */
unsigned det_worker_threads_count(
    struct det_worker_threads *pool); /* idle, running and hung ones */

#endif
