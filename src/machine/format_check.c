/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* format_check.c - checks whether a text can be formatted, and measures its rows. */
#include <string.h>

#include "machine/format.h"

/* The nesting limit of the reader. */
#define NEST_MAX 4

struct checker {
    const char *text;
    struct det_lexer lexer;
    struct det_token token;
};

static void next_token(struct checker *checker)
{
    checker->token = det_lexer_next(&checker->lexer);
}

static bool is_kind(const struct checker *checker, enum det_token_kind kind)
{
    return checker->token.kind == kind;
}

static bool is_word(const struct checker *checker, const char *word)
{
    return is_kind(checker, DET_TOKEN_NAME) && checker->token.length == strlen(word) &&
           memcmp(checker->text + checker->token.offset, word, checker->token.length) == 0;
}

static bool fail_with(struct checker *checker, const char *problem)
{
    if (checker->token.problem == NULL)
        checker->token.problem = problem;
    return false;
}

static bool is_at_line_end(const struct checker *checker)
{
    return is_kind(checker, DET_TOKEN_END) || checker->token.starts_line;
}

static bool is_worker_word(const struct checker *checker)
{
    return checker->token.length > 7 &&
           memcmp(checker->text + checker->token.offset, "WORKER_", 7) == 0;
}

/* Checks a value: a name or a duration. */
static bool check_value(struct checker *checker)
{
    if (!is_kind(checker, DET_TOKEN_NAME))
        return fail_with(checker, "expected a name or a duration after the word of a worker");
    next_token(checker);
    if (!is_at_line_end(checker) && is_kind(checker, DET_TOKEN_OPEN)) {
        next_token(checker);
        if (!is_kind(checker, DET_TOKEN_NUMBER))
            return fail_with(checker, "expected a number in the brackets of a duration");
        next_token(checker);
        if (!is_kind(checker, DET_TOKEN_CLOSE))
            return fail_with(checker, "expected a closing bracket");
        next_token(checker);
    }
    return is_at_line_end(checker) ||
           fail_with(checker, "expected the end of the line after the value of the word");
}

static bool check_define(struct checker *checker)
{
    next_token(checker);
    if (is_at_line_end(checker) || !is_kind(checker, DET_TOKEN_NAME))
        return fail_with(checker, "expected a name after #define");
    if (checker->lexer.offset < checker->lexer.size && checker->text[checker->lexer.offset] == '(')
        return fail_with(checker, "a macro is a list of names, without arguments");
    /* #define WORKER_DERIVE and #define WORKER_EVERY SECONDS(5). */
    if (is_worker_word(checker)) {
        next_token(checker);
        if (is_at_line_end(checker))
            return true;
        return check_value(checker);
    }
    do {
        next_token(checker);
        if (is_at_line_end(checker) ||
            (!is_kind(checker, DET_TOKEN_NAME) && !is_kind(checker, DET_TOKEN_NUMBER)))
            return fail_with(checker, "expected names separated by commas after #define");
        next_token(checker);
    } while (!is_at_line_end(checker) && is_kind(checker, DET_TOKEN_COMMA));
    return is_at_line_end(checker) || fail_with(checker, "a comma is missing in the list");
}

static bool check_include(struct checker *checker)
{
    next_token(checker);
    if (is_at_line_end(checker) || !is_kind(checker, DET_TOKEN_STRING))
        return fail_with(checker, "expected a file name in double quotes after #include");
    next_token(checker);
    return is_at_line_end(checker) ||
           fail_with(checker, "expected the end of the line after the file name");
}

static bool check_directive(struct checker *checker)
{
    next_token(checker);
    if (!is_at_line_end(checker) && is_word(checker, "define"))
        return check_define(checker);
    if (!is_at_line_end(checker) && is_word(checker, "include"))
        return check_include(checker);
    return fail_with(checker, "only #define and #include may follow a # in a spec");
}

