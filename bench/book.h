/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* book.h - instances in a durable store, and crowds that send to them, for the benches of stores.
 */
#ifndef BENCH_BOOK_H
#define BENCH_BOOK_H

#include <stdatomic.h>

#include <detent/runtime.h>

#include "bench.h"

#define FSM_SPEC "book.fsm"
#include <detent/fsm/declare.h>

#define BOOK_ID_MAX 16

struct book {
    struct det_store *store;
    struct det_runtime *runtime;
    uint32_t count;
    _Atomic uint64_t effect_runs; /* attempts of effects so far */
};

/* The id of the instance with that number. */
void book_id(uint32_t number, char id[BOOK_ID_MAX]);
struct book_event book_entry(uint64_t amount);

/* A runtime on the store. `count` instances are there already. The `user` of the options is set. */
DET_MUST_CHECK int book_open(
    struct book *book, const char *url, const struct det_store_options *store_options,
    const struct det_runtime_options *options, uint32_t count, struct det_error *reterr);
void book_close(struct book *book);
/* Creates the first `count` instances in a store that is new; from many threads, so that they share
 * commits. */
DET_MUST_CHECK int book_fill(struct book *book);

/* Which instance the sender with that number takes next: each has instances of its own, and takes
 * them in random order. */
uint32_t book_next(const struct book *book, unsigned senders, unsigned sender, uint64_t *seed);

/* As many entries as `operations`, by so many senders at once, each of which has one under way at a
 * time: submitted, so that nobody waits; or each by a thread that does. 0 or the first failure. */
DET_MUST_CHECK int book_submit(struct book *book, unsigned senders, uint64_t operations);
DET_MUST_CHECK int book_block(struct book *book, unsigned senders, uint64_t operations);
/* The same with events that each request an effect, submitted; then waits until all effects have
 * ended and their ends are recorded. `has_answer`: each ends with an event to its instance. */
DET_MUST_CHECK int book_effects(
    struct book *book, unsigned senders, uint64_t operations, bool has_answer);
/* One after the other, on this thread. */
DET_MUST_CHECK int book_single(struct book *book, uint64_t operations, uint64_t *seed);
/* The event WAIT, or LEND, to the first `count` instances, each once. */
DET_MUST_CHECK int book_wait_all(struct book *book, uint32_t count);
DET_MUST_CHECK int book_lend_all(struct book *book, uint32_t count);

#endif
