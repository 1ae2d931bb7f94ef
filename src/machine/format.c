/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* format.c - formats a spec: the same words in the same order, with normalized blanks.
 *
 * The text is walked item by item: a row, a line with #, or a comment. Rows of one kind that
 * follow each other without an empty line or a comment of their own line between them are a run:
 *
 *     STATE(PENDING,  pending, INITIAL) . the run is measured twice (columns, then the place of
 *     STATE(CHARGING, charging)         . the comments) and then written, so that no memory is
 *     STATE(PAID,     paid)             . needed but the text itself
 *
 * ON and ELSE are of one kind here, so that a choice is read as a table:
 *
 *     ON  (PENDING, PAY, CHARGING, IF(is_card))
 *     ELSE(PENDING, PAY, DECLINED)
 *
 * A row that is too long for its line is aligned all the same, up to the place where it is broken:
 *
 *     ON(PENDING, PAY,    CHARGING, IF(is_card), CALL(check_stock), SET(add_line),
 *         DO(charge_card))
 *     ON(PAID,    CANCEL, REFUNDED)
 *
 * Invariants:
 *   1. the output depends on words, comments, empty lines and on whether a comment is on the line
 *      of the item before it, and preserves all of them: formatting is idempotent;
 *   2. the text is checked before the first byte is written. */
#include "machine/format.h"

#include <detent/tool/spec.h>

#include <string.h>

#include "base/assert.h"

/* Wider arguments are not aligned: their neighbours would get too many blanks. */
#define ALIGNED_MAX 20
#define INDENT      4

struct writer {
    const char *text;
    struct det_lexer lexer;
    char *target;
    size_t capacity;
    size_t length;   /* of the whole output, also beyond the capacity */
    size_t column;   /* of the next byte, from 0 */
    unsigned indent; /* inside RECORD ... END */
};

/* The separator of two words in a row that does not fit on its line. */
enum gap {
    GAP_NONE,
    GAP_BLANK, /* or a new line, when there is no room */
    GAP_LINE,
};

/* The common layout of the rows of a run. */
struct run {
    size_t count;
    uint32_t name;    /* the width of the widest */
    unsigned columns; /* number of aligned columns */
    uint32_t widths[DET_FORMAT_COLUMNS];
    uint32_t comment_column; /* 0: no row has a comment */
};

static void write_bytes(struct writer *writer, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (writer->length + 1 < writer->capacity)
            writer->target[writer->length] = bytes[i];
        writer->length++;
        writer->column = bytes[i] == '\n' ? 0 : writer->column + 1;
    }
}

static void write_blanks(struct writer *writer, size_t count)
{
    while (count-- > 0)
        write_bytes(writer, " ", 1);
}

/* Writes a comment without the blanks at the ends of its lines. */
static void write_comment(struct writer *writer, const struct det_token *token)
{
    const char *text = writer->text + token->offset;
    size_t start = 0;

    while (start < token->length) {
        const char *newline = memchr(text + start, '\n', token->length - start);
        size_t end = newline != NULL ? (size_t)(newline - text) : token->length;
        size_t last = end;

        while (last > start &&
               (text[last - 1] == ' ' || text[last - 1] == '\t' || text[last - 1] == '\r'))
            last--;
        write_bytes(writer, text + start, last - start);
        if (newline != NULL)
            write_bytes(writer, "\n", 1);
        start = end + 1;
    }
}

static void write_token(struct writer *writer, const struct det_token *token)
{
    if (token->kind == DET_TOKEN_COMMENT)
        write_comment(writer, token);
    else
        write_bytes(writer, writer->text + token->offset, token->length);
}

static bool is_line_comment(const struct writer *writer, const struct det_token *token)
{
    return token->kind == DET_TOKEN_COMMENT && writer->text[token->offset + 1] == '/';
}

/* Ends the previous line, and keeps an empty line. */
static void start_line(struct writer *writer, const struct det_token *token, unsigned indent)
{
    if (writer->length > 0) {
        write_bytes(writer, "\n", 1);
        if (token->after_blank_line)
            write_bytes(writer, "\n", 1);
    }
    write_blanks(writer, indent);
}

static struct det_token peek_token(const struct writer *writer)
{
    struct det_lexer ahead = writer->lexer;

    return det_lexer_next_any(&ahead);
}

