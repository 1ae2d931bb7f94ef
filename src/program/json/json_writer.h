/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_writer.h - one JSON object as a line of text, member by member.
 *
 * For what comes from a store: records write themselves as JSON with exact numbers, which a tree of
 * values in between would round. The first failure sticks to the buffer, as usual. */
#ifndef DET_JSON_JSON_WRITER_H
#define DET_JSON_JSON_WRITER_H

#include <detent/record.h>

#include "base/buffer.h"

struct line {
    struct det_buffer text;
    bool needs_comma;
};

void line_init(struct line *line, const struct det_allocator *allocator);
void line_deinit(struct line *line);

/* "{", "}", "[", "]". A key of NULL: an element of an array, or the object itself. */
void line_open(struct line *line, const char *key, char bracket);
void line_close(struct line *line, char bracket);
void line_text(struct line *line, const char *key, const char *text); /* NULL: null */
/* What is not UTF-8 is written with escapes. */
void line_bytes(struct line *line, const char *key, const char *text, size_t size);
void line_number(struct line *line, const char *key, uint64_t number);
void line_signed(struct line *line, const char *key, int64_t number);
void line_bool(struct line *line, const char *key, bool is_true);
/* RFC 3339 in UTC. */
void line_time(struct line *line, const char *key, det_time at);
/* The value of a record; `flags` are those of det_record_to_json(). */
void line_record(
    struct line *line, const char *key, const struct det_record *record, const void *value,
    unsigned flags);

/* A value that is JSON already. NULL: there was no memory for it. */
void line_raw(struct line *line, const char *key, const char *text, size_t size);

#endif
