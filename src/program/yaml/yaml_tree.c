/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* yaml_tree.c - builds the tree of nodes from the events of libyaml, with a stack instead of
 * recursion. */
#include "yaml/yaml_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/hash.h"
#include "base/text.h"

struct reader {
    struct det_arena *arena;
    struct det_view text;
    struct cli_yaml *open[CLI_YAML_DEPTH_MAX]; /* mappings and sequences, outermost first */
    size_t depth;
    const char *key; /* of the mapping that is open, when its value comes next */
    yaml_mark_t key_mark;
    struct cli_yaml *root;
    size_t node_count;
    size_t document_count;
    struct cli_yaml_error *error;
};

DET_PRINTF(4, 5)
static int fail(struct reader *reader, int code, yaml_mark_t mark, const char *format, ...)
{
    va_list arguments;

    reader->error->line = (uint32_t)mark.line + 1;
    reader->error->column = (uint32_t)mark.column + 1;
    va_start(arguments, format);
    vsnprintf(reader->error->text, sizeof reader->error->text, format, arguments);
    va_end(arguments);
    return code;
}

static int no_memory(struct reader *reader, yaml_mark_t mark)
{
    return fail(reader, DET_ERR_NO_MEMORY, mark, "there is no memory left");
}

static bool awaits_key(const struct reader *reader)
{
    const struct cli_yaml *top = reader->depth ? reader->open[reader->depth - 1] : NULL;

    return top && top->kind == CLI_YAML_MAPPING && !reader->key;
}

/* Keys are compared by hash first: a mapping of all nodes allowed is still checked in no time. */
static const struct cli_yaml *find_key(
    const struct cli_yaml *mapping, const char *key, uint64_t hash)
{
    for (const struct cli_yaml *node = mapping->first; node; node = node->next) {
        if (node->key_hash == hash && strcmp(node->key, key) == 0)
            return node;
    }
    return NULL;
}

static uint64_t hash_of(const char *key)
{
    return det_hash64(key, strlen(key), 0);
}

static int take_key(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const struct cli_yaml *other = find_key(reader->open[reader->depth - 1], text, hash_of(text));

    if (other)
        return fail(
            reader, DET_ERR_MALFORMED, event->start_mark, "duplicate key '%s'; first on line %u",
            text, other->key_line);
    if (strcmp(text, "<<") == 0)
        return fail(
            reader, DET_ERR_MALFORMED, event->start_mark, "merge keys (<<) are not taken here");
    reader->key = det_arena_copy(reader->arena, text);
    reader->key_mark = event->start_mark;
    return reader->key ? 0 : no_memory(reader, event->start_mark);
}

/* A node at its place in the tree. */
static struct cli_yaml *add_node(
    struct reader *reader, enum cli_yaml_kind kind, const yaml_event_t *event)
{
    struct cli_yaml *parent = reader->depth ? reader->open[reader->depth - 1] : NULL;
    struct cli_yaml *node = det_arena_alloc(reader->arena, sizeof *node);

    if (!node)
        return NULL;
    *node = (struct cli_yaml){
        .kind = kind,
        .line = (uint32_t)event->start_mark.line + 1,
        .column = (uint32_t)event->start_mark.column + 1,
        .key_line = (uint32_t)reader->key_mark.line + 1,
        .key_column = (uint32_t)reader->key_mark.column + 1,
        .key = reader->key,
        .key_hash = reader->key ? hash_of(reader->key) : 0,
        .tail = &node->first,
    };
    reader->key = NULL;
    reader->node_count++;
    if (!parent) {
        reader->root = node;
        return node;
    }
    *parent->tail = node;
    parent->tail = &node->next;
    parent->count++;
    return node;
}

static int check_node(
    struct reader *reader, const yaml_event_t *event, const yaml_char_t *anchor,
    const yaml_char_t *tag)
{
    if (anchor)
        return fail(
            reader, DET_ERR_MALFORMED, event->start_mark, "anchors (&%s) are not taken here",
            (const char *)anchor);
    if (tag)
        return fail(
            reader, DET_ERR_MALFORMED, event->start_mark, "tags (%s) are not taken here",
            (const char *)tag);
    if (reader->node_count >= CLI_YAML_NODES_MAX)
        return fail(
            reader, DET_ERR_LIMIT, event->start_mark, "there are more than %d values",
            CLI_YAML_NODES_MAX);
    return 0;
}

