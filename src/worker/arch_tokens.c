/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_tokens.c - cuts C into tokens with places, as far as the architecture test needs it: names,
 * numbers, texts, marks; comments and directives apart. What is no C still comes to an end. */
#include <string.h>

#include "worker/arch_parts.h"

static bool is_name_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const struct det_code_cursor *cursor, size_t ahead)
{
    if (cursor->size - cursor->offset <= ahead)
        return '\0';
    return cursor->text[cursor->offset + ahead];
}

static void skip(struct det_code_cursor *cursor)
{
    if (cursor->text[cursor->offset++] == '\n') {
        cursor->line++;
        cursor->line_start = cursor->offset;
        cursor->is_fresh = true;
    }
}

/* Blanks, and lines that are joined. */
static void skip_blanks(struct det_code_cursor *cursor)
{
    while (cursor->offset < cursor->size) {
        char c = peek(cursor, 0);
        bool is_joined = c == '\\' && (peek(cursor, 1) == '\n' || peek(cursor, 1) == '\r');

        if (c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != '\f' && c != '\v' && !is_joined)
            return;
        skip(cursor);
    }
}

static void skip_comment(struct det_code_cursor *cursor, bool is_block)
{
    cursor->offset += 2;
    while (cursor->offset < cursor->size) {
        if (is_block && peek(cursor, 0) == '*' && peek(cursor, 1) == '/') {
            cursor->offset += 2;
            return;
        }
        if (!is_block && peek(cursor, 0) == '\n')
            return;
        skip(cursor);
    }
}

/* A # and all of its line; a comment in it may go on behind the line. */
static void skip_directive(struct det_code_cursor *cursor)
{
    while (cursor->offset < cursor->size && peek(cursor, 0) != '\n') {
        if (peek(cursor, 0) == '/' && peek(cursor, 1) == '*') {
            skip_comment(cursor, true);
            continue;
        }
        if (peek(cursor, 0) == '\\' && cursor->size - cursor->offset > 1)
            skip(cursor);
        skip(cursor);
    }
}

static void skip_text(struct det_code_cursor *cursor)
{
    char quote = peek(cursor, 0);

    cursor->offset++;
    while (cursor->offset < cursor->size && peek(cursor, 0) != '\n') {
        char c = peek(cursor, 0);

        if (c == '\\' && cursor->size - cursor->offset > 1)
            skip(cursor);
        skip(cursor);
        if (c == quote)
            return;
    }
}

/* Marks of two letters that mean something to us; all others are letter by letter. */
static size_t mark_length(const struct det_code_cursor *cursor)
{
    static const char *const pairs[] = { "->", "==", "!=", "<=", ">=", "++", "--", "+=", "-=",
                                         "*=", "/=", "|=", "&=", "^=", "%=", "&&", "||" };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (peek(cursor, 0) == pairs[i][0] && peek(cursor, 1) == pairs[i][1])
            return 2;
    }
    return 1;
}

static enum det_code_kind skip_token(struct det_code_cursor *cursor)
{
    char c = peek(cursor, 0);

    if (c == '#' && cursor->is_fresh) {
        skip_directive(cursor);
        return DET_CODE_DIRECTIVE;
    }
    if (c == '/' && (peek(cursor, 1) == '*' || peek(cursor, 1) == '/')) {
        skip_comment(cursor, peek(cursor, 1) == '*');
        return DET_CODE_COMMENT;
    }
    if (c == '"' || c == '\'') {
        skip_text(cursor);
        return DET_CODE_STRING;
    }
    if (is_name_part(c)) {
        while (is_name_part(peek(cursor, 0)) || (is_digit(c) && peek(cursor, 0) == '.'))
            cursor->offset++;
        return is_digit(c) ? DET_CODE_NUMBER : DET_CODE_NAME;
    }
    cursor->offset += mark_length(cursor);
    return DET_CODE_MARK;
}

struct det_code_token det_code_next(struct det_code_cursor *cursor)
{
    struct det_code_token token = { .kind = DET_CODE_END };
    size_t start;

    skip_blanks(cursor);
    start = cursor->offset;
    token.text = cursor->text + start;
    token.line = cursor->line;
    token.column = (uint32_t)(start - cursor->line_start) + 1;
    token.starts_line = cursor->is_fresh;
    if (start < cursor->size)
        token.kind = skip_token(cursor);
    if (token.kind != DET_CODE_COMMENT)
        cursor->is_fresh = false;
    token.length = (uint32_t)(cursor->offset - start);
    token.end_line = cursor->line;
    return token;
}

bool det_code_is(const struct det_code_token *token, const char *text)
{
    return strlen(text) == token->length && memcmp(token->text, text, token->length) == 0;
}

static bool is_token(enum det_code_kind kind)
{
    return kind != DET_CODE_COMMENT && kind != DET_CODE_DIRECTIVE;
}

static struct det_code_cursor cursor_of(const struct det_arch_text *text)
{
    return (struct det_code_cursor){
        .text = text->text,
        .size = text->size,
        .line = 1,
        .is_fresh = true,
    };
}

static uint32_t count_tokens(const struct det_arch_text *text)
{
    struct det_code_cursor cursor = cursor_of(text);
    struct det_code_token token = det_code_next(&cursor);
    uint32_t count = 0;

    for (; token.kind != DET_CODE_END; token = det_code_next(&cursor))
        count += is_token(token.kind);
    return count;
}

/* The letter of a mark that has one; else 0. */
static char letter_of(const struct det_code_token *token)
{
    if (token->kind != DET_CODE_MARK || token->length != 1)
        return '\0';
    return token->text[0];
}

static char opens(const struct det_code_token *token)
{
    switch (letter_of(token)) {
    case '(':
        return ')';
    case '[':
        return ']';
    case '{':
        return '}';
    default:
        return '\0';
    }
}

static bool closes(const struct det_code_token *token)
{
    char c = letter_of(token);

    return c == ')' || c == ']' || c == '}';
}

/* Brackets that are open wait on a chain through their own `match`. A bracket that does not fit the
 * one before it is left alone. */
static void match_brackets(struct det_arch_source *source)
{
    uint32_t open = UINT32_MAX;

    for (uint32_t i = 0; i < source->count; i++) {
        struct det_code_token *token = &source->tokens[i];

        token->match = i;
        if (opens(token)) {
            token->match = open;
            open = i;
        } else if (
            closes(token) && open != UINT32_MAX && opens(&source->tokens[open]) == token->text[0]) {
            uint32_t before = source->tokens[open].match;

            source->tokens[open].match = i;
            token->match = open;
            open = before;
        }
    }
    while (open != UINT32_MAX) {
        uint32_t before = source->tokens[open].match;

        source->tokens[open].match = source->count;
        open = before;
    }
}

void det_arch_read_source(
    struct det_arch *arch, struct det_arch_source *source, const struct det_arch_text *text)
{
    struct det_code_cursor cursor = cursor_of(text);
    struct det_code_token token;
    uint32_t count = count_tokens(text);

    source->text = text;
    source->tokens = det_arch_alloc(arch, ((size_t)count + 1) * sizeof *source->tokens);
    if (source->tokens == NULL)
        return;
    do {
        token = det_code_next(&cursor);
        if (token.kind == DET_CODE_COMMENT)
            det_arch_read_allow(arch, source, &token);
        if (is_token(token.kind))
            source->tokens[source->count++] = token;
    } while (token.kind != DET_CODE_END);
    source->count--;
    match_brackets(source);
}
