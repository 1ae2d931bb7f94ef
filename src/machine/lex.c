/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lex.c - splits a spec file into tokens.
 *
 * Invariants:
 *   1. every call advances by at least a byte, or stays at the end;
 *   2. `line_start <= offset <= size`, and no newline is between the two;
 *   3. text that C reads differently is BAD here: octal numbers, suffixes, joined lines. */
#include "machine/lex.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool det_lexer_is_name_part(char c)
{
    return is_name_start(c) || is_digit(c);
}

/* Returns the byte `ahead` of the current one; 0 after the end, which no text contains. */
static char peek_byte(const struct det_lexer *lexer, uint32_t ahead)
{
    if (lexer->size - lexer->offset <= ahead)
        return '\0';
    return lexer->text[lexer->offset + ahead];
}

static void skip_byte(struct det_lexer *lexer)
{
    char c = lexer->text[lexer->offset++];

    if (c == '\n') {
        lexer->line++;
        lexer->line_start = lexer->offset;
    }
}

/* Returns the number of newlines. */
static unsigned skip_blanks(struct det_lexer *lexer)
{
    unsigned newlines = 0;

    for (char c = peek_byte(lexer, 0); c == ' ' || c == '\t' || c == '\r' || c == '\n';
         c = peek_byte(lexer, 0)) {
        newlines += c == '\n';
        skip_byte(lexer);
    }
    return newlines;
}

static const char *skip_block_comment(struct det_lexer *lexer)
{
    lexer->offset += 2;
    while (lexer->offset < lexer->size) {
        if (peek_byte(lexer, 0) == '*' && peek_byte(lexer, 1) == '/') {
            lexer->offset += 2;
            return NULL;
        }
        skip_byte(lexer);
    }
    return "the comment does not end";
}

static void skip_line_comment(struct det_lexer *lexer)
{
    while (lexer->offset < lexer->size && peek_byte(lexer, 0) != '\n')
        lexer->offset++;
    /* A carriage return is part of the line end, not of the comment. */
    if (lexer->text[lexer->offset - 1] == '\r')
        lexer->offset--;
}

static const char *skip_string(struct det_lexer *lexer)
{
    lexer->offset++;
    for (char c = peek_byte(lexer, 0); c != '\0' && c != '\n' && c != '\r';
         c = peek_byte(lexer, 0)) {
        lexer->offset++;
        if (c == '"')
            return NULL;
        if (c != '\\')
            continue;
        c = peek_byte(lexer, 0);
        if (c != '"' && c != '\\' && c != 'n' && c != 't')
            return "invalid escape in a string; valid are \\\", \\\\, \\n and \\t";
        lexer->offset++;
    }
    return "the string does not end on its line";
}

static const char *skip_number(struct det_lexer *lexer)
{
    uint32_t start;

    lexer->offset += peek_byte(lexer, 0) == '-';
    start = lexer->offset;
    while (det_lexer_is_name_part(peek_byte(lexer, 0)) || peek_byte(lexer, 0) == '.')
        lexer->offset++;
    for (uint32_t i = start; i < lexer->offset; i++) {
        if (!is_digit(lexer->text[i]))
            return "a number must be digits only";
    }
    if (lexer->text[start] == '0' && lexer->offset - start > 1)
        return "a number that begins with 0 is octal in C; leave the 0 out";
    return NULL;
}

static const char *unexpected_problem(char c)
{
    switch (c) {
    case ';':
        return "rows do not end with ;";
    case '\\':
        return "there are no backslashes outside of strings";
    case '\'':
        return "text must be in double quotes";
    case '{':
    case '}':
    case '[':
    case ']':
        return "only ( and ) are brackets here";
    case '*':
    case '/':
    case '+':
    case '-':
        return "expressions are not supported; write the result";
    case '#':
        return "# is only valid at the start of a line";
    default:
        return "unexpected character";
    }
}

/* Skips one whole character, so that the caret underlines all of its bytes. */
static const char *skip_unexpected(struct det_lexer *lexer)
{
    char c = lexer->text[lexer->offset++];

    while (((unsigned char)peek_byte(lexer, 0) & 0xC0) == 0x80)
        lexer->offset++;
    return unexpected_problem(c);
}

static enum det_token_kind skip_punctuation(struct det_lexer *lexer)
{
    enum det_token_kind kind;

    switch (peek_byte(lexer, 0)) {
    case '(':
        kind = DET_TOKEN_OPEN;
        break;
    case ')':
        kind = DET_TOKEN_CLOSE;
        break;
    case ',':
        kind = DET_TOKEN_COMMA;
        break;
    case '#':
        kind = lexer->is_fresh ? DET_TOKEN_HASH : DET_TOKEN_BAD;
        break;
    default:
        kind = DET_TOKEN_BAD;
        break;
    }
    if (kind != DET_TOKEN_BAD)
        lexer->offset++;
    return kind;
}

/* Returns true for a hyphen inside of what is meant as a name. */
static bool is_in_name(const struct det_lexer *lexer)
{
    uint32_t start = lexer->offset;

    while (start > lexer->line_start && det_lexer_is_name_part(lexer->text[start - 1]))
        start--;
    return start < lexer->offset && is_name_start(lexer->text[start]) &&
           det_lexer_is_name_part(peek_byte(lexer, 1));
}

