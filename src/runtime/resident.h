/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* resident.h - an instance in memory, its timers and its effects under way.
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
 *      nobody has claimed it, decides, commits and publishes. What a publish changes (head, data,
 *      history, timers, lists) it changes under the mutex, so that readers need no claim.
 *   2. A resident that is loading or starting is claimed. One that is stale (its last commit has an
 *      unknown outcome) is loaded again before anything is decided on it.
 *   3. Every armed timer and every effect that has not ended is exactly one of: in the shard's
 *      heap; held (linked in `held`, for the release to put it into the heap); in the hands of the
 *      loop or of the pool. A timer in the heap may have been disarmed, or be one that fires, which
 *      a load has put there: neither counts when its time comes. Each timer that was ever
 *      armed, and each such effect, has its place in the heap reserved (det_shard.promised).
 *      Those of another node (is_foreign) and dead ones are none of these: they are only known.
 *   4. A state's own timer is armed for the visit that lasts: its visit is the head's.
 *   5. A resident stays while it is claimed, stale or pinned: by an effect that runs or ends, and
 *      by a turn of the loop until its end was told. Any other may leave memory (cache.c), but on a
 *      store that does not block, where they stay until the runtime is closed. */
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

/* Something that the loop has to do at a wall time. */
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

/* A timer of an instance, armed or not. Arming and disarming leave it where it is in the heap, as
 * long as it is not too late there: most timers are moved often and fire never. When its turn comes
 * the loop sees whether it is due. */
struct det_armed {
    struct det_due due; /* its key is not later than `when` */
    uint64_t visit;
    det_time deadline;
    det_time next; /* as the store has it: the deadline, or later after an attempt that failed */
    det_time when; /* `next`, or later when the store failed */
    void *value;   /* the event struct; NULL: its payload is zero */
    char *reason;  /* what the last attempt said; NULL: nothing */
    uint16_t timer, event;
    enum det_armed_state state;
    bool is_foreign;   /* another node's, which fires it; it is not in the heap, or by chance */
    bool is_dead;      /* a dead letter: it does not fire; it is not in the heap, or by chance */
    bool has_place;    /* one is reserved for it in the heap, for good */
    uint32_t attempts; /* that failed, as the store has it */
    uint32_t tries;    /* that the store failed, since */
    int last_error;
};

/*             commit, load
 *                  |
 *                  v    due            ran            taken, or nothing to send
 *               WAITING ----> RUNNING -----> ENDING ----------------------------> (gone)
 *                  ^                           |  |
 *                  +---------------------------+  +--> DEAD
 *                  |    failed; again later           |  given up, or not taken
 *                  +--------------------------------+
 *                       retried by hand */
enum det_effect_run_state {
    DET_EFFECT_RUN_WAITING,
    DET_EFFECT_RUN_RUNNING,
    DET_EFFECT_RUN_ENDING,
    DET_EFFECT_RUN_DEAD,
};

/* An effect under way. Its data, event, product and key are behind it. */
struct det_effect_run {
    struct det_due due;
    struct det_list node;        /* in the resident's list */
    struct det_effect_run *next; /* to be submitted */
    struct det_job job;
    struct det_store_effect row;
    struct det_effect_call call;
    struct det_trace_context trace; /* that of the row, if it has one */
    enum det_effect_run_state state;
    _Atomic det_time began; /* wall; of the attempt that runs; 0: it waits for a thread */
    bool is_gone;           /* the store does not know it any more; who has it frees it */
    bool is_suspected;      /* a process that is gone may have begun it; see orphaned_effect.c */
    bool is_spent;          /* it is not run any more: its last attempt ended its process */
    bool is_put_off;        /* its attempt does not count: not recorded, or DET_EFFECT_POSTPONED */
    uint32_t doubted;       /* an attempt that was put off, but may be recorded; 0: none */
    int result;             /* of the last attempt */
    int answer;             /* what the effect itself returned then */
    uint32_t deliveries;    /* of the product that failed for a passing reason */
    char *said;             /* of that, by the effect; NULL: nothing */
    char *reason;           /* that of the row */
    void *product;
    char *key;
    size_t size;
};

/* An event that is kept for later. The event is behind it. */
struct det_kept {
    struct det_list node;
    uint64_t sequence;
    void *event;
};

/* What only some instances have. */
struct det_resident_more {
    struct det_list effect_runs; /* oldest first */
    struct det_list kept;        /* deferred events, oldest first */
    size_t kept_count, open_count, dead_count;
    struct det_armed *timers; /* the named ones, in the machine's order, and behind them that of
                                 deferred events; NULL: none yet */
    char reason[DET_REASON_MAX + 1];
};

/* Its first line of memory is what every send reads and writes. */
struct det_resident {
    const char *id; /* behind it */
    struct det_store_instance *handle;
    struct det_store_head head;
    bool is_claimed, is_loading, is_stale;
    bool has_foreign; /* some timers or effects are another node's */
    bool is_in_doubt; /* why it is stale: its last commit may have happened, and was not told */
    uint64_t hash;    /* of the id */
    struct det_served *served;
    struct det_resident_more *more;
    det_time acted_at; /* of its last event; 0: not since it was loaded */
    const void *owner; /* the thread that claimed it */
    uint32_t pins;     /* who needs it to stay, claimed or not */
    bool is_used;      /* since the ring last came round to it; see cache.c */
    struct det_list ring;
    struct det_due *held;
    void *data;            /* behind it */
    uint16_t *history;     /* behind it: a ring, the n-th transition at (n - 1) % its size */
    struct det_armed *own; /* behind it: the state's own timer; NULL: the machine has none */
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

/* Whether this node is to fire it. */
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
