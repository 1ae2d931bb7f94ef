/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse.c - reads an expression from left to right, without recursion.
 *
 * Operators that wait for their right side, open brackets and the parts of `if` are on a stack of
 * frames. An operator is applied when one that binds less tightly follows. The parser is in one of
 * two places: before an operand, or after one.
 *
 * Invariants:
 *   1. the frames between two brackets, from the outer one, bind more and more tightly;
 *   2. every frame was opened by a token, and a token opens at most one. */
#include "base/assert.h"
#include "expression/compile.h"

enum frame_kind {
    FRAME_BINARY,
    FRAME_NEGATE,
    FRAME_NOT,
    FRAME_AND,
    FRAME_OR,
    FRAME_OR_ELSE,
    FRAME_IN, /* an array */
    FRAME_ELSE,
    /* Those above are applied; those below end at a token of their own. */
    FRAME_IF,
    FRAME_THEN,
    FRAME_PAREN,
    FRAME_CALL,
    FRAME_INDEX,
    FRAME_LIST,
};

/* From loose to tight. */
enum precedence {
    PRECEDENCE_IF,
    PRECEDENCE_OR,
    PRECEDENCE_AND,
    PRECEDENCE_NOT,
    PRECEDENCE_COMPARISON,
    PRECEDENCE_SUM,
    PRECEDENCE_PRODUCT,
    PRECEDENCE_NEGATE,
    PRECEDENCE_OR_ELSE,
};

struct parse_frame {
    enum frame_kind kind;
    enum precedence precedence;
    enum expression_token_kind sign;
    uint32_t column;
    const struct function *function; /* CALL */
    unsigned count;                  /* CALL: arguments before the current one */
    bool is_negated;                 /* LIST, IN: `not in` */
    struct compile_choice choice;
};

struct parser {
    struct compiler *compiler;
    struct expression_lexer lexer;
    struct expression_token token, ahead;
    struct parse_frame *frames;
    unsigned depth;
    struct operand *elements; /* of the list that is open */
    size_t element_count;
};

/* Brackets, operators and parts of `if` that are open at the same time. */
#define FRAME_MAX (3 * DET_EXPRESSION_DEPTH_MAX)

/* NULL: no frame is open. */
static struct parse_frame *top_frame(struct parser *parser)
{
    return parser->depth > 0 ? &parser->frames[parser->depth - 1] : NULL;
}

/* The top frame, where one is open. */
static struct parse_frame *open_frame(struct parser *parser)
{
    det_assert(parser->depth > 0);
    return &parser->frames[parser->depth - 1];
}

/* Moves to the next token. */
static int advance(struct parser *parser)
{
    parser->token = parser->ahead;
    if (parser->compiler->has_no_memory)
        return DET_ERR_NO_MEMORY;
    return det_expression_lex(&parser->lexer, &parser->ahead, parser->compiler->reterr);
}

static int fail_token(struct parser *parser, const char *wanted)
{
    const struct expression_token *token = &parser->token;
    int size = token->text.size < 40 ? (int)token->text.size : 40;

    if (token->kind == DET_MARK_END)
        return COMPILE_FAIL(
            parser->compiler, DET_ERR_MALFORMED, token->start,
            "the expression ends too early: %s is missing", wanted);
    return COMPILE_FAIL(
        parser->compiler, DET_ERR_MALFORMED, token->start, "%s is missing before '%.*s'", wanted,
        size, token->text.data);
}

static int push_frame(struct parser *parser, enum frame_kind kind, enum precedence precedence)
{
    if (parser->depth == FRAME_MAX)
        return COMPILE_FAIL(
            parser->compiler, DET_ERR_LIMIT, parser->token.start,
            "more than %d operators and brackets are open; split the expression", FRAME_MAX);
    parser->frames[parser->depth++] = (struct parse_frame){ .kind = kind,
                                                            .precedence = precedence,
                                                            .sign = parser->token.kind,
                                                            .column = parser->token.start };
    return 0;
}

