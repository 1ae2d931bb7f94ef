/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* resident.h - a resident: an instance in memory, with its timers and its effects under way.
 *
 *                    take: not in memory             found
 *        (absent) ---------------------> LOADING -----------> FREE
 *            ^                              |                 |  ^
 *            +------------------------------+           claim |  | release
 *                      not found                              v  |
 *                                                           CLAIMED
 *
 * Invariants, all under the shard's mutex:
 *   1. One writer: only the thread that claimed a resident, or that holds the shard's mutex while
 *      the resident is not claimed, decides, commits and publishes. A publish changes head, data,
 *      history, timers and lists under the mutex, so readers need no claim.
 *   2. A resident that is loading or starting is claimed. A stale one (its last commit has an
 *      unknown outcome) is loaded again before the next decision.
 *   3. Every armed timer and every pending effect is exactly one of: in the shard's heap; held
 *      (linked in `held`, which the release moves into the heap); in use by the loop or the pool. A
 *      timer in the heap may have been disarmed, or may be firing after a load put it there: both
 *      are ignored when their time comes. Each timer that was ever armed, and each such effect, has
 *      its place in the heap reserved (det_shard.promised). Those of another node (is_foreign) and
 *      dead ones are in none of these places.
 *   4. A state's own timer is armed for the current visit: its visit is the head's.
 *   5. A resident stays while it is claimed, stale or pinned: by an effect that runs or ends, and
 *      by a turn of the loop until its end is reported. Any other may be evicted (cache.c), except
 *      on a store that does not block, where residents stay until the runtime is closed. */
#ifndef DET_RUNTIME_RESIDENT_H
#define DET_RUNTIME_RESIDENT_H

#include <detent/driver/store.h>

#include "base/heap.h"
#include "base/list.h"
#include "os/pool.h"

struct det_resident;
struct det_served;

enum det_due_kind {
    DET_DUE_TIMER,
    DET_DUE_EFFECT_RUN,
};

/* Work for the loop at a wall time. */
struct det_due {
    struct det_heap_node node; /* in the heap of the resident's shard, or not */
    struct det_resident *resident;
    struct det_due *next_held;
    enum det_due_kind kind;
    bool is_held;
};

/*           arm            fire            disarm
 *     OFF <--------> WAITING ----> FIRING <--------> FIRED
 *      ^    disarm      ^   tell     |        arm      |
 *      |                +------------+      tell       |
 *      +-----------------------------------------------+ */
enum det_armed_state {
    DET_ARMED_OFF,
    DET_ARMED_WAITING,
    DET_ARMED_FIRING,
    DET_ARMED_FIRED,
};

/* A timer of an instance, armed or not. Arming and disarming keep its place in the heap unless that
 * is too late: most timers are moved often and never fire. The loop checks whether it is due when
 * its place comes up. */
struct det_armed {
    struct det_due due; /* its key is not later than `when` */
    uint64_t visit;
    det_time deadline;
    det_time next; /* as stored: the deadline, or later after a failed attempt */
    det_time when; /* `next`, or later after a failure of the store */
    void *value;   /* the event struct; NULL: its payload is zero */
    char *reason;  /* reason of the last failure; NULL: none */
    uint16_t timer, event;
    enum det_armed_state state;
    bool is_foreign;   /* another node fires it; usually not in the heap */
    bool is_dead;      /* a dead letter: does not fire; usually not in the heap */
    bool has_place;    /* its place in the heap is reserved for good */
    uint32_t attempts; /* number of failed attempts, as stored */
    uint32_t tries;    /* number of failures of the store since then */
    int last_error;
};

/*             commit, load
 *                  |
 *                  v    due            ran            accepted, or no product
 *               WAITING ----> RUNNING -----> ENDING ----------------------------> (gone)
 *                  ^                           |  |
 *                  +---------------------------+  +--> DEAD
 *                  |    failed; again later           |  the last attempt failed, or rejected
 *                  +--------------------------------+
 *                       retried manually */
