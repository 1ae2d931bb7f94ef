/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance.h - what a SQL store remembers of an instance beside its head and what belongs to it:
 * answers to events that had an id, its start, and its snapshot. */
#ifndef DET_STORE_SQL_INSTANCE_H
#define DET_STORE_SQL_INSTANCE_H

#include "store/sql/sql.h"

/* A head or a snapshot, whose columns stand in the order of SNAPSHOT_READ from `first` (the
 * version) on; machine and id are the second and the third column. What it points to is the row's.
 * DET_ERR_CORRUPT when the hash does not have its size. */
DET_MUST_CHECK int det_sql_head_read(
    const struct det_sql_row *row, int first, struct det_chain_head *ret);

int det_sql_answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret);
int det_sql_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret);
int det_sql_snapshot(
    struct det_store *store, struct det_store_instance *instance, struct det_store_snapshot *ret);

#endif
