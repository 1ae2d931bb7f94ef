/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* writer.h - one JSON object as a line of text, member by member.
 *
 * For what comes from a store: records write themselves as JSON with exact numbers, which a tree of
 * values in between would round. The first failure sticks to the buffer, as usual. */
#ifndef DET_JSON_WRITER_H
#define DET_JSON_WRITER_H

#include <detent/record.h>

#include "base/buffer.h"

struct det_json_writer {
    struct det_buffer text;
    bool needs_comma;
};

void det_json_writer_init(struct det_json_writer *json, const struct det_allocator *allocator);
void det_json_writer_deinit(struct det_json_writer *json);

/* "{", "}", "[", "]". A key of NULL: an element of an array, or the object itself. */
void det_json_open(struct det_json_writer *json, const char *key, char bracket);
void det_json_close(struct det_json_writer *json, char bracket);
void det_json_text(
    struct det_json_writer *json, const char *key, const char *text); /* NULL: null */
/* What is not UTF-8 is written with escapes. */
void det_json_bytes(struct det_json_writer *json, const char *key, const char *text, size_t size);
void det_json_number(struct det_json_writer *json, const char *key, uint64_t number);
void det_json_signed(struct det_json_writer *json, const char *key, int64_t number);
void det_json_bool(struct det_json_writer *json, const char *key, bool is_true);
/* RFC 3339 in UTC. */
void det_json_time(struct det_json_writer *json, const char *key, det_time at);
/* The value of a record; `flags` are those of det_record_to_json(). */
void det_json_record(
    struct det_json_writer *json, const char *key, const struct det_record *record,
    const void *value, unsigned flags);

/* A value that is JSON already. NULL: there was no memory for it. */
void det_json_raw(struct det_json_writer *json, const char *key, const char *text, size_t size);

#endif
