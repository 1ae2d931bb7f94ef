/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memo.h - what a store was found to say, by what it had read from the disk.
 *
 * Everything here is deterministic: a store that gets the same answers from its disk asks the same
 * next, and says the same in the end. So a state that differs from an earlier one only in bytes
 * that nobody asked for need not be opened to know what the store makes of it. About half of the
 * states of a power cut are such: what stands in a log behind the first frame that is torn.
 *
 *     start --ask: size of store.db-wal?--> 8272 --ask: 24 bytes at 32?--> ... --> what was found
 *                                      \--> 4152 --ask: ...
 *
 * Invariants
 *   1. Answers are those of the disk as the power left it; what the store writes over is asked for
 *      all the same, which tells apart too many states and never too few.
 *   2. Whoever asks something else after the same answers was not deterministic: what that one says
 *      is not remembered. */
#ifndef DET_CRASH_MEMO_H
#define DET_CRASH_MEMO_H

#include <detent/base.h>

#include "crash/disk.h"
#include "crash/model.h"

enum crash_ask { CRASH_ASK_BYTES, CRASH_ASK_SIZE, CRASH_ASK_EXISTS };

/* What became of opening a store and looking at it. */
struct crash_verdict {
    int result;
    unsigned findings;               /* of its own check */
    const struct crash_model *model; /* what it has, when it could be opened */
    char text[DET_ERROR_TEXT_MAX];
};

struct crash_memo;

struct crash_memo *crash_memo_open(void);
void crash_memo_close(struct crash_memo *memo);

/* What is known about a disk, for whoever begins in this way; NULL: nothing. */
const struct crash_verdict *crash_memo_find(
    const struct crash_memo *memo, uint64_t start, const struct crash_disk *disk);
/* Listens, from now until the end, to what is asked of the disk, which is as the power left it. */
void crash_memo_begin(struct crash_memo *memo, uint64_t start, struct crash_disk *disk);
void crash_memo_ask(
    struct crash_memo *memo, const char *path, enum crash_ask ask, uint64_t offset, size_t size);
/* The verdict and its model are copied. */
void crash_memo_end(struct crash_memo *memo, const struct crash_verdict *verdict);
/* Whether two are the same in all that counts. */
bool crash_verdict_equals(const struct crash_verdict *a, const struct crash_verdict *b);

#endif
