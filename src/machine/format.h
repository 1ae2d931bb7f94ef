/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* format.h - what the parts of the formatter share. */
#ifndef DET_MACHINE_FORMAT_H
#define DET_MACHINE_FORMAT_H

#include "machine/lex.h"
#include "machine/rows.h"

/* Rows that fit are on one line of this width, the others are broken behind commas. */
#define DET_FORMAT_WIDTH 100
/* No row has more columns that are aligned. */
#define DET_FORMAT_COLUMNS 3

/* A row as it is written without alignment. */
struct det_format_row {
    struct det_token name;
    uint32_t argument_count;
    uint32_t widths[DET_FORMAT_COLUMNS]; /* of the first arguments */
    uint32_t width;                      /* of all of it */
    bool has_inner_comment;
    bool has_comment; /* behind it, on its line */
};

/* Whether the text consists of rows, #define, #include and comments; otherwise the token where it
 * does not, whose `problem` is set. A text that passes may be written without further tests. */
bool det_format_is_sound(const char *text, uint32_t size, struct det_token *ret);

/* Measures the row whose name is `name`; the lexer, which stands behind the name, is moved behind
 * the row and its comments. */
struct det_format_row det_format_measure(struct det_lexer *lexer, const struct det_token *name);

#endif
