/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_sink.h - text into a fixed array, counting on when it is full, as snprintf() does. */
#ifndef DET_RECORD_TEXT_SINK_H
#define DET_RECORD_TEXT_SINK_H

#include "base/text.h"

struct det_output {
    char *target;
    size_t capacity; /* with the final 0 */
    size_t length;   /* what it would be if all had fitted */
};

void det_output_append(struct det_output *output, const char *data, size_t size);
void det_output_text(struct det_output *output, const char *text);
void det_output_char(struct det_output *output, char c);
/* Writes the final 0 and returns the length. */
size_t det_output_finish(struct det_output *output);

/* How many bytes from the start stand for themselves in quotes: printable ASCII. */
size_t det_output_plain_size(struct det_view text);
/* A string in JSON's quotes. Besides what JSON demands, everything that could steer a terminal or
 * turn the direction of the text is escaped; bytes that are not UTF-8 become U+FFFD. */
void det_output_quoted(struct det_output *output, struct det_view text);
void det_output_base64(struct det_output *output, struct det_view bytes);
void det_output_hex(struct det_output *output, struct det_view bytes);

/* Strict base64 with padding, the one that det_output_base64() writes. DET_ERR_MALFORMED, or
 * DET_ERR_RANGE when it has more than `capacity` bytes. */
int det_base64_decode(struct det_view text, void *target, size_t capacity, size_t *ret_size);

#endif