static int apply_frame(struct parser *parser)
{
    struct parse_frame *frame = open_frame(parser);
    struct compiler *compiler = parser->compiler;

    compiler->column = frame->column;
    parser->depth--;
    switch (frame->kind) {
    case FRAME_BINARY:
        return frame->precedence == PRECEDENCE_COMPARISON
                   ? det_compile_comparison(compiler, frame->sign)
                   : det_compile_binary(compiler, frame->sign);
    case FRAME_NEGATE:
        return det_compile_negate(compiler);
    case FRAME_NOT:
        return det_compile_not(compiler);
    case FRAME_AND:
        return det_compile_and(compiler, &frame->choice);
    case FRAME_OR:
        return det_compile_or(compiler, &frame->choice);
    case FRAME_OR_ELSE:
        return det_compile_or_else(compiler, &frame->choice);
    case FRAME_IN:
        return det_compile_in_array(compiler, frame->is_negated);
    case FRAME_ELSE:
        return det_compile_else(compiler, &frame->choice);
    case FRAME_IF:
    case FRAME_THEN:
    case FRAME_PAREN:
    case FRAME_CALL:
    case FRAME_INDEX:
    case FRAME_LIST:
        break;
    }
    det_assert(false);
    return DET_ERR_INVALID;
}

/* Applies the operators that bind at least as tightly, up to the last bracket. */
static int apply_tighter(struct parser *parser, enum precedence precedence)
{
    const struct parse_frame *frame = top_frame(parser);
    int r = 0;

    while (r == 0 && frame && frame->kind <= FRAME_ELSE && frame->precedence >= precedence) {
        r = apply_frame(parser);
        frame = top_frame(parser);
    }
    return r;
}

/* Ends everything up to the last bracket or part of an `if`. */
static int apply_all(struct parser *parser)
{
    return apply_tighter(parser, PRECEDENCE_IF);
}

static int open_call(struct parser *parser)
{
    struct compiler *compiler = parser->compiler;
    const struct function *function = det_compile_find_function(parser->token.text);
    int size = parser->token.text.size < 40 ? (int)parser->token.text.size : 40;
    int r;

    if (!function)
        return COMPILE_FAIL(
            compiler, DET_ERR_NOT_FOUND, parser->token.start, "'%.*s' is not a function%s", size,
            parser->token.text.data, det_compile_nearest_function(compiler, parser->token.text));
    r = push_frame(parser, FRAME_CALL, PRECEDENCE_IF);
    if (r < 0)
        return r;
    open_frame(parser)->function = function;
    compiler->column = parser->token.start;
    r = det_compile_begin_call(compiler, function);
    return r < 0 ? r : advance(parser);
}

static int close_call(struct parser *parser, unsigned count)
{
    struct parse_frame *frame = open_frame(parser);

    parser->depth--;
    return det_compile_call(
        parser->compiler, frame->function, count, frame->column, parser->token.end);
}

