/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.h - how the operations of store/sql reach SQLite. */
#ifndef DET_STORE_SQLITE_SESSION_H
#define DET_STORE_SQLITE_SESSION_H

#include "store/sql/sql.h"
#include "store/sqlite/sqlite.h"

/* The row at which a statement stands. */
struct det_sql_row det_sqlite_row(struct sqlite_call *call);

extern const struct det_sql_ops det_sqlite_sql;

#endif
