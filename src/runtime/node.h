/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* node.h - a runtime among others on the same store: its leases, locks and leaders.
 *
 *     node -- leases: components on the runtime's loop, each with an alarm and a job for the pool
 *          -- sweepers: one per served machine of a shared store, each with the lease of a leader
 *          -- the pool: threads for the calls of leases, apart from the one that effects run on,
 *             so that a long effect delays no heartbeat
 *
 * Invariants
 *   1. Leases, sweepers and alarms belong to the loop. Data of other threads are under the mutex
 *      (the heap of alarms, callbacks in progress) or atomic (the end of a lease).
 *   2. Each alarm has its place in the heap from the moment that its owner is opened, so that
 *      nothing on the loop can fail for memory.
 *   3. `kept` counts live leases and sweepers, and `calls` counts the threads in a call that may
 *      wait for a lock; the node is closed when both are 0.
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

/* A function that the node's timer runs on the loop at a monotonic time. */
struct det_alarm {
    struct det_heap_node node;
    det_loop_fn *run;
    void *argument;
};

struct det_node {
    struct det_runtime *runtime;
    struct det_mutex *mutex;
    struct det_condition *changed; /* a lock may be free, a callback has returned, or the node
                                    * closes */
    uint64_t wakes;                /* number of possible releases of locks */
    uint32_t calls;
    struct det_list lock_waiters; /* in the order of requests; of all locks */
    bool is_closing;
    struct det_executor *executor;
    struct det_pool *pool; /* NULL: not needed yet */
    struct det_timer timer;
    struct det_heap alarms;
    size_t promised;
    struct det_list leases;   /* that have begun */
    struct det_list sweepers; /* that have begun */
    atomic_size_t kept;
    atomic_size_t opened;  /* number opened by users */
    struct det_lease *own; /* node/<owner>; NULL: the store is not shared */
    struct det_post wake;
    atomic_bool is_woken; /* `wake` is under way */
};

/* How to keep a lease. */
struct det_lease_plan {
    const struct det_machine *machine; /* for the lock of an instance; NULL: a lease by name */
    const char *name, *owner;
    det_time span, renewal;
    uint32_t jitter_percent;
    bool is_once; /* do not acquire it again after a loss */
    void (*changed)(void *user, bool is_held, uint64_t token);
    void *user;
};

/* A grant, for its requester. */
struct det_grant {
    uint64_t token;
    uint64_t sequence; /* sequence of the instance, for its lock */
    det_time until;    /* BOOT: the holder's own end of the lease */
};

/* node.c */
/* Before the loop runs. */
DET_MUST_CHECK int det_node_open(struct det_runtime *runtime, struct det_error *reterr);
/* Refuses new waiters for locks and ends the waiting ones. */
void det_node_refuse_calls(struct det_runtime *runtime);
/* Enclose a user's call that may wait for a lock: det_node_refuse_calls() waits for its end. */
void det_node_enter(struct det_node *node);
void det_node_leave(struct det_node *node);
/* On the thread that turns the loop, which is not running. Sweepers stop first: the ends of effects
 * are recorded before other nodes may take over. */
void det_node_stop_sweeping(struct det_runtime *runtime);
void det_node_close(struct det_runtime *runtime);
/* Call this before the machine can be found. */
DET_MUST_CHECK int det_node_serve(struct det_runtime *runtime, const struct det_machine *machine);
/* False while other nodes may have taken over this node's work: no timer fires and no effect runs.
 * Any thread. */
bool det_node_may_act(const struct det_runtime *runtime);
/* On the loop: work of another node belongs to this one now. */
void det_node_adopted(struct det_node *node);
/* A lock may be free: wakes its waiters. Any thread. */
void det_node_wake(struct det_node *node);
/* Starts the threads for the calls of leases. Any thread. */
DET_MUST_CHECK int det_node_need_pool(struct det_node *node);

