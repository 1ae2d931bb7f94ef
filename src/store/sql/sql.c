/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql.c - parameters of statements, and common code for rows and changes. */
#include "store/sql/sql.h"

#include <string.h>

#include "base/assert.h"

static void add_value(struct det_sql_values *values, const struct det_sql_value *value)
{
    det_assert(values->count < DET_SQL_VALUES_MAX);
    values->list[values->count++] = *value;
}

void det_sql_add_number(struct det_sql_values *values, int64_t number)
{
    add_value(values, &(struct det_sql_value){ .kind = DET_SQL_NUMBER, .number = number });
}

void det_sql_add_count(struct det_sql_values *values, uint64_t count)
{
    det_sql_add_number(values, count < INT64_MAX ? (int64_t)count : INT64_MAX);
}

void det_sql_add_text(struct det_sql_values *values, const char *text)
{
    add_value(
        values, &(struct det_sql_value){ .kind = DET_SQL_TEXT,
                                         .bytes = { text, text ? strlen(text) : 0 } });
}

void det_sql_add_bytes(struct det_sql_values *values, const void *data, size_t size)
{
    add_value(
        values,
        &(struct det_sql_value){ .kind = DET_SQL_BYTES, .bytes = { size ? data : "", size } });
}

int det_sql_check(const struct det_sql_row *row, int column)
{
    bool is_complete = det_sql_flag(row, column);
    int r;

    r = det_sql_status(row);
    return r == 0 && !is_complete ? DET_ERR_CORRUPT : r;
}

int det_sql_change_all(
    struct det_store *store, struct det_sql_change *change, uint64_t at_once, uint64_t *ret)
{
    bool has_more;
    int r;

    det_assert(at_once > 0 && change->is_repeatable);
    *ret = 0;
    do {
        change->rows = 0;
        r = det_sql_change(store, change, NULL);
        *ret += r == 0 ? change->rows : 0;
        /* If two processes do this at once, each changes fewer rows than exist. */
        has_more = store->ops->is_shared ? change->rows > 0 : change->rows == at_once;
    } while (r == 0 && has_more);
    return r;
}
