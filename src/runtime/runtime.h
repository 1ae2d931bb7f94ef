/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime.h - the runtime's parts: shards and served machines, with their locking rules.
 *
 *     runtime -- shards [by the hash of the id] -- mutex, heap of due work, drafts
 *             -- served machines [by pointer]   -- a map of residents per shard
 *             -- loop: executes due work, ends effects; pool: runs effects
 *
 * Invariants
 *   1. The lock of a shard protects its heap, its drafts, its counts, and the residents in its
 *      maps. No two shards are locked at once, and no user code runs under a lock.
 *   2. Served machines are only added, each with all its fields set, until the runtime is closed:
 *      finding one needs no lock.
 *   3. `next_pass` is the wall time of the loop's next pass over the heaps. A thread that adds
 *      earlier work to a heap kicks the loop. Before a pass the loop sets next_pass to DET_NEVER,
 *      so that work added during the pass kicks it, too.
 *   4. `promised` of a shard is the number of reserved places in its heap, which is at least the
 *      number of items that can be in it; the heap has room for them. */
#ifndef DET_RUNTIME_RUNTIME_H
#define DET_RUNTIME_RUNTIME_H

#include <limits.h>
#include <stdatomic.h>

#include <detent/driver/loop.h>
#include <detent/runtime.h>

#include "os/os.h"
#include "runtime/index.h"
#include "runtime/resident.h"
#include "store/store.h"

#define DET_SERVED_BUCKETS 64
/* Delay before loading an instance again after a failure. */
#define DET_CHECK_SPAN DET_SECOND

/* Number of remembered instances whose loss was reported. */
#define DET_LOST_KEPT 64

/* From this length on a deadline of hooks uses the coarse clock. */
#define DET_TICK_SPAN DET_SECOND

struct det_batch;
struct det_draft;
struct det_writers;
struct det_node;

struct det_shard {
    struct det_mutex *mutex;
    struct det_condition *changed; /* a claim was released */
    struct det_heap due;
    size_t promised;
    struct det_draft *drafts; /* free ones */
    struct det_list ring;     /* residents, in the order of eviction */
    uint32_t waiters;
    uint32_t calls; /* calls under way: claims and waiters */
    uint32_t stale; /* number of residents to load again */
    bool is_closing;
    struct det_runtime_counts counts;
    char unused[64]; /* keeps two shards in different cache lines */
};

/* The path of a single-event send, by cell of the machine's table; see quick.h. */
enum det_send_path {
    DET_SEND_PATH_TURN,  /* with effects, named timers, ...: a turn */
    DET_SEND_PATH_PLAIN, /* no user code: one lock section */
    DET_SEND_PATH_CODE,  /* guards, hooks, new data: two lock sections and a claim between them */
};

/* A machine and its instances in memory. */
struct det_served {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    struct det_served *next;            /* next in its bucket */
    const struct det_record **payloads; /* per event; NULL: every value is valid */
    const struct det_record *data;      /* NULL: every value is valid */
    uint8_t *send_paths;                /* enum det_send_path, per cell */
    atomic_uint *running;               /* per effect: attempts with a thread */
    size_t data_size;                   /* of the struct, also of the empty one */
    size_t own_offset, history_offset, data_offset, id_offset; /* offsets in a resident */
    struct det_index *residents;                               /* per shard */
    struct det_recovery {
        char *ids;                     /* the listing, one row after the other, see recover.c */
        size_t size, capacity, loaded; /* bytes; rows before `loaded` are done */
        bool is_listed;
        size_t limit;                 /* of the next listing; 0: the default */
        uint64_t lost[DET_LOST_KEPT]; /* hashes of ids that could not be loaded and were reported */
        size_t lost_count;
    } recovery;
    _Atomic det_time store_next; /* when to list due work of the store; see recover.c */
    atomic_bool is_ready;        /* fully initialized */
};

struct det_runtime {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_store *store;
    const struct det_store_ops *ops;
    struct det_runtime_options options; /* with defaults filled in */
    bool is_quick; /* the store does not block, and neither observers nor a snapshot policy exist */
    bool is_loop_ours;
    enum det_clock hook_clock; /* for the deadline of guards and hooks */

