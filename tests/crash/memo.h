/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memo.h - verdicts about a store, by its reads from the disk.
 *
 * Everything here is deterministic: a store that reads the same bytes makes the same next read, and
 * has the same verdict. So a state that differs from an earlier one only in bytes that were not
 * read need not be opened. About half of the states of a power cut are such: they differ in a log
 * after the first torn frame.
 *
 *     start --read: size of store.db-wal?--> 8272 --read: 24 bytes at 32?--> ... --> verdict
 *                                      \--> 4152 --read: ...
 *
 * Invariants
 *   1. Results are those of the disk after the power cut; overwritten bytes count as reads, too,
 *      which distinguishes too many states and never too few.
 *   2. A store that makes a different read after the same results is not deterministic: its verdict
 *      is not stored. */
#ifndef DET_CRASH_MEMO_H
#define DET_CRASH_MEMO_H

#include <detent/base.h>

#include "crash/disk.h"
#include "crash/model.h"

enum crash_ask { CRASH_ASK_BYTES, CRASH_ASK_SIZE, CRASH_ASK_EXISTS };

/* The verdict about a store. */
struct crash_verdict {
    int result;
    unsigned findings;               /* findings of its own check */
    const struct crash_model *model; /* its content, if it could be opened */
    char text[DET_ERROR_TEXT_MAX];
};

struct crash_memo;

struct crash_memo *crash_memo_open(void);
void crash_memo_close(struct crash_memo *memo);

/* Returns the verdict about a disk for a process that begins in this way; NULL: unknown. */
const struct crash_verdict *crash_memo_find(
    const struct crash_memo *memo, uint64_t start, const struct crash_disk *disk);
/* Observes the reads from the disk, which is as after the power cut, from now until the end. */
void crash_memo_begin(struct crash_memo *memo, uint64_t start, struct crash_disk *disk);
void crash_memo_read(
    struct crash_memo *memo, const char *path, enum crash_ask ask, uint64_t offset, size_t size);
/* The verdict and its model are copied. */
void crash_memo_end(struct crash_memo *memo, const struct crash_verdict *verdict);
/* True if two verdicts are equal in all relevant parts. */
bool crash_verdict_equals(const struct crash_verdict *a, const struct crash_verdict *b);

#endif
