/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_reader.c - problems with their places; keys, numbers and times of a file. */
#include "config/file_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <detent/tool/builder.h>

#include "base/assert.h"
#include "base/text.h"

/* Bytes of the list of keys in a message. */
#define KEYS_TEXT 120

DET_PRINTF(4, 0)
static void fail_at(
    struct cli_reader *reader, uint32_t line, uint32_t column, const char *format,
    va_list arguments)
{
    struct cli_problems *problems = reader->problems;
    struct det_yaml_error *problem = &problems->items[problems->count];

    det_assert(problems->count <= CLI_PROBLEMS_MAX);
    det_assert((line == 0) == (column == 0));
    if (problems->count == CLI_PROBLEMS_MAX) {
        problems->is_cut = true;
        return;
    }
    problems->count++;
    problem->line = line;
    problem->column = column;
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
}

int reader_fail(struct cli_reader *reader, const struct det_datum *node, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_at(reader, node->line, node->column, format, arguments);
    va_end(arguments);
    return DET_ERR_MALFORMED;
}

int reader_fail_key(
    struct cli_reader *reader, const struct det_datum *node, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_at(reader, node->key_line, node->key_column, format, arguments);
    va_end(arguments);
    return DET_ERR_MALFORMED;
}

int reader_fail_near(
    struct cli_reader *reader, const struct det_datum *node, const char *word,
    const char *const *names, size_t count, const char *format, ...)
{
    /* A problem that does not fit needs no suggestion. */
    int nearest = reader->problems->is_cut ? -1 : det_text_nearest(word, names, count);
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (nearest < 0)
        return reader_fail(reader, node, "%s", text);
    det_assert((size_t)nearest < count);
    return reader_fail(reader, node, "%s; did you mean '%s'?", text, names[nearest]);
}

int reader_both(int first, int second)
{
    det_assert(first <= 0 && second <= 0);
    return first == 0 || second == DET_ERR_NO_MEMORY ? second : first;
}

bool reader_can_continue(const struct cli_reader *reader, int result)
{
    return result != DET_ERR_NO_MEMORY && !reader->problems->is_cut;
}

int reader_no_memory(struct cli_reader *reader, const struct det_datum *node)
{
    reader_fail(reader, node, "out of memory");
    return DET_ERR_NO_MEMORY;
}

static const char *find_example(const struct cli_reader *reader, const char *what)
{
    const struct reader_example *example = reader->examples;

    while (example && example->what && strcmp(example->what, what) != 0)
        example++;
    return example ? example->text : NULL;
}

/* All scalars are one kind here: each caller names the one it expects. */
static enum det_datum_kind class_of(enum det_datum_kind kind)
{
    return kind == DET_DATUM_LIST || kind == DET_DATUM_MAP ? kind : DET_DATUM_TEXT;
}

static const char *class_text(enum det_datum_kind kind)
{
    if (kind == DET_DATUM_LIST)
        return "a sequence";
    return kind == DET_DATUM_MAP ? "a mapping" : "a single value";
}

int reader_want(
    struct cli_reader *reader, const struct det_datum *node, enum det_datum_kind kind,
    const char *what)
{
    const char *example = kind == DET_DATUM_MAP ? find_example(reader, what) : NULL;

    det_assert(class_of(kind) == kind);
    if (class_of(node->kind) == kind)
        return 0;
    if (example)
        return reader_fail(
            reader, node, "%s is %s, not %s; write %.64s%s%s", what, class_text(kind),
            class_text(node->kind), node->key ? node->key : "", node->key ? ": " : "", example);
    return reader_fail(
        reader, node, "%s is %s, not %s", what, class_text(kind), class_text(node->kind));
}

void *reader_grow(
    struct cli_reader *reader, const struct det_datum *node, const void *items, size_t count,
    size_t size)
{
    void *all = det_arena_array(reader->arena, count + node->count + 1, size);

    if (!all)
        (void)reader_no_memory(reader, node);
    else if (count)
        memcpy(all, items, count * size);
    return all;
}

void *reader_array(
    struct cli_reader *reader, const struct det_datum *node, const char *what, size_t size,
    int *ret)
{
    void *items = NULL;

    *ret = reader_want(reader, node, DET_DATUM_MAP, what);
    if (*ret == 0)
        items = reader_grow(reader, node, NULL, 0, size);
    if (*ret == 0 && !items)
        *ret = DET_ERR_NO_MEMORY;
    return items;
}

