/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reader.c - builds a tree of data from the events of libyaml, with a stack instead
 * of recursion. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/assert.h"
#include "base/text.h"
#include "yaml/datum.h"
#include "yaml/datum_scalar.h"
#include "yaml/datum_walk.h"

struct reader {
    struct det_arena *arena;
    struct det_view text;
    struct det_datum *open[DET_DATUM_DEPTH_MAX]; /* lists and maps, outermost first */
    size_t depth;
    char *key; /* of the innermost map, if its value is next */
    yaml_mark_t key_mark;
    struct det_datum *root;
    size_t node_count;
    size_t document_count;
    struct det_yaml_error *error;
};

DET_PRINTF(4, 5)
static int fail_at(struct reader *reader, int code, yaml_mark_t mark, const char *format, ...)
{
    va_list arguments;

    reader->error->line = (uint32_t)mark.line + 1;
    reader->error->column = (uint32_t)mark.column + 1;
    va_start(arguments, format);
    vsnprintf(reader->error->text, sizeof reader->error->text, format, arguments);
    va_end(arguments);
    return code;
}

static int no_memory(struct reader *reader)
{
    return fail_at(reader, DET_ERR_NO_MEMORY, (yaml_mark_t){ 0 }, "out of memory");
}

static struct det_datum *top(const struct reader *reader)
{
    return reader->depth ? reader->open[reader->depth - 1] : NULL;
}

static bool awaits_key(const struct reader *reader)
{
    return reader->depth && top(reader)->kind == DET_DATUM_MAP && !reader->key;
}

static int take_key(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    if (strcmp(text, "<<") == 0)
        return fail_at(
            reader, DET_ERR_MALFORMED, event->start_mark,
            "merge keys (<<) are not supported; write the keys out");
    reader->key = det_arena_copy(reader->arena, text);
    reader->key_mark = event->start_mark;
    return reader->key ? 0 : no_memory(reader);
}

/* Adds a node at its place in the tree. */
static int add(
    struct reader *reader, enum det_datum_kind kind, const yaml_event_t *event,
    struct det_datum **ret)
{
    struct det_datum *datum = det_datum_new(reader->arena, kind);

    if (!datum)
        return no_memory(reader);
    det_assert((reader->depth > 0) == (reader->root != NULL));
    datum->line = (uint32_t)event->start_mark.line + 1;
    datum->column = (uint32_t)event->start_mark.column + 1;
    if (reader->key) {
        datum->key_line = (uint32_t)reader->key_mark.line + 1;
        datum->key_column = (uint32_t)reader->key_mark.column + 1;
    }
    reader->node_count++;
    if (!reader->depth)
        reader->root = datum;
    else if (!det_datum_append(reader->arena, top(reader), reader->key, datum))
        return no_memory(reader);
    reader->key = NULL;
    *ret = datum;
    return 0;
}

static int check_node(
    struct reader *reader, const yaml_event_t *event, const yaml_char_t *anchor,
    const yaml_char_t *tag)
{
    if (anchor)
        return fail_at(
            reader, DET_ERR_MALFORMED, event->start_mark,
            "anchors (&%.32s) are not supported; write the value out", (const char *)anchor);
    if (tag)
        return fail_at(
            reader, DET_ERR_MALFORMED, event->start_mark,
            "tags (%.32s) are not supported; quote a text", (const char *)tag);
    if (reader->node_count >= DET_DATUM_NODES_MAX)
        return fail_at(
            reader, DET_ERR_LIMIT, event->start_mark, "the text has more than %d values",
            DET_DATUM_NODES_MAX);
    return 0;
}

static int set_scalar(struct reader *reader, const yaml_event_t *event, struct det_datum *datum)
{
    const char *text = (const char *)event->data.scalar.value;
    int r = DET_ERR_TYPE;

    datum->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (datum->is_plain)
        r = det_datum_set_plain(datum, text);
    datum->is_too_large = r == DET_ERR_RANGE;
    datum->text = det_arena_copy(reader->arena, text);
    return datum->text ? 0 : no_memory(reader);
}