static int take_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    struct cli_yaml *node;
    int r;

    r = check_node(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
    if (r < 0)
        return r;
    if (strlen(text) != event->data.scalar.length)
        return fail(reader, DET_ERR_MALFORMED, event->start_mark, "there is a NUL in the text");
    if (awaits_key(reader))
        return take_key(reader, event);
    node = add_node(reader, CLI_YAML_SCALAR, event);
    if (!node)
        return no_memory(reader, event->start_mark);
    node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = det_arena_copy(reader->arena, text);
    return node->text ? 0 : no_memory(reader, event->start_mark);
}

static int open_node(struct reader *reader, enum cli_yaml_kind kind, const yaml_event_t *event)
{
    struct cli_yaml *node;

    if (awaits_key(reader))
        return fail(reader, DET_ERR_MALFORMED, event->start_mark, "a key is a plain word or text");
    if (reader->depth == CLI_YAML_DEPTH_MAX)
        return fail(
            reader, DET_ERR_LIMIT, event->start_mark, "it is nested more than %d deep",
            CLI_YAML_DEPTH_MAX);
    node = add_node(reader, kind, event);
    if (!node)
        return no_memory(reader, event->start_mark);
    reader->open[reader->depth++] = node;
    return 0;
}

static int take_event(struct reader *reader, const yaml_event_t *event)
{
    int r;

    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return fail(
            reader, DET_ERR_MALFORMED, event->start_mark, "aliases (*%s) are not taken here",
            (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return take_scalar(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        r = check_node(
            reader, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        return r < 0 ? r : open_node(reader, CLI_YAML_SEQUENCE, event);
    case YAML_MAPPING_START_EVENT:
        r = check_node(
            reader, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        return r < 0 ? r : open_node(reader, CLI_YAML_MAPPING, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        reader->depth--;
        return 0;
    case YAML_DOCUMENT_START_EVENT:
        if (reader->document_count++)
            return fail(
                reader, DET_ERR_MALFORMED, event->start_mark, "there is more than one document");
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return 0;
}

/* Whether a tab is among the first white space of the line, counted from 0. */
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
        return no_memory(reader, parser->mark);
    if (begins_with_tab(reader->text, parser->problem_mark.line))
        return fail(
            reader, DET_ERR_MALFORMED, parser->problem_mark,
            "not YAML: the line begins with a tab; YAML wants spaces");
    return fail(
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

/* The mark of a byte, for problems that are found before libyaml reads. */
static yaml_mark_t mark_at(const char *text, size_t offset)
{
    yaml_mark_t mark = { .index = offset };

    for (size_t i = 0; i < offset; i++) {
        mark.column = text[i] == '\n' ? 0 : mark.column + 1;
        mark.line += text[i] == '\n';
    }
    return mark;
}

/* Some editors put a mark before the text that says it is UTF-8. It is no part of the first key. */
static struct det_view without_mark(const char *text, size_t size)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t skipped = size >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;

    return det_view_of(text + skipped, size - skipped);
}

int cli_yaml_read(
    struct det_arena *arena, const char *text, size_t size, struct cli_yaml **ret,
    struct cli_yaml_error *reterr)
{
    struct reader reader = {
        .arena = arena,
        .text = without_mark(text, size),
        .error = reterr,
    };
    yaml_mark_t start = { 0 };
    yaml_parser_t parser;
    int r;

    if (size > CLI_YAML_SIZE_MAX)
        return fail(&reader, DET_ERR_LIMIT, start, "larger than %d KiB", CLI_YAML_SIZE_MAX / 1024);
    if (det_utf8_check(text, size) != size)
        return fail(
            &reader, DET_ERR_MALFORMED, mark_at(text, det_utf8_check(text, size)),
            "this is not UTF-8");
    if (!yaml_parser_initialize(&parser))
        return no_memory(&reader, start);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(
        &parser, (const unsigned char *)reader.text.data, reader.text.size);
    r = read_events(&reader, &parser);
    yaml_parser_delete(&parser);
    if (r == 0 && !reader.root)
        r = fail(&reader, DET_ERR_MALFORMED, start, "there is nothing in it");
    if (r == 0)
        *ret = reader.root;
    return r;
}

const struct cli_yaml *cli_yaml_get(const struct cli_yaml *mapping, const char *key)
{
    return find_key(mapping, key, hash_of(key));
}
