/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_lex.h - the tokens of a template: text, and the words between {{ and }}. */
#ifndef DET_WORKER_TEMPLATE_LEX_H
#define DET_WORKER_TEMPLATE_LEX_H

#include "base/text.h"
#include "yaml/datum.h"

/* Each with its name in messages. */
#define DET_LEX_KINDS(X)            \
    X(END, "the end of the action") \
    X(FIELD, "a field")             \
    X(DOT, "the dot")               \
    X(VARIABLE, "a variable")       \
    X(NUMBER, "a number")           \
    X(STRING, "a text")             \
    X(WORD, "a word")               \
    X(PIPE, "'|'")                  \
    X(DECLARE, "':='")              \
    X(ASSIGN, "'='")                \
    X(COMMA, "','")                 \
    X(OPEN, "'('")                  \
    X(CLOSE, "')'")
enum det_lex_kind {
#define DET_LEX_KIND(name, text) DET_LEX_##name,
    DET_LEX_KINDS(DET_LEX_KIND)
#undef DET_LEX_KIND
};

struct det_lex_token {
    enum det_lex_kind kind;
    size_t offset;        /* of its first byte */
    struct det_view text; /* FIELD: without its point; STRING: with its quotes; else the whole
                           * token */
    bool is_joined;       /* follows the previous token without a gap */
};

struct det_lex {
    const char *what;
    struct det_view text;
    size_t offset;
    size_t action;  /* place of the {{ of the action */
    bool trims;     /* the action before this text ended with -}} */
    bool in_action; /* the next token is in an action, not text */
    struct det_error *error;
};

/* Reports a mistake at a byte of the text, with its line and column; returns the code. */
#define DET_LEX_FAIL(lex, code, where, ...) \
    det_lex_fail((lex)->error, code, (lex)->what, (lex)->text, where, __VA_ARGS__)
int det_lex_fail(
    struct det_error *reterr, int code, const char *what, struct det_view text, size_t offset,
    const char *format, ...) DET_PRINTF(6, 7);

/* The text up to the next action, trimmed according to the actions around it. Afterwards, unless
 * the end is reached, the tokens of the action can be read up to its END. Comments are skipped. */
DET_MUST_CHECK int det_lex_text(
    struct det_lex *lex, struct det_view *ret_text, bool *ret_has_action);
DET_MUST_CHECK int det_lex_token(struct det_lex *lex, struct det_lex_token *ret);
const char *det_lex_kind_text(enum det_lex_kind kind);

#endif
