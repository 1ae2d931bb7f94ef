/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.h - reads the rows of an instance in a SQL store: timers, effects, deferred events, and
 * recorded events. */
#ifndef DET_STORE_SQL_LOAD_H
#define DET_STORE_SQL_LOAD_H

#include "store/sql/sql.h"

/* An instance under load. */
struct det_sql_loading {
    const struct det_store *store;
    const struct det_machine *machine;
    const struct det_store_rows *rows; /* who gets the rows */
    char *room;                        /* det_sql_load_room() bytes, aligned for any struct */
};

/* Room for two structs of the machine: an event, followed by data. */
size_t det_sql_load_room(const struct det_machine *machine);

/* Reads a timer, an effect or a deferred event, and passes it on; returns the result of that. A
 * dead row whose names are not in the definition stays in the store only: 0. DET_ERR_CORRUPT,
 * DET_ERR_VERSION. */
DET_MUST_CHECK int det_sql_row_load(
    const struct det_sql_loading *loading, const struct det_sql_row *row);

/* Converts an event, recorded at a position, to current names and structs. `value` has the
 * machine's event_size; texts point to those of `event`. The trace context stays unset.
 * DET_ERR_CORRUPT, DET_ERR_VERSION. */
DET_MUST_CHECK int det_sql_event_load(
    const struct det_store *store, const struct det_machine *machine, int64_t position,
    const struct det_chain_event *event, void *value, struct det_store_event *ret);

#endif
