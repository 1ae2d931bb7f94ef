/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_expression.c - compiles pipelines to steps, with a stack instead of recursion.
 *
 *     pipeline:  command { | command }
 *     command:   function operand ...    or one operand
 *     operand:   . .a.b $x.a 12 "text" true nil ( pipeline ).a
 *
 * A level is the inside of two parentheses. The value of a command before a | is on the stack below
 * the operands of the next command, whose last argument it is. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "worker/template_program.h"
#include "yaml/datum_scalar.h"

#define NOTHING UINT32_MAX

struct level {
    size_t offset;   /* of the command, for messages */
    int function;    /* of the command; -1: none */
    unsigned values; /* number of operands of the command so far */
    bool is_piped;   /* a command precedes it */
    uint32_t jumps;  /* the newest AND or OR of the command; each links to the previous one as
                      * target */
};

struct expression {
    struct det_template_reader *reader;
    struct level levels[DET_TEMPLATE_DEPTH_MAX];
    unsigned depth;
};

static struct level *top(struct expression *expression)
{
    return &expression->levels[expression->depth - 1];
}

static struct det_template_step *step_at(struct det_template_reader *reader, int64_t index)
{
    return &reader->template->steps[index];
}

static int push_level(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;

    if (expression->depth == DET_TEMPLATE_DEPTH_MAX)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_LIMIT, reader->token.offset,
            "parentheses are nested more than %d deep", DET_TEMPLATE_DEPTH_MAX);
    expression->levels[expression->depth++] =
        (struct level){ .offset = reader->token.offset, .function = -1, .jumps = NOTHING };
    return 0;
}

/* A step that pushes one value. */
static int64_t emit_push(struct det_template_reader *reader, enum det_template_op op, size_t offset)
{
    if (reader->stack == DET_TEMPLATE_STACK)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_LIMIT, offset, "one action has more than %d values",
            DET_TEMPLATE_STACK);
    reader->stack++;
    return det_template_emit(reader, op, offset);
}

static int64_t emit_literal(
    struct det_template_reader *reader, size_t offset, const struct det_datum *literal)
{
    int64_t index;

    if (!literal)
        return DET_ERR_NO_MEMORY;
    index = emit_push(reader, DET_TEMPLATE_LITERAL, offset);
    if (index >= 0)
        step_at(reader, index)->literal = literal;
    return index;
}

static int64_t read_number(struct det_template_reader *reader)
{
    struct det_arena *arena = &reader->template->arena;
    struct det_view text = reader->token.text;
    char *copy = det_arena_copy_n(arena, text.data, text.size);
    struct det_datum *literal = det_datum_new(arena, DET_DATUM_NULL);
    int r;

    if (!copy || !literal)
        return DET_ERR_NO_MEMORY;
    r = det_datum_set_plain(literal, copy);
    if (r == DET_ERR_RANGE)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
            "the number does not fit 64 bits");
    if (r < 0)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
            "'%.*s' is not a number; put quotes around it if it is text",
            (int)(text.size < 32 ? text.size : 32), text.data);
    return emit_literal(reader, reader->token.offset, literal);
}

static const char *unescape(char escape)
{
    static const char names[] = "ntr\"\\'";
    static const char *const texts[] = { "\n", "\t", "\r", "\"", "\\", "'" };
    const char *found = escape ? strchr(names, escape) : NULL;

    return found ? texts[found - names] : NULL;
}

/* The inside of quotes: double quotes with escapes, or backticks without. */
static int64_t read_string(struct det_template_reader *reader)
{
    struct det_arena *arena = &reader->template->arena;
    struct det_view text = reader->token.text;
    struct det_datum *literal = det_datum_new(arena, DET_DATUM_TEXT);
    char *copy = det_arena_copy_n(arena, text.data + 1, text.size - 2);
    size_t used = 0;

    if (!literal || !copy)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 1; i + 1 < text.size; i++) {
        const char *escaped;

        copy[used] = text.data[i];
        if (text.data[i] == '\\' && text.data[0] == '"') {
            escaped = unescape(text.data[++i]);
            if (!escaped)
                return DET_LEX_FAIL(
                    &reader->lex, DET_ERR_MALFORMED, reader->token.offset + i - 1,
                    "unknown escape; use \\n \\t \\r \\\" \\' \\\\, or `text` "
                    "without escapes");
            copy[used] = *escaped;
        }
        used++;
    }
    copy[used] = '\0';
    literal->text = copy;
    return emit_literal(reader, reader->token.offset, literal);
}

