/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lex.c - splits an expression into tokens.
 *
 * Invariants:
 *   1. every call advances by at least a byte, or stays at the end;
 *   2. a token of a number is a valid literal but for its range. */
#include "expression/lex.h"

#include <detent/expression.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Words and punctuation, beginning with DET_MARK_AND. */
static const char *const spellings[] = {
#define DET_MARK(name, spelling) spelling,
#include "expression/marks.def"
#undef DET_MARK
};
#define SPELLING_COUNT (sizeof spellings / sizeof spellings[0])

/* What people who know other languages write. */
static const struct {
    const char *text;
    const char *remedy;
} foreign[] = {
    { "&&", "write `and`" },
    { "||", "write `or`" },
    { "<>", "write `!=`" },
    { "!", "write `not`" },
    { "?", "write `if a then b else c`, or `a or_else b`" },
    { "{", "use ( and )" },
    { "}", "use ( and )" },
    { ";", "an expression has no `;`" },
    { "^", "there is no power" },
    { ":", "write `a == b`" },
};

const char *det_expression_mark(enum expression_token_kind kind)
{
    switch ((int)kind) {
    case DET_MARK_END:
        return "the end";
    case DET_MARK_NAME:
        return "a name";
    case DET_MARK_INTEGER:
    case DET_MARK_FLOAT:
        return "a number";
    case DET_MARK_DURATION:
        return "a duration";
    case DET_MARK_TEXT:
        return "a text";
    default:
        det_assert((size_t)kind - DET_MARK_AND < SPELLING_COUNT);
        return spellings[kind - DET_MARK_AND];
    }
}

int det_expression_fail(
    struct det_error *reterr, int code, uint32_t offset, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    if (!reterr)
        return code;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)det_error_set(reterr, code, "column %u: %s", offset + 1, text);
    reterr->offset = offset;
    return code;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int det_expression_lexer_init(
    struct expression_lexer *lexer, struct det_view text, struct det_error *reterr)
{
    size_t valid;

    if (text.size > DET_EXPRESSION_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "an expression has at most %d bytes, this one has %zu",
            DET_EXPRESSION_SIZE_MAX, text.size);
    valid = det_utf8_check(text.data, text.size);
    for (uint32_t i = 0; i < valid; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if ((c < 0x20 && !is_blank((char)c)) || c == 0x7f)
            return det_expression_fail(
                reterr, DET_ERR_MALFORMED, i, "the expression has a control character");
    }
    if (valid < text.size)
        return det_expression_fail(
            reterr, DET_ERR_MALFORMED, (uint32_t)valid, "the expression is not UTF-8");
    *lexer = (struct expression_lexer){ .text = text };
    return 0;
}

/* Returns the byte `ahead` of the current one; 0 after the end, which no text contains. */
static char peek(const struct expression_lexer *lexer, uint32_t ahead)
{
    if (lexer->text.size - lexer->offset <= ahead)
        return '\0';
    return lexer->text.data[lexer->offset + ahead];
}

static bool has_next(const struct expression_lexer *lexer, const char *text)
{
    size_t size = strlen(text);

    return lexer->text.size - lexer->offset >= size &&
           memcmp(lexer->text.data + lexer->offset, text, size) == 0;
}

static int lex_text(
    struct expression_lexer *lexer, struct expression_token *token, struct det_error *reterr)
{
    char quote = peek(lexer, 0);

    token->kind = DET_MARK_TEXT;
    for (lexer->offset++; peek(lexer, 0) != quote; lexer->offset++) {
        if (peek(lexer, 0) == 0)
            return det_expression_fail(
                reterr, DET_ERR_MALFORMED, token->start, "the text has no closing %c", quote);
        if (peek(lexer, 0) != '\\')
            continue;
        if (peek(lexer, 1) == 0 || !strchr("'\"\\nt", peek(lexer, 1)))
            return det_expression_fail(
                reterr, DET_ERR_MALFORMED, lexer->offset,
                "invalid escape; valid are \\', \\\", \\\\, \\n and \\t");
        lexer->offset++;
    }
    lexer->offset++;
    return 0;
}

/* A run of digits in which each _ is between two of them. */
static bool skip_digits(struct expression_lexer *lexer)
{
    uint32_t start = lexer->offset;

    while (is_digit(peek(lexer, 0)) ||
           (lexer->offset > start && peek(lexer, 0) == '_' && is_digit(peek(lexer, 1))))
        lexer->offset++;
    return lexer->offset > start;
}

static bool skip_exponent(struct expression_lexer *lexer)
{
    uint32_t start = lexer->offset;

    if (peek(lexer, 0) != 'e' && peek(lexer, 0) != 'E')
        return false;
    lexer->offset++;
    if (peek(lexer, 0) == '+' || peek(lexer, 0) == '-')
        lexer->offset++;
    if (skip_digits(lexer))
        return true;
    lexer->offset = start;
    return false;
}

static int lex_duration(
    struct expression_lexer *lexer, struct expression_token *token, struct det_error *reterr)
{
    det_time span;
    int r;

