/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.h - reads a row of the log, and an event of an instance, in SQL. */
#ifndef DET_STORE_SQL_LOG_H
#define DET_STORE_SQL_LOG_H

#include <detent/tool/store.h>

#include "store/log.h"
#include "store/sql/sql.h"

/* The columns that a walk needs before it reads the row. */
enum { DET_SQL_LOGGED_POSITION, DET_SQL_LOGGED_INSTANCE };
/* The column of an event that follows those of det_sql_event_read(), where a statement has it. */
enum { DET_SQL_EVENT_TRACE = 15 };

/* Reads a row of the log, with current names. Pointers are into the row and into `trace`. */
struct det_store_logged det_sql_logged_read(
    const struct det_store *store, const struct det_sql_row *row, struct det_trace_context *trace);

/* Reads an event whose columns, from the second on, are: sequence, version, visit, from, to, event,
 * outcome, choice, timeout, time, event id, cause, payload, hash. Machine and id stay unset. The
 * hash points into the row: data NULL or of another size if it is damaged. */
struct det_chain_event det_sql_event_read(
    const struct det_sql_row *row, struct det_chain_bytes *ret_hash);

#endif
