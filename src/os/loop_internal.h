/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_internal.h - shared by loop.c and loop_loan.c. The invariants are in loop.c. */
#ifndef DET_OS_LOOP_INTERNAL_H
#define DET_OS_LOOP_INTERNAL_H

#include <stdatomic.h>

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "base/heap.h"
#include "os/loop_loan.h"
#include "os/os.h"

#define DET_LOOP_EVENTS_MAX 32

enum loop_state {
    LOOP_IDLE,
    LOOP_RUNNING,
};

enum loop_tenure {
    TENURE_OWNED,
    TENURE_PARKED,
    TENURE_LENT,
    TENURE_WANTED,
};

struct det_loop {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_poller *poller;
    struct det_heap timers;      /* by monotonic deadline */
    struct det_heap wall_timers; /* by wall deadline */
    det_time now;
    bool is_turning; /* a callback may be running, which must not turn the loop */

    _Atomic(struct det_post *) posts;
    atomic_bool wake_wanted;
    atomic_bool stop_wanted;
    _Atomic(const void *)
        owner; /* the thread that runs it, or last turned or claimed it; NULL: none */

    struct det_mutex *mutex;
    struct det_condition *changed;
    _Atomic(enum loop_state) state; /* changed under the mutex */
    struct det_thread *thread;      /* of det_loop_start(), until it is joined */

    bool is_lendable;
    det_time nap;
    _Atomic(enum loop_tenure) tenure;
    const void *sleeper;                     /* the owner, while the loop is lent */
    int64_t parked_timer, parked_wall_timer; /* the earliest timers when the owner went to sleep */
    det_time parked_until;                   /* the owner wakes by itself, or was woken */
    bool has_unwatched;    /* a borrower unwatched descriptors: events of the poller may be stale */
    bool was_lent;         /* since its last wait */
    atomic_bool is_urgent; /* another thread than the borrower posted during the loan */

    unsigned watches;
    struct det_poll_event
        events[DET_LOOP_EVENTS_MAX]; /* of this turn; a tag is NULL once unwatched */
    int events_count;
};

static inline bool det_loop_has_posts(const struct det_loop *loop)
{
    return atomic_load(&loop->posts) != NULL;
}

/* Runs due timers; returns how many. */
int det_loop_run_timers(struct det_loop *loop);
/* Waits with the loop available to borrowers. Events of descriptors that a borrower has unwatched
 * are stale; all events are reported again, as the descriptors stay ready. */
int det_loop_wait_parked(struct det_loop *loop, det_time deadline);

#endif