static void skip_name(struct det_lexer *lexer)
{
    while (det_lexer_is_name_part(peek_byte(lexer, 0)))
        lexer->offset++;
}

/* Sets the kind and the problem, and moves past the token. */
static void skip_token(struct det_lexer *lexer, struct det_token *token)
{
    char c = peek_byte(lexer, 0);

    if (is_name_start(c)) {
        token->kind = DET_TOKEN_NAME;
        skip_name(lexer);
    } else if (c == '-' && is_in_name(lexer)) {
        token->problem = "a name has no hyphens, only letters, digits and _";
        lexer->offset++;
    } else if (is_digit(c) || (c == '-' && is_digit(peek_byte(lexer, 1)))) {
        token->kind = DET_TOKEN_NUMBER;
        token->problem = skip_number(lexer);
    } else if (c == '"') {
        token->kind = DET_TOKEN_STRING;
        token->problem = skip_string(lexer);
    } else if (c == '/' && peek_byte(lexer, 1) == '*') {
        token->kind = DET_TOKEN_COMMENT;
        token->problem = skip_block_comment(lexer);
    } else if (c == '/' && peek_byte(lexer, 1) == '/') {
        token->kind = DET_TOKEN_COMMENT;
        skip_line_comment(lexer);
    } else {
        token->kind = skip_punctuation(lexer);
        if (token->kind == DET_TOKEN_BAD)
            token->problem = skip_unexpected(lexer);
    }
    if (token->problem != NULL)
        token->kind = DET_TOKEN_BAD;
}

static struct det_token next_token(struct det_lexer *lexer)
{
    bool is_at_start = lexer->offset == 0;
    unsigned newlines = skip_blanks(lexer);
    struct det_token token = { .kind = DET_TOKEN_END, .offset = lexer->offset };

    token.line = lexer->line;
    token.column = lexer->offset - lexer->line_start + 1;
    token.starts_line = newlines > 0 || is_at_start;
    token.after_blank_line = newlines > 1;
    lexer->is_fresh |= token.starts_line;
    if (lexer->offset < lexer->size)
        skip_token(lexer, &token);
    lexer->is_fresh &= token.kind == DET_TOKEN_COMMENT;
    token.length = lexer->offset - token.offset;
    det_assert(lexer->line_start <= lexer->offset && lexer->offset <= lexer->size);
    det_check((token.length == 0) == (token.kind == DET_TOKEN_END));
    det_check((token.problem == NULL) == (token.kind != DET_TOKEN_BAD));
    return token;
}

/* Tabs and line ends are the control characters that a text may have. */
static bool is_control(const char *text, uint32_t size, uint32_t i)
{
    unsigned char c = (unsigned char)text[i];

    if (c == '\r')
        return i + 1 == size || text[i + 1] != '\n';
    return c == 0x7F || (c < 0x20 && c != '\t' && c != '\n');
}

/* Returns true if the line ends after this backslash; compilers allow blanks between. */
static bool joins_lines(const char *text, uint32_t size, uint32_t i)
{
    if (text[i] != '\\')
        return false;
    do
        i++;
    while (i < size && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'));
    return i == size || text[i] == '\n';
}

static struct det_text_problem text_problem(const char *text, uint32_t offset, const char *problem)
{
    struct det_text_problem found = { .problem = problem };

    found.token = (struct det_token){ .offset = offset, .length = 1, .line = 1, .column = 1 };
    for (uint32_t i = 0; i < offset; i++) {
        found.token.column = text[i] == '\n' ? 1 : found.token.column + 1;
        found.token.line += text[i] == '\n';
    }
    return found;
}

struct det_text_problem det_lexer_check(const char *text, uint32_t size)
{
    struct det_text_problem found = { .problem = NULL };
    uint32_t valid = (uint32_t)det_utf8_check(text, size);

    for (uint32_t i = 0; i < valid && found.problem == NULL; i++) {
        if (is_control(text, size, i)) {
            found = text_problem(text, i, "the text has a control character");
            found.is_encoding = true;
        } else if (joins_lines(text, size, i)) {
            found = text_problem(text, i, "a backslash must not end a line");
        }
    }
    if (found.problem == NULL && valid < size) {
        found = text_problem(text, valid, "the text is not UTF-8");
        found.is_encoding = true;
    }
    return found;
}

void det_lexer_init(struct det_lexer *lexer, const char *text, uint32_t size)
{
    *lexer = (struct det_lexer){ .text = text, .size = size, .line = 1 };
}

struct det_token det_lexer_next_any(struct det_lexer *lexer)
{
    return next_token(lexer);
}

struct det_token det_lexer_next(struct det_lexer *lexer)
{
    struct det_token token = next_token(lexer);
    bool starts_line = token.starts_line;

    while (token.kind == DET_TOKEN_COMMENT) {
        token = next_token(lexer);
        starts_line |= token.starts_line;
    }
    token.starts_line = starts_line;
    return token;
}