/* At a token where an operand begins. `ret_is_done`: it is complete. */
static int read_operand(struct parser *parser, bool *ret_is_done)
{
    *ret_is_done = false;
    switch ((int)parser->token.kind) {
    case DET_MARK_NOT:
        return push_frame(parser, FRAME_NOT, PRECEDENCE_NOT);
    case DET_MARK_SUBTRACT:
        return push_frame(parser, FRAME_NEGATE, PRECEDENCE_NEGATE);
    case DET_MARK_IF:
        return push_frame(parser, FRAME_IF, PRECEDENCE_IF);
    case DET_MARK_OPEN:
        return push_frame(parser, FRAME_PAREN, PRECEDENCE_IF);
    case DET_MARK_NAME:
        if (parser->ahead.kind == DET_MARK_OPEN)
            return open_call(parser);
        *ret_is_done = true;
        return det_compile_name(parser->compiler, &parser->token);
    case DET_MARK_INTEGER:
    case DET_MARK_FLOAT:
    case DET_MARK_DURATION:
    case DET_MARK_TEXT:
    case DET_MARK_TRUE:
    case DET_MARK_FALSE:
    case DET_MARK_NONE:
        *ret_is_done = true;
        return det_compile_literal(parser->compiler, &parser->token);
    case DET_MARK_CLOSE:
        if (top_frame(parser) && top_frame(parser)->kind == FRAME_CALL &&
            top_frame(parser)->count == 0) {
            *ret_is_done = true;
            return close_call(parser, 0);
        }
        return fail_token(parser, "a value");
    case DET_MARK_OPEN_LIST:
        return COMPILE_FAIL(
            parser->compiler, DET_ERR_MALFORMED, parser->token.start,
            "a list is only on the right side of `in`");
    default:
        return fail_token(parser, "a value");
    }
}

static int begin_comparison(struct parser *parser)
{
    const struct parse_frame *frame;
    int r = apply_tighter(parser, PRECEDENCE_SUM);

    frame = top_frame(parser);
    if (r == 0 && frame && frame->kind <= FRAME_ELSE && frame->precedence == PRECEDENCE_COMPARISON)
        return COMPILE_FAIL(
            parser->compiler, DET_ERR_MALFORMED, parser->token.start,
            "comparisons are not chained; write `a < b and b < c`");
    return r;
}

static int open_binary(struct parser *parser, enum precedence precedence)
{
    int r = precedence == PRECEDENCE_COMPARISON ? begin_comparison(parser)
                                                : apply_tighter(parser, precedence);

    return r < 0 ? r : push_frame(parser, FRAME_BINARY, precedence);
}

/* `and`, `or`, `or_else`: the left side is done before the right side is evaluated. */
static int open_choice(struct parser *parser, enum frame_kind kind, enum precedence precedence)
{
    struct compiler *compiler = parser->compiler;
    struct compile_choice *choice;
    int r = 0;

    /* or_else goes from right to left. */
    if (kind != FRAME_OR_ELSE)
        r = apply_tighter(parser, precedence);
    if (r == 0)
        r = push_frame(parser, kind, precedence);
    if (r < 0)
        return r;
    compiler->column = parser->token.start;
    choice = &open_frame(parser)->choice;
    return kind == FRAME_AND  ? det_compile_and_left(compiler, choice)
           : kind == FRAME_OR ? det_compile_or_left(compiler, choice)
                              : det_compile_or_else_left(compiler, choice);
}

static int open_in(struct parser *parser, bool is_negated)
{
    int r = begin_comparison(parser);

    if (r == 0 && is_negated)
        r = advance(parser);
    if (r < 0)
        return r;
    if (parser->ahead.kind != DET_MARK_OPEN_LIST)
        r = push_frame(parser, FRAME_IN, PRECEDENCE_COMPARISON);
    else
        r = push_frame(parser, FRAME_LIST, PRECEDENCE_IF);
    if (r < 0)
        return r;
    open_frame(parser)->is_negated = is_negated;
    parser->element_count = 0;
    return parser->ahead.kind == DET_MARK_OPEN_LIST ? advance(parser) : 0;
}

/* `then` and `else`. */
static int continue_if(struct parser *parser, enum frame_kind from, enum frame_kind to)
{
    struct compiler *compiler = parser->compiler;
    struct parse_frame *frame;
    int r = apply_all(parser);

    if (r < 0)
        return r;
    frame = top_frame(parser);
    if (!frame || frame->kind != from)
        return COMPILE_FAIL(
            compiler, DET_ERR_MALFORMED, parser->token.start,
            "`%s` without `if`; write `if a then b else c`",
            det_expression_mark(parser->token.kind));
    compiler->column = parser->token.start;
    frame->kind = to;
    return from == FRAME_IF ? det_compile_if(compiler, &frame->choice)
                            : det_compile_then(compiler, &frame->choice);
}