/* Returns the key with this synonym; NULL: none. */
static const char *find_synonym(
    const struct cli_reader *reader, const char *word, const char *const *keys, size_t count)
{
    const struct reader_synonym *synonym = reader->synonyms;

    for (; synonym && synonym->word; synonym++) {
        for (size_t i = 0; i < count && strcmp(synonym->word, word) == 0; i++) {
            if (strcmp(synonym->key, keys[i]) == 0)
                return keys[i];
        }
    }
    return NULL;
}

/* "a, b, c", cut after as many as fit. */
static const char *list_keys(const char *const *keys, size_t count, char *target, size_t capacity)
{
    size_t used = 0;

    *target = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *comma = i ? ", " : "";

        if (used + strlen(comma) + strlen(keys[i]) + sizeof ", ..." > capacity) {
            (void)snprintf(target + used, capacity - used, ", ...");
            break;
        }
        used += (size_t)snprintf(target + used, capacity - used, "%s%s", comma, keys[i]);
        det_assert(used < capacity);
    }
    return target;
}

static int unknown_key(
    struct cli_reader *reader, const struct det_datum *node, const char *const *keys, size_t count,
    const char *what)
{
    struct det_datum at = { .line = node->key_line, .column = node->key_column };
    const char *synonym = find_synonym(reader, node->key, keys, count);
    char all[KEYS_TEXT];

    if (synonym)
        return reader_fail_key(
            reader, node, "%s has no key '%s'; use '%s'", what, node->key, synonym);
    if (!reader->problems->is_cut && det_text_nearest(node->key, keys, count) < 0)
        return reader_fail_key(
            reader, node, "%s has no key '%.64s'; its keys are %s", what, node->key,
            list_keys(keys, count, all, sizeof all));
    return reader_fail_near(
        reader, &at, node->key, keys, count, "%s has no key '%s'", what, node->key);
}

int reader_keys(
    struct cli_reader *reader, const struct det_datum *mapping, const char *const *keys,
    size_t count, const struct det_datum **ret, const char *what)
{
    int r;

    for (size_t i = 0; i < count; i++)
        ret[i] = NULL;
    r = reader_want(reader, mapping, DET_DATUM_MAP, what);
    if (r < 0)
        return r;
    READER_EACH (node, mapping, reader, r) {
        size_t i = 0;

        while (i < count && strcmp(node->key, keys[i]) != 0)
            i++;
        if (i == count)
            r = unknown_key(reader, node, keys, count, what);
        else
            ret[i] = node;
    }
    return r;
}

int reader_bool(struct cli_reader *reader, const struct det_datum *node, bool *ret)
{
    if (det_datum_is_scalar(node) &&
        (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)) {
        *ret = node->text[0] == 't';
        return 0;
    }
    return reader_fail(reader, node, "expected true or false");
}

int reader_number(struct cli_reader *reader, const struct det_datum *node, uint64_t *ret)
{
    if (det_datum_is_scalar(node) && det_parse_u64(det_view_text(node->text), ret) == 0)
        return 0;
    return reader_fail(reader, node, "expected a whole number");
}

static bool is_number(const struct det_datum *node)
{
    return det_datum_is_scalar(node) && *node->text &&
           strspn(node->text, "0123456789.") == strlen(node->text);
}

int reader_span_or(
    struct cli_reader *reader, const struct det_datum *node, const char *word, det_time value,
    det_time *ret)
{
    det_time span;

    if (word && det_datum_is_scalar(node) && strcmp(node->text, word) == 0) {
        *ret = value;
        return 0;
    }
    if (is_number(node))
        return reader_fail(
            reader, node, "the unit is missing: %sms, %ss, %sm, %sh or %sd", node->text, node->text,
            node->text, node->text, node->text);
    if (!det_datum_is_scalar(node) || det_parse_duration(det_view_text(node->text), &span) < 0 ||
        span < 0 || span > DET_DELAY_MAX)
        return reader_fail(
            reader, node,
            "expected a duration such as 250ms, 1.5s, 30m, 1h30m or 7d, at most ten years%s%s",
            word ? ", or " : "", word ? word : "");
    *ret = span;
    return 0;
}

int reader_span(struct cli_reader *reader, const struct det_datum *node, det_time *ret)
{
    return reader_span_or(reader, node, NULL, 0, ret);
}