void det_alarm_init(struct det_alarm *alarm, det_loop_fn *run, void *argument);
/* Reserves a place for an alarm. Any thread. */
DET_MUST_CHECK int det_alarm_promise(struct det_node *node);
void det_alarm_unpromise(struct det_node *node);
/* On the loop: runs the alarm at that time instead of the previous one; DET_NEVER: cancels it. */
void det_alarm_set(struct det_node *node, struct det_alarm *alarm, det_time at);

/* Makes a unique owner: this node or the given name, and a random part, so that two acquisitions of
 * one process differ. `target` has DET_OWNER_MAX + 1 bytes. */
#define DET_OWNER_GIVEN_MAX (DET_OWNER_MAX - 17)
void det_node_owner(struct det_runtime *runtime, const char *given, char *target);
/* Varies a span by up to this many percent. */
det_time det_node_vary(struct det_node *node, det_time span, uint32_t percent);

/* lease.c */
/* Creates an inactive lease: begin it, or discard it. The plan's texts are copied. */
DET_MUST_CHECK int det_lease_make(
    struct det_node *node, const struct det_lease_plan *plan, struct det_lease **ret);
void det_lease_discard(struct det_lease *lease);
/* Any thread: starts keeping the lease. `grant` NULL: acquires it. */
void det_lease_begin(struct det_lease *lease, const struct det_grant *grant);
/* Any thread: marks the lease as lost. */
void det_lease_lose(struct det_lease *lease);
/* Like det_lease_close(), without a release in the store, which has happened already. */
void det_lease_abandon(struct det_lease *lease);
/* On the loop: the holder may have released the lease. */
void det_lease_hurry(struct det_lease *lease);
/* One call of the store, which blocks, on any thread. A grant of an earlier call with unknown
 * outcome is accepted: its holder is this owner. */
DET_MUST_CHECK int det_lease_call(
    struct det_runtime *runtime, const struct det_lease_plan *plan,
    const struct det_store_lease_change *change, struct det_store_lease *ret, det_time *ret_until);

/* lock.c: one send that waits for locks of others, and takes its own lock if the runtime locks. */
struct det_send_lock {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    const char *instance;
    uint64_t fence;
    bool is_ours;  /* the fence belongs to a lock taken for this send */
    bool is_hasty; /* does not wait for locks */
    bool is_again; /* the first lock of this send was lost */
    det_time until;
    char owner[DET_OWNER_MAX + 1];
};
/* Acquires the lock, if the runtime locks and the send has no fence yet. */
DET_MUST_CHECK int det_send_lock_enter(struct det_send_lock *lock, struct det_error *reterr);
/* After the send: releases the lock. True: repeat the send, because the lock of another holder may
 * be free now, or the lock of this send was lost for the first time. */
bool det_send_lock_leave(struct det_send_lock *lock, int result, struct det_error *reterr);

/* For LOCKED: fills in the holder and the end of the lock. */
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
/* Waits to be the first of the waiters for the same lock. DET_ERR_TIMEOUT at the deadline,
 * DET_ERR_CLOSED. Leave after each enter, also after an error. */
DET_MUST_CHECK int det_lock_queue_enter(
    struct det_node *node, struct det_lock_waiter *waiter, det_time deadline);
void det_lock_queue_leave(struct det_node *node, struct det_lock_waiter *waiter);
/* Mutex held: wakes every waiter to check for closing. */
void det_lock_queue_close(struct det_node *node);

/* send.c: det_runtime_send_all() under the fence of a lock; 0: none. */
struct det_send_all {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    const char *instance;
    const void *const *events;
    size_t count;
    uint64_t fence;
    bool is_hasty; /* does not wait for locks */
};
DET_MUST_CHECK int det_send_under(
    const struct det_send_all *send, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr);

/* sweeper.c */
DET_MUST_CHECK int det_sweeper_open(struct det_node *node, const struct det_machine *machine);
/* On the loop. */
void det_sweeper_stop(struct det_sweeper *sweeper);
void det_sweeper_wake(struct det_sweeper *sweeper);
struct det_sweeper *det_sweeper_of(struct det_list *node);
struct det_lease *det_lease_of(struct det_list *node);

#endif