static int64_t read_variable(struct det_template_reader *reader)
{
    struct det_view name = reader->token.text;
    const char *names[DET_TEMPLATE_VARIABLES];
    char word[DET_NAME_MAX + 1];
    int64_t index;
    int nearest;

    if (name.size == 1)
        return emit_push(reader, DET_TEMPLATE_ROOT, reader->token.offset);
    for (uint32_t i = reader->name_count; i > 0; i--) {
        if (!det_view_equal(reader->names[i - 1].name, name))
            continue;
        index = emit_push(reader, DET_TEMPLATE_VARIABLE, reader->token.offset);
        if (index >= 0)
            step_at(reader, index)->slot = i - 1;
        return index;
    }
    for (uint32_t i = 0; i < reader->name_count; i++) {
        names[i] = det_arena_copy_n(
            &reader->template->arena, reader->names[i].name.data, reader->names[i].name.size);
        if (!names[i])
            return DET_ERR_NO_MEMORY;
    }
    snprintf(word, sizeof word, "%.*s", (int)(name.size < 64 ? name.size : 64), name.data);
    nearest = det_text_nearest(word, names, reader->name_count);
    return DET_LEX_FAIL(
        &reader->lex, DET_ERR_MALFORMED, reader->token.offset, "there is no %s here; %s%s", word,
        nearest >= 0 ? "did you mean "
                     : "declare it first: {{ $x := ... }}, in this block or "
                       "around it",
        nearest >= 0 ? names[nearest] : "");
}

static int find_function(struct det_view word)
{
    for (int i = 0; i < DET_TEMPLATE_FUNCTION_COUNT; i++)
        if (det_view_is(word, det_template_functions[i].name))
            return i;
    return -1;
}

static int fail_word(struct det_template_reader *reader)
{
    const char *names[DET_TEMPLATE_FUNCTION_COUNT];
    struct det_view text = reader->token.text;
    char word[65];
    int nearest;

    for (int i = 0; i < DET_TEMPLATE_FUNCTION_COUNT; i++)
        names[i] = det_template_functions[i].name;
    snprintf(word, sizeof word, "%.*s", (int)(text.size < 64 ? text.size : 64), text.data);
    nearest = det_text_nearest(word, names, DET_TEMPLATE_FUNCTION_COUNT);
    if (nearest >= 0)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
            "there is no function '%s'; did you mean '%s'? A variable begins with a point: .%s",
            word, names[nearest], word);
    return DET_LEX_FAIL(
        &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
        "there is no function '%s'; a variable begins with a point: .%s", word, word);
}

static int64_t read_word(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    struct level *level = top(expression);
    bool is_true = det_view_is(reader->token.text, "true");
    struct det_datum *literal;
    int function;

    if (is_true || det_view_is(reader->token.text, "false") ||
        det_view_is(reader->token.text, "nil")) {
        literal = det_datum_new(&reader->template->arena, DET_DATUM_NULL);
        if (literal && !det_view_is(reader->token.text, "nil")) {
            literal->kind = DET_DATUM_BOOL;
            literal->as.truth = is_true;
        }
        return emit_literal(reader, reader->token.offset, literal);
    }
    function = find_function(reader->token.text);
    if (function < 0)
        return fail_word(reader);
    if (level->function >= 0 || level->values > 0)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
            "put a function that is a value of another in parentheses: (%s ...)",
            det_template_functions[function].name);
    level->function = function;
    level->offset = reader->token.offset;
    return 0;
}

/* .a.b directly after a value; `start` is where the value began. */
static int read_fields(struct det_template_reader *reader, size_t start)
{
    while (reader->token.kind == DET_LEX_FIELD && reader->token.is_joined) {
        struct det_view name = reader->token.text;
        int64_t index = det_template_emit(reader, DET_TEMPLATE_FIELD, start);
        struct det_template_step *step;
        int r;

        if (index < 0)
            return (int)index;
        step = step_at(reader, index);
        step->size = (uint32_t)((size_t)(name.data + name.size - reader->lex.text.data) - start);
        step->name = det_arena_copy_n(&reader->template->arena, name.data, name.size);
        if (!step->name)
            return DET_ERR_NO_MEMORY;
        r = det_template_advance(reader);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Between two operands of `and` and `or` the rest may be skipped. */
static int skip_rest(struct expression *expression)
{
    struct level *level = top(expression);
    int64_t index;

    if (level->values == 0 || level->is_piped ||
        (level->function != DET_TEMPLATE_FUNCTION_and &&
         level->function != DET_TEMPLATE_FUNCTION_or))
        return 0;
    index = det_template_emit(
        expression->reader,
        level->function == DET_TEMPLATE_FUNCTION_and ? DET_TEMPLATE_AND : DET_TEMPLATE_OR,
        level->offset);
    if (index < 0)
        return (int)index;
    step_at(expression->reader, index)->target = level->jumps;
    level->jumps = (uint32_t)index;
    expression->reader->stack--;
    return 0;
}

/* A value without parentheses, with its fields. */
static int read_simple(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    size_t start = reader->token.offset;
    int64_t index = 0;
    int r;

    switch (reader->token.kind) {
    case DET_LEX_FIELD:
        index = emit_push(reader, DET_TEMPLATE_DOT, start);
        /* The field is read as if it were joined to a dot. */
        reader->token.is_joined = true;
        return index < 0 ? (int)index : read_fields(reader, start);
    case DET_LEX_DOT:
        index = emit_push(reader, DET_TEMPLATE_DOT, start);
        break;
    case DET_LEX_VARIABLE:
        index = read_variable(reader);
        break;
    case DET_LEX_NUMBER:
        index = read_number(reader);
        break;
    case DET_LEX_STRING:
        index = read_string(reader);
        break;
    case DET_LEX_WORD:
    case DET_LEX_END:
    case DET_LEX_PIPE:
    case DET_LEX_DECLARE:
    case DET_LEX_ASSIGN:
    case DET_LEX_COMMA:
    case DET_LEX_OPEN:
    case DET_LEX_CLOSE:
        break;
    }
    if (index < 0)
        return (int)index;
    r = det_template_advance(reader);
    return r < 0 ? r : read_fields(reader, start);
}

static int check_room(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    struct level *level = top(expression);

    if (level->values > 0 && level->function < 0)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
            "a value follows a value; is a function or a | missing?");
    if (level->values + level->is_piped == DET_TEMPLATE_ARGUMENTS)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset, "%s has more than %d values",
            det_template_functions[level->function].name, DET_TEMPLATE_ARGUMENTS);
    return 0;
}