    uint64_t instances_max; /* limit per shard */

    struct det_shard *shards;
    uint32_t shard_mask;
    uint64_t seed;
    _Atomic(struct det_served *) served[DET_SERVED_BUCKETS];
    struct det_mutex *mutex; /* protects adding a machine */

    struct det_loop *loop;
    _Atomic(struct det_pool *) pool; /* NULL: closing, no new effects */
    struct det_timer look;           /* on the loop */
    struct det_post kick;
    atomic_bool is_kicked;
    _Atomic det_time next_pass;
    struct det_node *node;        /* locks, leases, sweepers: node.h */
    atomic_size_t effect_runs;    /* pending effects */
    atomic_size_t jobs;           /* in the pool or on their way back */
    atomic_size_t effects_queued; /* those of them that wait for a thread */
    _Atomic det_time queue_next;  /* effect_queue.c: time of its check; DET_NEVER: none waits */
    bool is_queue_reported;       /* used by the loop alone */
    atomic_size_t handled;        /* due work in use by the loop, or held */
    struct det_batch *batch;      /* used by the loop alone */
    _Atomic(struct det_writers *) writers; /* NULL: no send was submitted yet */
    bool are_writers_stopped;              /* under the mutex */
    /* For settle: the generation changes whenever work is done while a thread waits. This mutex is
     * the last one locked, also under a shard's. */
    struct det_mutex *quiet_mutex;
    struct det_condition *quiet;
    uint64_t quiet_generation;
    atomic_uint settling; /* threads in settle */
};

static inline void det_shard_lock(struct det_runtime *runtime, struct det_shard *shard)
{
    det_mutex_lock(runtime->world, shard->mutex);
}

static inline void det_shard_unlock(struct det_runtime *runtime, struct det_shard *shard)
{
    det_mutex_unlock(runtime->world, shard->mutex);
}

/* The store's clock, which defines all deadlines. */
static inline det_time det_runtime_now(const struct det_runtime *runtime)
{
    return runtime->ops->now(runtime->store);
}

/* True for commit results with a certain outcome: nothing happened, and the resident equals the
 * store. */
static inline bool det_runtime_is_certain(int result)
{
    return result == DET_ERR_NO_MEMORY || result == DET_ERR_LIMIT || result == DET_ERR_NO_SPACE ||
           result == DET_ERR_LOCKED || result == DET_ERR_LOCK_LOST || result == DET_ERR_EARLY ||
           result == DET_ERR_READ_ONLY || result == DET_ERR_INVALID || result == DET_ERR_CLOSED;
}

/* True for the other results that mean: another writer was first, and nothing happened. */
static inline bool det_runtime_is_other_holder(int result)
{
    return result == DET_ERR_CONFLICT || result == DET_ERR_EXISTS || result == DET_ERR_NOT_FOUND;
}

/* served.c */
DET_MUST_CHECK int det_served_get(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_error *reterr,
    struct det_served **ret);
/* Other nodes' work belongs to this node now: loads it. Does not wait. */
void det_served_list_again(struct det_runtime *runtime, const struct det_machine *machine);
void det_served_close_all(struct det_runtime *runtime);
uint64_t det_served_hash(const struct det_runtime *runtime, const char *id);
static inline struct det_shard *det_served_shard(const struct det_runtime *runtime, uint64_t hash)
{
    /* The indices use the low bits; using them here, too, would leave most of their slots
     * unused. */
    return &runtime->shards[(hash >> 40) & runtime->shard_mask];
}
static inline struct det_index *det_served_index(
    const struct det_runtime *runtime, const struct det_served *served,
    const struct det_shard *shard)
{
    return &served->residents[shard - runtime->shards];
}

/* recover.c */
/* Loads all future work of the machine. With the runtime's mutex. */
DET_MUST_CHECK int det_recover_all(struct det_served *served);
/* Any thread: lists due work at that time, or earlier. */
void det_recover_at(struct det_served *served, det_time when);
/* On the loop: lists due work where it is time, and loads it. */
void det_recover_due(struct det_runtime *runtime, det_time now);
/* The time of the next listing. */
det_time det_recover_next(struct det_runtime *runtime);
void det_recover_deinit(struct det_served *served);

