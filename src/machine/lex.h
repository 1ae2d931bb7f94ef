/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lex.h - the words of a spec file: names, numbers, strings, punctuation, comments, with places. */
#ifndef DET_MACHINE_LEX_H
#define DET_MACHINE_LEX_H

#include <detent/base.h>

enum det_token_kind {
    DET_TOKEN_END,
    DET_TOKEN_NAME,   /* a C identifier */
    DET_TOKEN_NUMBER, /* decimal, perhaps with a minus */
    DET_TOKEN_STRING, /* with its quotes; the escapes are valid */
    DET_TOKEN_OPEN,
    DET_TOKEN_CLOSE,
    DET_TOKEN_COMMA,
    DET_TOKEN_HASH,    /* at the start of a line */
    DET_TOKEN_COMMENT, /* only from det_lexer_next_any() */
    DET_TOKEN_BAD,     /* `problem` says why */
};

struct det_token {
    enum det_token_kind kind;
    uint32_t offset, length; /* bytes of the text */
    uint32_t line, column;   /* from 1; column counts bytes */
    bool starts_line;        /* only blanks (and comments, if skipped) stand before it */
    bool after_blank_line;
    const char *problem; /* BAD only: a sentence */
};

struct det_lexer {
    const char *text;
    uint32_t size;
    uint32_t offset;
    uint32_t line;
    uint32_t line_start; /* offset of the line's first byte */
    bool is_fresh;       /* only blanks and comments stand before this on the line */
};

/* What makes a text no spec at all; `problem` NULL: nothing. */
struct det_text_problem {
    const char *problem;
    bool is_encoding; /* not UTF-8 or a control character, rather than a backslash */
    struct det_token token;
};

/* UTF-8, no control characters, and no backslash that joins two lines, since C would join them. */
struct det_text_problem det_lexer_check(const char *text, uint32_t size);

/* The text must have passed det_lexer_check(). Copying a lexer looks ahead. */
void det_lexer_init(struct det_lexer *lexer, const char *text, uint32_t size);
struct det_token det_lexer_next(struct det_lexer *lexer);
/* Comments too. */
struct det_token det_lexer_next_any(struct det_lexer *lexer);

#endif
