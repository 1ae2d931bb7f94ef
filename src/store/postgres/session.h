/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.h - runs the operations of store/sql on PostgreSQL. */
#ifndef DET_STORE_POSTGRES_SESSION_H
#define DET_STORE_POSTGRES_SESSION_H

#include "store/postgres/postgres.h"
#include "store/sql/sql.h"

/* A row of a result. */
struct det_sql_row det_postgres_row(const PGresult *rows, int index);

extern const struct det_sql_ops det_postgres_sql;

#endif
