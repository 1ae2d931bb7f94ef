/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* renames.h - the renames of a SQL store: rows recorded under old names are returned under the
 * current ones.
 *
 * Invariants
 *   1. A rename holds for events up to its position; every later event has a higher position.
 *   2. A batch changes a name once, so names may be exchanged.
 *   3. A published list never changes, and lives until the store is closed: readers hold it. */
#ifndef DET_STORE_RENAMES_H
#define DET_STORE_RENAMES_H

#include <detent/machine.h>

struct det_renames;

/* "state", "event", "effect", "timer": the column `kind`. */
const char *det_rename_kind_name(enum det_name_kind kind);

/* An empty list; NULL: no memory. */
struct det_renames *det_renames_open(const struct det_allocator *allocator);
/* Closes the replaced lists, too. Accepts NULL. */
void det_renames_close(struct det_renames *renames);

/* A row of the table. */
struct det_rename_row {
    const char *machine, *kind, *from, *to;
    int64_t batch, position;
};
/* Rows come oldest first. DET_ERR_CORRUPT: unknown kind; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_renames_add(struct det_renames *renames, const struct det_rename_row *row);
size_t det_renames_count(const struct det_renames *renames);
/* Makes `old` be closed with `renames`. */
void det_renames_replace(struct det_renames *renames, struct det_renames *old);

/* The current name of `name` in an event of the machine at `position`; the list and the name may be
 * NULL. */
const char *det_renames_apply(
    const struct det_renames *renames, const char *machine, enum det_name_kind kind,
    int64_t position, const char *name);
/* The new name according to renames in progress. */
const char *det_rename_find(
    const struct det_rename *renames, size_t count, enum det_name_kind kind, const char *name);
/* Converts a history, names separated by one space; DET_ERR_CORRUPT, DET_ERR_NO_MEMORY. */
struct det_buffer;
DET_MUST_CHECK int det_rename_history(
    const struct det_rename *renames, size_t count, const char *history, struct det_buffer *ret);

#endif