/* An element of a list is a constant. */
static int end_element(struct parser *parser)
{
    struct compiler *compiler = parser->compiler;
    const struct operand *operand = compile_top(compiler);

    if (operand->form != OPERAND_CONSTANT)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start,
            "the elements of a list are constants; write `x == a or x == b`");
    if (parser->element_count == DET_EXPRESSION_LIST_MAX)
        return COMPILE_FAIL(
            compiler, DET_ERR_LIMIT, operand->start, "a list has at most %d elements",
            DET_EXPRESSION_LIST_MAX);
    parser->elements[parser->element_count++] = *operand;
    compiler->depth--;
    return 0;
}

static int fail_unclosed(struct parser *parser, const struct parse_frame *frame)
{
    if (frame->kind == FRAME_IF || frame->kind == FRAME_THEN)
        return fail_token(parser, frame->kind == FRAME_IF ? "`then`" : "`else`");
    return fail_token(
        parser, frame->kind == FRAME_PAREN || frame->kind == FRAME_CALL ? "`)`" : "`]`");
}

/* The or_else that a comma of coalesce is. */
static int end_coalesce_part(struct parser *parser, struct parse_frame *frame)
{
    struct compiler *compiler = parser->compiler;
    int r = 0;

    compiler->column = frame->column;
    if (frame->count > 0)
        r = det_compile_or_else(compiler, &frame->choice);
    return r;
}

static int read_comma(struct parser *parser)
{
    struct compiler *compiler = parser->compiler;
    struct parse_frame *frame;
    int r = apply_all(parser);

    if (r < 0)
        return r;
    frame = top_frame(parser);
    if (frame && frame->kind == FRAME_LIST)
        return end_element(parser);
    if (frame && frame->kind != FRAME_CALL)
        return fail_unclosed(parser, frame);
    if (!frame)
        return fail_token(parser, "an operator");
    if (det_compile_is_coalesce(frame->function)) {
        r = end_coalesce_part(parser, frame);
        if (r == 0)
            r = det_compile_or_else_left(compiler, &frame->choice);
    }
    frame->count++;
    return r;
}

static int read_close(struct parser *parser)
{
    struct parse_frame *frame;
    unsigned count;
    int r = apply_all(parser);

    if (r < 0)
        return r;
    frame = top_frame(parser);
    if (!frame)
        return fail_token(parser, "`(`");
    if (frame->kind == FRAME_PAREN) {
        parser->depth--;
        return 0;
    }
    if (frame->kind != FRAME_CALL)
        return fail_unclosed(parser, frame);
    count = frame->count + 1;
    if (!det_compile_is_coalesce(frame->function))
        return close_call(parser, count);
    if (count < 2)
        return COMPILE_FAIL(
            parser->compiler, DET_ERR_TYPE, frame->column,
            "coalesce(a, b, ...) needs two values or more");
    parser->depth--;
    return end_coalesce_part(parser, frame);
}

static int read_close_list(struct parser *parser)
{
    struct compiler *compiler = parser->compiler;
    struct parse_frame *frame;
    int r = apply_all(parser);

    if (r < 0)
        return r;
    frame = top_frame(parser);
    if (!frame || (frame->kind != FRAME_INDEX && frame->kind != FRAME_LIST))
        return frame ? fail_unclosed(parser, frame) : fail_token(parser, "`[`");
    parser->depth--;
    compiler->column = frame->column;
    if (frame->kind == FRAME_INDEX)
        return det_compile_index(compiler, parser->token.end);
    r = end_element(parser);
    return r < 0 ? r
                 : det_compile_in(
                       compiler, parser->elements, parser->element_count, frame->is_negated);
}

static int read_field(struct parser *parser)
{
    int r = advance(parser);

    if (r < 0)
        return r;
    if (parser->token.kind != DET_MARK_NAME)
        return fail_token(parser, "the name of a field");
    return det_compile_field(parser->compiler, &parser->token);
}