/* Writes the comments on the line of the last item. */
static void write_trailing_comments(struct writer *writer, size_t column)
{
    struct det_token token = peek_token(writer);

    while (token.kind == DET_TOKEN_COMMENT && !token.starts_line) {
        token = det_lexer_next_any(&writer->lexer);
        write_blanks(writer, column > writer->column ? column - writer->column : 1);
        write_comment(writer, &token);
        token = peek_token(writer);
    }
}

/* Returns the blanks after the comma of this argument, beyond the one that is always there. */
static uint32_t padding_after(
    const struct run *run, const struct det_format_row *row, uint32_t argument)
{
    if (argument >= run->columns || argument + 1 >= row->argument_count ||
        row->widths[argument] > run->widths[argument])
        return 0;
    return run->widths[argument] - row->widths[argument];
}

/* Returns the width of the row with its padding. */
static uint32_t aligned_width(const struct run *run, const struct det_format_row *row)
{
    uint32_t width = row->width + run->name - row->name.length;

    for (uint32_t i = 0; i < DET_FORMAT_COLUMNS; i++)
        width += padding_after(run, row, i);
    return width;
}

static bool row_fits(
    const struct writer *writer, const struct run *run, const struct det_format_row *row)
{
    return !row->has_inner_comment && !row->has_joined_text &&
           writer->indent + aligned_width(run, row) <= DET_FORMAT_WIDTH;
}

static bool same_text(
    const struct writer *writer, const struct det_token *a, const struct det_token *b)
{
    return a->length == b->length &&
           memcmp(writer->text + a->offset, writer->text + b->offset, a->length) == 0;
}

static bool is_word(const struct writer *writer, const struct det_token *token, const char *word)
{
    return token->length == strlen(word) &&
           memcmp(writer->text + token->offset, word, token->length) == 0;
}

static bool is_of_choice(const struct writer *writer, const struct det_token *name)
{
    return is_word(writer, name, "ON") || is_word(writer, name, "ELSE");
}

/* Returns true if rows of these names belong to one run. */
static bool same_kind(
    const struct writer *writer, const struct det_token *a, const struct det_token *b)
{
    return same_text(writer, a, b) || (is_of_choice(writer, a) && is_of_choice(writer, b));
}

/* Returns the next row of the run that starts at `first`; false at its end. */
static bool next_of_run(
    const struct writer *writer, struct det_lexer *lexer, const struct det_token *first,
    struct det_format_row *ret)
{
    struct det_token token = det_lexer_next_any(lexer);

    if (token.kind != DET_TOKEN_NAME || !same_kind(writer, &token, first) ||
        (token.after_blank_line && token.offset != first->offset))
        return false;
    *ret = det_format_measure(lexer, &token);
    return true;
}

static void widen_columns(struct run *run, const struct det_format_row *row)
{
    run->name = row->name.length > run->name ? row->name.length : run->name;
    for (uint32_t i = 0; i < run->columns && i + 1 < row->argument_count; i++) {
        if (row->widths[i] > run->widths[i] && row->widths[i] <= ALIGNED_MAX)
            run->widths[i] = row->widths[i];
    }
}

/* Measures the run that begins with the next row. */
static struct run measure_run(const struct writer *writer, const struct det_token *first)
{
    struct run run = { .name = first->length };
    struct det_lexer lexer = writer->lexer;
    struct det_format_row row;

    run.columns = det_row_columns(writer->text + first->offset, first->length);
    det_assert(run.columns <= DET_FORMAT_COLUMNS);
    for (; next_of_run(writer, &lexer, first, &row); run.count++) {
        if (!row.has_inner_comment)
            widen_columns(&run, &row);
    }
    lexer = writer->lexer;
    for (size_t i = 0; i < run.count; i++) {
        if (next_of_run(writer, &lexer, first, &row) && row.has_comment &&
            row_fits(writer, &run, &row) && aligned_width(&run, &row) >= run.comment_column)
            run.comment_column = aligned_width(&run, &row) + 1;
    }
    return run;
}

/* Writes a row that fits on its line. */
static void write_aligned(
    struct writer *writer, const struct run *run, const struct det_format_row *row)
{
    uint32_t argument = 0;
    unsigned depth = 0;

