/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* format.c - the canonical form of an expression: its tokens with the usual blanks between them. */
#include <string.h>

#include "expression/lex.h"
#include "expression/program.h"
#include "record/number.h"

/* What is written, like snprintf(). */
struct sink {
    char *target;
    size_t capacity, size;
};

static void put_bytes(struct sink *sink, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++, sink->size++)
        if (sink->size + 1 < sink->capacity)
            sink->target[sink->size] = text[i];
}

static void put_string(struct sink *sink, const char *text)
{
    put_bytes(sink, text, strlen(text));
}

static void put_literal(struct sink *sink, const struct expression_token *token)
{
    char text[DET_EXPRESSION_SIZE_MAX], quote;
    size_t size = det_expression_text_of(token, text);

    quote = memchr(text, '\'', size) && !memchr(text, '"', size) ? '"' : '\'';
    put_bytes(sink, &quote, 1);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n')
            put_string(sink, "\\n");
        else if (text[i] == '\t')
            put_string(sink, "\\t");
        else if (text[i] == quote || text[i] == '\\')
            put_bytes(sink, (const char[]){ '\\', text[i] }, 2);
        else
            put_bytes(sink, &text[i], 1);
    }
    put_bytes(sink, &quote, 1);
}

static void put_token(struct sink *sink, const struct expression_token *token)
{
    char text[DET_DURATION_TEXT];
    det_time span;

    switch ((int)token->kind) {
    case DET_MARK_TEXT:
        put_literal(sink, token);
        break;
    case DET_MARK_DURATION:
        if (det_parse_duration(token->text, &span) == 0)
            put_string(sink, det_format_duration(span, text, sizeof text));
        break;
    case DET_MARK_INTEGER:
    case DET_MARK_FLOAT:
        for (size_t i = 0; i < token->text.size; i++)
            if (token->text.data[i] != '_')
                put_bytes(sink, &token->text.data[i], 1);
        break;
    case DET_MARK_EQ:
        put_string(sink, "==");
        break;
    default:
        put_bytes(sink, token->text.data, token->text.size);
    }
}

static bool is_word(enum expression_token_kind kind)
{
    return kind >= DET_MARK_AND && kind <= DET_MARK_OR_ELSE;
}

/* Whether a value can end with it. */
static bool ends_value(enum expression_token_kind kind)
{
    return (kind >= DET_MARK_NAME && kind <= DET_MARK_TEXT) || kind == DET_MARK_TRUE ||
           kind == DET_MARK_FALSE || kind == DET_MARK_NONE || kind == DET_MARK_CLOSE ||
           kind == DET_MARK_CLOSE_LIST;
}

/* The tokens around a gap; `before` is that before the first of the two. */
static bool has_blank(
    enum expression_token_kind before, enum expression_token_kind left,
    enum expression_token_kind right)
{
    bool is_sign = left == DET_MARK_SUBTRACT && !ends_value(before);

    if (left == DET_MARK_END || left == DET_MARK_POINT || right == DET_MARK_POINT || is_sign ||
        left == DET_MARK_OPEN || left == DET_MARK_OPEN_LIST || right == DET_MARK_CLOSE ||
        right == DET_MARK_CLOSE_LIST || right == DET_MARK_COMMA)
        return false;
    if (right == DET_MARK_OPEN)
        return left != DET_MARK_NAME;
    if (right == DET_MARK_OPEN_LIST)
        return is_word(left) || !ends_value(left);
    return true;
}

/* The brackets that are open, as bits: 1 is a list. */
static int check_bracket(
    const struct expression_token *token, uint64_t *stack, unsigned *depth,
    struct det_error *reterr)
{
    bool is_list = token->kind == DET_MARK_OPEN_LIST || token->kind == DET_MARK_CLOSE_LIST;

    if (token->kind == DET_MARK_OPEN || token->kind == DET_MARK_OPEN_LIST) {
        if (*depth == 63)
            return det_expression_fail(
                reterr, DET_ERR_LIMIT, token->start, "more than 63 brackets are open");
        *stack = *stack << 1 | is_list;
        ++*depth;
    } else if (token->kind == DET_MARK_CLOSE || is_list) {
        if (*depth == 0 || (*stack & 1) != is_list)
            return det_expression_fail(
                reterr, DET_ERR_MALFORMED, token->start, "this bracket was not opened");
        *stack >>= 1;
        --*depth;
    }
    return 0;
}

int64_t det_expression_format(
    const char *text, size_t size, char *target, size_t capacity, struct det_error *reterr)
{
    enum expression_token_kind before = DET_MARK_END, last = DET_MARK_END;
    struct sink sink = { target, capacity, 0 };
    struct expression_lexer lexer = { .offset = 0 };
    struct expression_token token = { .kind = DET_MARK_COUNT };
    uint64_t stack = 0;
    unsigned depth = 0;
    int r;

    r = det_expression_lexer_init(&lexer, det_view_of(text, size), reterr);
    while (r == 0 && token.kind != DET_MARK_END) {
        r = det_expression_lex(&lexer, &token, reterr);
        if (r == 0)
            r = check_bracket(&token, &stack, &depth, reterr);
        if (r < 0 || token.kind == DET_MARK_END)
            continue;
        if (has_blank(before, last, token.kind))
            put_bytes(&sink, " ", 1);
        put_token(&sink, &token);
        before = last;
        last = token.kind;
    }
    if (r == 0 && depth > 0)
        r = det_expression_fail(
            reterr, DET_ERR_MALFORMED, (uint32_t)size, "a bracket is not closed");
    if (r < 0)
        return r;
    if (capacity > 0)
        target[sink.size < capacity ? sink.size : capacity - 1] = '\0';
    return (int64_t)sink.size;
}
