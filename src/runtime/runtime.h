/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime.h - the runtime's parts: shards, machines served, and who may touch what.
 *
 *     runtime -- shards [by the hash of the id] -- mutex, heap of due things, drafts
 *             -- served machines [by pointer]   -- a map of residents per shard
 *             -- loop: fires what is due, ends effects; pool: runs effects
 *
 * Invariants
 *   1. The lock of a shard protects its heap, its drafts, its counts, and the residents in its
 *      maps. No two shards are locked at once, and no user code runs under a lock.
 *   2. Served machines are only added, each with all its fields set, until the runtime is closed:
 *      finding one needs no lock.
 *   3. `next_look` is the wall time at which the loop looks at the heaps by itself. Whoever puts
 *      something into a heap that is due earlier kicks the loop. Before it looks, the loop sets
 *      next_look to DET_NEVER, so that what is put in behind its back kicks it too.
 *   4. `promised` of a shard is the number of places in its heap that are reserved, and not less
 *      than the number of things that can be in it; the heap has room for them. */
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
/* How soon an instance that could not be loaded is tried again. */
#define DET_LOOK_SPAN DET_SECOND

/* Instances whose loss is told once. */
#define DET_LOST_KEPT 64

/* From this on a deadline of hooks is measured in ticks. */
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
    struct det_list ring;     /* residents, in the order in which they may leave */
    uint32_t waiters;
    uint32_t calls; /* under way: claims and waiters */
    uint32_t stale; /* residents to be loaded again */
    bool is_closing;
    struct det_runtime_counts counts;
    char unused[64]; /* so that no two shards share a line of memory */
};

/* How a send of one event is done, by its cell of the machine's table; see quick.h. */
enum det_way {
    DET_WAY_TURN,  /* with effects, named timers, ...: a turn */
    DET_WAY_PLAIN, /* no user code: one lock section */
    DET_WAY_CODE,  /* guards, hooks, new data: two lock sections and a claim between them */
};

/* A machine and its instances in memory. */
struct det_served {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    struct det_served *next;            /* in its bucket */
    const struct det_record **payloads; /* per event; NULL: it cannot be invalid */
    const struct det_record *data;      /* NULL: it cannot be invalid */
    uint8_t *ways;                      /* enum det_way, per cell */
    atomic_uint *running;               /* per effect: attempts that have a thread */
    size_t data_size;                   /* of the struct, also of the empty one */
    size_t own_offset, history_offset, data_offset, id_offset; /* in a resident */
    struct det_index *residents;                               /* per shard */
    struct det_recovery {
        char *ids;                     /* listed, one after the other, as recover.c has it */
        size_t size, capacity, loaded; /* bytes; those before `loaded` are done */
        bool is_listed;
        size_t limit;                 /* of the next listing; 0: the default */
        uint64_t lost[DET_LOST_KEPT]; /* hashes of ids that could not be loaded, which was told */
        size_t lost_count;
    } recovery;
    _Atomic det_time store_next; /* when the store is to be asked for what is due; see recover.c */
    atomic_bool is_ready;        /* it may be used */
};

struct det_runtime {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_store *store;
    const struct det_store_ops *ops;
    struct det_runtime_options options; /* with defaults filled in */
    bool is_quick; /* the store does not block, nobody listens, and no snapshot is due */
    bool is_loop_ours;
    enum det_clock hook_clock; /* for the deadline of guards and hooks */

    uint64_t instances_max; /* in a shard */

    struct det_shard *shards;
    uint32_t shard_mask;
    uint64_t seed;
    _Atomic(struct det_served *) served[DET_SERVED_BUCKETS];
    struct det_mutex *mutex; /* adding a machine */