/* Moves from after the opening bracket to after the closing one. */
static bool check_arguments(struct checker *checker)
{
    unsigned depth = 1;
    bool wants_argument = !is_kind(checker, DET_TOKEN_CLOSE);

    while (depth > 0) {
        bool is_name = is_kind(checker, DET_TOKEN_NAME);
        bool is_text = is_kind(checker, DET_TOKEN_STRING);

        if (wants_argument) {
            if (!is_name && !is_text && !is_kind(checker, DET_TOKEN_NUMBER))
                return fail_with(checker, "expected an argument");
            do
                next_token(checker);
            while (is_text && is_kind(checker, DET_TOKEN_STRING));
            wants_argument = false;
            if (is_name && is_kind(checker, DET_TOKEN_OPEN)) {
                if (depth++ == NEST_MAX)
                    return fail_with(checker, "the brackets are nested too deep");
                next_token(checker);
                wants_argument = !is_kind(checker, DET_TOKEN_CLOSE);
            }
            continue;
        }
        wants_argument = is_kind(checker, DET_TOKEN_COMMA);
        if (is_kind(checker, DET_TOKEN_CLOSE))
            depth--;
        else if (!wants_argument)
            return fail_with(checker, "expected a comma or a closing bracket");
        next_token(checker);
    }
    return true;
}

static bool check_row(struct checker *checker)
{
    bool is_end = is_word(checker, "END");

    next_token(checker);
    if (is_kind(checker, DET_TOKEN_OPEN)) {
        next_token(checker);
        return check_arguments(checker);
    }
    return is_end || fail_with(checker, "expected ( after the name of a row");
}

bool det_format_is_valid(const char *text, uint32_t size, struct det_token *ret)
{
    struct checker checker = { .text = text };
    bool is_sound = true;

    det_lexer_init(&checker.lexer, text, size);
    next_token(&checker);
    while (is_sound && !is_kind(&checker, DET_TOKEN_END)) {
        if (is_kind(&checker, DET_TOKEN_HASH))
            is_sound = check_directive(&checker);
        else if (is_kind(&checker, DET_TOKEN_NAME))
            is_sound = check_row(&checker);
        else
            is_sound = fail_with(&checker, "expected a row, a comment, #define or #include");
    }
    if (!is_sound)
        *ret = checker.token;
    return is_sound;
}

/* Skips the comments after a row, on its line. */
static bool skip_comments(struct det_lexer *lexer)
{
    struct det_lexer ahead = *lexer;
    struct det_token token = det_lexer_next_any(&ahead);
    bool has_comment = false;

    while (token.kind == DET_TOKEN_COMMENT && !token.starts_line) {
        has_comment = true;
        *lexer = ahead;
        token = det_lexer_next_any(&ahead);
    }
    return has_comment;
}

/* Counts one token of a row; `depth` is the nesting after it. */
static void measure_token(
    struct det_format_row *row, const struct det_token *token, unsigned depth, uint32_t *start)
{
    bool is_comma = token->kind == DET_TOKEN_COMMA && depth == 1;

    row->has_inner_comment |= token->kind == DET_TOKEN_COMMENT;
    if (is_comma || (token->kind == DET_TOKEN_CLOSE && depth == 0)) {
        if (row->argument_count < DET_FORMAT_COLUMNS)
            row->widths[row->argument_count] = row->width - *start;
        row->argument_count++;
    }
    row->width += token->length + (token->kind == DET_TOKEN_COMMA);
    if (is_comma || (token->kind == DET_TOKEN_OPEN && depth == 1))
        *start = row->width;
}

struct det_format_row det_format_measure(struct det_lexer *lexer, const struct det_token *name)
{
    struct det_format_row row = { .name = *name, .width = name->length };
    struct det_lexer ahead = *lexer;
    bool is_open = det_lexer_next(&ahead).kind == DET_TOKEN_OPEN;
    enum det_token_kind before = DET_TOKEN_NAME;
    unsigned depth = 0;
    uint32_t start = 0;

    while (is_open) {
        struct det_token token = det_lexer_next_any(lexer);

        row.has_joined_text |= before == DET_TOKEN_STRING && token.kind == DET_TOKEN_STRING;
        before = token.kind;
        depth += token.kind == DET_TOKEN_OPEN;
        depth -= token.kind == DET_TOKEN_CLOSE;
        measure_token(&row, &token, depth, &start);
        is_open = depth > 0 || token.kind != DET_TOKEN_CLOSE;
    }
    row.has_comment = skip_comments(lexer);
    return row;
}