enum det_effect_run_state {
    DET_EFFECT_RUN_WAITING,
    DET_EFFECT_RUN_RUNNING,
    DET_EFFECT_RUN_ENDING,
    DET_EFFECT_RUN_DEAD,
};

/* An effect under way. Its data, event, product and key follow the struct. */
struct det_effect_run {
    struct det_due due;
    struct det_list node;        /* in the resident's list */
    struct det_effect_run *next; /* next one to be submitted */
    struct det_job job;
    struct det_store_effect row;
    struct det_effect_call call;
    struct det_trace_context trace; /* copy of the row's, if it has one */
    enum det_effect_run_state state;
    _Atomic det_time began; /* wall time of the running attempt; 0: it waits for a thread */
    bool is_gone;           /* removed from the store; its current user frees it */
    bool is_suspected;      /* a dead process may have begun it; see orphaned_effect.c */
    bool is_spent;          /* not run again: its last attempt ended its process */
    bool is_put_off;        /* the attempt does not count: not recorded, or DET_EFFECT_POSTPONED */
    uint32_t doubted;       /* a postponed attempt that may be recorded; 0: none */
    int result;             /* of the last attempt */
    int answer;             /* return value of the effect function */
    uint32_t deliveries;    /* deliveries of the product that failed for a passing reason */
    char *failure_text;     /* reason given by the effect; NULL: none */
    char *reason;           /* that of the row */
    void *product;
    char *key;
    size_t size;
};

/* A deferred event. The event struct follows. */
struct det_kept {
    struct det_list node;
    uint64_t sequence;
    void *event;
};

/* Parts that only some instances have. */
struct det_resident_more {
    struct det_list effect_runs; /* oldest first */
    struct det_list kept;        /* deferred events, oldest first */
    size_t kept_count, open_count, dead_count;
    struct det_armed *timers; /* the machine's named timers, in their order, then that of deferred
                               * events; NULL: none yet */
    char reason[DET_REASON_MAX + 1];
};

/* The first cache line holds what every send reads and writes. */
struct det_resident {
    const char *id; /* follows the struct */
    struct det_store_instance *handle;
    struct det_store_head head;
    bool is_claimed, is_loading, is_stale;
    bool has_foreign; /* some timers or effects belong to another node */
    bool is_in_doubt; /* the reason for being stale: its last commit may have happened, and was not
                       * reported */
    uint64_t hash;    /* of the id */
    struct det_served *served;
    struct det_resident_more *more;
    det_time acted_at; /* time of its last event; 0: none since it was loaded */
    const void *owner; /* the thread that claimed it */
    uint32_t pins;     /* number of users that require it to stay, claimed or not */
    bool is_used;      /* since the ring last reached it; see cache.c */
    struct det_list ring;
    struct det_due *held;
    void *data;            /* follows the struct */
    uint16_t *history;     /* follows the struct: a ring, the n-th transition at (n - 1) % its
                            * size */
    struct det_armed *own; /* follows the struct: the state's own timer; NULL: the machine has
                            * none */
};

_Static_assert(offsetof(struct det_resident, is_claimed) == 64, "the head ends the first line");

static inline struct det_armed *det_armed_of(struct det_due *due)
{
    return DET_CONTAINER(due, struct det_armed, due);
}

static inline bool det_armed_is_set(const struct det_armed *armed)
{
    return armed->state == DET_ARMED_WAITING || armed->state == DET_ARMED_FIRING;
}

/* True if this node fires the timer. */
static inline bool det_armed_is_ours(const struct det_armed *armed)
{
    return det_armed_is_set(armed) && !armed->is_foreign && !armed->is_dead;
}

static inline struct det_effect_run *det_effect_run_of(struct det_due *due)
{
    return DET_CONTAINER(due, struct det_effect_run, due);
}

static inline size_t det_resident_kept(const struct det_resident *resident)
{
    return resident->more ? resident->more->kept_count : 0;
}

#endif
