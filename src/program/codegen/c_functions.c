/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* c_functions.c - finds the functions that a C file defines, without a compiler.
 *
 * A definition is a name followed by brackets, outside of all braces, and then a brace; anything
 * between them (attributes, macros) is skipped. All such names are reported, including a macro
 * around a definition. A #define of a name counts as its definition. If
 * conditional code has unbalanced braces, a closing brace in the first column ends a function. */
#include <ctype.h>
#include <string.h>

#include "base/assert.h"
#include "codegen/codegen.h"

/* Names with brackets in one declaration. */
#define CALLS_MAX 8

struct scan {
    const char *at, *end;
    bool at_line_start;
    struct det_view word; /* the token before this one; data NULL: not a word */
    struct det_view calls[CALLS_MAX];
    size_t call_count;
    unsigned braces, brackets;
    bool is_value; /* after a = */
    gen_function_fn *found;
    void *context;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool looks_at(const struct scan *scan, const char *text)
{
    size_t size = strlen(text);

    return (size_t)(scan->end - scan->at) >= size && memcmp(scan->at, text, size) == 0;
}

static void skip_comment(struct scan *scan)
{
    const char *close = looks_at(scan, "/*") ? "*/" : "\n";

    det_assert(scan->end - scan->at >= 2 && *scan->at == '/');
    scan->at += 2;
    while (scan->at < scan->end && !looks_at(scan, close))
        scan->at++;
    if (*close == '*' && scan->at < scan->end)
        scan->at += 2;
}

static void skip_quoted(struct scan *scan)
{
    char quote = *scan->at++;

    while (scan->at < scan->end && *scan->at != quote && *scan->at != '\n')
        scan->at += *scan->at == '\\' && scan->end - scan->at > 1 ? 2 : 1;
    if (scan->at < scan->end && *scan->at == quote)
        scan->at++;
}

static struct det_view take_word(struct scan *scan)
{
    const char *from = scan->at;

    while (scan->at < scan->end && is_word(*scan->at))
        scan->at++;
    return det_view_of(from, (size_t)(scan->at - from));
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t'))
        scan->at++;
}

/* Skips to the end of the line and its continuations. */
static void take_directive(struct scan *scan)
{
    scan->at++;
    skip_blanks(scan);
    if (det_view_is(take_word(scan), "define")) {
        skip_blanks(scan);
        scan->found(scan->context, take_word(scan));
    }
    while (scan->at < scan->end && *scan->at != '\n') {
        if (looks_at(scan, "/*"))
            skip_comment(scan);
        else if (*scan->at == '"' || *scan->at == '\'')
            skip_quoted(scan);
        else
            scan->at += *scan->at == '\\' && scan->end - scan->at > 1 ? 2 : 1;
    }
}

static void begin_declaration(struct scan *scan)
{
    scan->call_count = 0;
    scan->brackets = 0;
    scan->is_value = false;
}

static void open_brace(struct scan *scan)
{
    if (scan->braces == 0 && !scan->is_value) {
        for (size_t i = 0; i < scan->call_count; i++)
            scan->found(scan->context, scan->calls[i]);
    }
    scan->braces++;
}

static void close_brace(struct scan *scan)
{
    scan->braces -= scan->braces > 0;
    if (scan->at_line_start)
        scan->braces = 0;
    /* A braced value continues to its semicolon. */
    if (scan->braces == 0 && !scan->is_value)
        begin_declaration(scan);
}

static void open_bracket(struct scan *scan)
{
    if (scan->brackets++ == 0 && scan->word.data && scan->call_count < CALLS_MAX)
        scan->calls[scan->call_count++] = scan->word;
    det_assert(scan->call_count <= CALLS_MAX);
}

static void take_sign(struct scan *scan, char c)
{
    if (c == '{')
        open_brace(scan);
    else if (c == '}')
        close_brace(scan);
    else if (scan->braces)
        return;
    else if (c == '(')
        open_bracket(scan);
    else if (c == ')')
        scan->brackets -= scan->brackets > 0;
    else if (c == '=')
        scan->is_value = true;
    else if (c == ';')
        begin_declaration(scan);
}

static void take_token(struct scan *scan)
{
    struct det_view word = { 0 };
    char c = *scan->at;

    if (is_word(c))
        word = take_word(scan);
    else if (c == '"' || c == '\'')
        skip_quoted(scan);
    else
        take_sign(scan, *scan->at++);
    scan->word = word;
}

void gen_functions(struct det_view text, gen_function_fn *found, void *context)
{
    struct scan scan = {
        .at = text.data,
        .end = text.data + text.size,
        .at_line_start = true,
        .found = found,
        .context = context,
    };

    while (scan.at < scan.end) {
        char c = *scan.at;

        if (looks_at(&scan, "/*") || looks_at(&scan, "//")) {
            skip_comment(&scan);
            continue;
        }
        if (isspace((unsigned char)c)) {
            /* An indented brace does not close a function. */
            scan.at_line_start = c == '\n';
            scan.at++;
            continue;
        }
        if (c == '#')
            take_directive(&scan);
        else
            take_token(&scan);
        scan.at_line_start = false;
    }
    det_assert(scan.at == scan.end);
}
