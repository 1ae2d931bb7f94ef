/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* turn_batch.h - turns of one thread that share a call of the store.
 *
 *     begin, begin, begin ... -> one commit -> end, end, end ... -> ended, ended, ended ...
 *
 * Invariants
 *   1. An instance is in a batch at most once: it is claimed from its turn's begin to its end, and
 *      a turn of a batch does not wait for a claim (DET_ERR_BUSY).
 *   2. 0 <= over <= stored <= begun <= count <= capacity. Turns before `over` have ended, those
 *      before `stored` have their result, those before `begun` hold a claim until they end; one
 *      more may be in its begin, which may run user code.
 *   3. Before user code in a batch's thread waits for an instance, the begun turns are carried out
 *      (det_batch_yield()): no thread waits for a claim of a batch that waits itself.
 *   4. `ended` of each item is called once, in the order of the items, when the batch holds no
 *      claim and its thread no lock. */
#ifndef DET_RUNTIME_TURN_BATCH_H
#define DET_RUNTIME_TURN_BATCH_H

#include <stdatomic.h>

#include "base/text.h"
#include "runtime/turn.h"

/* Maximum number of turns in a commit. */
#define DET_BATCH_TURNS 256

/* What to report about a finished effect. All values are copies: once the turn has ended, the
 * effect may be loaded and changed by others. */
struct det_ending {
    struct det_effect_run *effect_run;
    enum det_incident_kind incident;
    int code;         /* code of the incident; 0: none */
    uint32_t attempt; /* attempt of the incident */
    int result;       /* of the effect */
    bool is_dead;     /* the effect failed; false: the instance rejected the product */
    const char *effect;
    char key[DET_NAME_MAX + DET_ID_MAX + 49];
};

struct det_writer;

struct det_batch_item {
    struct det_turn turn;
    struct det_store_commit commit;
    struct det_sent sent;
    struct det_error error; /* for the turn, if the creator of the item requests it */
    const void *event;      /* the event to send; NULL: none */
    int result;             /* of the turn */
    bool is_ready;          /* the commit is ready */
    void (*ended)(struct det_batch_item *item);
    char *copy; /* of a timer's event */
    size_t copy_capacity;
    union {
        struct {
            struct det_send *send;
            struct det_writer *writer;
        } submitted;
        uint32_t attempt; /* number of the timer's attempt */
        struct det_ending ending;
    } of;
};

struct det_batch {
    struct det_runtime *runtime;
    _Atomic(const void *) owner; /* the thread that fills the batch; NULL: empty */
    size_t capacity, count, begun, stored, over;
    struct det_batch_item *items;
    struct det_store_commit **commits;
};

/* With a capacity of 1 each turn is carried out at once. */
DET_MUST_CHECK int det_batch_open(
    struct det_runtime *runtime, size_t capacity, struct det_batch **ret);
void det_batch_close(struct det_batch *batch);

static inline bool det_batch_is_full(const struct det_batch *batch)
{
    return batch->count == batch->capacity;
}
/* The next item of a batch that is not full. Only `copy` keeps its old value. The item counts after
 * det_batch_begin(). */
struct det_batch_item *det_batch_next(struct det_batch *batch);
/* Begins the turn of an item whose resident is taken: the shard's lock is held before and not
 * after. */
void det_batch_begin(struct det_batch *batch, struct det_batch_item *item);
/* Commits, ends every turn, and calls `ended` of each. No lock held. The batch is empty
 * afterwards. */
void det_batch_end(struct det_batch *batch);
/* Carries out the begun turns of the calling thread's batch, so that it holds no claims. Returns
 * false if there were none. `shard` is locked before and after. */
bool det_batch_yield(struct det_runtime *runtime, struct det_shard *shard);

#endif
