/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lex.h - the tokens of an expression. */
#ifndef DET_EXPRESSION_LEX_H
#define DET_EXPRESSION_LEX_H

#include "base/text.h"

/* DET_MARK(NAME, "spelling"): words and punctuation, each a kind of token. */
enum expression_token_kind {
    DET_MARK_END,
    DET_MARK_NAME,     /* a name, also in backquotes */
    DET_MARK_INTEGER,  /* digits, perhaps with _ */
    DET_MARK_FLOAT,    /* the same with a point or an exponent */
    DET_MARK_DURATION, /* digits and letters */
    DET_MARK_TEXT,     /* with its quotes; the escapes are valid */
#define DET_MARK(name, spelling) DET_MARK_##name,
#include "expression/marks.def"
#undef DET_MARK
    DET_MARK_COUNT
};

struct expression_token {
    enum expression_token_kind kind;
    uint32_t start, end; /* bytes of the expression */
    struct det_view text;
};

struct expression_lexer {
    struct det_view text;
    uint32_t offset;
    bool after_point; /* the token before is a point: a word is a name */
};

/* "and", "==", "the end", ...: for messages. */
const char *det_expression_mark(enum expression_token_kind kind);

/* Checks size, UTF-8 and control characters; the lexer needs a text that passed. */
DET_MUST_CHECK int det_expression_lexer_init(
    struct expression_lexer *lexer, struct det_view text, struct det_error *reterr);
DET_MUST_CHECK int det_expression_lex(
    struct expression_lexer *lexer, struct expression_token *ret, struct det_error *reterr);

/* The name without its backquotes. */
struct det_view det_expression_name_of(const struct expression_token *token);
/* Writes the text without quotes and escapes, which is not longer than the token; returns its
 * size. */
size_t det_expression_text_of(const struct expression_token *token, char *target);

/* Fails at a byte of the expression: adds the column in front of the sentence. Returns `code`. */
int det_expression_fail(
    struct det_error *reterr, int code, uint32_t offset, const char *format, ...) DET_PRINTF(4, 5);

#endif