    struct det_loop *loop;
    _Atomic(struct det_pool *) pool; /* NULL: closing, nothing new is run */
    struct det_timer look;           /* on the loop */
    struct det_post kick;
    atomic_bool is_kicked;
    _Atomic det_time next_look;
    struct det_node *node;        /* locks, leases, sweepers: node.h */
    atomic_size_t effect_runs;    /* that have not ended */
    atomic_size_t jobs;           /* with the pool or on their way back */
    atomic_size_t effects_queued; /* of those the ones that wait for a thread */
    _Atomic det_time queue_next;  /* effect_queue.c: when it looks; DET_NEVER: none waits */
    bool is_queue_told;           /* the loop's */
    atomic_size_t handled;        /* due things in the hands of the loop, or held */
    struct det_batch *batch;      /* the loop's */
    _Atomic(struct det_writers *) writers; /* NULL: nothing has been submitted yet */
    bool are_writers_stopped;              /* under the mutex */
    /* For settle: a generation passes whenever something was handled while somebody waits. The
     * mutex is the last one locked, also under a shard's. */
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

/* The store's clock, which all deadlines are of. */
static inline det_time det_runtime_now(const struct det_runtime *runtime)
{
    return runtime->ops->now(runtime->store);
}

/* Of a commit's results: only these say that nothing happened and that the resident is as the store
 * has it. */
static inline bool det_runtime_is_certain(int result)
{
    return result == DET_ERR_NO_MEMORY || result == DET_ERR_LIMIT || result == DET_ERR_NO_SPACE ||
           result == DET_ERR_LOCKED || result == DET_ERR_LOCK_LOST || result == DET_ERR_EARLY ||
           result == DET_ERR_READ_ONLY || result == DET_ERR_INVALID || result == DET_ERR_CLOSED;
}

/* Of the others: somebody else was first, and nothing happened. */
static inline bool det_runtime_is_somebody_else(int result)
{
    return result == DET_ERR_CONFLICT || result == DET_ERR_EXISTS || result == DET_ERR_NOT_FOUND;
}

/* served.c */
DET_MUST_CHECK int det_served_get(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_error *reterr,
    struct det_served **ret);
/* Something has become this node's: what is not in memory is loaded. Does not wait for that. */
void det_served_look_again(struct det_runtime *runtime, const struct det_machine *machine);
void det_served_close_all(struct det_runtime *runtime);
uint64_t det_served_hash(const struct det_runtime *runtime, const char *id);
static inline struct det_shard *det_served_shard(const struct det_runtime *runtime, uint64_t hash)
{
    /* The indices use the low bits: with those, few of their slots would be homes. */
    return &runtime->shards[(hash >> 40) & runtime->shard_mask];
}
static inline struct det_index *det_served_index(
    const struct det_runtime *runtime, const struct det_served *served,
    const struct det_shard *shard)
{
    return &served->residents[shard - runtime->shards];
}

/* recover.c */
/* Everything that will ever be due comes into memory. With the runtime's mutex. */
DET_MUST_CHECK int det_recover_all(struct det_served *served);
/* From any thread: the store is asked at that time, or earlier. */
void det_recover_at(struct det_served *served, det_time when);
/* On the loop: asks where it is time to, and loads what is due. */
void det_recover_due(struct det_runtime *runtime, det_time now);
/* When it is to be asked next. */
det_time det_recover_next(struct det_runtime *runtime);
void det_recover_deinit(struct det_served *served);

/* resident.c: all with the shard's lock held, but open and close. */
struct det_resident *det_resident_open(
    struct det_runtime *runtime, struct det_served *served, const char *id);
void det_resident_close(struct det_runtime *runtime, struct det_resident *resident);
/* Puts a new one, claimed and loading, into its map. */
DET_MUST_CHECK int det_resident_add(
    struct det_runtime *runtime, struct det_served *served, uint64_t hash, const char *id,
    struct det_resident **ret);
/* Takes one that is claimed out of its map and closes it. */
void det_resident_remove(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);
DET_MUST_CHECK int det_resident_need_more(
    struct det_runtime *runtime, struct det_resident *resident, bool with_timers);
void det_resident_claim(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);
/* What is held goes into the heap, and the loop is kicked. */
void det_resident_release(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);
/* Waits for a release in this shard; `until` is monotonic. */
DET_MUST_CHECK int det_shard_wait(
    struct det_runtime *runtime, struct det_shard *shard, det_time until);
void det_armed_disarm(struct det_runtime *runtime, struct det_armed *armed);
/* The value is given by the caller afterwards. */
void det_armed_arm(
    struct det_shard *shard, struct det_armed *armed, const struct det_store_timer *row);
/* Committed: an attempt to fire it failed; or, with none, a dead one is armed again. */
void det_armed_fail(
    struct det_runtime *runtime, struct det_armed *armed, const struct det_store_timer *row,
    char *reason_take);
/* The loop's: a turn is about it from now on; its end is told. */
void det_armed_fire(struct det_armed *armed);
void det_armed_told(struct det_armed *armed);
/* The slot of a timer, by DET_STATE_TIMER, DET_DEFERRED_TIMER or its number; NULL: there is none
 * yet. */
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
/* After one has come: others leave where there are too many. Lock held before and after, but it may
 * be given up meanwhile. */
void det_cache_make_room(struct det_runtime *runtime, struct det_shard *shard);

/* load.c: the resident is claimed by the caller and the lock is not held. */
/* Reads it from the store. DET_ERR_NOT_FOUND when there is none. After an error the resident is as
 * it was. */
DET_MUST_CHECK int det_resident_load(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident);

/* due.c */
/* Room in the heap for `count` more due things; they are promised from now on. Lock held. */
DET_MUST_CHECK int det_due_promise(struct det_shard *shard, size_t count);
void det_due_insert(struct det_shard *shard, struct det_due *due, det_time when);
void det_due_hold(struct det_runtime *runtime, struct det_due *due);
/* The loop is woken if it would sleep past `when`; DET_NEVER: nothing is due. */
void det_due_wake(struct det_runtime *runtime, det_time when);
static inline void det_due_kick(struct det_runtime *runtime, det_time when)
{
    if (when != DET_NEVER)
        det_due_wake(runtime, when);
}
/* One thing less in the loop's hands. */
void det_due_handled(struct det_runtime *runtime);
/* On the loop: does what is due, then sets the time to look again. */
void det_due_look(void *argument);
void det_due_kicked(void *argument);
bool det_due_is_settled(struct det_runtime *runtime);

/* effect_run.c */
/* The kind of a product before the effect has written it. */
#define DET_PRODUCT_UNWRITTEN UINT_MAX
struct det_effect_run *det_effect_run_open(
    struct det_runtime *runtime, struct det_resident *resident, const struct det_store_effect *row);
void det_effect_run_close(struct det_runtime *runtime, struct det_effect_run *effect_run);
/* A text as people and every store can read it; NULL: nothing, or no memory. */
char *det_reason_copy(const struct det_allocator *allocator, const char *text);
/* With the claim: why its last attempt failed, for people; NULL: nothing. */
void det_effect_run_explain(
    const struct det_runtime *runtime, struct det_effect_run *effect_run, const char *text);
/* Lock held: from WAITING to RUNNING, to be submitted. False when nothing new is run any more. */
DET_MUST_CHECK bool det_effect_run_begin(
    struct det_runtime *runtime, struct det_effect_run *effect_run);
/* orphaned_effect.c */
/* Its attempts are used up, and the last one ended its process: it is not run. */
bool det_effect_run_is_spent(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run);
/* On the pool: the attempt that is about to begin is recorded. After an error it must not. */
DET_MUST_CHECK int det_effect_run_record(
    struct det_runtime *runtime, struct det_effect_run *effect_run);
/* On the pool: the attempt was recorded, and was postponed. Its record is taken back. */
void det_effect_run_take_back(struct det_runtime *runtime, struct det_effect_run *effect_run);
/* The effect was loaded in the place of one that waits, and knows what the store does not. */
void det_effect_run_take_over(
    struct det_effect_run *effect_run, const struct det_effect_run *known);
/* No lock held: gives a chain of begun effects to the pool. */
void det_effect_run_submit(struct det_runtime *runtime, struct det_effect_run *first);
/* The loop's: with the shard's lock held; returns with it held, but may give it up meanwhile. */
void det_effect_run_due(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run);
/* Lock held: closes it and gives up its place in the heap. */
void det_effect_run_drop(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run);
/* Claimed and lock held: what was committed about it. TAKE: it is gone, and the caller closes it.
 * UPDATE: it is dead, or waits for its next attempt; from the end of the claim on it may be closed
 * by others. The oldest of too many dead ones is closed, which may be this one. */
void det_effect_run_change(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    enum det_store_change_kind change);
/* Claimed and lock held: a dead one waits for its first attempt again; its place in the heap is
 * promised. */
void det_effect_run_revive(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    det_time next);
/* Lock held: the loop has it at that time. */
void det_effect_run_wait(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run,
    det_time when);
/* Past it there is no further attempt. */
det_time det_effect_run_deadline(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run);
/* Its own one, or the general one, complete. */
struct det_effect_policy det_effect_run_policy(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run);
/* The wait before the next attempt; somebody may want it not to be shorter than `least`. */
det_time det_effect_run_backoff(
    struct det_runtime *runtime, const struct det_effect_policy *policy, uint32_t attempt,
    det_time least);

/* effect_queue.c */
/* From any thread: an effect was submitted that has to wait for a thread. */
void det_effect_queue_watch(struct det_runtime *runtime);
/* On the loop: whether that has lasted, and is to be told. */
void det_effect_queue_due(struct det_runtime *runtime, det_time now);

/* effect_commit.c: lock held before and after, but not meanwhile; the resident is free and fresh.
 * Its last attempt is recorded by a turn of the loop's batch. */
void det_effect_run_end(
    struct det_runtime *runtime, struct det_shard *shard, struct det_effect_run *effect_run);

/* trouble.c: the name of an error of ours, the number of any other. */
struct det_code_text {
    char text[24];
};
struct det_code_text det_code_text(int code);
/* Tells the observer about something that was not done; `error`, if not NULL and of the same code,
 * says why. No lock held. */
void det_runtime_trouble(
    struct det_runtime *runtime, const struct det_resident *resident,
    const struct det_incident *trouble, const struct det_error *error);
/* The same where there is no resident: the trouble says which instance. */
void det_runtime_trouble_at(
    struct det_runtime *runtime, const struct det_incident *trouble, const struct det_error *error);

#endif
