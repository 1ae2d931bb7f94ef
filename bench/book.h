/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* book.h - instances in a durable store, and crowds that send to them, for the benches of
 * stores. */
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

/* Writes the id of the instance with that number. */
void book_id(uint32_t number, char id[BOOK_ID_MAX]);
struct book_event book_entry(uint64_t amount);

/* Opens a runtime on the store, which has `count` instances already. Sets the `user` of the
 * options. */
DET_MUST_CHECK int book_open(
    struct book *book, const char *url, const struct det_store_options *store_options,
    const struct det_runtime_options *options, uint32_t count, struct det_error *reterr);
void book_close(struct book *book);
/* Creates the first `count` instances in a new store, from many threads, so that they share
 * commits. */
DET_MUST_CHECK int book_fill(struct book *book);

/* Returns the next instance of the sender with that number: each sender has its own instances, in
 * random order. */
uint32_t book_next(const struct book *book, unsigned senders, unsigned sender, uint64_t *seed);

/* Sends `operations` entries by this many concurrent senders, each with one at a time: submitted,
 * without waiting threads; or each by a waiting thread. Returns 0 or the first failure. */
DET_MUST_CHECK int book_submit(struct book *book, unsigned senders, uint64_t operations);
DET_MUST_CHECK int book_block(struct book *book, unsigned senders, uint64_t operations);
/* The same with events that each request an effect, submitted; then waits until all effects have
 * ended and their ends are recorded. `has_answer`: each ends with an event to its instance. */
DET_MUST_CHECK int book_effects(
    struct book *book, unsigned senders, uint64_t operations, bool has_answer);
/* Sends one after the other, on this thread. */
DET_MUST_CHECK int book_single(struct book *book, uint64_t operations, uint64_t *seed);
/* Sends the event WAIT, or LEND, to the first `count` instances, each once. */
DET_MUST_CHECK int book_wait_all(struct book *book, uint32_t count);
DET_MUST_CHECK int book_lend_all(struct book *book, uint32_t count);

#endif
