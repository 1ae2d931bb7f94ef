/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_reader.c - the stack of open files, and the current token of the file on top. */
#include "machine/parse_reader.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/parse_arguments.h"

struct det_frame *det_reader_top(struct det_reader *reader)
{
    det_assert(reader->depth > 0 && reader->depth <= DET_SPEC_INCLUDE_MAX);
    return &reader->frames[reader->depth - 1];
}

const struct det_token *det_reader_token_of(struct det_reader *reader)
{
    return &det_reader_top(reader)->token;
}

bool det_reader_token_is(struct det_reader *reader, enum det_token_kind kind)
{
    return det_reader_token_of(reader)->kind == kind;
}

void det_reader_advance(struct det_reader *reader)
{
    struct det_frame *frame = det_reader_top(reader);

    frame->token = det_lexer_next(&frame->lexer);
}

const char *det_reader_token_text(struct det_reader *reader)
{
    return det_reader_top(reader)->source->text + det_reader_token_of(reader)->offset;
}

bool det_reader_token_is_text(struct det_reader *reader, const char *text)
{
    return det_view_is(
        det_view_of(det_reader_token_text(reader), det_reader_token_of(reader)->length), text);
}

/* A comment that does not end hides the rest of the text, so it is always reported. */
static bool is_endless_comment(struct det_reader *reader)
{
    return det_reader_token_is(reader, DET_TOKEN_BAD) &&
           strncmp(det_reader_token_text(reader), "/*", 2) == 0;
}

/* Hints at the name without hyphens around the token. */
static void hint_name(struct det_reader *reader)
{
    const struct det_source *source = det_reader_top(reader)->source;
    const char *end = source->text + source->size, *at = det_reader_token_text(reader);
    char name[DET_NAME_MAX + 1];
    size_t length = 0;

    while (at > source->text && det_lexer_is_name_part(at[-1]))
        at--;
    for (; at < end && (det_lexer_is_name_part(*at) || *at == '-'); at++) {
        if (length == DET_NAME_MAX)
            return;
        name[length++] = *at;
        if (*at == '-')
            name[length - 1] = '_';
    }
    det_parse_hint(reader->spec, "did you mean %.*s?", (int)length, name);
}

/* Hints at the valid form of a BAD token. */
static void hint_token(struct det_reader *reader)
{
    const struct det_token *token = det_reader_token_of(reader);
    const char *text = det_reader_token_text(reader);

    if (*text >= '0' && *text <= '9')
        det_take_hint_span(reader->spec, det_view_of(text, token->length));
    else if (
        *text == '-' && text > det_reader_top(reader)->source->text &&
        det_lexer_is_name_part(text[-1]) && det_lexer_is_name_part(text[1]))
        hint_name(reader);
}

void det_reader_report_syntax(struct det_reader *reader, const char *problem)
{
    const struct det_token *token = det_reader_token_of(reader);
    struct det_place place = det_source_place(det_reader_top(reader)->source, token);

    if (is_endless_comment(reader))
        det_parse_suspect_all(reader->spec);
    det_parse_report(
        reader->spec, DET_RULE_SYNTAX, &place, "%s",
        token->kind == DET_TOKEN_BAD ? token->problem : problem);
    if (token->kind == DET_TOKEN_BAD)
        hint_token(reader);
}

void det_reader_report_at(struct det_reader *reader, const struct det_node *node, const char *rest)
{
    struct det_place place = det_parse_place(node);

    det_parse_report(
        reader->spec, DET_RULE_SYNTAX, &place, "%.*s%s", DET_NAME_MAX, node->text, rest);
}

static char escaped_byte(char c)
{
    if (c == 'n')
        return '\n';
    if (c == 't')
        return '\t';
    return c;
}

/* Copies a string without its quotes, with its escapes replaced. */
static void unescape_string(char *target, const char *text, size_t length)
{
    for (size_t i = 1; i + 1 < length; i++) {
        if (text[i] == '\\')
            *target++ = escaped_byte(text[++i]);
        else
            *target++ = text[i];
    }
}

struct det_node *det_reader_new_node(struct det_reader *reader, enum det_node_kind kind)
{
    const struct det_token *token = det_reader_token_of(reader);
    struct det_node *node = det_parse_alloc(reader->spec, sizeof *node + token->length + 1);

    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->source = det_reader_top(reader)->source;
    node->at = det_reader_token_text(reader);
    node->line = token->line;
    node->column = token->column;
    node->width = token->length;
    if (kind == DET_NODE_STRING)
        unescape_string(node->text, node->at, token->length);
    else
        memcpy(node->text, node->at, token->length);
    return node;
}

struct det_node *det_reader_read_string(struct det_reader *reader)
{
    struct det_node *first = NULL, **tail = &first, *joined;
    size_t size = 0;

    do {
        *tail = det_reader_new_node(reader, DET_NODE_STRING);
        if (*tail == NULL)
            return NULL;
        size += strlen((*tail)->text);
        tail = &(*tail)->next_piece;
        det_reader_advance(reader);
    } while (det_reader_token_is(reader, DET_TOKEN_STRING));
    if (first->next_piece == NULL)
        return first;
    joined = det_parse_alloc(reader->spec, sizeof *joined + size + 1);
    if (joined == NULL)
        return NULL;
    memcpy(joined, first, sizeof *joined);
    joined->pieces = first;
    joined->next_piece = NULL;
    size = 0;
    for (const struct det_node *piece = first; piece != NULL; piece = piece->next_piece) {
        memcpy(joined->text + size, piece->text, strlen(piece->text));
        size += strlen(piece->text);
    }
    return joined;
}

static bool next_is_open(struct det_reader *reader)
{
    struct det_lexer ahead = det_reader_top(reader)->lexer;

    return det_lexer_next(&ahead).kind == DET_TOKEN_OPEN;
}

bool det_reader_is_row_start(struct det_reader *reader)
{
    int row;

    if (!det_reader_token_is(reader, DET_TOKEN_NAME))
        return false;
    row = det_row_find_in(
        reader->spec->language, det_reader_token_text(reader), det_reader_token_of(reader)->length);
    if (row == DET_ROW_END)
        return det_reader_token_of(reader)->starts_line && !next_is_open(reader);
    return row >= 0 && next_is_open(reader);
}

void det_reader_recover(struct det_reader *reader)
{
    while (!det_reader_token_is(reader, DET_TOKEN_END) &&
           !det_reader_token_is(reader, DET_TOKEN_HASH) && !det_reader_is_row_start(reader)) {
        if (is_endless_comment(reader))
            det_reader_report_syntax(reader, NULL);
        det_reader_advance(reader);
    }
}

void det_reader_skip_line(struct det_reader *reader)
{
    while (!det_reader_token_is(reader, DET_TOKEN_END) && !det_reader_token_of(reader)->starts_line)
        det_reader_advance(reader);
}

bool det_reader_is_on_line(struct det_reader *reader, enum det_token_kind kind)
{
    return det_reader_token_is(reader, kind) && !det_reader_token_of(reader)->starts_line;
}

void det_reader_push(struct det_reader *reader, struct det_source *source)
{
    struct det_frame *frame;

    reader->depth++;
    frame = det_reader_top(reader);
    *frame = (struct det_frame){ .source = source };
    det_lexer_init(&frame->lexer, source->text, source->size);
    frame->token = det_lexer_next(&frame->lexer);
}

void det_reader_pop(struct det_reader *reader)
{
    det_assert(det_reader_token_is(reader, DET_TOKEN_END));
    det_source_finish(det_reader_top(reader)->source);
    reader->depth--;
}
