/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_lex.c - splits a template into tokens. */
#include "worker/template_lex.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SPACES " \t\r\n"

const char *det_lex_kind_text(enum det_lex_kind kind)
{
    static const char *const texts[] = {
#define DET_LEX_KIND(name, text) text,
        DET_LEX_KINDS(DET_LEX_KIND)
#undef DET_LEX_KIND
    };

    return texts[kind];
}

int det_lex_fail(
    struct det_error *reterr, int code, const char *what, struct det_view text, size_t offset,
    const char *format, ...)
{
    uint32_t line = 1, column = 1;
    char printed[DET_ERROR_TEXT_MAX];
    va_list arguments;

    for (size_t i = 0; i < offset && i < text.size; i++) {
        line += text.data[i] == '\n';
        /* Continuation bytes of a character do not count. */
        column = text.data[i] == '\n' ? 1 : column + ((text.data[i] & 0xC0) != 0x80);
    }
    va_start(arguments, format);
    vsnprintf(printed, sizeof printed, format, arguments);
    va_end(arguments);
    return det_datum_fail(reterr, code, what, line, column, "%s", printed);
}

static bool is_space(char c)
{
    return c && strchr(SPACES, c);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

/* 0 after the end. */
static char at(const struct det_lex *lex, size_t offset)
{
    if (offset >= lex->text.size)
        return '\0';
    return lex->text.data[offset];
}

static bool stands(const struct det_lex *lex, size_t offset, const char *word)
{
    size_t size = strlen(word);

    return offset <= lex->text.size && lex->text.size - offset >= size &&
           memcmp(lex->text.data + offset, word, size) == 0;
}

/* The offset of the word at or after `offset`; the size of the text if it does not occur. */
static size_t find_word(const struct det_lex *lex, size_t offset, const char *word)
{
    const char *found =
        memmem(lex->text.data + offset, lex->text.size - offset, word, strlen(word));

    return found ? (size_t)(found - lex->text.data) : lex->text.size;
}

static struct det_view trimmed(struct det_view text, bool at_start, bool at_end)
{
    while (at_start && text.size && is_space(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (at_end && text.size && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Skips a comment, which extends to its own end. */
static int skip_comment(struct det_lex *lex)
{
    size_t end = find_word(lex, lex->offset + 2, "*/");

    if (end == lex->text.size)
        return DET_LEX_FAIL(
            lex, DET_ERR_MALFORMED, lex->action, "the comment has no end; write */}}");
    lex->offset = end + 2;
    lex->trims = is_space(at(lex, lex->offset)) && stands(lex, lex->offset + 1, "-}}");
    lex->offset += lex->trims ? 2 : 0;
    if (!stands(lex, lex->offset, "}}"))
        return DET_LEX_FAIL(
            lex, DET_ERR_MALFORMED, lex->action,
            "a comment is a separate action; put }} directly after its */");
    lex->offset += 2;
    return 0;
}

/* Skips {{; returns whether the text before it is trimmed. */
static bool enter(struct det_lex *lex)
{
    bool trims_before = at(lex, lex->offset + 2) == '-' && is_space(at(lex, lex->offset + 3));

    lex->action = lex->offset;
    lex->offset += trims_before ? 4 : 2;
    return trims_before;
}

int det_lex_text(struct det_lex *lex, struct det_view *ret_text, bool *ret_has_action)
{
    size_t end = find_word(lex, lex->offset, "{{");
    struct det_view text = det_view_of(lex->text.data + lex->offset, end - lex->offset);
    bool trims_start = lex->trims, trims_end;

    lex->offset = end;
    lex->trims = false;
    lex->in_action = false;
    *ret_has_action = end < lex->text.size;
    if (!*ret_has_action) {
        *ret_text = trimmed(text, trims_start, false);
        return 0;
    }
    trims_end = enter(lex);
    *ret_text = trimmed(text, trims_start, trims_end);
    if (stands(lex, lex->offset, "/*"))
        return skip_comment(lex);
    lex->in_action = true;
    return 0;
}

/* Letters and digits from `offset` on. */
static size_t word_size(const struct det_lex *lex, size_t offset)
{
    size_t size = 0;

    while (is_letter(at(lex, offset + size)) || (size && is_digit(at(lex, offset + size))))
        size++;
    return size;
}

static size_t number_size(const struct det_lex *lex, size_t offset)
{
    size_t size = at(lex, offset) == '-' || at(lex, offset) == '+';

    for (;; size++) {
        char c = at(lex, offset + size);
        bool is_sign = (c == '+' || c == '-') && size > 0 &&
                       (at(lex, offset + size - 1) == 'e' || at(lex, offset + size - 1) == 'E');

        if (!is_digit(c) && !is_letter(c) && c != '.' && !is_sign)
            return size;
    }
}

/* With its quotes; 0: not terminated on its line. */
static size_t string_size(const struct det_lex *lex, size_t offset)
{
    char quote = at(lex, offset);

    for (size_t i = offset + 1; i < lex->text.size; i++) {
        char c = lex->text.data[i];

        if (c == quote)
            return i - offset + 1;
        if (quote == '"' && c == '\n')
            return 0;
        if (quote == '"' && c == '\\')
            i++;
    }
    return 0;
}

static void make(
    struct det_lex *lex, enum det_lex_kind kind, size_t skip, size_t size,
    struct det_lex_token *ret)
{
    ret->kind = kind;
    ret->text = det_view_of(lex->text.data + lex->offset + skip, size);
    lex->offset += skip + size;
}

static int fail_character(struct det_lex *lex)
{
    unsigned char c = (unsigned char)at(lex, lex->offset);

    if (lex->offset >= lex->text.size)
        return DET_LEX_FAIL(
            lex, DET_ERR_MALFORMED, lex->action,
            "this {{ has no }}; close it, or write "
            "{{ \"{{\" }} for two braces");
    if (c == '"' || c == '`')
        return DET_LEX_FAIL(
            lex, DET_ERR_MALFORMED, lex->offset, "the text has no end; close it with %c", c);
    if (c > ' ' && c < 0x7f)
        return DET_LEX_FAIL(
            lex, DET_ERR_MALFORMED, lex->offset,
            "unexpected '%c'; the language of "
            "{{ }} is in docs/formats/workers.md",
            c);
    return DET_LEX_FAIL(lex, DET_ERR_MALFORMED, lex->offset, "unexpected byte %02x; remove it", c);
}

static bool take_end(struct det_lex *lex, struct det_lex_token *ret, bool has_space)
{
    bool trims = has_space && stands(lex, lex->offset, "-}}");

    if (!trims && !stands(lex, lex->offset, "}}"))
        return false;
    make(lex, DET_LEX_END, 0, trims ? 3 : 2, ret);
    lex->trims = trims;
    lex->in_action = false;
    return true;
}

/* Marks of one or two characters. */
static bool take_mark(struct det_lex *lex, struct det_lex_token *ret)
{
    static const struct {
        const char *mark;
        enum det_lex_kind kind;
    } marks[] = {
        { ":=", DET_LEX_DECLARE }, { "=", DET_LEX_ASSIGN }, { "|", DET_LEX_PIPE },
        { ",", DET_LEX_COMMA },    { "(", DET_LEX_OPEN },   { ")", DET_LEX_CLOSE },
    };

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (stands(lex, lex->offset, marks[i].mark)) {
            make(lex, marks[i].kind, 0, strlen(marks[i].mark), ret);
            return true;
        }
    }
    return false;
}

static bool begins_number(const struct det_lex *lex)
{
    size_t offset = lex->offset;

    offset += at(lex, offset) == '-' || at(lex, offset) == '+';
    offset += at(lex, offset) == '.';
    return is_digit(at(lex, offset));
}

int det_lex_token(struct det_lex *lex, struct det_lex_token *ret)
{
    size_t start = lex->offset, size;
    char c;

    while (is_space(at(lex, lex->offset)))
        lex->offset++;
    ret->offset = lex->offset;
    ret->is_joined = lex->offset == start;
    c = at(lex, lex->offset);
    if (take_end(lex, ret, !ret->is_joined) || take_mark(lex, ret))
        return 0;
    if (begins_number(lex)) {
        make(lex, DET_LEX_NUMBER, 0, number_size(lex, lex->offset), ret);
    } else if (c == '.') {
        size = word_size(lex, lex->offset + 1);
        make(lex, size ? DET_LEX_FIELD : DET_LEX_DOT, 1, size, ret);
    } else if (c == '$') {
        make(lex, DET_LEX_VARIABLE, 0, 1 + word_size(lex, lex->offset + 1), ret);
    } else if (is_letter(c)) {
        make(lex, DET_LEX_WORD, 0, word_size(lex, lex->offset), ret);
    } else if ((c == '"' || c == '`') && (size = string_size(lex, lex->offset))) {
        make(lex, DET_LEX_STRING, 0, size, ret);
    } else {
        return fail_character(lex);
    }
    return 0;
}
