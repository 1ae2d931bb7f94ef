/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.h - the memory store, shared by its files.
 *
 *     store -- machines by name -- instances by id -- head, data, history
 *           |                                      -- rows: a ring of the last events
 *           |                                      -- more: timers, effects, deferred, event ids,
 *           |                                               snapshot
 *           |                                      -- lock: fence, owner, end
 *           +-- leases, jobs, schedules by name; documents by id, and their deltas
 *
 * Invariants
 *   1. The maps and leases change under the store's mutex. An instance, once in a map, keeps its
 *      address until the store is closed; one commit at a time changes its content (the runtime's
 *      promise), without a lock.
 *   2. Fields of an instance that `list`, `due` and `lock` read meanwhile are atomic, or constant
 *      once the instance is in the map, or changed under the store's mutex: `more`, its timers and
 *      effects.
 *   3. The rows have contiguous sequences, the newest has the head's.
 *   4. A commit first checks, then reserves, then applies. Reserving has no visible effect: it
 *      grows arrays and blocks. Applying cannot fail.
 *   5. A commit reads the lock when it checks. A lock granted between the check and applying has an
 *      outdated sequence: the holder of a lock must exclude writers meanwhile, or read the sequence
 *      again. */
#ifndef DET_STORE_MEMORY_MEMORY_H
#define DET_STORE_MEMORY_MEMORY_H

#include <stdatomic.h>

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include "base/id_map.h"
#include "base/list.h"
#include "base/map.h"

/* Payloads up to this size are inside of the row. */
#define MEMORY_INLINE_MAX 64u

/* A large payload, an event id and a cause, if a row has any of them; the block stays with its
 * place in the ring and is reused. The id and the cause follow the payload; 0: none. */
struct memory_extra {
    uint32_t capacity; /* capacity of `bytes` */
    uint16_t id_size, cause_size;
    uint32_t payload_size;
    uint32_t unused;
    char bytes[];
};

/* Number of bits of the visit in a row's `visit_choice`. */
#define MEMORY_VISIT_BITS 48

/* An element of the ring, whose rows are `row_size` apart: room for the machine's largest inline
 * payload. */
struct memory_row {
    det_time at;
    uint64_t visit_choice; /* the choice in the upper bits, the visit in the lower ones */
    struct memory_extra *extra;
    uint16_t from, to, event;
    uint8_t outcome;
    bool is_timeout;
    char payload[];
};

/* An event id and its first answer. Once the limit is reached, the oldest one is reused. */
struct memory_answer {
    struct det_list node;
    const char *id; /* `text` */
    struct det_store_answer answer;
    det_time at;
    char text[DET_ID_MAX + 1];
};

struct memory_timer {
    _Atomic det_time next; /* DET_NEVER: not armed, or dead */
    det_time due;
    uint64_t visit;
    void *value;  /* a block of the event's size, reused; NULL: never needed */
    char *reason; /* NULL: none */
    uint32_t attempts;
    int last_error;
    uint16_t event;
    bool is_armed, has_value;
    atomic_bool is_dead; /* armed, but never due */
};

/* A former head with its history; the data follows it. */
struct memory_snapshot {
    struct det_store_head head;
    det_time taken_at;
    size_t history_count;
    uint16_t history[DET_HISTORY_MAX];
    char reason[DET_REASON_MAX + 1];
    char data[];
};

/* A lease, or the lock of an instance. Changed under the store's mutex; a commit reads the token
 * and the end only. */
struct memory_lease {
    const char *name; /* follows the struct; NULL for a lock */
    _Atomic uint64_t token;
    _Atomic det_time expires_at; /* 0: free */
    char owner[DET_OWNER_MAX + 1];
};

struct memory_effect {
    struct det_list node;
    struct det_store_effect row; /* its data and event follow it */
    char *reason;                /* the reason of the row */
    struct det_trace_context trace;
};

struct memory_deferred {
    struct det_list node;
    struct det_store_deferred row; /* its event follows it */
};

/* Parts that only some instances have. */
struct memory_more {
    struct det_list effects;     /* struct memory_effect, oldest first */
    struct det_list deferred;    /* struct memory_deferred, oldest first */
    struct memory_timer *timers; /* the machine's named timers, in their order, then that of
                                  * deferred events; NULL: none yet */
    struct det_list answers;     /* struct memory_answer, oldest first */
    struct det_map answer_of;    /* the answers by id */
    struct memory_snapshot *snapshot;
    char reason[DET_REASON_MAX + 1];
};

