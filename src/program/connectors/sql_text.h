/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql_text.h - statements of the database sinks. Pure.
 *
 * Names come from settings: they are checked, then quoted. Values are never part of a statement. */
#ifndef DET_CONNECTORS_SQL_TEXT_H
#define DET_CONNECTORS_SQL_TEXT_H

#include "connectors/columns.h"

#define SQL_NAME_MAX    63 /* bytes in a name */
#define SQL_COLUMNS_MAX 512

enum sql_dialect { SQL_SQLITE, SQL_POSTGRES };

/* A column of the table and its value. */
struct sql_target {
    const char *name; /* in the table */
    const struct column *column;
    bool is_key;
};

struct sql_table {
    enum sql_dialect dialect;
    const char *name; /* "readings"; in PostgreSQL also "public.readings" */
    const struct sql_target *targets;
    size_t target_count;
    size_t key_count;
};

/* Letters, digits and _, not beginning with a digit, at most SQL_NAME_MAX bytes. */
bool sql_name_is_valid(const char *name, size_t size);
/* The same, and with a schema before it in PostgreSQL. */
bool sql_table_name_is_valid(enum sql_dialect dialect, const char *name);
void sql_write_table_name(const struct sql_table *table, struct det_buffer *buffer);
/* "name", "name", ... */
void sql_write_targets(const struct sql_table *table, struct det_buffer *buffer);

/* CREATE TABLE IF NOT EXISTS with the keys as its primary key. */
void sql_write_create(const struct sql_table *table, struct det_buffer *buffer);
/* What follows the source of rows: nothing without keys, else ON CONFLICT (keys) DO UPDATE, or
 * NOTHING if all columns are keys. */
void sql_write_conflict(const struct sql_table *table, struct det_buffer *buffer);
/* INSERT with one parameter for each column. */
void sql_write_insert(const struct sql_table *table, struct det_buffer *buffer);

#endif
