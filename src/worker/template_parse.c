/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_parse.c - compiles the text of a template to steps: actions, blocks, variables.
 *
 * A block is open from its first action to its {{ end }}. Variables of a block end with it; those
 * of an action `if $x := ...` belong to the block. */
#include "base/assert.h"
#include "base/memory.h"
#include "worker/template_program.h"

#define NOTHING UINT32_MAX

enum block_kind {
    BLOCK_IF,
    BLOCK_WITH,
    BLOCK_RANGE,
    BLOCK_QUOTED,
};

struct block {
    enum block_kind kind;
    size_t offset;       /* of its action */
    uint32_t otherwise;  /* the step that jumps to the next branch; NOTHING: patched already */
    uint32_t ends;       /* the newest jump to the end; each links to the previous one */
    uint32_t next;       /* RANGE: its RANGE_NEXT */
    uint32_t name_count; /* number of variables outside */
    bool has_else;
};

struct parser {
    struct det_template_reader reader;
    struct block blocks[DET_TEMPLATE_DEPTH_MAX];
    unsigned depth;
};

static const char *const block_words[] = {
    [BLOCK_IF] = "if",
    [BLOCK_WITH] = "with",
    [BLOCK_RANGE] = "range",
    [BLOCK_QUOTED] = "quoted",
};

static int emit(struct parser *parser, enum det_template_op op, size_t offset, uint32_t *ret_index)
{
    int64_t index = det_template_emit(&parser->reader, op, offset);

    if (index < 0)
        return (int)index;
    if (ret_index)
        *ret_index = (uint32_t)index;
    return 0;
}

static struct det_template_step *step_at(struct parser *parser, uint32_t index)
{
    return &parser->reader.template->steps[index];
}

/* Resolves the jump to the next branch to this step. */
static void land(struct parser *parser, struct block *block)
{
    det_assert(block->otherwise == NOTHING || block->otherwise < parser->reader.template->count);
    if (block->otherwise != NOTHING)
        step_at(parser, block->otherwise)->target = parser->reader.template->count;
    block->otherwise = NOTHING;
}

static struct block *push_block(struct parser *parser, enum block_kind kind)
{
    struct det_template_reader *reader = &parser->reader;

    if (parser->depth == DET_TEMPLATE_DEPTH_MAX) {
        DET_LEX_FAIL(
            &reader->lex, DET_ERR_LIMIT, reader->lex.action, "blocks are nested more than %d deep",
            DET_TEMPLATE_DEPTH_MAX);
        return NULL;
    }
    parser->blocks[parser->depth] = (struct block){
        .kind = kind,
        .offset = reader->lex.action,
        .otherwise = NOTHING,
        .ends = NOTHING,
        .name_count = reader->name_count,
    };
    return &parser->blocks[parser->depth++];
}

static int expect_end(struct parser *parser, const char *after)
{
    struct det_template_reader *reader = &parser->reader;

    if (reader->token.kind == DET_LEX_END)
        return 0;
    return DET_LEX_FAIL(
        &reader->lex, DET_ERR_MALFORMED, reader->token.offset, "expected }} after %s, found %s",
        after, det_lex_kind_text(reader->token.kind));
}

/* The slot of an existing variable, or an error. */
static int64_t find_name(struct det_template_reader *reader, struct det_view name, size_t offset)
{
    for (uint32_t i = reader->name_count; i > 0; i--)
        if (det_view_equal(reader->names[i - 1].name, name))
            return i - 1;
    return DET_LEX_FAIL(
        &reader->lex, DET_ERR_MALFORMED, offset,
        "there is no %.*s here; declare it with :=", (int)(name.size < 64 ? name.size : 64),
        name.data);
}

/* [ $x := | $x = ] pipeline; `ret_is_set`: a variable was set. The value is on the stack. */
static int read_value(struct parser *parser, bool *ret_is_set)
{
    struct det_template_reader *reader = &parser->reader;
    struct det_lex ahead = reader->lex;
    struct det_lex_token variable = reader->token, mark = { .kind = DET_LEX_END };
    int64_t slot;
    uint32_t index;
    int r;

    *ret_is_set = false;
    if (variable.kind == DET_LEX_VARIABLE) {
        ahead.error = NULL;
        r = det_lex_token(&ahead, &mark);
        if (r < 0)
            mark.kind = DET_LEX_END;
    }
    *ret_is_set = mark.kind == DET_LEX_DECLARE || mark.kind == DET_LEX_ASSIGN;
    if (!*ret_is_set)
        return det_template_read_pipeline(reader);
    reader->lex.offset = ahead.offset;
    r = det_template_advance(reader);
    if (r == 0)
        r = det_template_read_pipeline(reader);
    if (r < 0)
        return r;
    slot = mark.kind == DET_LEX_DECLARE
               ? det_template_declare(reader, variable.text, variable.offset)
               : find_name(reader, variable.text, variable.offset);
    if (slot < 0)
        return (int)slot;
    r = emit(parser, DET_TEMPLATE_SET, variable.offset, &index);
    if (r == 0)
        step_at(parser, index)->slot = (uint32_t)slot;
    return r;
}

