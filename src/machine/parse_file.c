/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_file.c - reads the text of a spec and all it includes into rows, macros and words.
 *
 *     file   = { row | END | define | include }
 *     row    = NAME "(" [ argument { "," argument } ] ")"
 *     argument = NAME | NUMBER | text | NAME "(" [ argument { "," argument } ] ")"
 *     text     = STRING { STRING }
 *     define = "#define" NAME ( NUMBER | NAME { "," NAME } )      on one line
 *     include = "#include" STRING                                 on one line
 *
 * Invariants:
 *   1. files and brackets are kept on stacks of fixed height, no function is recursive;
 *   2. after a mistake reading continues at the next #, or at a row word with its parenthesis,
 *      which cannot be inside a row;
 *   3. every loop consumes a token, so the time is linear in the text. */
#include <string.h>

#include "base/assert.h"
#include "machine/parse_reader.h"

/* Maximum nesting: a row needs three levels (row, extra, duration). */
#define NEST_MAX 4

/* The open brackets of a row. */
struct nest {
    struct det_node *calls[NEST_MAX];
    struct det_node **tails[NEST_MAX];
    unsigned depth;
};

static bool report_nested(struct det_reader *reader)
{
    det_reader_report_syntax(reader, "the brackets are nested too deep");
    return false;
}

/* Adds the current token to the innermost bracket; a call opens another one. */
static bool read_argument(struct det_reader *reader, struct nest *nest, bool *ret_more)
{
    unsigned level = nest->depth - 1;
    enum det_node_kind kind = det_reader_token_is(reader, DET_TOKEN_NAME)     ? DET_NODE_NAME
                              : det_reader_token_is(reader, DET_TOKEN_NUMBER) ? DET_NODE_NUMBER
                                                                              : DET_NODE_STRING;
    struct det_node *node = kind == DET_NODE_STRING ? det_reader_read_string(reader)
                                                    : det_reader_new_node(reader, kind);

    det_assert(nest->depth > 0 && nest->depth <= NEST_MAX);
    if (node == NULL)
        return false;
    *nest->tails[level] = node;
    nest->tails[level] = &node->next;
    nest->calls[level]->argument_count++;
    if (kind != DET_NODE_STRING)
        det_reader_advance(reader);
    *ret_more = false;
    if (kind != DET_NODE_NAME || !det_reader_token_is(reader, DET_TOKEN_OPEN))
        return true;
    if (nest->depth == NEST_MAX)
        return report_nested(reader);
    node->kind = DET_NODE_CALL;
    nest->calls[nest->depth] = node;
    nest->tails[nest->depth++] = &node->arguments;
    det_reader_advance(reader);
    *ret_more = !det_reader_token_is(reader, DET_TOKEN_CLOSE);
    return true;
}

static bool is_argument(struct det_reader *reader)
{
    return (det_reader_token_is(reader, DET_TOKEN_NAME) && !det_reader_is_row_start(reader)) ||
           det_reader_token_is(reader, DET_TOKEN_NUMBER) ||
           det_reader_token_is(reader, DET_TOKEN_STRING);
}

/* Reads the separator after an argument: a comma, or the end of its bracket. */
static bool read_separator(struct det_reader *reader, struct nest *nest, bool *ret_more)
{
    *ret_more = det_reader_token_is(reader, DET_TOKEN_COMMA);
    if (det_reader_token_is(reader, DET_TOKEN_CLOSE))
        nest->depth--;
    else if (!*ret_more)
        return false;
    det_reader_advance(reader);
    return true;
}

static void report_unclosed(struct det_reader *reader, const struct det_node *row)
{
    if (det_reader_token_is(reader, DET_TOKEN_END) || det_reader_token_is(reader, DET_TOKEN_HASH) ||
        det_reader_is_row_start(reader))
        det_reader_report_at(reader, row, "( is not closed");
    else
        det_reader_report_syntax(reader, "expected a comma or a closing bracket");
}

/* Reads from the opening bracket to after the closing one; false after a report. */
static bool read_arguments(struct det_reader *reader, struct det_node *row)
{
    struct nest nest = { .calls = { row }, .tails = { &row->arguments }, .depth = 1 };
    bool wants_argument;

    det_reader_advance(reader);
    wants_argument = !det_reader_token_is(reader, DET_TOKEN_CLOSE);
    while (nest.depth > 0) {
        if (wants_argument && !is_argument(reader)) {
            if (det_reader_token_is(reader, DET_TOKEN_COMMA) ||
                det_reader_token_is(reader, DET_TOKEN_CLOSE))
                det_reader_report_syntax(reader, "expected an argument");
            else
                report_unclosed(reader, row);
            return false;
        }
        if (wants_argument) {
            if (!read_argument(reader, &nest, &wants_argument))
                return false;
        } else if (!read_separator(reader, &nest, &wants_argument)) {
            report_unclosed(reader, row);
            return false;
        }
    }
    return true;
}