static int take_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    struct det_datum *datum;
    int r;

    r = check_node(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
    if (r < 0)
        return r;
    if (strlen(text) != event->data.scalar.length)
        return fail_at(
            reader, DET_ERR_MALFORMED, event->start_mark,
            "the text contains a NUL; use base64 for bytes");
    if (awaits_key(reader))
        return take_key(reader, event);
    r = add(reader, DET_DATUM_TEXT, event, &datum);
    return r < 0 ? r : set_scalar(reader, event, datum);
}

static int open_node(struct reader *reader, enum det_datum_kind kind, const yaml_event_t *event)
{
    struct det_datum *datum;
    int r;

    if (awaits_key(reader))
        return fail_at(
            reader, DET_ERR_MALFORMED, event->start_mark,
            "a key is a plain word or text; put quotes around {{ ... }}");
    if (reader->depth == DET_DATUM_DEPTH_MAX)
        return fail_at(
            reader, DET_ERR_LIMIT, event->start_mark, "lists and maps are nested more than %d deep",
            DET_DATUM_DEPTH_MAX);
    r = add(reader, kind, event, &datum);
    if (r < 0)
        return r;
    reader->open[reader->depth++] = datum;
    return 0;
}

static int close_node(struct reader *reader)
{
    struct det_datum *datum = reader->open[--reader->depth];
    const struct det_datum *twice, *first;
    int r;

    det_assert(datum != NULL);
    if (datum->kind != DET_DATUM_MAP)
        return 0;
    r = det_datum_seal(reader->arena, datum, &twice);
    if (r == DET_ERR_NO_MEMORY)
        return no_memory(reader);
    if (r == 0)
        return 0;
    first = det_datum_get(datum, twice->key);
    return fail_at(
        reader, DET_ERR_MALFORMED,
        (yaml_mark_t){ .line = twice->key_line - 1, .column = twice->key_column - 1 },
        "duplicate key '%.64s'; first on line %u", twice->key, first->key_line);
}

