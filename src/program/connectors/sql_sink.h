/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql_sink.h - what the sinks `sqlite` and `postgres` share: the table and the mapping of its
 * columns, from settings.
 *
 *     {table: readings, key: [sensor, at], columns: {sensor: sensor, at: measured_at}}
 *
 * Without `columns` each field has a column of its name; a point in the name of a nested field is a
 * '_' in that of its column. */
#ifndef DET_CONNECTORS_SQL_SINK_H
#define DET_CONNECTORS_SQL_SINK_H

#include "connectors/settings.h"
#include "connectors/sql_text.h"

struct sql_mapping {
    const struct det_allocator *allocator;
    struct columns columns; /* of the record */
    struct sql_target *targets;
    char (*names)[SQL_NAME_MAX + 1];
    size_t target_count;
    struct sql_table table; /* borrows the name of the table */
};

/* Names of settings that are trees: `columns`. */
extern const char *const sql_mapping_trees[];

/* Reads table, key and columns. The texts of `keys` are of a record: key_size bytes each. */
struct sql_mapping_settings {
    enum sql_dialect dialect;
    const char *table;
    const char *keys;
    size_t key_size, key_count;
};
DET_MUST_CHECK int sql_mapping_init(
    struct sql_mapping *mapping, const struct det_allocator *allocator,
    const struct settings *settings, const struct sql_mapping_settings *wanted,
    struct det_error *reterr);
void sql_mapping_deinit(struct sql_mapping *mapping);

#endif
