/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_text.h - values of rows from texts: a column of CSV, the value of a key. */
#ifndef DET_CONNECTORS_ROW_TEXT_H
#define DET_CONNECTORS_ROW_TEXT_H

#include <detent/record.h>

#include "base/text.h"

/* Returns true if a text can be the value of the field: it is neither a list nor a record. */
bool row_takes_text(const struct det_field *field);
/* Sets a field of a row, whose memory is zero there. Numbers are decimal; a truth value is true,
 * false, 1 or 0; a time is RFC 3339; bytes are base64. An empty text leaves an optional field
 * absent. Returns NULL, or why not: "is not a whole number". It never has the text. */
const char *row_set_text(const struct det_field *field, void *row, struct det_view text);
/* Reads a decimal number such as -1.5, .5 or 1e9; returns false if the text is none or too
 * large. */
bool row_number(struct det_view text, double *ret);

#endif
