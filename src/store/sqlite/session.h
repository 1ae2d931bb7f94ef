/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.h - runs the operations of store/sql on SQLite. */
#ifndef DET_STORE_SQLITE_SESSION_H
#define DET_STORE_SQLITE_SESSION_H

#include "store/sql/sql.h"
#include "store/sqlite/sqlite.h"

/* The current row of a statement. */
struct det_sql_row det_sqlite_row(struct sqlite_call *call);

extern const struct det_sql_ops det_sqlite_sql;

#endif
