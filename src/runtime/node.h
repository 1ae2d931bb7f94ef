/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* node.h - a runtime among others on the same store: its leases and locks, and who is a leader.
 *
 *     node -- leases: components on the runtime's loop, each with an alarm and a job for the pool
 *          -- sweepers: one per served machine of a shared store, each with the lease of a leader
 *          -- the pool: threads for the calls of leases, apart from the one that effects run on,
 *             so that no effect, however long it takes, keeps a heartbeat waiting
 *
 * Invariants
 *   1. Leases, sweepers and alarms are the loop's. What other threads touch stands under the mutex
 *      (the heap of alarms, what is told to whom) or is atomic (until when a lease is held).
 *   2. Each alarm has its place in the heap from the moment that its owner is opened, so that
 *      nothing on the loop can fail for memory.
 *   3. `kept` counts leases and sweepers that are not gone, and `calls` the threads in a call that
 *      may wait for a lock, from its beginning to its end; the node is closed when both are 0.
 *   4. No call of the store is made with the mutex held. */
#ifndef DET_RUNTIME_NODE_H
#define DET_RUNTIME_NODE_H

#include <stdatomic.h>

#include <detent/driver/loop.h>
#include <detent/lock.h>
#include <detent/supervise.h>

#include "base/heap.h"
#include "base/list.h"
#include "os/pool.h"
#include "runtime/runtime.h"

struct det_sweeper;

/* Something that the node's timer runs on the loop, at a monotonic time. */
struct det_alarm {
    struct det_heap_node node;
    det_loop_fn *run;
    void *argument;
};

struct det_node {
    struct det_runtime *runtime;
    struct det_mutex *mutex;
    struct det_condition *changed; /* a lock may be free, a callback has returned, it closes */
    uint64_t wakes;                /* how often a lock may have become free */
    uint32_t calls;
    struct det_list lock_waiters; /* in the order of asking; of all locks */
    bool is_closing;
    struct det_executor *executor;
    struct det_pool *pool; /* NULL: not needed yet */
    struct det_timer timer;
    struct det_heap alarms;
    size_t promised;
    struct det_list leases;   /* that have begun */
    struct det_list sweepers; /* the same */
    atomic_size_t kept;
    atomic_size_t opened;  /* of them, by users */
    struct det_lease *own; /* node/<owner>; NULL: the store is not shared */
    struct det_post wake;
    atomic_bool is_woken; /* `wake` is on its way */
};

/* How a lease is to be kept. */
struct det_lease_plan {
    const struct det_machine *machine; /* the lock of an instance; NULL: a lease by name */
    const char *name, *owner;
    det_time span, renewal;
    uint32_t jitter_percent;
    bool is_once; /* once it is lost it is not asked for again */
    void (*changed)(void *user, bool is_held, uint64_t token);
    void *user;
};

/* A grant, as the one who asked for it has it. */
struct det_grant {
    uint64_t token;
    uint64_t sequence; /* of the instance, for its lock */
    det_time until;    /* BOOT: the holder's own end of it */
};

/* node.c */
/* Before the loop runs. */
DET_MUST_CHECK int det_node_open(struct det_runtime *runtime, struct det_error *reterr);
/* Nobody begins to wait for a lock any more, and who waits is told so. */
void det_node_shut(struct det_runtime *runtime);
/* Around a call of a user that may wait for a lock: det_node_shut() waits until it has left. */
void det_node_enter(struct det_node *node);
void det_node_leave(struct det_node *node);
/* On the thread that turns the loop, which does not run any more. Sweepers first: then what effects
 * have done is recorded, and only then others may take over from this node. */
void det_node_stop_sweeping(struct det_runtime *runtime);
void det_node_close(struct det_runtime *runtime);
/* Before the machine can be found. */
DET_MUST_CHECK int det_node_serve(struct det_runtime *runtime, const struct det_machine *machine);
/* False while others may have taken over what is this node's: it fires no timer and runs no effect.
 * Any thread. */
bool det_node_may_act(const struct det_runtime *runtime);
/* On the loop: something that was another node's is ours. */
void det_node_adopted(struct det_node *node);
/* A lock may be free; any thread. */
void det_node_wake(struct det_node *node);
/* Threads for the calls of leases; any thread. */
DET_MUST_CHECK int det_node_need_pool(struct det_node *node);

