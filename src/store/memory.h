/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.h - the store in memory, as its files share it.
 *
 *     store -- machines by name -- instances by id -- head, data, history
 *                                                  -- rows: a ring of the last events
 *                                                  -- more: timers, effects, deferred, event ids
 *
 * Invariants
 *   1. The maps change under the store's mutex. An instance, once in, stays where it is until the
 *      store is closed; its content is changed by one commit at a time (the runtime's promise) and
 *      needs no lock. Only `listed` is read meanwhile, and is atomic.
 *   2. The rows have contiguous sequences, the newest has the head's.
 *   3. A commit first checks, then reserves, then applies. Reserving changes nothing that can be
 *      seen: it grows arrays and blocks. Applying cannot fail. */
#ifndef DET_STORE_MEMORY_H
#define DET_STORE_MEMORY_H

#include <stdatomic.h>

#include <detent/driver/store.h>

#include "base/list.h"
#include "base/map.h"

/* Payloads of at most so many bytes stand in the row itself. */
#define MEMORY_INLINE_MAX 64u

/* A large payload, an event id and a cause, where a row has any of them; the block stays with its
 * place in the ring and is used again. The id and the cause are behind the payload; 0: none. */
struct memory_extra {
    uint32_t capacity; /* of `bytes` */
    uint16_t id_size, cause_size;
    uint32_t payload_size;
    uint32_t unused;
    char bytes[];
};

/* One of a ring whose rows are `row_size` of the machine apart: room for its largest payload. */
struct memory_row {
    det_time at;
    uint64_t visit;
    struct memory_extra *extra;
    uint16_t from, to, event;
    uint8_t outcome;
    bool is_timeout;
    char payload[];
};

/* An event id and its first answer. Once as many as are kept are there, the oldest one is used
 * again. */
struct memory_answer {
    struct det_list node;
    const char *id; /* `text` */
    struct det_store_answer answer;
    char text[DET_ID_MAX + 1];
};

struct memory_timer {
    det_time due;
    uint64_t visit;
    void *value; /* a block of the event's size, used again; NULL: never needed */
    uint16_t event;
    bool is_armed, has_value;
};

struct memory_effect {
    struct det_list node;
    struct det_store_effect row; /* its data and event point behind it */
};

struct memory_deferred {
    struct det_list node;
    struct det_store_deferred row; /* its event points behind it */
};

/* What only some instances have. */
struct memory_more {
    struct det_list effects;     /* struct memory_effect, oldest first */
    struct det_list deferred;    /* struct memory_deferred, oldest first */
    struct memory_timer *timers; /* of the machine's named timers, in their order; NULL: none yet */
    struct det_list answers;     /* struct memory_answer, oldest first */
    struct det_map answer_of;    /* the same by their ids */
    char reason[DET_REASON_MAX + 1];
};

struct memory_machine {
    char *name;
    const struct det_machine *machine; /* of the runtime that uses the store */
    uint64_t shape;                    /* of everything that is kept by number or by offset */
    uint32_t version;
    uint32_t data_size, event_size;
    uint32_t row_size;     /* of a row with the payload in it */
    uint32_t *inline_size; /* per event: bytes of the payload that stand in the row */
    uint16_t event_count, timer_count;
    struct det_map instances;
};

/* Its first line of memory is what every commit reads and writes. */
struct memory_instance {
    char *rows; /* a ring of struct memory_row */
    uint32_t row_next, row_capacity;
    struct det_store_head head;
    struct memory_machine *machine;
    struct memory_more *more;
    void *data;     /* behind the struct */
    const char *id; /* behind the data */
    uint32_t row_count;
    _Atomic uint32_t listed; /* the state, and above it whether it has stopped */
    struct memory_timer state_timer;
    uint16_t history[DET_HISTORY_MAX]; /* a ring: the n-th transition is at (n - 1) % its size */
};

struct memory_store {
    struct det_store store;
    struct det_mutex *mutex;
    struct det_map machines;
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

static inline struct memory_row *memory_row_at(
    const struct memory_instance *instance, uint32_t place)
{
    return (
        struct memory_row *)(void *)(instance->rows + (size_t)place * instance->machine->row_size);
}

/* The slot of a timer; for a named one the slots must be there. */
static inline struct memory_timer *memory_timer_of(struct memory_instance *instance, uint16_t timer)
{
    return timer == DET_STATE_TIMER ? &instance->state_timer : &instance->more->timers[timer];
}

/* memory_commit.c */
int det_memory_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count);

/* memory_instance.c */
struct memory_instance *det_memory_instance_open(
    struct memory_store *store, struct memory_machine *machine, const char *id);
void det_memory_instance_close(struct memory_store *store, struct memory_instance *instance);
/* For an instance that has none yet. */
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

/* memory_answer.c: event ids with their first answers. */
const struct memory_answer *det_memory_answer_find(
    const struct memory_instance *instance, const char *event_id);
/* Room for one more; what had to be made for it is in `ret`, or NULL. */
DET_MUST_CHECK int det_memory_answer_reserve(
    struct memory_store *store, struct memory_more *more, struct memory_answer **ret);
void det_memory_answer_put(
    struct memory_more *more, struct memory_answer *made, const struct det_store_commit *commit);
void det_memory_answer_close(struct memory_store *store, struct memory_answer *answer);
void det_memory_answer_close_all(struct memory_store *store, struct memory_more *more);

/* memory_rows.c: the ring of events. */
/* Measures the rows of a machine. */
DET_MUST_CHECK int det_memory_rows_measure(
    struct memory_store *store, struct memory_machine *machine);
DET_MUST_CHECK int det_memory_rows_reserve(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit);
/* Whether an event needs no room but its row. */
bool det_memory_rows_fits(
    const struct memory_instance *instance, const struct det_store_event *event);
void det_memory_rows_append(struct memory_instance *instance, const struct det_store_event *event);
void det_memory_rows_close(struct memory_store *store, struct memory_instance *instance);
int det_memory_events(
    struct det_store *store, struct det_store_instance *handle, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context);

#endif
