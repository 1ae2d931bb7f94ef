/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* renames.h - the renames of a SQL store in memory. A published list never changes, and lives until
 * the store is closed: readers hold it. */
#ifndef DET_STORE_SQL_RENAMES_H
#define DET_STORE_SQL_RENAMES_H

#include "store/renames.h"
#include "store/sql/sql.h"

/* Reads a row of RENAME_LIST into the context, a struct det_renames. */
int det_sql_renames_add(void *context, const struct det_sql_row *row);
/* Publishes a list if it has more renames than the current one. */
void det_sql_renames_publish(struct det_store *store, struct det_renames *renames_take);
/* Number of known renames. */
size_t det_sql_renames_count(const struct det_store *store);
/* Reads and publishes them. */
DET_MUST_CHECK int det_sql_renames_read(struct det_store *store, struct det_error *reterr);
void det_sql_renames_close(struct det_store *store);
/* The current name for one recorded at a position. */
static inline const char *det_sql_renamed(
    const struct det_store *store, const char *machine, enum det_name_kind kind, int64_t position,
    const char *name)
{
    return det_renames_apply(det_sql_store_of(store)->renames, machine, kind, position, name);
}

#endif