/* resident.c: all with the shard's lock held, except close. */
void det_resident_close(struct det_runtime *runtime, struct det_resident *resident);
/* Adds a new one, claimed and loading, to its map. */
DET_MUST_CHECK int det_resident_add(
    struct det_runtime *runtime, struct det_served *served, uint64_t hash, const char *id,
    struct det_resident **ret);
/* Removes a claimed one from its map and closes it. */
void det_resident_remove(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);
DET_MUST_CHECK int det_resident_need_more(
    struct det_runtime *runtime, struct det_resident *resident, bool with_timers);
void det_resident_claim(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);
/* Moves held work into the heap, and kicks the loop. */
void det_resident_release(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);
/* Waits for a release in this shard; `until` is monotonic. */
DET_MUST_CHECK int det_shard_wait(
    struct det_runtime *runtime, struct det_shard *shard, det_time until);
void det_armed_disarm(struct det_runtime *runtime, struct det_armed *armed);
/* The caller sets the value afterwards. */
void det_armed_arm(
    struct det_shard *shard, struct det_armed *armed, const struct det_store_timer *row);
/* After a committed failure of an attempt to fire it; or, with no attempts, a dead timer is armed
 * again. */
void det_armed_fail(
    struct det_runtime *runtime, struct det_armed *armed, const struct det_store_timer *row,
    char *reason_take);
/* Marks a timer as firing: a turn of the loop is about it until its end is reported. */
void det_armed_fire(struct det_armed *armed);
void det_armed_reported(struct det_armed *armed);
/* The slot of a timer, by DET_STATE_TIMER, DET_DEFERRED_TIMER or its number; NULL: none yet. */
static inline struct det_armed *det_resident_timer(struct det_resident *resident, uint16_t timer)
{
    if (timer == DET_STATE_TIMER)
        return resident->own;
    if (!resident->more || !resident->more->timers)
        return NULL;
    if (timer == DET_DEFERRED_TIMER)
        timer = resident->served->machine->timer_count;
    return &resident->more->timers[timer];
}

/* Slots of timers: 0 is the state's own, 1 + n the n-th named one, the last that of deferred
 * events. */
static inline size_t det_timer_slots(const struct det_machine *machine)
{
    return (size_t)machine->timer_count + 2;
}

static inline uint16_t det_timer_number(const struct det_machine *machine, size_t slot)
{
    if (slot == 0)
        return DET_STATE_TIMER;
    return slot > machine->timer_count ? DET_DEFERRED_TIMER : (uint16_t)(slot - 1);
}

struct det_kept *det_kept_open(
    struct det_runtime *runtime, const struct det_machine *machine, uint64_t sequence,
    const void *event);
void det_kept_close(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_kept *kept);

/* cache.c */
/* After adding a resident: evicts others above the limit. The lock is held before and after, but
 * may be released meanwhile. */
void det_cache_make_room(struct det_runtime *runtime, struct det_shard *shard);

/* load.c: the resident is claimed by the caller and the lock is not held. */
/* Loads the resident from the store. DET_ERR_NOT_FOUND: no such instance. After an error the
 * resident is unchanged. */
DET_MUST_CHECK int det_resident_load(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);

/* due.c */
/* Reserves `count` more places in the heap. Lock held. */
DET_MUST_CHECK int det_due_promise(struct det_shard *shard, size_t count);
void det_due_insert(struct det_shard *shard, struct det_due *due, det_time when);
void det_due_hold(struct det_runtime *runtime, struct det_due *due);
/* Wakes the loop if it would sleep past `when`; DET_NEVER: no effect. */
void det_due_wake(struct det_runtime *runtime, det_time when);
static inline void det_due_kick(struct det_runtime *runtime, det_time when)
{
    if (when != DET_NEVER)
        det_due_wake(runtime, when);
}
/* The loop has finished one item of due work. */
void det_due_handled(struct det_runtime *runtime);
/* On the loop: executes due work, then sets the time of the next pass. */
void det_due_execute(void *argument);
void det_due_kicked(void *argument);
bool det_due_is_settled(struct det_runtime *runtime);

