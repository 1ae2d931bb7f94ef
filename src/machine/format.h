/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* format.h - shared by the parts of the formatter. */
#ifndef DET_MACHINE_FORMAT_H
#define DET_MACHINE_FORMAT_H

#include "machine/lex.h"
#include "machine/rows.h"

/* Rows that fit are written on one line of this width; others are broken after commas. */
#define DET_FORMAT_WIDTH 100
/* Maximum number of aligned columns of a row. */
#define DET_FORMAT_COLUMNS 3

/* A row without alignment. */
struct det_format_row {
    struct det_token name;
    uint32_t argument_count;
    uint32_t widths[DET_FORMAT_COLUMNS]; /* of the first arguments */
    uint32_t width;                      /* of all of it */
    bool has_inner_comment;
    bool has_joined_text; /* adjacent strings: each begins a line but the first */
    bool has_comment;     /* after it, on its line */
};

/* Returns true if the text consists of rows, #define, #include and comments; otherwise returns the
 * offending token with its `problem`. A text that passes may be written without further checks. */
bool det_format_is_valid(const char *text, uint32_t size, struct det_token *ret);

/* Measures the row `name`. The lexer is positioned after the name, and is moved past the row and
 * its comments. */
struct det_format_row det_format_measure(struct det_lexer *lexer, const struct det_token *name);

#endif
