/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_sink.h - writes text to a fixed array; keeps counting when it is full, like snprintf(). */
#ifndef DET_RECORD_TEXT_SINK_H
#define DET_RECORD_TEXT_SINK_H

#include "base/text.h"

struct det_output {
    char *target;
    size_t capacity; /* including the final NUL */
    size_t length;   /* length of the whole text, also if truncated */
};

void det_output_append(struct det_output *output, const char *data, size_t size);
void det_output_text(struct det_output *output, const char *text);
void det_output_char(struct det_output *output, char c);
/* Writes the final NUL and returns the length. */
size_t det_output_finish(struct det_output *output);

/* Returns the length of the prefix that needs no escape in quotes: printable ASCII. */
size_t det_output_plain_size(struct det_view text);
/* Writes a JSON string. Besides what JSON requires, it escapes everything that could control a
 * terminal or change the direction of text; bytes that are not UTF-8 become U+FFFD. */
void det_output_quoted(struct det_output *output, struct det_view text);
void det_output_base64(struct det_output *output, struct det_view bytes);
void det_output_hex(struct det_output *output, struct det_view bytes);

/* Decodes strict base64 with padding, as det_output_base64() writes it. Returns DET_ERR_MALFORMED,
 * or DET_ERR_RANGE if the result exceeds `capacity` bytes. */
int det_base64_decode(struct det_view text, void *target, size_t capacity, size_t *ret_size);

#endif
