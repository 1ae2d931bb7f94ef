/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_tokens.c - splits C into tokens with places, as far as the architecture test needs it:
 * names, numbers, strings, operators; comments and directives separately. It terminates for any
 * input. */
#include <string.h>

#include "worker/arch_parts.h"

struct cursor {
    const char *text;
    size_t size, offset;
    uint32_t line;
    size_t line_start;
    bool is_fresh; /* no token since the beginning of the line */
};

static bool is_name_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const struct cursor *cursor, size_t ahead)
{
    if (cursor->size - cursor->offset <= ahead)
        return '\0';
    return cursor->text[cursor->offset + ahead];
}

static void skip(struct cursor *cursor)
{
    if (cursor->text[cursor->offset++] == '\n') {
        cursor->line++;
        cursor->line_start = cursor->offset;
        cursor->is_fresh = true;
    }
}

/* Blanks, and continuation lines. */
static void skip_blanks(struct cursor *cursor)
{
    while (cursor->offset < cursor->size) {
        char c = peek(cursor, 0);
        bool is_joined = c == '\\' && (peek(cursor, 1) == '\n' || peek(cursor, 1) == '\r');

        if (c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != '\f' && c != '\v' && !is_joined)
            return;
        skip(cursor);
    }
}

static void skip_comment(struct cursor *cursor, bool is_block)
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

/* A # and its line; a comment in it may extend past the line. */
static void skip_directive(struct cursor *cursor)
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

static void skip_text(struct cursor *cursor)
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

/* Operators of two characters that matter here; all others are single characters. */
static size_t mark_length(const struct cursor *cursor)
{
    static const char *const pairs[] = { "->", "==", "!=", "<=", ">=", "++", "--", "+=", "-=",
                                         "*=", "/=", "|=", "&=", "^=", "%=", "&&", "||" };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (peek(cursor, 0) == pairs[i][0] && peek(cursor, 1) == pairs[i][1])
            return 2;
    }
    return 1;
}

static enum det_code_kind skip_token(struct cursor *cursor)
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

/* The next token, comment or directive; the cursor moves past it. */
static struct det_code_token next_token(struct cursor *cursor)
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

static struct cursor cursor_of(const struct det_arch_text *text)
{
    return (struct cursor){
        .text = text->text,
        .size = text->size,
        .line = 1,
        .is_fresh = true,
    };
}

static uint32_t count_tokens(const struct det_arch_text *text)
{
    struct cursor cursor = cursor_of(text);
    struct det_code_token token = next_token(&cursor);
    uint32_t count = 0;

    for (; token.kind != DET_CODE_END; token = next_token(&cursor))
        count += is_token(token.kind);
    return count;
}

/* The character of a single-character operator; else 0. */
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

/* Open brackets form a chain through their own `match`. A bracket that does not match its
 * predecessor is left alone. */
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
    struct cursor cursor = cursor_of(text);
    struct det_code_token token;
    uint32_t count = count_tokens(text);

    source->text = text;
    source->tokens = det_arch_alloc(arch, ((size_t)count + 1) * sizeof *source->tokens);
    if (source->tokens == NULL)
        return;
    do {
        token = next_token(&cursor);
        if (token.kind == DET_CODE_COMMENT)
            det_arch_read_allow(arch, source, &token);
        if (is_token(token.kind))
            source->tokens[source->count++] = token;
    } while (token.kind != DET_CODE_END);
    source->count--;
    match_brackets(source);
}