    token->kind = DET_MARK_DURATION;
    while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)) ||
           (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))))
        lexer->offset++;
    r = det_parse_duration(
        det_view_of(lexer->text.data + token->start, lexer->offset - token->start), &span);
    if (r == DET_ERR_OVERFLOW)
        return det_expression_fail(
            reterr, r, token->start, "the duration is longer than 292 years");
    if (r < 0)
        return det_expression_fail(
            reterr, DET_ERR_MALFORMED, token->start,
            "not a number or a duration; write 1500, 2.5, 90s, 1h30m (d h m s ms us ns)");
    return 0;
}

static int lex_number(
    struct expression_lexer *lexer, struct expression_token *token, struct det_error *reterr)
{
    token->kind = DET_MARK_INTEGER;
    (void)skip_digits(lexer);
    if (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))) {
        token->kind = DET_MARK_FLOAT;
        lexer->offset++;
        (void)skip_digits(lexer);
    }
    if (skip_exponent(lexer))
        token->kind = DET_MARK_FLOAT;
    if (is_letter(peek(lexer, 0))) {
        lexer->offset = token->start;
        return lex_duration(lexer, token, reterr);
    }
    if (lexer->text.data[token->start] == '0' && lexer->offset - token->start > 1 &&
        lexer->text.data[token->start + 1] != '.' && token->kind != DET_MARK_FLOAT)
        return det_expression_fail(
            reterr, DET_ERR_MALFORMED, token->start, "a number does not begin with 0");
    if (peek(lexer, 0) == '.')
        return det_expression_fail(
            reterr, DET_ERR_MALFORMED, token->start, "a float has digits after its point: 1.0");
    return 0;
}

static int lex_quoted_name(
    struct expression_lexer *lexer, struct expression_token *token, struct det_error *reterr)
{
    token->kind = DET_MARK_NAME;
    for (lexer->offset++; peek(lexer, 0) != '`'; lexer->offset++) {
        if (peek(lexer, 0) == 0)
            return det_expression_fail(
                reterr, DET_ERR_MALFORMED, token->start, "the name has no closing `");
    }
    lexer->offset++;
    return 0;
}

static void lex_word(struct expression_lexer *lexer, struct expression_token *token)
{
    struct det_view word;

    while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)))
        lexer->offset++;
    word = det_view_of(lexer->text.data + token->start, lexer->offset - token->start);
    token->kind = DET_MARK_NAME;
    for (size_t i = 0; i < SPELLING_COUNT && !lexer->after_point; i++)
        if (is_letter(spellings[i][0]) && det_view_is(word, spellings[i]))
            token->kind = (enum expression_token_kind)(DET_MARK_AND + i);
}

static int lex_punctuation(
    struct expression_lexer *lexer, struct expression_token *token, struct det_error *reterr)
{
    for (size_t i = 0; i < SPELLING_COUNT; i++) {
        if (!is_letter(spellings[i][0]) && has_next(lexer, spellings[i]) &&
            !has_next(lexer, "<>")) {
            token->kind = (enum expression_token_kind)(DET_MARK_AND + i);
            lexer->offset += (uint32_t)strlen(spellings[i]);
            return 0;
        }
    }
    if (has_next(lexer, "=")) {
        token->kind = DET_MARK_EQ;
        lexer->offset++;
        return 0;
    }
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (has_next(lexer, foreign[i].text))
            return det_expression_fail(
                reterr, DET_ERR_MALFORMED, lexer->offset, "'%s' is not an operator here; %s",
                foreign[i].text, foreign[i].remedy);
    return det_expression_fail(reterr, DET_ERR_MALFORMED, lexer->offset, "unexpected character");
}

static int lex_token(
    struct expression_lexer *lexer, struct expression_token *token, struct det_error *reterr)
{
    char c = peek(lexer, 0);

    if (c == 0)
        return 0;
    if (c == '\'' || c == '"')
        return lex_text(lexer, token, reterr);
    if (c == '`')
        return lex_quoted_name(lexer, token, reterr);
    if (is_digit(c))
        return lex_number(lexer, token, reterr);
    if (!is_letter(c))
        return lex_punctuation(lexer, token, reterr);
    lex_word(lexer, token);
    return 0;
}

int det_expression_lex(
    struct expression_lexer *lexer, struct expression_token *ret, struct det_error *reterr)
{
    struct expression_token token = { .kind = DET_MARK_END };
    int r;

    while (is_blank(peek(lexer, 0)))
        lexer->offset++;
    token.start = lexer->offset;
    r = lex_token(lexer, &token, reterr);
    if (r < 0)
        return r;
    token.end = lexer->offset;
    token.text = det_view_of(lexer->text.data + token.start, token.end - token.start);
    lexer->after_point = token.kind == DET_MARK_POINT;
    *ret = token;
    return 0;
}

struct det_view det_expression_name_of(const struct expression_token *token)
{
    if (token->text.data[0] != '`')
        return token->text;
    return det_view_of(token->text.data + 1, token->text.size - 2);
}

size_t det_expression_text_of(const struct expression_token *token, char *target)
{
    size_t size = 0;

    for (size_t i = 1; i + 1 < token->text.size; i++) {
        char c = token->text.data[i];

        if (c == '\\') {
            c = token->text.data[++i];
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
        }
        target[size++] = c;
    }
    return size;
}
