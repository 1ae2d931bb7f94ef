/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* command_words.c - a program with its arguments: a sequence, or a text that is split into words.
 *
 * No shell interprets the text. Characters that a shell would interpret are refused, so that users
 * do not rely on it: unquoted | & ; < > ( ) * and ~ at the start of a word, and $ ` except in
 * single quotes. */
#include <string.h>

#include "base/assert.h"
#include "config/config_internal.h"

struct splitter {
    struct cli_reader *reader;
    const struct det_datum *node;
    const char *at;
    char *to;
    const char **words;
    size_t count;
    char quote; /* the open quote; 0: none */
    bool in_word;
};

static int refuse_shell(struct splitter *splitter, const char *what, size_t size)
{
    const char *key = splitter->node->key ? splitter->node->key : "run";

    return reader_fail(
        splitter->reader, splitter->node,
        "%.*s needs a shell, and this runs without one; put it in single quotes if it is literal, "
        "or write %s: [sh, -c, \"...\"]",
        (int)size, what, key);
}

/* "&&" is reported as written. */
static int refuse_at(struct splitter *splitter)
{
    size_t size = 1;

    while (size < 2 && splitter->at[size] == *splitter->at)
        size++;
    return refuse_shell(splitter, splitter->at, size);
}

static void begin_word(struct splitter *splitter)
{
    if (!splitter->in_word)
        splitter->words[splitter->count++] = splitter->to;
    splitter->in_word = true;
}

static void end_word(struct splitter *splitter)
{
    if (splitter->in_word)
        *splitter->to++ = '\0';
    splitter->in_word = false;
}

static void put_byte(struct splitter *splitter)
{
    begin_word(splitter);
    *splitter->to++ = *splitter->at++;
}

static int take_quoted(struct splitter *splitter)
{
    char c = *splitter->at;

    if (c == splitter->quote) {
        splitter->quote = '\0';
        splitter->at++;
        return 0;
    }
    if (splitter->quote == '"' && (c == '$' || c == '`'))
        return refuse_at(splitter);
    if (splitter->quote == '"' && c == '\\' && (splitter->at[1] == '"' || splitter->at[1] == '\\'))
        splitter->at++;
    put_byte(splitter);
    return 0;
}

static int take_bare(struct splitter *splitter)
{
    char c = *splitter->at;

    if (c == '\n' && splitter->at[strspn(splitter->at, " \t\n")])
        return refuse_shell(splitter, "a second line", strlen("a second line"));
    if (c == ' ' || c == '\t' || c == '\n') {
        end_word(splitter);
        splitter->at++;
        return 0;
    }
    if (strchr("|&;<>()*$`", c) || (c == '~' && !splitter->in_word))
        return refuse_at(splitter);
    if (c == '\'' || c == '"') {
        begin_word(splitter);
        splitter->quote = c;
        splitter->at++;
        return 0;
    }
    if (c == '\\' && !*++splitter->at)
        return reader_fail(splitter->reader, splitter->node, "nothing follows the last backslash");
    put_byte(splitter);
    return 0;
}

/* NAME=value before the program would set a variable in a shell. */
static int check_first(struct splitter *splitter)
{
    const char *word, *equal;

    if (splitter->count == 0)
        return reader_fail(splitter->reader, splitter->node, "there is no program to run");
    word = splitter->words[0];
    equal = strchr(word, '=');
    if (equal && equal != word && strcspn(word, "/.-") > (size_t)(equal - word))
        return reader_fail(
            splitter->reader, splitter->node,
            "'%s' needs a shell, and this runs without one; write environment: {%.*s: ...}", word,
            (int)(equal - word), word);
    if (!*word)
        return reader_fail(splitter->reader, splitter->node, "the program is empty");
    return 0;
}

static int split_words(
    struct cli_reader *reader, const struct det_datum *node, const char *const **ret)
{
    size_t length = strlen(node->text);
    const char *start;
    struct splitter splitter = { .reader = reader, .node = node, .at = node->text };
    int r = 0;

    /* A word needs at most its own letters and the blank after it. */
    splitter.to = det_arena_alloc(reader->arena, length + 1);
    splitter.words = det_arena_array(reader->arena, length / 2 + 2, sizeof *splitter.words);
    if (!splitter.to || !splitter.words)
        return reader_no_memory(reader, node);
    start = splitter.to;
    while (r == 0 && *splitter.at)
        r = splitter.quote ? take_quoted(&splitter) : take_bare(&splitter);
    det_assert(splitter.to <= start + length);
    det_assert(splitter.count <= length / 2 + 1);
    if (r == 0 && splitter.quote)
        r = reader_fail(reader, node, "the quote %c is never closed", splitter.quote);
    if (r == 0)
        r = check_first(&splitter);
    *ret = splitter.words;
    return r;
}

int config_take_argv(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char *const **ret = target;
    const char **words;
    size_t count = 0;

    if (det_datum_is_scalar(node))
        return split_words(reader, node, ret);
    if (node->kind == DET_DATUM_MAP)
        return reader_fail(
            reader, node, "'%s' is a text or a sequence of words, not a mapping", key->name);
    if (!node->first)
        return reader_fail(reader, node, "there is no program to run");
    words = det_arena_array(reader->arena, node->count + 1, sizeof *words);
    if (!words)
        return reader_no_memory(reader, node);
    for (const struct det_datum *item = node->first; item; item = item->next) {
        int r = reader_want(reader, item, DET_DATUM_TEXT, "a word");

        if (r < 0)
            return r;
        words[count++] = item->text;
    }
    det_assert(count == node->count);
    if (!*words[0])
        return reader_fail(reader, node->first, "the program is empty");
    *ret = words;
    return 0;
}