/* effect_run.c */
/* The kind of a product before the effect has written it. */
#define DET_PRODUCT_UNWRITTEN UINT_MAX
struct det_effect_run *det_effect_run_open(
    struct det_runtime *runtime, struct det_resident *resident, const struct det_store_effect *row);
void det_effect_run_close(struct det_runtime *runtime, struct det_effect_run *effect_run);
/* A copy of a text, valid for people and every store; NULL: empty, or no memory. */
char *det_reason_copy(const struct det_allocator *allocator, const char *text);
/* With the claim: stores why its last attempt failed, for people; NULL: none. */
void det_effect_run_explain(
    const struct det_runtime *runtime, struct det_effect_run *effect_run, const char *text);
/* Lock held: from WAITING to RUNNING, to be submitted. False if no new effects may run. */
DET_MUST_CHECK bool det_effect_run_begin(
    struct det_runtime *runtime, struct det_effect_run *effect_run);
/* orphaned_effect.c */
/* True if its attempts are used up and the last one ended its process: it does not run. */
bool det_effect_run_is_spent(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run);
/* On the pool: records the attempt that is about to begin. After an error it must not begin. */
DET_MUST_CHECK int det_effect_run_record(
    struct det_runtime *runtime, struct det_effect_run *effect_run);
/* On the pool: reverts the record of a postponed attempt. */
void det_effect_run_take_back(struct det_runtime *runtime, struct det_effect_run *effect_run);
/* The effect was loaded in place of a waiting one: takes over what the store does not know. */
void det_effect_run_take_over(
    struct det_effect_run *effect_run, const struct det_effect_run *known);
/* No lock held: submits a chain of begun effects to the pool. */
void det_effect_run_submit(struct det_runtime *runtime, struct det_effect_run *first);
/* On the loop: the shard's lock is held before and after, but may be released meanwhile. */
void det_effect_run_due(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run);
/* Lock held: closes the effect and releases its place in the heap. */
void det_effect_run_drop(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run);
/* Claimed and lock held: applies a commit. TAKE: the effect is gone, and the caller closes it.
 * UPDATE: it is dead, or waits for its next attempt; after the claim ends others may close it.
 * Closes the oldest dead ones beyond the limit, perhaps this one. */
void det_effect_run_change(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    enum det_store_change_kind change);
/* Claimed and lock held: a dead effect waits for its first attempt again; its place in the heap is
 * reserved. */
void det_effect_run_revive(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    det_time next);
/* Lock held: schedules the effect for that time. */
void det_effect_run_wait(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    det_time when);
/* No attempt begins after this time. */
det_time det_effect_run_deadline(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run);
/* The effect's policy, or the general one, with defaults filled in. */
struct det_effect_policy det_effect_run_policy(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run);
/* The delay before the next attempt, at least `least`. */
det_time det_effect_run_backoff(
    struct det_runtime *runtime, const struct det_effect_policy *policy, uint32_t attempt,
    det_time least);

/* effect_queue.c */
/* Any thread: a submitted effect has to wait for a thread. */
void det_effect_queue_watch(struct det_runtime *runtime);
/* On the loop: reports effects that have waited too long. */
void det_effect_queue_due(struct det_runtime *runtime, det_time now);

/* effect_commit.c: the lock is held before and after, but not meanwhile; the resident is free and
 * fresh. A turn of the loop's batch records the last attempt. */
void det_effect_run_end(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run);

/* incident.c: the name of one of our errors, or the number of another one. */
struct det_code_text {
    char text[24];
};
struct det_code_text det_code_text(int code);
/* Reports an incident to the observer; `error`, if not NULL and of the same code, has the reason.
 * No lock held. */
void det_runtime_report_incident(
    struct det_runtime *runtime, const struct det_resident *resident,
    const struct det_incident *incident, const struct det_error *error);
/* Without a resident: the incident itself names the instance. */
void det_runtime_report_incident_at(
    struct det_runtime *runtime, const struct det_incident *incident,
    const struct det_error *error);

#endif
