/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* columns.h - the fields of a record as named columns, and their values as text, CSV and JSON.
 *
 * Nested records are flattened: `place.city` is a column. Arrays and optional records are one
 * column each, with JSON as its text. Formatting allocates only when its buffer grows. */
#ifndef DET_CONNECTORS_COLUMNS_H
#define DET_CONNECTORS_COLUMNS_H

#include <detent/record.h>

#include "base/buffer.h"

enum columns_flags {
    COLUMNS_REDACTED = 1, /* sensitive fields are {redacted} */
    COLUMNS_NESTED = 2,   /* one column for each field of the outermost record: nested ones are
                           * JSON */
};

struct column {
    char *name;
    char *key; /* "name": in JSON */
    size_t key_size;
    const struct det_field *field;
    struct det_record alone; /* COMPOSED: a record of only this field */
    uint32_t offset;         /* of the value in the struct */
    uint32_t presence;       /* of the bool of an optional field */
    bool is_optional;
    bool is_composed; /* an array or a record: its text is JSON */
    bool is_redacted;
    bool hides_sensitive; /* also in what is composed */
};

struct columns {
    const struct det_allocator *allocator;
    struct column *list;
    size_t count, capacity;
    unsigned flags; /* enum columns_flags */
};

/* The record must outlive the columns. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int columns_init(
    struct columns *columns, const struct det_allocator *allocator, const struct det_record *record,
    unsigned flags);
void columns_deinit(struct columns *columns);
/* NULL: no such column. */
const struct column *columns_find(const struct columns *columns, const char *name);
/* The names as text for a message: "sensor, celsius". */
const char *columns_names(const struct columns *columns, char *target, size_t capacity);

/* False: an absent optional value. */
bool column_is_present(const struct column *column, const void *value);
/* Appends the text of a value: a text as it is, bytes in base64, "" for an absent one. Failures
 * stick to the buffer. */
void column_write(const struct column *column, const void *value, struct det_buffer *buffer);
/* Appends a JSON value; null for an absent one. */
void column_write_json(const struct column *column, const void *value, struct det_buffer *buffer);
/* Appends a line of RFC 4180 with a line feed at its end. An absent value is an empty cell, an
 * empty text is "". */
void columns_write_csv(
    const struct columns *columns, const void *value, char delimiter, struct det_buffer *buffer);
void columns_write_csv_head(
    const struct columns *columns, char delimiter, struct det_buffer *buffer);
/* Appends one JSON object, without a line feed. Absent fields are omitted. */
void columns_write_json(
    const struct columns *columns, const void *value, struct det_buffer *buffer);

/* Removes all bytes after the first `size`. */
static inline void buffer_cut(struct det_buffer *buffer, size_t size)
{
    if (size < buffer->size) {
        buffer->size = size;
        buffer->data[size] = '\0';
    }
}

#endif
