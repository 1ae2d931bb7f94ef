/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance.h - parts of an instance in a SQL store beside its head and rows: answers to event ids,
 * its start, and its snapshot. */
#ifndef DET_STORE_SQL_INSTANCE_H
#define DET_STORE_SQL_INSTANCE_H

#include "store/sql/sql.h"

/* Reads a head or a snapshot, whose columns follow the order of SNAPSHOT_READ from `first` (the
 * version) on; machine and id are the second and the third column. Pointers are into the row.
 * DET_ERR_CORRUPT: the hash has a wrong size. */
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
