/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live.h - a whole runtime on a recorded disk: senders, timers and effects at the same time, in the
 * simulated world.
 *
 * Every report of a runtime is a promise: the answer to a sender, and every commit reported to the
 * observer. The promises at each place of the log are recorded. After a power cut
 *   1. an instance is at the last reported sequence, or one commit after it;
 *   2. its events are contiguous, and each is a legal transition from the state after the previous
 *      one;
 *   3. no event id and no effect's product is duplicated, and every id was sent;
 *   4. every acknowledged id is at its sequence;
 *   5. it has the timer of its state, of this visit, and no other; the named one exactly when
 *      required;
 *   6. every requested effect is in the outbox, or its product is among the events, never both;
 *   7. the store's own check finds no fault.
 * And a revived runtime, which runs for two days, finishes everything. */
#ifndef DET_CRASH_LIVE_H
#define DET_CRASH_LIVE_H

#include <detent/runtime.h>
#include <detent/sim.h>

#include "crash/bed.h"
#include "crash/cut.h"

#define LIVE_INSTANCES 4
#define LIVE_SENDERS   3
#define LIVE_SENDS_MAX 4096

/* The promises at a place of the log. */
struct live_promise {
    int64_t reported[LIVE_INSTANCES]; /* the last sequence; -1: nothing, not even the start */
    uint32_t begun, answered;         /* sends */
};

struct live_send {
    unsigned instance;
    uint64_t sequence; /* of the answer */
};

struct live {
    struct crash_bed bed;
    struct det_world *world;
    struct det_store *store;
    struct det_runtime *runtime;
    struct live_promise promise;   /* now */
    struct live_promise *promises; /* at each mark, from 1 */
    size_t promise_count, promise_capacity;
    struct live_send sends[LIVE_SENDS_MAX];
    uint32_t answered[LIVE_SENDS_MAX]; /* numbers of sends, in the order of their answers */
    unsigned sends_each;               /* of each sender */
    unsigned failures;                 /* failed effects, which are retried */
    bool is_revived;                   /* promises are no longer recorded */
    bool answers_early, ignores_syncs; /* broken on purpose */
    uint64_t states, revived, revive_every;
    uint64_t wrong; /* number of wrong states */
    char text[512]; /* the first fault of the last state */
};

/* Runs everything; the store is closed afterwards. */
void live_run(struct live *live, uint64_t seed);
void live_end(struct live *live);
/* Checks every cut. */
void live_cut(struct live *live, const struct crash_cut_options *options);

/* live_check.c: compares an open store with a promise. False: `text` has the difference.
 * `is_settled`: nothing may be pending. */
bool live_check(struct live *live, const struct live_promise *promise, bool is_settled);

const struct det_machine *parcel_definition(void);
void live_id(char target[32], char letter, unsigned number);
int live_open_runtime(struct live *live);

#endif
