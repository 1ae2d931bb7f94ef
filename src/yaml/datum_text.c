/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_text.c - writes a tree of data as JSON and as YAML.
 *
 * YAML is written in block style with every text in double quotes, as in JSON, so that any text is
 * read back unchanged. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/number.h"
#include "yaml/datum_text.h"
#include "yaml/datum_walk.h"
#include "json/writer.h"

/* Writes a point, so that the number is read back as a float. */
static void put_real(struct det_buffer *buffer, double real, bool is_json)
{
    char text[DET_DOUBLE_TEXT];

    if (isfinite(real)) {
        det_format_double(real, text);
        det_buffer_append_text(buffer, text);
        if (!strpbrk(text, ".eE"))
            det_buffer_append_text(buffer, ".0");
        return;
    }
    if (is_json)
        det_buffer_append_text(buffer, "null");
    else
        det_buffer_append_text(buffer, isnan(real) ? ".nan" : real < 0 ? "-.inf" : ".inf");
}

void det_datum_put_scalar(struct det_buffer *buffer, const struct det_datum *datum, bool is_json)
{
    /* The original text is YAML, but may not be JSON. */
    if (datum->kind != DET_DATUM_TEXT && datum->kind != DET_DATUM_NULL && datum->text && !is_json) {
        det_buffer_append_text(buffer, datum->text);
        return;
    }
    switch (datum->kind) {
    case DET_DATUM_NULL:
        det_buffer_append_text(buffer, "null");
        break;
    case DET_DATUM_BOOL:
        det_buffer_append_text(buffer, datum->as.truth ? "true" : "false");
        break;
    case DET_DATUM_SIGNED:
        det_buffer_format(buffer, "%lld", (long long)datum->as.number);
        break;
    case DET_DATUM_UNSIGNED:
        det_buffer_format(buffer, "%llu", (unsigned long long)datum->as.large);
        break;
    case DET_DATUM_FLOAT:
        put_real(buffer, datum->as.real, is_json);
        break;
    case DET_DATUM_TEXT:
        det_json_quote(buffer, det_view_text(datum->text));
        break;
    case DET_DATUM_LIST:
        det_buffer_append_text(buffer, "[]");
        break;
    case DET_DATUM_MAP:
        det_buffer_append_text(buffer, "{}");
        break;
    }
}

static const struct det_datum *parent_of(const struct det_datum_walk *walk, size_t depth)
{
    return depth ? walk->open[depth - 1] : NULL;
}

static void begin_json(
    struct det_buffer *buffer, const struct det_datum *parent, const struct det_datum *datum)
{
    if (parent && parent->first != datum)
        det_buffer_append_text(buffer, ", ");
    if (parent && parent->kind == DET_DATUM_MAP) {
        det_json_quote(buffer, det_view_text(datum->key));
        det_buffer_append_text(buffer, ": ");
    }
}

void det_datum_to_json(const struct det_datum *datum, struct det_buffer *buffer)
{
    struct det_datum_walk walk;
    enum det_datum_step step;

    det_datum_walk_init(&walk, datum);
    while ((step = det_datum_walk_next(&walk)) != DET_DATUM_AT_END) {
        bool is_map = walk.at->kind == DET_DATUM_MAP;

        if (step == DET_DATUM_AT_CLOSE) {
            det_buffer_append_char(buffer, is_map ? '}' : ']');
            continue;
        }
        begin_json(buffer, parent_of(&walk, walk.depth - (step == DET_DATUM_AT_OPEN)), walk.at);
        if (step == DET_DATUM_AT_OPEN)
            det_buffer_append_char(buffer, is_map ? '{' : '[');
        else
            det_datum_put_scalar(buffer, walk.at, true);
    }
}

/* Begins an element on a separate line. A list in a list begins on the next line: "-" alone, and
 * the inner list indented. */
static void begin_yaml(
    struct det_buffer *buffer, const struct det_datum *parent, size_t depth,
    const struct det_datum *datum)
{
    if (!parent)
        return;
    det_buffer_format(buffer, "%*s", (int)(2 * (depth - 1)), "");
    if (parent->kind == DET_DATUM_LIST) {
        det_buffer_append_char(buffer, '-');
        return;
    }
    det_json_quote(buffer, det_view_text(datum->key));
    det_buffer_append_char(buffer, ':');
}

void det_datum_write_yaml(
    const struct det_datum *datum, struct det_buffer *buffer,
    void (*put)(struct det_buffer *buffer, const struct det_datum *scalar))
{
    struct det_datum_walk walk;
    enum det_datum_step step;

    det_datum_walk_init(&walk, datum);
    while ((step = det_datum_walk_next(&walk)) != DET_DATUM_AT_END) {
        size_t depth = walk.depth - (step == DET_DATUM_AT_OPEN);
        bool has_lines = step == DET_DATUM_AT_OPEN && walk.at->count > 0;

        if (step == DET_DATUM_AT_CLOSE)
            continue;
        begin_yaml(buffer, parent_of(&walk, depth), depth, walk.at);
        if (!has_lines && depth)
            det_buffer_append_char(buffer, ' ');
        if (!has_lines)
            put(buffer, walk.at);
        if (!has_lines || depth)
            det_buffer_append_char(buffer, '\n');
    }
}
