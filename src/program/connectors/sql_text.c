/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql_text.c - composes the statements of the database sinks. */
#include "connectors/sql_text.h"

#include <string.h>

#include "base/assert.h"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool sql_name_is_valid(const char *name, size_t size)
{
    if (size == 0 || size > SQL_NAME_MAX || (name[0] >= '0' && name[0] <= '9'))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_name_char(name[i]))
            return false;
    return true;
}

bool sql_table_name_is_valid(enum sql_dialect dialect, const char *name)
{
    const char *point = dialect == SQL_POSTGRES ? strchr(name, '.') : NULL;

    if (!point)
        return sql_name_is_valid(name, strlen(name));
    return sql_name_is_valid(name, (size_t)(point - name)) &&
           sql_name_is_valid(point + 1, strlen(point + 1));
}

/* Names were checked, so no quote is in them. A column of a nested record has a point. */
static void write_name(struct det_buffer *buffer, const char *name, size_t size)
{
    det_assert(!memchr(name, '"', size));
    det_buffer_append_char(buffer, '"');
    det_buffer_append(buffer, name, size);
    det_buffer_append_char(buffer, '"');
}

void sql_write_table_name(const struct sql_table *table, struct det_buffer *buffer)
{
    const char *point = strchr(table->name, '.');

    det_assert(sql_table_name_is_valid(table->dialect, table->name));
    if (point) {
        write_name(buffer, table->name, (size_t)(point - table->name));
        det_buffer_append_char(buffer, '.');
    }
    write_name(buffer, point ? point + 1 : table->name, strlen(point ? point + 1 : table->name));
}

/* Writes the names of the targets that are keys, or of those that are not, or of all. */
enum selection { ALL, KEYS, OTHERS };

static bool is_selected(const struct sql_target *target, enum selection selection)
{
    return selection == ALL || target->is_key == (selection == KEYS);
}

static void write_names(
    const struct sql_table *table, enum selection selection, bool is_excluded,
    struct det_buffer *buffer)
{
    const char *between = "";

    for (size_t i = 0; i < table->target_count; i++) {
        const char *name = table->targets[i].name;

        if (!is_selected(&table->targets[i], selection))
            continue;
        det_buffer_append_text(buffer, between);
        write_name(buffer, name, strlen(name));
        if (is_excluded) {
            det_buffer_append_text(buffer, " = excluded.");
            write_name(buffer, name, strlen(name));
        }
        between = ", ";
    }
}

void sql_write_targets(const struct sql_table *table, struct det_buffer *buffer)
{
    write_names(table, ALL, false, buffer);
}

/* SQLite gives a column an affinity by its type; PostgreSQL's numeric holds every u64. */
static const char *type_of(enum sql_dialect dialect, const struct column *column)
{
    bool is_sqlite = dialect == SQL_SQLITE;

    if (column->is_composed)
        return is_sqlite ? "TEXT" : "jsonb";
    switch (column->field->kind) {
    case DET_KIND_UNSIGNED:
        return is_sqlite ? "INTEGER" : column->field->size == 8 ? "numeric(20)" : "bigint";
    case DET_KIND_SIGNED:
        return is_sqlite ? "INTEGER" : "bigint";
    case DET_KIND_FLOAT:
        return is_sqlite ? "REAL" : "double precision";
    case DET_KIND_BOOL:
        return is_sqlite ? "INTEGER" : "boolean";
    case DET_KIND_TIME:
        return is_sqlite ? "TEXT" : "timestamptz";
    case DET_KIND_BYTES:
        return is_sqlite ? "BLOB" : "bytea";
    case DET_KIND_TEXT:
    case DET_KIND_ENUM:
    case DET_KIND_RECORD:
        break;
    }
    return is_sqlite ? "TEXT" : "text";
}

void sql_write_create(const struct sql_table *table, struct det_buffer *buffer)
{
    det_buffer_append_text(buffer, "CREATE TABLE IF NOT EXISTS ");
    sql_write_table_name(table, buffer);
    for (size_t i = 0; i < table->target_count; i++) {
        const struct sql_target *target = &table->targets[i];

        det_buffer_append_text(buffer, i == 0 ? " (" : ", ");
        write_name(buffer, target->name, strlen(target->name));
        det_buffer_append_char(buffer, ' ');
        det_buffer_append_text(buffer, type_of(table->dialect, target->column));
        if (!target->column->is_optional)
            det_buffer_append_text(buffer, " NOT NULL");
    }
    if (table->key_count > 0) {
        det_buffer_append_text(buffer, ", PRIMARY KEY (");
        write_names(table, KEYS, false, buffer);
        det_buffer_append_char(buffer, ')');
    }
    det_buffer_append_char(buffer, ')');
}

void sql_write_conflict(const struct sql_table *table, struct det_buffer *buffer)
{
    if (table->key_count == 0)
        return;
    det_buffer_append_text(buffer, " ON CONFLICT (");
    write_names(table, KEYS, false, buffer);
    if (table->key_count == table->target_count) {
        det_buffer_append_text(buffer, ") DO NOTHING");
        return;
    }
    det_buffer_append_text(buffer, ") DO UPDATE SET ");
    write_names(table, OTHERS, true, buffer);
}

void sql_write_insert(const struct sql_table *table, struct det_buffer *buffer)
{
    det_buffer_append_text(buffer, "INSERT INTO ");
    sql_write_table_name(table, buffer);
    det_buffer_append_text(buffer, " (");
    write_names(table, ALL, false, buffer);
    det_buffer_append_text(buffer, ") VALUES (");
    for (size_t i = 0; i < table->target_count; i++)
        det_buffer_format(buffer, "%s?%zu", i == 0 ? "" : ", ", i + 1);
    det_buffer_append_char(buffer, ')');
    sql_write_conflict(table, buffer);
}