struct memory_machine {
    char *name;
    const struct det_machine *machine; /* of the runtime that uses the store */
    uint64_t shape;                    /* hash of the definition's numbers and offsets */
    uint32_t version;
    uint32_t data_size, event_size;
    uint32_t row_size;     /* size of a row with its inline payload */
    uint32_t *inline_size; /* per event: bytes of the payload inside of the row */
    uint16_t event_count, timer_count;
    struct det_map instances;
    struct memory_instance *newest; /* the list of all instances: each points to its predecessor */
    /* All instances; the first `sorted_count` are sorted by id. */
    struct memory_instance **ordered;
    size_t sorted_count, ordered_count, ordered_capacity;
};

/* The first two cache lines hold what every commit reads and writes. */
struct memory_instance {
    char *rows; /* a ring of struct memory_row */
    uint32_t row_next, row_capacity;
    struct det_store_head head;
    struct memory_machine *machine;
    struct memory_more *more;
    void *data;     /* follows the struct */
    const char *id; /* follows the data */
    uint32_t row_count;
    _Atomic uint32_t listed; /* the state, and in the upper bits whether it has stopped */
    _Atomic uint64_t listed_sequence;
    _Atomic det_time listed_moved_at;
    _Atomic(struct memory_lease *) lock; /* NULL: never locked */
    struct memory_timer state_timer;
    struct memory_instance *older;
    det_time started_at;
    void *start; /* the initial data, after the current one; NULL: unknown */
    uint16_t start_state;
    uint16_t history[DET_HISTORY_MAX]; /* a ring: the n-th transition is at (n - 1) % its size */
};

struct memory_document_id;
struct memory_delta;

/* memory/documents.c describes the layout. */
struct memory_documents {
    struct det_map id_of;
    struct memory_document_id **ids;
    size_t id_count, id_capacity;
    struct memory_delta **deltas;
    size_t delta_first, delta_count, delta_capacity;
    uint64_t latest;
    bool is_sorted;
};

struct memory_store {
    struct det_store store;
    struct det_mutex *mutex;
    struct det_map machines, leases;
    struct det_list jobs;             /* ordered by key */
    struct det_map job_of, schedules; /* jobs by queue and id; schedules by name */
    struct det_map queues;            /* queues of jobs, by name */
    struct det_id_map job_keys;
    uint64_t last_job;
    struct memory_documents documents;
    uint64_t seed;
    uint32_t events_kept, event_ids_kept;
};

static inline struct memory_store *memory_store_of(struct det_store *store)
{
    return DET_CONTAINER(store, struct memory_store, store);
}

static inline struct memory_instance *memory_instance_of(struct det_store_instance *instance)
{
    return (struct memory_instance *)(void *)instance;
}

_Static_assert(offsetof(struct memory_instance, machine) == 64, "the head ends the first line");
_Static_assert(offsetof(struct memory_instance, lock) == 120, "the lock ends the second line");

static inline struct memory_row *memory_row_at(
    const struct memory_instance *instance, uint32_t place)
{
    return (
        struct memory_row *)(void *)(instance->rows + (size_t)place * instance->machine->row_size);
}

/* The slot of a timer; named timers require that the slots exist. */
static inline struct memory_timer *memory_timer_of(struct memory_instance *instance, uint16_t timer)
{
    if (timer == DET_STATE_TIMER)
        return &instance->state_timer;
    return &instance->more
                ->timers[timer == DET_DEFERRED_TIMER ? instance->machine->timer_count : timer];
}

/* memory.c */
struct memory_machine *det_memory_machine_find(
    struct memory_store *store, const struct det_machine *machine);
struct memory_instance *det_memory_find(
    struct memory_store *store, const struct det_machine *machine, const char *id);
det_time det_memory_now(struct det_store *store);

/* memory/commit.c */
int det_memory_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count);

/* memory/instance.c */
struct memory_instance *det_memory_instance_open(
    struct memory_store *store, struct memory_machine *machine, const char *id);
void det_memory_instance_close(struct memory_store *store, struct memory_instance *instance);
/* Stores the start of a new instance, if the commit has it. */
void det_memory_start_keep(struct memory_instance *instance, const struct det_store_commit *commit);
/* For an instance without `more`. */
DET_MUST_CHECK int det_memory_more(struct memory_store *store, struct memory_instance *instance);
struct memory_effect *det_memory_effect_open(
    struct memory_store *store, const struct memory_machine *machine,
    const struct det_store_effect *row);
