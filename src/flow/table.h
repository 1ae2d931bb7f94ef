/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table.h - states by key: of a stateful stage, or the reference rows of a join; and their
 * changelog in the stage's `.state` stream.
 *
 * Changed states are rows of the turn's group, the last row of a key counts. The log from the row
 * of the oldest state on has every state; so that this part stays short, a few of the oldest states
 * are written again with each group, in proportion to what was written.
 *
 *     log:   a1 b1 c1 a2 a3 a4 | b1'  ->  only the part from c1 on is needed
 *
 * Invariants
 *   1. `order` has the entries in the order of their last row, which ascends in written_row and
 *      written_at. Changed entries are not written yet, and keep their old place.
 *   2. Rows from state_from on: at most about three for each key, and a constant. */
#ifndef DET_FLOW_TABLE_H
#define DET_FLOW_TABLE_H

#include "base/list.h"
#include "flow/flow_internal.h"

struct det_table_entry {
    struct det_table_entry *next; /* of its chain */
    struct det_list all, order, changed;
    uint64_t hash;
    uint64_t written_row;           /* number of its last row; 0: none */
    uint64_t written_at;            /* a position not after that row */
    uint64_t rows;                  /* folded since the last emission */
    uint64_t position, correlation; /* of the last row that was folded */
    uint32_t key_size;
    bool is_changed;
    void *value;
    const char *key;
};

struct det_flow_table;

DET_MUST_CHECK int det_table_open(
    const struct det_allocator *allocator, const struct det_record *record,
    struct det_flow_table **ret);
void det_table_close(struct det_flow_table *table);
uint64_t det_table_count(const struct det_flow_table *table);
/* NULL: none. */
struct det_table_entry *det_table_get(const struct det_flow_table *table, struct det_view key);
/* Adds a state, all zero; the key must not be in the table. NULL: out of memory. */
struct det_table_entry *det_table_put(struct det_flow_table *table, struct det_view key);
/* The next turn writes it; it is the last one of all. */
void det_table_change(struct det_flow_table *table, struct det_table_entry *entry);
/* Removes a state; the next turn writes that it is gone, if a row of it was written. */
void det_table_remove(struct det_flow_table *table, struct det_table_entry *entry);
/* All entries in the order of their last rows; NULL: the first; NULL at the end. Entries that were
 * returned may be removed. */
struct det_table_entry *det_table_after(
    const struct det_flow_table *table, const struct det_table_entry *entry);

/* Adds the rows of changed and removed states, and of some old ones, to the turn. `end`: the last
 * position in the journal. */
DET_MUST_CHECK int det_table_write(
    struct det_flow_table *table, struct det_flow_turn *turn, uint16_t stream, uint64_t end);
/* What a PROGRESS row says about the table, with the rows of the turn under way. */
void det_table_progress(const struct det_flow_table *table, struct det_flow_progress *progress);
/* The turn was appended. */
void det_table_published(const struct det_flow_table *table, struct det_stage_kept *kept);

/* A row of the changelog, in order. DET_ERR_MALFORMED and errors of det_record_decode(). */
DET_MUST_CHECK int det_table_restore(
    struct det_flow_table *table, const struct det_journal_row *row, struct det_error *reterr);
/* After the last one. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_table_restored(
    struct det_flow_table *table, const struct det_stage_kept *kept);

#endif
