/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live.h - a whole runtime on a recorded disk: senders, timers and effects at the same time, in the
 * simulated world.
 *
 * Whatever a runtime has told anybody is a promise: the answer to a sender, and what its observer
 * was told, which is every commit. At each place of the log it is known what had been promised.
 * After a power cut
 *   1. an instance stands at the sequence that was told last, or one commit after it;
 *   2. its events are contiguous, each legal by the table where the one before it led;
 *   3. no event id and no effect's product is there twice, and no id that nobody has sent;
 *   4. every answered id is at its sequence;
 *   5. it has the timer of its state, of this visit, and no other; the named one just when it must;
 *   6. every effect that an event asked for is in the outbox, or its product is among the events,
 *      and never both;
 *   7. the store finds nothing wrong with itself.
 * And one that is revived, a runtime that goes on for two days, brings everything to its end. */
#ifndef DET_CRASH_LIVE_H
#define DET_CRASH_LIVE_H

#include <detent/runtime.h>
#include <detent/sim.h>

#include "crash/bed.h"
#include "crash/cut.h"

#define LIVE_INSTANCES 4
#define LIVE_SENDERS   3
#define LIVE_SENDS_MAX 4096

/* What had been promised at a place of the log. */
struct live_promise {
    int64_t told[LIVE_INSTANCES]; /* the last sequence; -1: nothing, not even the start */
    uint32_t begun, answered;     /* sends */
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
    unsigned failures;                 /* effects that failed, to be tried again */
    bool is_revived;                   /* promises are not written down any more */
    bool answers_early, ignores_syncs; /* broken on purpose */
    uint64_t states, revived, revive_every;
    uint64_t wrong; /* states with something wrong */
    char text[512]; /* the first thing wrong with the last state */
};

/* Runs everything; the store is closed afterwards. */
void live_run(struct live *live, uint64_t seed);
void live_end(struct live *live);
/* Every cut. */
void live_cut(struct live *live, const struct crash_cut_options *options);

/* live_look.c: compares an open store with a promise. False: `text` says what is wrong.
 * `is_settled`: nothing may be pending any more. */
bool live_look(struct live *live, const struct live_promise *promise, bool is_settled);

const struct det_machine *parcel_definition(void);
void live_id(char target[32], char letter, unsigned number);
int live_open_runtime(struct live *live);

#endif