    write_blanks(writer, run->name - row->name.length);
    for (uint32_t width = row->name.length; width < row->width;) {
        struct det_token token = det_lexer_next_any(&writer->lexer);

        write_token(writer, &token);
        width += token.length;
        depth += token.kind == DET_TOKEN_OPEN;
        depth -= token.kind == DET_TOKEN_CLOSE;
        if (token.kind != DET_TOKEN_COMMA)
            continue;
        width++;
        if (depth == 1)
            write_blanks(writer, padding_after(run, row, argument));
        argument += depth == 1;
        write_bytes(writer, " ", 1);
    }
    det_assert(depth == 0);
}

/* Returns the width up to the next comma of the same bracket, or to the end of the first of
 * adjacent strings, where a line may be broken as well. */
static size_t width_ahead(const struct writer *writer, unsigned depth)
{
    struct det_lexer ahead = writer->lexer;
    struct det_token token = det_lexer_next_any(&ahead);
    enum det_token_kind before;
    unsigned level = depth;
    size_t width = 0;

    while (token.kind != DET_TOKEN_COMMENT) {
        width += token.length;
        level += token.kind == DET_TOKEN_OPEN;
        level -= token.kind == DET_TOKEN_CLOSE;
        if (level == 0 || (token.kind == DET_TOKEN_COMMA && level <= depth))
            break;
        width += token.kind == DET_TOKEN_COMMA;
        before = token.kind;
        token = det_lexer_next_any(&ahead);
        if (before == DET_TOKEN_STRING && token.kind == DET_TOKEN_STRING)
            break;
    }
    return width;
}

static void break_line(struct writer *writer)
{
    write_bytes(writer, "\n", 1);
    write_blanks(writer, writer->indent + INDENT);
}

/* Writes blanks, or a newline if the next item does not fit on this line; returns whether it was a
 * newline. */
static bool write_blanks_or_line(struct writer *writer, size_t blanks, unsigned depth)
{
    if (writer->column + blanks + width_ahead(writer, depth) <= DET_FORMAT_WIDTH) {
        write_blanks(writer, blanks);
        return false;
    }
    break_line(writer);
    return true;
}

static enum gap gap_behind(const struct writer *writer, const struct det_token *token)
{
    if (is_line_comment(writer, token))
        return GAP_LINE;
    if (token->kind == DET_TOKEN_COMMENT || token->kind == DET_TOKEN_COMMA)
        return GAP_BLANK;
    return GAP_NONE;
}

/* A row that is too long or contains comments: broken after commas and line comments. */
struct loose {
    unsigned depth;
    uint32_t argument; /* the number of the next one, from 0 */
    uint32_t padding;  /* before it; 0 once the row is broken */
    bool is_broken;
};

static void write_gap(
    struct writer *writer, struct loose *loose, enum gap gap, enum det_token_kind next)
{
    if (gap == GAP_LINE) {
        break_line(writer);
        loose->is_broken = true;
    } else if (gap == GAP_BLANK && next != DET_TOKEN_COMMA && next != DET_TOKEN_CLOSE) {
        loose->is_broken |= write_blanks_or_line(writer, 1 + loose->padding, loose->depth);
    } else if (next == DET_TOKEN_COMMENT) {
        write_bytes(writer, " ", 1);
    }
    loose->padding = 0;
}

static void step_behind(
    struct loose *loose, enum det_token_kind kind, const struct run *run,
    const struct det_format_row *row)
{
    loose->depth += kind == DET_TOKEN_OPEN;
    loose->depth -= kind == DET_TOKEN_CLOSE;
    if (kind != DET_TOKEN_COMMA || loose->depth != 1)
        return;
    /* Comments are not aligned to columns. */
    if (!loose->is_broken && !row->has_inner_comment)
        loose->padding = padding_after(run, row, loose->argument);
    loose->argument++;
}

static void write_loose(
    struct writer *writer, const struct run *run, const struct det_format_row *row)
{
    struct loose loose = { 0 };
    enum gap gap = GAP_NONE;
    struct det_token token;