void det_memory_effect_close(
    struct memory_store *store, const struct memory_machine *machine, struct memory_effect *effect);
struct memory_deferred *det_memory_deferred_open(
    struct memory_store *store, const struct memory_machine *machine,
    const struct det_store_deferred *row);
void det_memory_deferred_close(
    struct memory_store *store, const struct memory_machine *machine,
    struct memory_deferred *deferred);
struct memory_effect *det_memory_effect_find(
    const struct memory_instance *instance, uint64_t sequence, uint16_t index);
struct memory_deferred *det_memory_deferred_find(
    const struct memory_instance *instance, uint64_t sequence);

/* memory/answer.c: event ids with their first answers. */
const struct memory_answer *det_memory_answer_find(
    const struct memory_instance *instance, const char *event_id);
/* Reserves room for one more; `ret` is the new object, or NULL. */
DET_MUST_CHECK int det_memory_answer_reserve(
    struct memory_store *store, struct memory_more *more, struct memory_answer **ret);
void det_memory_answer_put(
    struct memory_more *more, struct memory_answer *made, const struct det_store_commit *commit);
/* Forgets the answers before a time. */
void det_memory_answer_forget(
    struct memory_store *store, struct memory_more *more, det_time before);
void det_memory_answer_close(struct memory_store *store, struct memory_answer *answer);
void det_memory_answer_close_all(struct memory_store *store, struct memory_more *more);

/* memory/event_ring.c: the ring of events. */
/* Measures the rows of a machine. */
DET_MUST_CHECK int det_memory_rows_measure(
    struct memory_store *store, struct memory_machine *machine);
DET_MUST_CHECK int det_memory_rows_reserve(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit);
/* True if the event fits into its row. */
bool det_memory_rows_fits(
    const struct memory_instance *instance, const struct det_store_event *event);
void det_memory_rows_append(struct memory_instance *instance, const struct det_store_event *event);
/* Forgets all but the last `kept`; returns their number. */
uint32_t det_memory_rows_forget(struct memory_instance *instance, uint64_t kept);
void det_memory_rows_close(struct memory_store *store, struct memory_instance *instance);
int det_memory_events(
    struct det_store *store, struct det_store_instance *handle, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context);

/* memory/count.c */
int det_memory_count(
    struct det_store *base, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes);

/* memory/list.c: the instances of a machine. */
/* Adds an instance, under the mutex. DET_ERR_EXISTS, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_memory_list_put(
    struct memory_store *store, struct memory_machine *machine, struct memory_instance *instance);
void det_memory_list_close(struct memory_store *store, struct memory_machine *machine);
int det_memory_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context);

/* memory/due.c: due work. */
int det_memory_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context,
    det_time *ret_next);

/* memory/lease.c: leases and locks. */
/* For a commit under a lock, or on an instance that was ever locked. */
DET_MUST_CHECK int det_memory_lock_check(
    struct memory_store *store, const struct memory_instance *instance, uint64_t fence);
void det_memory_lease_close(struct memory_store *store, struct memory_lease *lease);
int det_memory_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret);
int det_memory_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret);

/* memory/snapshot.c: starts, snapshots, and pruning. */
int det_memory_start(
    struct det_store *store, struct det_store_instance *handle, struct det_store_start *ret);
DET_MUST_CHECK int det_memory_snapshot_reserve(
    struct memory_store *store, struct memory_instance *instance);
/* The instance is in its state after the commit. */
void det_memory_snapshot_take(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit);
void det_memory_snapshot_close(
    struct memory_store *store, const struct memory_machine *machine,
    struct memory_snapshot *snapshot);
int det_memory_snapshot(
    struct det_store *store, struct det_store_instance *handle, struct det_store_snapshot *ret);
int det_memory_prune(
    struct det_store *store, struct det_store_instance *handle, uint64_t sequence,
    det_time answers_before, uint64_t *ret);

/* memory/jobs.c */
void det_memory_jobs_init(struct memory_store *store);
void det_memory_jobs_deinit(struct memory_store *store);
extern const struct det_job_ops det_memory_jobs;

/* memory/documents.c */
void det_memory_documents_init(struct memory_store *store);
void det_memory_documents_deinit(struct memory_store *store);
extern const struct det_document_ops det_memory_documents;

/* memory/check.c: both require that there is no other writer. */
int det_memory_check(
    struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context);
int det_memory_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context);

#endif