static int take_event(struct reader *reader, const yaml_event_t *event)
{
    int r;

    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return fail_at(
            reader, DET_ERR_MALFORMED, event->start_mark,
            "aliases (*%.32s) are not supported; write the value out",
            (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return take_scalar(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        r = check_node(
            reader, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        return r < 0 ? r : open_node(reader, DET_DATUM_LIST, event);
    case YAML_MAPPING_START_EVENT:
        r = check_node(
            reader, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        return r < 0 ? r : open_node(reader, DET_DATUM_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(reader);
    case YAML_DOCUMENT_START_EVENT:
        if (reader->document_count++)
            return fail_at(
                reader, DET_ERR_MALFORMED, event->start_mark,
                "the text has more than one document; remove ---");
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return 0;
}

/* Returns true if a tab is among the first white space of the line, which is counted from 0. */
static bool begins_with_tab(struct det_view text, size_t line)
{
    const char *at = text.data, *end = text.data + text.size;

    for (; line && at < end; at++)
        line -= *at == '\n';
    while (at < end && *at == ' ')
        at++;
    return at < end && *at == '\t';
}

static int parse_failed(struct reader *reader, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reader);
    if (begins_with_tab(reader->text, parser->problem_mark.line))
        return fail_at(
            reader, DET_ERR_MALFORMED, parser->problem_mark,
            "not YAML: the line begins with a tab; use spaces");
    return fail_at(
        reader, DET_ERR_MALFORMED, parser->problem_mark, "not YAML: %s%s%s",
        parser->context ? parser->context : "", parser->context ? ", " : "",
        parser->problem ? parser->problem : "it cannot be read");
}

static int read_events(struct reader *reader, yaml_parser_t *parser)
{
    bool is_done = false;
    int r = 0;

    while (!is_done && r == 0) {
        yaml_event_t event;

        if (!yaml_parser_parse(parser, &event))
            return parse_failed(reader, parser);
        r = take_event(reader, &event);
        is_done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return r;
}

/* Returns the mark of a byte, for errors found before libyaml reads. */
static yaml_mark_t mark_at(struct det_view text, size_t offset)
{
    yaml_mark_t mark = { .index = offset };

    for (size_t i = 0; i < offset; i++) {
        mark.column = text.data[i] == '\n' ? 0 : mark.column + 1;
        mark.line += text.data[i] == '\n';
    }
    return mark;
}

static int read_text(struct reader *reader)
{
    size_t valid = det_utf8_check(reader->text.data, reader->text.size);
    yaml_parser_t parser;
    int r;

    if (valid != reader->text.size)
        return fail_at(
            reader, DET_ERR_MALFORMED, mark_at(reader->text, valid),
            "the text is not UTF-8; save it as UTF-8");
    if (!yaml_parser_initialize(&parser))
        return no_memory(reader);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &parser, (const unsigned char *)reader->text.data, reader->text.size);
    r = read_events(reader, &parser);
    yaml_parser_delete(&parser);
    return r;
}

/* Skips the byte order mark that some editors write before UTF-8 text. */
static struct det_view without_mark(const char *text, size_t size)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t skipped = size >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;

    return det_view_of(size ? text + skipped : "", size - skipped);
}

/* A document without a value has a NULL root. */
static int read_document(
    struct det_arena *arena, const char *text, size_t size, struct det_datum **ret,
    struct det_yaml_error *reterr)
{
    struct reader reader = {
        .arena = arena,
        .text = without_mark(text, size),
        .error = reterr,
    };
    int r;

    if (size > DET_DATUM_READ_MAX)
        return fail_at(
            &reader, DET_ERR_LIMIT, (yaml_mark_t){ 0 }, "the text is larger than %d KiB; split it",
            DET_DATUM_READ_MAX / 1024);
    r = read_text(&reader);
    if (r == 0)
        *ret = reader.root;
    return r;
}

int det_yaml_read(
    struct det_arena *arena, const char *text, size_t size, struct det_datum **ret,
    struct det_yaml_error *reterr)
{
    struct det_datum *root = NULL;
    int r;

    r = read_document(arena, text, size, &root, reterr);
    if (r < 0)
        return r;
    if (root) {
        *ret = root;
        return 0;
    }
    *reterr = (struct det_yaml_error){ 1, 1, "the text is empty" };
    return DET_ERR_MALFORMED;
}

int det_datum_check_numbers(
    const struct det_datum *datum, const char *what, struct det_error *reterr)
{
    struct det_datum_walk walk;
    enum det_datum_step step;

    det_datum_walk_init(&walk, datum);
    while ((step = det_datum_walk_next(&walk)) != DET_DATUM_AT_END) {
        if (step == DET_DATUM_AT_VALUE && walk.at->is_too_large)
            return det_datum_fail(
                reterr, DET_ERR_MALFORMED, what, walk.at->line, walk.at->column,
                "the number is beyond what 64 bits hold; quote it if it is text");
    }
    return 0;
}

int det_datum_from_yaml(
    struct det_arena *arena, const char *what, const char *text, size_t size,
    struct det_datum **ret, struct det_error *reterr)
{
    struct det_yaml_error error = { 0 };
    struct det_datum *root = NULL;
    int r;

    r = read_document(arena, text, size, &root, &error);
    if (r == DET_ERR_NO_MEMORY || size > DET_DATUM_READ_MAX)
        return det_error_set(reterr, r, "%s: %s", what, error.text);
    if (r < 0)
        return det_datum_fail(reterr, r, what, error.line, error.column, "%s", error.text);
    if (!root)
        root = det_datum_new(arena, DET_DATUM_NULL);
    if (!root)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", what);
    *ret = root;
    return det_datum_check_numbers(root, what, reterr);
}