    if (!row->has_inner_comment)
        write_blanks(writer, run->name - row->name.length);
    do {
        write_gap(writer, &loose, gap, peek_token(writer).kind);
        token = det_lexer_next_any(&writer->lexer);
        write_token(writer, &token);
        gap = gap_behind(writer, &token);
        if (token.kind == DET_TOKEN_STRING && peek_token(writer).kind == DET_TOKEN_STRING)
            gap = GAP_LINE;
        step_behind(&loose, token.kind, run, row);
    } while (loose.depth > 0 || token.kind != DET_TOKEN_CLOSE);
}

static void write_row(struct writer *writer, const struct run *run)
{
    struct det_token name = det_lexer_next_any(&writer->lexer);
    struct det_lexer ahead = writer->lexer;
    struct det_format_row row = det_format_measure(&ahead, &name);

    start_line(writer, &name, writer->indent);
    write_token(writer, &name);
    if (row_fits(writer, run, &row)) {
        write_aligned(writer, run, &row);
        write_trailing_comments(
            writer, run->comment_column > 0 ? writer->indent + run->comment_column : 0);
    } else {
        write_loose(writer, run, &row);
        write_trailing_comments(writer, 0);
    }
}

static void write_run(struct writer *writer)
{
    struct det_token first = peek_token(writer);
    bool opens = is_word(writer, &first, "RECORD") || is_word(writer, &first, "ENUM");
    struct run run;

    if (opens || is_word(writer, &first, "END"))
        writer->indent = 0;
    run = measure_run(writer, &first);
    det_assert(run.count > 0);
    for (size_t i = 0; i < run.count; i++)
        write_row(writer, &run);
    if (opens)
        writer->indent = INDENT;
}

static void write_directive(struct writer *writer)
{
    struct det_token token = det_lexer_next_any(&writer->lexer);
    enum det_token_kind before = DET_TOKEN_HASH;

    start_line(writer, &token, 0);
    write_token(writer, &token);
    for (token = peek_token(writer); token.kind != DET_TOKEN_END && !token.starts_line;
         token = peek_token(writer)) {
        token = det_lexer_next_any(&writer->lexer);
        if (before != DET_TOKEN_HASH && before != DET_TOKEN_OPEN && token.kind != DET_TOKEN_COMMA &&
            token.kind != DET_TOKEN_OPEN && token.kind != DET_TOKEN_CLOSE)
            write_bytes(writer, " ", 1);
        write_token(writer, &token);
        before = token.kind;
    }
}

static void write_line_comment(struct writer *writer)
{
    struct det_token token = det_lexer_next_any(&writer->lexer);

    start_line(writer, &token, writer->indent);
    write_comment(writer, &token);
    write_trailing_comments(writer, 0);
}

static void write_all(struct writer *writer)
{
    struct det_token token = peek_token(writer);

    for (; token.kind != DET_TOKEN_END; token = peek_token(writer)) {
        uint32_t before = writer->lexer.offset;

        if (token.kind == DET_TOKEN_HASH)
            write_directive(writer);
        else if (token.kind == DET_TOKEN_COMMENT)
            write_line_comment(writer);
        else
            write_run(writer);
        det_assert(writer->lexer.offset > before);
    }
    if (writer->length > 0)
        write_bytes(writer, "\n", 1);
    if (writer->capacity > 0)
        writer->target[writer->length < writer->capacity ? writer->length : writer->capacity - 1] =
            '\0';
}

static int64_t fail_at(struct det_error *reterr, const struct det_token *token, const char *problem)
{
    (void)det_error_set(
        reterr, DET_ERR_MALFORMED, "%u:%u: %s", token->line, token->column, problem);
    if (reterr != NULL)
        reterr->offset = token->offset;
    return DET_ERR_MALFORMED;
}

int64_t det_spec_format(
    const char *text, size_t size, char *target, size_t capacity, struct det_error *reterr)
{
    struct writer writer = { .text = text, .capacity = capacity };
    struct det_text_problem found;
    struct det_token token;

    if (size > DET_SPEC_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "the file has %zu bytes, more than %d", size, DET_SPEC_SIZE_MAX);
    found = det_lexer_check(text, (uint32_t)size);
    if (found.problem != NULL)
        return fail_at(reterr, &found.token, found.problem);
    if (!det_format_is_valid(text, (uint32_t)size, &token))
        return fail_at(reterr, &token, token.problem);
    writer.target = target;
    det_lexer_init(&writer.lexer, text, (uint32_t)size);
    write_all(&writer);
    return (int64_t)writer.length;
}