void det_alarm_init(struct det_alarm *alarm, det_loop_fn *run, void *argument);
/* A place for it; any thread. */
DET_MUST_CHECK int det_alarm_promise(struct det_node *node);
void det_alarm_unpromise(struct det_node *node);
/* On the loop: runs it at that time, and not at the one that was set before; DET_NEVER: not. */
void det_alarm_set(struct det_node *node, struct det_alarm *alarm, det_time at);

/* An owner that nobody else is: this node, or what is given, and a random part, so that two
 * acquisitions of one process are two owners. `target` has DET_OWNER_MAX + 1 bytes. */
#define DET_OWNER_GIVEN_MAX (DET_OWNER_MAX - 17)
void det_node_owner(struct det_runtime *runtime, const char *given, char *target);
/* A span, more or less by up to so many percent. */
det_time det_node_vary(struct det_node *node, det_time span, uint32_t percent);

/* lease.c */
/* Not asked for yet: begin it, or discard it. The plan's texts are copied. */
DET_MUST_CHECK int det_lease_make(
    struct det_node *node, const struct det_lease_plan *plan, struct det_lease **ret);
void det_lease_discard(struct det_lease *lease);
/* From any thread: it is kept from now on. `grant` NULL: it is asked for. */
void det_lease_begin(struct det_lease *lease, const struct det_grant *grant);
/* From any thread: the store says, or somebody knows, that it is lost. */
void det_lease_lose(struct det_lease *lease);
/* As det_lease_close(), but the store is not told: it was. */
void det_lease_abandon(struct det_lease *lease);
/* On the loop: whoever had it may have given it up. */
void det_lease_hurry(struct det_lease *lease);
/* One call of the store, which blocks, on any thread. What an earlier call of unknown outcome got
 * is taken: who has it is this very owner. */
DET_MUST_CHECK int det_lease_call(
    struct det_runtime *runtime, const struct det_lease_plan *plan,
    const struct det_store_lease_change *change, struct det_store_lease *ret, det_time *ret_until);

/* lock.c: one send, after locks of others, and under a lock of its own where the runtime locks. */
struct det_send_lock {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    const char *instance;
    uint64_t fence;
    bool is_ours;  /* the fence is of a lock that was taken for this send */
    bool is_hasty; /* it waits for no lock */
    bool is_again; /* the first lock that was taken for it was lost */
    det_time until;
    char owner[DET_OWNER_MAX + 1];
};
/* Takes the lock, if the runtime locks and there is no fence yet. */
DET_MUST_CHECK int det_send_lock_enter(struct det_send_lock *lock, struct det_error *reterr);
/* After the send: gives the lock up. True to try it again: it was locked, and may not be now; or
 * the lock that was taken for it was lost, for the first time. */
bool det_send_lock_leave(struct det_send_lock *lock, int result, struct det_error *reterr);
/* The options with the defaults filled in; NULL: all of them. */
struct det_lock_options det_lock_filled(const struct det_lock_options *options);
DET_MUST_CHECK int det_lock_check(const struct det_lock_options *filled, struct det_error *reterr);

/* LOCKED: who has it, and until when. */
void det_lock_explain(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr);

/* lock_queue.c */
struct det_lock_waiter {
    struct det_list link;
    const struct det_machine *machine;
    const char *instance;
    struct det_condition *turn; /* NULL: not in the queue */
};
/* Waits until it is the first of those that want the same lock. DET_ERR_TIMEOUT at the deadline,
 * DET_ERR_CLOSED. Whoever entered leaves, also after an error. */
DET_MUST_CHECK int det_lock_queue_enter(
    struct det_node *node, struct det_lock_waiter *waiter, det_time deadline);
void det_lock_queue_leave(struct det_node *node, struct det_lock_waiter *waiter);
/* Mutex held: everybody looks whether it closes. */
void det_lock_queue_close(struct det_node *node);

/* send.c: det_runtime_send_all() under the fence of a lock; 0: none. */
struct det_send_all {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    const char *instance;
    const void *const *events;
    size_t count;
    uint64_t fence;
    bool is_hasty; /* it waits for no lock */
};
DET_MUST_CHECK int det_send_under(
    const struct det_send_all *send, const struct det_send_options *options, struct det_sent *ret);

/* sweeper.c */
DET_MUST_CHECK int det_sweeper_open(struct det_node *node, const struct det_machine *machine);
/* On the loop. */
void det_sweeper_stop(struct det_sweeper *sweeper);
void det_sweeper_wake(struct det_sweeper *sweeper);
struct det_sweeper *det_sweeper_of(struct det_list *node);
struct det_lease *det_lease_of(struct det_list *node);

#endif