static int read_binary(struct parser *parser)
{
    switch ((int)parser->token.kind) {
    case DET_MARK_ADD:
    case DET_MARK_SUBTRACT:
        return open_binary(parser, PRECEDENCE_SUM);
    case DET_MARK_MULTIPLY:
    case DET_MARK_DIVIDE:
    case DET_MARK_REMAINDER:
        return open_binary(parser, PRECEDENCE_PRODUCT);
    case DET_MARK_EQ:
    case DET_MARK_NE:
    case DET_MARK_LT:
    case DET_MARK_LE:
    case DET_MARK_GT:
    case DET_MARK_GE:
        return open_binary(parser, PRECEDENCE_COMPARISON);
    default:
        return fail_token(parser, "an operator");
    }
}

/* At a token after an operand. `ret_is_operand`: another operand follows. */
static int read_operator(struct parser *parser, bool *ret_is_operand)
{
    *ret_is_operand = true;
    switch ((int)parser->token.kind) {
    case DET_MARK_AND:
        return open_choice(parser, FRAME_AND, PRECEDENCE_AND);
    case DET_MARK_OR:
        return open_choice(parser, FRAME_OR, PRECEDENCE_OR);
    case DET_MARK_OR_ELSE:
        return open_choice(parser, FRAME_OR_ELSE, PRECEDENCE_OR_ELSE);
    case DET_MARK_NOT:
        if (parser->ahead.kind != DET_MARK_IN)
            return fail_token(parser, "an operator");
        return open_in(parser, true);
    case DET_MARK_IN:
        return open_in(parser, false);
    case DET_MARK_THEN:
        return continue_if(parser, FRAME_IF, FRAME_THEN);
    case DET_MARK_ELSE:
        return continue_if(parser, FRAME_THEN, FRAME_ELSE);
    case DET_MARK_COMMA:
        return read_comma(parser);
    case DET_MARK_OPEN_LIST:
        return push_frame(parser, FRAME_INDEX, PRECEDENCE_IF);
    case DET_MARK_CLOSE:
        *ret_is_operand = false;
        return read_close(parser);
    case DET_MARK_CLOSE_LIST:
        *ret_is_operand = false;
        return read_close_list(parser);
    case DET_MARK_POINT:
        *ret_is_operand = false;
        return read_field(parser);
    default:
        return read_binary(parser);
    }
}

static int parse_tokens(struct parser *parser)
{
    bool is_before_operand = true, is_done;
    const struct parse_frame *frame;
    int r;

    while (parser->token.kind != DET_MARK_END || is_before_operand) {
        if (is_before_operand) {
            r = read_operand(parser, &is_done);
            is_before_operand = !is_done;
        } else {
            r = read_operator(parser, &is_before_operand);
        }
        if (r == 0)
            r = advance(parser);
        if (r < 0)
            return r;
    }
    r = apply_all(parser);
    if (r < 0)
        return r;
    frame = top_frame(parser);
    return frame ? fail_unclosed(parser, frame) : 0;
}

int det_compile_parse(struct compiler *compiler)
{
    struct parser parser = { .compiler = compiler };
    int r;

    parser.frames = det_arena_array(&compiler->work, FRAME_MAX, sizeof *parser.frames);
    parser.elements =
        det_arena_array(&compiler->work, DET_EXPRESSION_LIST_MAX, sizeof *parser.elements);
    if (!parser.frames || !parser.elements)
        return DET_ERR_NO_MEMORY;
    r = det_expression_lexer_init(&parser.lexer, compiler->text, compiler->reterr);
    if (r == 0)
        r = advance(&parser);
    if (r == 0)
        r = advance(&parser);
    if (r == 0)
        r = parse_tokens(&parser);
    if (r == 0)
        det_assert(compiler->depth == 1);
    return r;
}
