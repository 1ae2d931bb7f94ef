/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lex.h - the tokens of a spec file: names, numbers, strings, punctuation, comments, with
 * places. */
#ifndef DET_MACHINE_LEX_H
#define DET_MACHINE_LEX_H

#include <detent/base.h>

enum det_token_kind {
    DET_TOKEN_END,
    DET_TOKEN_NAME,   /* a C identifier */
    DET_TOKEN_NUMBER, /* decimal, with an optional minus */
    DET_TOKEN_STRING, /* with its quotes; the escapes are valid */
    DET_TOKEN_OPEN,
    DET_TOKEN_CLOSE,
    DET_TOKEN_COMMA,
    DET_TOKEN_HASH,    /* at the start of a line */
    DET_TOKEN_COMMENT, /* only from det_lexer_next_any() */
    DET_TOKEN_BAD,     /* `problem` has the reason */
};

struct det_token {
    enum det_token_kind kind;
    uint32_t offset, length; /* bytes of the text */
    uint32_t line, column;   /* from 1; column counts bytes */
    bool starts_line;        /* first token of its line, ignoring blanks (and comments, if
                              * skipped) */
    bool after_blank_line;
    const char *problem; /* BAD only: a sentence */
};

struct det_lexer {
    const char *text;
    uint32_t size;
    uint32_t offset;
    uint32_t line;
    uint32_t line_start; /* offset of the line's first byte */
    bool is_fresh;       /* only blanks and comments precede this on the line */
};

/* A reason why a text is not a spec; `problem` NULL: none. */
struct det_text_problem {
    const char *problem;
    bool is_encoding; /* not UTF-8 or a control character, rather than a backslash */
    struct det_token token;
};

/* Checks that the text is UTF-8 without control characters, and without a backslash that joins two
 * lines, since C would join them. */
struct det_text_problem det_lexer_check(const char *text, uint32_t size);

/* The text must have passed det_lexer_check(). Copy a lexer to look ahead. */
void det_lexer_init(struct det_lexer *lexer, const char *text, uint32_t size);
struct det_token det_lexer_next(struct det_lexer *lexer);
/* Also returns comments. */
struct det_token det_lexer_next_any(struct det_lexer *lexer);

/* True for letters, digits and _. */
bool det_lexer_is_name_part(char c);

#endif