/* One operand, the name of a function, or an opening parenthesis. */
static int read_operand(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    unsigned values = top(expression)->values;
    int64_t index;
    int r;

    r = check_room(expression);
    if (r < 0)
        return r;
    r = skip_rest(expression);
    if (r < 0)
        return r;
    if (reader->token.kind == DET_LEX_OPEN) {
        r = det_template_advance(reader);
        return r < 0 ? r : push_level(expression);
    }
    if (reader->token.kind == DET_LEX_WORD) {
        unsigned stack = reader->stack;

        index = read_word(expression);
        if (index < 0)
            return (int)index;
        top(expression)->values = values + (reader->stack > stack);
        return det_template_advance(reader);
    }
    r = read_simple(expression);
    top(expression)->values = values + 1;
    return r;
}

static int fail_count(struct expression *expression, const struct level *level)
{
    const struct det_template_function_info *info = &det_template_functions[level->function];

    return DET_LEX_FAIL(
        &expression->reader->lex, DET_ERR_MALFORMED, level->offset, "%s needs %s", info->name,
        info->wants);
}

static int end_call(struct expression *expression, struct level *level)
{
    struct det_template_reader *reader = expression->reader;
    unsigned count = level->values + level->is_piped;
    struct det_template_step *step;
    int64_t index;

    if (count < det_template_functions[level->function].fewest ||
        count > det_template_functions[level->function].most)
        return fail_count(expression, level);
    if (!level->is_piped && (level->function == DET_TEMPLATE_FUNCTION_and ||
                             level->function == DET_TEMPLATE_FUNCTION_or)) {
        while (level->jumps != NOTHING) {
            uint32_t before = step_at(reader, level->jumps)->target;

            step_at(reader, level->jumps)->target = reader->template->count;
            level->jumps = before;
        }
        return 0;
    }
    index = det_template_emit(reader, DET_TEMPLATE_CALL, level->offset);
    if (index < 0)
        return (int)index;
    step = step_at(reader, index);
    step->function = (uint8_t)level->function;
    step->count = (uint8_t)count;
    step->is_piped = level->is_piped;
    det_assert(count > 0 && reader->stack >= count);
    reader->stack -= count - 1;
    return 0;
}

/* Ends a command: its value is on the stack. */
static int end_command(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    struct level *level = top(expression);

    if (level->function >= 0)
        return end_call(expression, level);
    if (level->values == 0)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset, "a value is missing before %s",
            det_lex_kind_text(reader->token.kind));
    if (level->is_piped)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, level->offset,
            "expected a function after |, found a value");
    return 0;
}

static int read_pipe(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    int r;

    r = end_command(expression);
    if (r == 0)
        r = det_template_advance(reader);
    if (r < 0)
        return r;
    *top(expression) = (struct level){
        .offset = reader->token.offset, .function = -1, .is_piped = true, .jumps = NOTHING
    };
    return 0;
}

static int read_close(struct expression *expression)
{
    struct det_template_reader *reader = expression->reader;
    size_t start;
    int r;

    if (expression->depth == 1)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
            "this ) has no matching (; remove it");
    r = end_command(expression);
    if (r < 0)
        return r;
    start = reader->token.offset;
    expression->depth--;
    top(expression)->values++;
    r = det_template_advance(reader);
    return r < 0 ? r : read_fields(reader, start);
}

static bool is_operand(enum det_lex_kind kind)
{
    return kind == DET_LEX_FIELD || kind == DET_LEX_DOT || kind == DET_LEX_VARIABLE ||
           kind == DET_LEX_NUMBER || kind == DET_LEX_STRING || kind == DET_LEX_WORD ||
           kind == DET_LEX_OPEN;
}

int det_template_read_pipeline(struct det_template_reader *reader)
{
    struct expression expression = { .reader = reader };
    int r;

    r = push_level(&expression);
    while (r == 0) {
        if (is_operand(reader->token.kind))
            r = read_operand(&expression);
        else if (reader->token.kind == DET_LEX_PIPE)
            r = read_pipe(&expression);
        else if (reader->token.kind == DET_LEX_CLOSE)
            r = read_close(&expression);
        else
            break;
    }
    if (r == 0 && expression.depth > 1)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, top(&expression)->offset,
            "a ( before this has no matching ); close it");
    return r < 0 ? r : end_command(&expression);
}
