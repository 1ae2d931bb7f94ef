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
 * Numbers are exact. Nothing in a string can steer a terminal. The first failure (no memory, or the
 * limit of the buffer) sticks to the buffer; test it once, at the end. */
#ifndef DET_JSON_WRITER_H
#define DET_JSON_WRITER_H

#include <detent/record.h>

#include "base/buffer.h"
#include "base/text.h"

struct det_json_value;

struct det_json_writer {
    struct det_buffer text;
    bool needs_comma;
    unsigned indent; /* spaces for each level, every value on a line of its own; 0: one line */
    unsigned depth;
};

void det_json_writer_init(struct det_json_writer *json, const struct det_allocator *allocator);
void det_json_writer_deinit(struct det_json_writer *json);
/* Empty again, for the next text; memory is kept. */
void det_json_writer_clear(struct det_json_writer *json);

/* "{", "}", "[", "]". In all of these a key of NULL writes an element of an array, or the outermost
 * value. */
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
/* The shortest text that reads back as the same number; null when JSON has none. */
void det_json_double(struct det_json_writer *json, const char *key, double number);
void det_json_bool(struct det_json_writer *json, const char *key, bool is_true);
void det_json_null(struct det_json_writer *json, const char *key);
/* RFC 3339 in UTC. */
void det_json_time(struct det_json_writer *json, const char *key, det_time at);
/* The value of a record; `flags` are those of det_record_to_json(). */
void det_json_record(
    struct det_json_writer *json, const char *key, const struct det_record *record,
    const void *value, unsigned flags);
/* The fields of a record as members of the object that is open; none when it is NULL. */
void det_json_record_members(
    struct det_json_writer *json, const struct det_record *record, const void *value,
    unsigned flags);
/* A value that was read; without the spaces between its tokens. NULL: null. */
void det_json_copy(
    struct det_json_writer *json, const char *key, const struct det_json_value *value);
/* A key alone; the caller appends its value to the text. */
void det_json_key(struct det_json_writer *json, const char *key);
/* A value that is JSON already. NULL: there was no memory for it. */
void det_json_raw(struct det_json_writer *json, const char *key, const char *text, size_t size);

/* A string of JSON at the end of any buffer. Bytes that are not UTF-8 become U+FFFD. */
void det_json_quote(struct det_buffer *buffer, struct det_view text);

#endif
