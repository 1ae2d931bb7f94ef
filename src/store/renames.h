/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* renames.h - the renames that a SQL store remembers, so that what was recorded under old names is
 * given out under the new ones.
 *
 * Invariants
 *   1. A rename holds for events at its position and before; nothing recorded later has a position
 *      as low as that.
 *   2. Of one batch a name is changed once: names may be exchanged.
 *   3. A list that was published is never changed, and stays until the store is closed: readers
 *      hold it. */
#ifndef DET_STORE_RENAMES_H
#define DET_STORE_RENAMES_H

#include <detent/machine.h>

struct det_renames;

/* "state", "event", "effect", "timer": the column `kind`. */
const char *det_rename_kind_name(enum det_name_kind kind);

/* An empty list; NULL: no memory. */
struct det_renames *det_renames_open(const struct det_allocator *allocator);
/* Closes the lists that this one replaced, too. NULL is fine. */
void det_renames_close(struct det_renames *renames);

/* A row of the table. */
struct det_rename_row {
    const char *machine, *kind, *from, *to;
    int64_t batch, position;
};
/* The oldest comes first. DET_ERR_CORRUPT when there is no such kind, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_renames_add(struct det_renames *renames, const struct det_rename_row *row);
size_t det_renames_count(const struct det_renames *renames);
/* It will be closed with the other one. */
void det_renames_replace(struct det_renames *renames, struct det_renames *old);

/* What is called so in an event of the machine at `position` now; a NULL list, and a NULL name, are
 * fine. */
const char *det_renames_apply(
    const struct det_renames *renames, const char *machine, enum det_name_kind kind,
    int64_t position, const char *name);
/* The new name by renames that are carried out just now. */
const char *det_rename_find(
    const struct det_rename *renames, size_t count, enum det_name_kind kind, const char *name);
/* A history, names separated by one space, with new names; DET_ERR_CORRUPT, DET_ERR_NO_MEMORY. */
struct det_buffer;
DET_MUST_CHECK int det_rename_history(
    const struct det_rename *renames, size_t count, const char *history, struct det_buffer *ret);

#endif
