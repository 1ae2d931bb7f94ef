/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate.h - renames names in all stored rows. */
#ifndef DET_STORE_SQL_MIGRATE_H
#define DET_STORE_SQL_MIGRATE_H

#include "store/sql/sql.h"

int det_sql_migrate(
    struct det_store *store, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr);

#endif
