/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* writer.h - writes JSON into a buffer, member by member, without a tree in between.
 *
 *     det_json_writer_init(&json, allocator);
 *     det_json_open(&json, NULL, '{');
 *     det_json_text(&json, "name", name);
 *     det_json_open(&json, "cents", '[');
 *     det_json_number(&json, NULL, 1999);
 *     det_json_close(&json, ']');
 *     det_json_close(&json, '}');                     {"name":"pen","cents":[1999]}
 *     r = det_buffer_status(&json.text);
 *
 * Numbers are exact. Strings contain no control sequences of terminals. The first failure (no
 * memory, or the limit of the buffer) sticks to the buffer; test it once, at the end. */
#ifndef DET_JSON_WRITER_H
#define DET_JSON_WRITER_H

#include <detent/record.h>

#include "base/buffer.h"
#include "base/text.h"

struct det_json_value;

struct det_json_writer {
    struct det_buffer text;
    bool needs_comma;
    unsigned indent; /* spaces per level, with every value on a separate line; 0: one line */
    unsigned depth;
};

void det_json_writer_init(struct det_json_writer *json, const struct det_allocator *allocator);
void det_json_writer_deinit(struct det_json_writer *json);
/* Clears the text for the next one; memory is kept. */
void det_json_writer_clear(struct det_json_writer *json);

/* Writes "{", "}", "[" or "]". In all functions a key of NULL writes an element of an array, or the
 * outermost value. */
void det_json_open(struct det_json_writer *json, const char *key, char bracket);
void det_json_close(struct det_json_writer *json, char bracket);
void det_json_text(
    struct det_json_writer *json, const char *key, const char *text); /* NULL: null */
/* Bytes that are not UTF-8 are written with escapes: "\\xff". */
void det_json_bytes(struct det_json_writer *json, const char *key, const char *text, size_t size);
void det_json_format(struct det_json_writer *json, const char *key, const char *format, ...)
    DET_PRINTF(3, 4);
void det_json_number(struct det_json_writer *json, const char *key, uint64_t number);
void det_json_signed(struct det_json_writer *json, const char *key, int64_t number);
/* Writes the shortest text that reads back as the same number; null if JSON cannot express it. */
void det_json_double(struct det_json_writer *json, const char *key, double number);
void det_json_bool(struct det_json_writer *json, const char *key, bool is_true);
void det_json_null(struct det_json_writer *json, const char *key);
/* Writes RFC 3339 in UTC. */
void det_json_time(struct det_json_writer *json, const char *key, det_time at);
/* Writes the value of a record; `flags` are those of det_record_to_json(). */
void det_json_record(
    struct det_json_writer *json, const char *key, const struct det_record *record,
    const void *value, unsigned flags);
/* Writes the fields of a record as members of the open object; NULL: none. */
void det_json_record_members(
    struct det_json_writer *json, const struct det_record *record, const void *value,
    unsigned flags);
/* Writes a value that was read, without the spaces between its tokens. NULL: null. */
void det_json_copy(
    struct det_json_writer *json, const char *key, const struct det_json_value *value);
/* Writes the members of an object that was read as members of the open object. */
void det_json_copy_members(struct det_json_writer *json, const struct det_json_value *object);
/* Writes a key alone; the caller appends its value to the text. */
void det_json_key(struct det_json_writer *json, const char *key);
/* Writes a value that is JSON already. NULL: the caller had no memory for it. */
void det_json_raw(struct det_json_writer *json, const char *key, const char *text, size_t size);

/* Appends a JSON string to any buffer. Bytes that are not UTF-8 become U+FFFD. */
void det_json_quote(struct det_buffer *buffer, struct det_view text);

#endif