/* The condition of if and with, and the jump that follows it. */
static int read_condition(struct parser *parser, struct block *block)
{
    struct det_template_reader *reader = &parser->reader;
    bool is_set;
    int r;

    r = read_value(parser, &is_set);
    if (r == 0)
        r = expect_end(parser, block_words[block->kind]);
    if (r < 0)
        return r;
    reader->stack--;
    return emit(
        parser, block->kind == BLOCK_IF ? DET_TEMPLATE_JUMP_EMPTY : DET_TEMPLATE_WITH,
        block->offset, &block->otherwise);
}

/* $v := or $i, $v := of a range; the names are declared once its pipeline is read. */
static int read_loop_names(struct parser *parser, struct det_lex_token names[2], uint8_t *ret_count)
{
    struct det_template_reader *reader = &parser->reader;
    struct det_lex start = reader->lex;
    struct det_lex_token first = reader->token;
    uint8_t count = 0;
    int r = 0;

    while (reader->token.kind == DET_LEX_VARIABLE && count < 2 && r == 0) {
        names[count++] = reader->token;
        r = det_template_advance(reader);
        if (r < 0 || reader->token.kind != DET_LEX_COMMA || count == 2)
            break;
        r = det_template_advance(reader);
    }
    if (r == 0 && count && reader->token.kind == DET_LEX_DECLARE) {
        *ret_count = count;
        return det_template_advance(reader);
    }
    /* It starts the pipeline, or is a mistake that the pipeline reports. */
    if (r < 0 || count == 2)
        return r < 0 ? r
                     : DET_LEX_FAIL(
                           &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
                           "expected ':=', as in range $i, $v := .list");
    reader->lex = start;
    reader->token = first;
    *ret_count = 0;
    return 0;
}

static int read_range(struct parser *parser, struct block *block)
{
    struct det_template_reader *reader = &parser->reader;
    struct det_template_step *step;
    struct det_lex_token names[2];
    uint8_t count = 0;
    int r;

    r = read_loop_names(parser, names, &count);
    if (r == 0)
        r = det_template_read_pipeline(reader);
    if (r == 0)
        r = expect_end(parser, "range");
    if (r < 0)
        return r;
    reader->stack--;
    r = emit(parser, DET_TEMPLATE_RANGE, block->offset, &block->otherwise);
    if (r == 0)
        r = emit(parser, DET_TEMPLATE_RANGE_NEXT, block->offset, &block->next);
    if (r < 0)
        return r;
    step = step_at(parser, block->next);
    step->count = count;
    step->slot = reader->name_count;
    for (uint8_t i = 0; i < count; i++) {
        int64_t slot = det_template_declare(reader, names[i].text, names[i].offset);

        if (slot < 0)
            return (int)slot;
    }
    return 0;
}

static int read_block(struct parser *parser, enum block_kind kind)
{
    struct block *block = push_block(parser, kind);
    int r;

    if (!block)
        return DET_ERR_LIMIT;
    r = det_template_advance(&parser->reader);
    if (r < 0)
        return r;
    switch (kind) {
    case BLOCK_IF:
    case BLOCK_WITH:
        return read_condition(parser, block);
    case BLOCK_RANGE:
        return read_range(parser, block);
    case BLOCK_QUOTED:
        r = expect_end(parser, "quoted");
        return r < 0 ? r : emit(parser, DET_TEMPLATE_QUOTED, block->offset, NULL);
    }
    return 0;
}

/* Ends the first part of a block. */
static int end_part(struct parser *parser, struct block *block)
{
    uint32_t index;
    int r;

    switch (block->kind) {
    case BLOCK_IF:
        return 0;
    case BLOCK_WITH:
        return emit(parser, DET_TEMPLATE_WITHOUT, block->offset, NULL);
    case BLOCK_RANGE:
        r = emit(parser, DET_TEMPLATE_JUMP, block->offset, &index);
        if (r == 0)
            step_at(parser, index)->target = block->next;
        return r;
    case BLOCK_QUOTED:
        return emit(parser, DET_TEMPLATE_QUOTED_END, block->offset, NULL);
    }
    return 0;
}

/* Skips the following branches. A loop leaves from its RANGE_NEXT. */
static int jump_to_end(struct parser *parser, struct block *block)
{
    uint32_t index;
    int r;

    if (block->kind == BLOCK_RANGE)
        return 0;
    r = emit(parser, DET_TEMPLATE_JUMP, block->offset, &index);
    if (r < 0)
        return r;
    step_at(parser, index)->target = block->ends;
    block->ends = index;
    return 0;
}

