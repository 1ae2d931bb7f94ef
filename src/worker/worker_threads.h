/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads.h - threads that run blocking user code, and can do without one that does not come
 * back.
 *
 *                       +--------------- ..._withdraw() --> not submitted
 *     submit --> queued --thread takes it--> running --run() returns--> done()
 *                   |                           |                         ^
 *                   |                           +-- ..._give_up() --> hung --run() returns
 *                   +-- ..._close(): is_dropped --------------------------^    is_late
 *
 * A job runs on one of the threads; when it is done its `done` runs on the loop, as a posted
 * message. Jobs start in the order submitted. The first thread is started when the pool is opened,
 * the others when a job finds nobody free; none ends before the pool is closed but one that was
 * given up.
 *
 * Generations: the job itself is the generation. Its memory is its own from submit to `done`, so
 * what takes the place of one that was given up is another job, with another argument; what a late
 * run() writes is written to its own argument, and its `done` says `is_late`. The thread belongs to
 * that job alone from the give-up on, and takes no other. So nothing is shared that a late one
 * could write into, as long as whoever submits gives every job memory of its own for what it
 * produces, takes it over in `done`, and throws it away when `is_late` is true. */
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

    /* For whoever looks, at any time. Timeouts count from `started_at`, not from the submit. */
    atomic_bool is_started;       /* once true, `started_at` is there */
    _Atomic(det_time) started_at; /* monotonic */
    atomic_bool is_cancelled;     /* for run(), which is asked to end */

    /* For `done`. */
    bool is_dropped; /* the thread pool was closed and run() did not run */
    bool is_late;    /* it was given up before it came back */

    /* The thread pool's. */
    uint8_t state;
    struct det_thread_place *place;
    struct det_list node;
    struct det_post post;
};

/* In the world of the loop. At most `threads` (> 0) at once, and at most `hung_max` more that were
 * given up. Both are only numbers here: a thread costs something when it starts. `name` is that of
 * the threads. */
DET_MUST_CHECK int det_worker_threads_open(
    const struct det_allocator *allocator, struct det_loop *loop, const char *name,
    unsigned threads, unsigned hung_max, struct det_worker_threads **ret);
/* Cancels what runs and waits for it, also for what was given up: a thread cannot be taken away
 * from code that runs. Jobs that have not started are not run: their `done` is posted with
 * `is_dropped` true. Any `done` may run after this has returned, so the loop is closed later. Not
 * from a job. Takes NULL. */
void det_worker_threads_close(struct det_worker_threads *pool);

/* From any thread, also from a job; never waits for a job, never fails, takes any number. When no
 * further thread can be started those that are there do it. Submitted while the thread pool closes
 * it is dropped. */
void det_worker_threads_submit(struct det_worker_threads *pool, struct det_worker_threads_job *job);
/* Many jobs are about to be submitted: from now on threads sleep until
 * det_worker_threads_release(), or until very many jobs wait. Both take NULL. */
void det_worker_threads_hold(struct det_worker_threads *pool);
void det_worker_threads_release(struct det_worker_threads *pool);
/* Takes back one that has not started: true, and its `done` will not run. False: it runs, or has
 * run, or was never submitted. */
bool det_worker_threads_withdraw(
    struct det_worker_threads *pool, struct det_worker_threads_job *job);
/* Asks it to end, and wakes it if it waits in det_worker_threads_wait(). Does not wait. One that
 * has not started yet starts all the same and finds itself cancelled; withdraw it first. */
void det_worker_threads_cancel(struct det_worker_threads *pool, struct det_worker_threads_job *job);
/* On the loop. The thread of a job that does not end is replaced by a new one and ends when the job
 * comes back; its `done` runs then, or when the thread pool is closed, with `is_late` true. It is
 * not cancelled by this.
 *   DET_ERR_LIMIT      so many as may be are given up already
 *   DET_ERR_NOT_FOUND  it does not run: it has not started, was given up before, or its `done` is
 *                      on its way
 *   another            no thread could be started, DET_ERR_NO_MEMORY for one
 * After an error nothing has changed, and it may be asked again later. */
DET_MUST_CHECK int det_worker_threads_give_up(
    struct det_worker_threads *pool, struct det_worker_threads_job *job);

/* In run(), on its thread: blocks until the monotonic deadline (0), or until the job is cancelled
 * (DET_ERR_CANCELLED; it comes first when both are true). */
DET_MUST_CHECK int det_worker_threads_wait(
    struct det_worker_threads *pool, struct det_worker_threads_job *job, det_time deadline);

/* How many there are now; from any thread. */
unsigned det_worker_threads_queued(
    struct det_worker_threads *pool); /* jobs that have not started */
unsigned det_worker_threads_running(
    struct det_worker_threads *pool); /* jobs that run, without those given up */
unsigned det_worker_threads_hung(
    struct det_worker_threads *pool); /* jobs that were given up and still run */
unsigned det_worker_threads_count(
    struct det_worker_threads *pool); /* idle, running and hung ones */

#endif
