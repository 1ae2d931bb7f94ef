/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checksum.c - the SQL function row_checksum(): CRC-32C over its arguments, as specified in
 * docs/formats/sql_schema.md. Each statement that writes a row thus also writes its checksum,
 * whether the values are parameters or come from another row. */
#include <string.h>

#include "base/hash.h"
#include "store/sqlite/sqlite.h"

/* The first byte of a value. */
enum { IS_NULL = 0, IS_NUMBER = 1, IS_TEXT = 2, IS_BLOB = 3 };

static void put_number(unsigned char *target, uint64_t number, int size)
{
    for (int i = 0; i < size; i++)
        target[i] = (unsigned char)(number >> (8 * i));
}

static uint32_t add_bytes(uint32_t sum, unsigned char kind, const void *bytes, int size)
{
    unsigned char head[5] = { kind };

    put_number(head + 1, (uint64_t)(size < 0 ? 0 : size), 4);
    sum = det_crc32c(sum, head, sizeof head);
    return size > 0 && bytes ? det_crc32c(sum, bytes, (size_t)size) : sum;
}

/* A number with a fraction is damage, since no value of ours has one. */
static uint32_t add_value(uint32_t sum, sqlite3_value *value)
{
    unsigned char number[9] = { IS_NULL };

    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        number[0] = IS_NUMBER;
        put_number(number + 1, (uint64_t)sqlite3_value_int64(value), 8);
        return det_crc32c(sum, number, sizeof number);
    case SQLITE_TEXT: {
        const unsigned char *text = sqlite3_value_text(value);

        return add_bytes(sum, IS_TEXT, text, sqlite3_value_bytes(value));
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_value_blob(value);

        return add_bytes(sum, IS_BLOB, blob, sqlite3_value_bytes(value));
    }
    case SQLITE_FLOAT:
        return ~sum;
    default:
        return det_crc32c(sum, number, 1);
    }
}

static void row_checksum(sqlite3_context *context, int count, sqlite3_value **values)
{
    uint32_t sum = 0;

    for (int i = 0; i < count; i++)
        sum = add_value(sum, values[i]);
    sqlite3_result_int64(context, sum);
}

int det_sqlite_checksum_open(sqlite3 *database)
{
    return sqlite3_create_function_v2(
        database, "row_checksum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
        row_checksum, NULL, NULL, NULL);
}