static void report_unknown_row(struct det_reader *reader, const struct det_node *name)
{
    struct det_place place = det_parse_place(name);
    enum det_language language = reader->spec->language;
    int nearest = det_row_nearest_in(language, name->text);

    if (det_row_is_extra(language, name->text))
        det_parse_report(
            reader->spec, DET_RULE_UNKNOWN_ROW, &place, "%s is not a row: it belongs inside of %s",
            name->text,
            language == DET_LANGUAGE_WORKER ? "STATE or ACTION"
            : language == DET_LANGUAGE_FLOW ? "the row of a stage"
                                            : "ON, STAY or STOP");
    else
        det_parse_report(
            reader->spec, DET_RULE_UNKNOWN_ROW, &place, "unknown row %.64s", name->text);
    if (nearest >= 0)
        det_parse_hint(
            reader->spec, "did you mean %s?", det_row_kind_in(language, (unsigned)nearest)->name);
}

static bool is_of_records(const struct det_reader *reader, int row)
{
    return det_row_kind_in(reader->spec->language, (unsigned)row)->is_of_records;
}

/* Returns true if a row of this kind is permitted in this file; otherwise reports it. */
static bool is_known_row(struct det_reader *reader, const struct det_node *name, int row)
{
    struct det_place place = det_parse_place(name);

    if (row < 0) {
        report_unknown_row(reader, name);
        return false;
    }
    if (name->source->is_of_records && !is_of_records(reader, row)) {
        det_parse_report(
            reader->spec, DET_RULE_UNKNOWN_ROW, &place, "%s does not belong in a file of records",
            name->text);
        return false;
    }
    return true;
}

static void add_row(struct det_reader *reader, struct det_node *row)
{
    struct det_spec *spec = reader->spec;
    struct det_rows *rows = row->source->is_of_records ? &spec->shared_rows : &spec->rows;
    struct det_place place = det_parse_place(row);

    if (spec->row_count++ == DET_SPEC_ROWS_MAX)
        det_parse_report(
            spec, DET_RULE_TOO_LARGE, &place, "the spec has more than %d rows", DET_SPEC_ROWS_MAX);
    if (spec->row_count > DET_SPEC_ROWS_MAX)
        return;
    *rows->tail = row;
    rows->tail = &row->next;
    if (row->row == DET_ROW_USES && row->argument_count == 1 &&
        row->arguments->kind == DET_NODE_STRING)
        det_reader_enter(reader, row->arguments, true);
}

/* The name after a row word without its bracket is the one that it declares. */
static void report_no_bracket(struct det_reader *reader, struct det_node *row)
{
    det_reader_report_at(reader, row, " is not a row: expected ( after it");
    if (det_reader_is_on_line(reader, DET_TOKEN_NAME)) {
        row->arguments = det_reader_new_node(reader, DET_NODE_NAME);
        row->argument_count = row->arguments != NULL ? 1 : 0;
    }
}

/* Reads from after the word of the row to its end; false after a report. */
static bool read_rest(struct det_reader *reader, struct det_node *row, int kind)
{
    bool is_known;

    if (!det_reader_token_is(reader, DET_TOKEN_OPEN) && kind != DET_ROW_END) {
        report_no_bracket(reader, row);
        det_reader_recover(reader);
        return false;
    }
    is_known = is_known_row(reader, row, kind);
    if (det_reader_token_is(reader, DET_TOKEN_OPEN) && !read_arguments(reader, row)) {
        det_reader_recover(reader);
        return false;
    }
    return is_known;
}

/* A row with a misspelt word is stored as the kind that was probably meant. */
static void read_row(struct det_reader *reader)
{
    struct det_node *row = det_reader_new_node(reader, DET_NODE_CALL);
    int kind;

    if (row == NULL)
        return;
    kind = det_row_find_in(reader->spec->language, row->text, row->width);
    det_reader_advance(reader);
    row->is_broken = !read_rest(reader, row, kind);
    if (kind < 0)
        kind = det_row_nearest_in(reader->spec->language, row->text);
    if (kind < 0 || (row->source->is_of_records && !is_of_records(reader, kind)))
        return;
    row->row = (enum det_row)kind;
    add_row(reader, row);
}

static void read_item(struct det_reader *reader)
{
    const struct det_token *token = det_reader_token_of(reader);

    if (token->kind == DET_TOKEN_END) {
        det_reader_pop(reader);
    } else if (token->kind == DET_TOKEN_HASH) {
        det_reader_read_directive(reader);
    } else if (token->kind == DET_TOKEN_NAME) {
        read_row(reader);
    } else {
        det_reader_report_syntax(reader, "expected a row, a comment, #define or #include");
        det_reader_advance(reader);
        det_reader_recover(reader);
    }
}

bool det_parse_files(struct det_spec *spec, const char *path, const char *text, size_t size)
{
    struct det_reader reader = { .spec = spec };
    struct det_place place = { .file = path, .line = 1, .column = 1 };
    struct det_source *source = det_source_add(spec, path, text, size, &place);

    if (source != NULL)
        det_reader_push(&reader, source);
    while (reader.depth > 0 && spec->error == 0)
        read_item(&reader);
    det_assert(reader.depth == 0 || spec->error < 0);
    return source != NULL;
}