static int read_else(struct parser *parser)
{
    struct det_template_reader *reader = &parser->reader;
    struct block *block = parser->depth ? &parser->blocks[parser->depth - 1] : NULL;
    int r;

    if (!block || block->has_else || block->kind == BLOCK_QUOTED)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->lex.action,
            "this else has no if, with or range; remove it");
    r = end_part(parser, block);
    if (r == 0)
        r = jump_to_end(parser, block);
    if (r == 0)
        r = det_template_advance(reader);
    if (r < 0)
        return r;
    land(parser, block);
    reader->name_count = block->name_count;
    if (block->kind == BLOCK_IF && reader->token.kind == DET_LEX_WORD &&
        det_view_is(reader->token.text, "if")) {
        r = det_template_advance(reader);
        return r < 0 ? r : read_condition(parser, block);
    }
    block->has_else = true;
    return expect_end(parser, "else");
}

static int read_end(struct parser *parser)
{
    struct det_template_reader *reader = &parser->reader;
    struct block *block = parser->depth ? &parser->blocks[parser->depth - 1] : NULL;
    int r;

    if (!block)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->lex.action,
            "this end has no if, with or range; remove it");
    r = det_template_advance(reader);
    if (r == 0)
        r = expect_end(parser, "end");
    if (r == 0 && !block->has_else)
        r = end_part(parser, block);
    if (r < 0)
        return r;
    land(parser, block);
    if (block->kind == BLOCK_RANGE)
        step_at(parser, block->next)->target = reader->template->count;
    while (block->ends != NOTHING) {
        uint32_t before = step_at(parser, block->ends)->target;

        step_at(parser, block->ends)->target = reader->template->count;
        block->ends = before;
    }
    reader->name_count = block->name_count;
    parser->depth--;
    return 0;
}

/* Keywords of other template languages. */
static int refuse_word(struct parser *parser)
{
    static const char *const words[] = { "define", "template", "block", "break", "continue" };
    struct det_template_reader *reader = &parser->reader;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (det_view_is(reader->token.text, words[i]))
            return DET_LEX_FAIL(
                &reader->lex, DET_ERR_MALFORMED, reader->token.offset,
                "%s is not supported; the blocks of this language are if, range and with",
                words[i]);
    return 0;
}

static int read_print(struct parser *parser)
{
    struct det_template_reader *reader = &parser->reader;
    size_t offset = reader->token.offset;
    bool is_set;
    int r;

    if (reader->token.kind == DET_LEX_END)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, reader->lex.action, "{{ }} is empty; remove it");
    r = read_value(parser, &is_set);
    if (r == 0)
        r = expect_end(parser, "the value");
    if (r < 0)
        return r;
    reader->stack--;
    return emit(parser, is_set ? DET_TEMPLATE_DROP : DET_TEMPLATE_PRINT, offset, NULL);
}

static int read_action(struct parser *parser)
{
    struct det_template_reader *reader = &parser->reader;
    int r;

    r = det_template_advance(reader);
    if (r < 0)
        return r;
    if (reader->token.kind == DET_LEX_WORD) {
        for (unsigned kind = 0; kind < sizeof block_words / sizeof block_words[0]; kind++)
            if (det_view_is(reader->token.text, block_words[kind]))
                return read_block(parser, (enum block_kind)kind);
        if (det_view_is(reader->token.text, "else"))
            return read_else(parser);
        if (det_view_is(reader->token.text, "end"))
            return read_end(parser);
        r = refuse_word(parser);
        if (r < 0)
            return r;
    }
    return read_print(parser);
}

static int read_text(struct parser *parser, struct det_view text)
{
    struct det_template_reader *reader = &parser->reader;
    uint32_t index;
    int r;

    if (text.size == 0)
        return 0;
    r = emit(parser, DET_TEMPLATE_TEXT, (size_t)(text.data - reader->lex.text.data), &index);
    if (r < 0)
        return r;
    step_at(parser, index)->text = text.data;
    step_at(parser, index)->size = (uint32_t)text.size;
    return 0;
}

static int read_all(struct parser *parser)
{
    struct det_template_reader *reader = &parser->reader;
    bool has_action = true;
    int r = 0;

    while (r == 0 && has_action) {
        struct det_view text;

        r = det_lex_text(&reader->lex, &text, &has_action);
        if (r == 0)
            r = read_text(parser, text);
        if (r == 0 && reader->lex.in_action)
            r = read_action(parser);
        det_assert(r != 0 || reader->stack == 0);
    }
    if (r == 0 && parser->depth)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, parser->blocks[parser->depth - 1].offset,
            "this %s has no {{ end }}", block_words[parser->blocks[parser->depth - 1].kind]);
    det_assert(r != 0 || reader->name_count <= DET_TEMPLATE_VARIABLES);
    return r;
}

int det_template_parse(struct det_template *template, struct det_error *reterr)
{
    struct parser *parser = DET_NEW(template->allocator, struct parser);
    int r;

    if (!parser)
        return DET_ERR_NO_MEMORY;
    parser->reader.template = template;
    parser->reader.lex =
        (struct det_lex){ .what = template->what, .text = template->text, .error = reterr };
    r = read_all(parser);
    DET_DELETE(template->allocator, parser);
    return r;
}
