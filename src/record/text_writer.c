/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_writer.c - writes a record as JSON or as readable text: one walk, two styles.
 *
 * Sensitive fields are removed here, before any of their content is read: without DET_TEXT_REVEAL
 * no code below the FIELD step sees them. */
#include <detent/record.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "record/field_value.h"
#include "record/field_walk.h"
#include "record/number.h"
#include "record/text_sink.h"

struct writer {
    struct det_output output;
    struct det_walk walk;
    unsigned flags; /* enum det_text_flags */
    bool for_people;
    bool is_first; /* the innermost braces are still empty */
    unsigned level;
};

static void open_with(struct writer *writer, const char *bracket)
{
    det_output_text(&writer->output, bracket);
    writer->level++;
    writer->is_first = true;
}

static void new_line(struct writer *writer)
{
    det_output_char(&writer->output, '\n');
    for (unsigned i = 0; i < writer->level; i++)
        det_output_text(&writer->output, "    ");
}

static void close_with(struct writer *writer, char bracket)
{
    det_assert(writer->level > 0);
    writer->level--;
    if ((writer->flags & DET_TEXT_INDENT) && !writer->is_first)
        new_line(writer);
    det_output_char(&writer->output, bracket);
    writer->is_first = false;
}

/* Writes the separator between two members or elements. */
static void write_separator(struct writer *writer)
{
    if (!writer->is_first)
        det_output_char(&writer->output, ',');
    if (writer->flags & DET_TEXT_INDENT)
        new_line(writer);
    else if (!writer->is_first && writer->for_people)
        det_output_char(&writer->output, ' ');
    writer->is_first = false;
}

static void put_key(struct writer *writer, const char *name)
{
    struct det_output *output = &writer->output;

    if (writer->for_people) {
        det_output_text(output, name);
        det_output_char(output, '=');
        return;
    }
    det_output_quoted(output, det_view_text(name));
    det_output_text(output, writer->flags & DET_TEXT_INDENT ? ": " : ":");
}

/* A word that JSON needs in quotes and people do not. */
static void put_word(struct writer *writer, const char *word)
{
    if (writer->for_people)
        det_output_text(&writer->output, word);
    else
        det_output_quoted(&writer->output, det_view_text(word));
}

static void put_float(struct writer *writer, const uint8_t *value)
{
    char text[DET_DOUBLE_TEXT];
    double number;

    memcpy(&number, value, sizeof number);
    if (isfinite(number) || writer->for_people)
        det_output_text(&writer->output, det_format_double(number, text));
    else
        det_output_text(&writer->output, "null");
}

static void put_time(struct writer *writer, const struct det_field *field, const uint8_t *value)
{
    char text[DET_TIME_TEXT];

    put_word(writer, det_format_time(det_value_signed(field, value), text, sizeof text));
}

static void put_bytes(struct writer *writer, struct det_view bytes)
{
    if (writer->for_people) {
        det_output_text(&writer->output, "0x");
        det_output_hex(&writer->output, bytes);
        return;
    }
    det_output_char(&writer->output, '"');
    det_output_base64(&writer->output, bytes);
    det_output_char(&writer->output, '"');
}

static void open_record(struct writer *writer)
{
    if (writer->for_people)
        det_output_text(&writer->output, det_walk_frame(&writer->walk)->place.record->name);
    open_with(writer, "{");
}

static void put_value(struct writer *writer, const struct det_field *field, const uint8_t *value)
{
    struct det_output *output = &writer->output;
    const char *name;
    char text[24];

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        snprintf(text, sizeof text, "%" PRIu64, det_value_unsigned(field, value));
        det_output_text(output, text);
        break;
    case DET_KIND_SIGNED:
        snprintf(text, sizeof text, "%" PRId64, det_value_signed(field, value));
        det_output_text(output, text);
        break;
    case DET_KIND_FLOAT:
        put_float(writer, value);
        break;
    case DET_KIND_BOOL:
        det_output_text(output, *value ? "true" : "false");
        break;
    case DET_KIND_TIME:
        put_time(writer, field, value);
        break;
    case DET_KIND_TEXT:
        det_output_quoted(output, det_value_view(field, value));
        break;
    case DET_KIND_BYTES:
        put_bytes(writer, det_value_view(field, value));
        break;
    case DET_KIND_ENUM:
        name = det_value_enum_name(field, value);
        put_word(writer, name ? name : "?");
        break;
    case DET_KIND_RECORD:
        open_record(writer);
        break;
    }
}

static void put_field(struct writer *writer)
{
    struct det_walk *walk = &writer->walk;
    const struct det_field *field = walk->field;
    bool is_hidden = (field->flags & DET_FIELD_SENSITIVE) && !(writer->flags & DET_TEXT_REVEAL);

    if ((field->flags & DET_FIELD_OPTIONAL) &&
        !det_field_count(field, walk->value + det_walk_frame(walk)->base)) {
        det_walk_skip(walk);
        return;
    }
    write_separator(writer);
    put_key(writer, field->name);
    if (is_hidden) {
        put_word(writer, DET_RECORD_REDACTED);
        det_walk_skip(walk);
    } else if (field->flags & DET_FIELD_ARRAY) {
        open_with(writer, "[");
    }
}

static void put_step(struct writer *writer, enum det_walk_step step)
{
    struct det_walk *walk = &writer->walk;

    switch (step) {
    case DET_WALK_FIELD:
        put_field(writer);
        break;
    case DET_WALK_VALUE:
    case DET_WALK_OPEN:
        if (walk->field->flags & DET_FIELD_ARRAY)
            write_separator(writer);
        put_value(writer, walk->field, walk->value + walk->offset);
        break;
    case DET_WALK_CLOSE:
    case DET_WALK_END:
        close_with(writer, '}');
        break;
    case DET_WALK_DONE:
        if (walk->field->flags & DET_FIELD_ARRAY)
            close_with(writer, ']');
        break;
    }
}

static size_t write_all(struct writer *writer, const struct det_record *record, const void *value)
{
    enum det_walk_step step;

    det_walk_init(&writer->walk, record, value);
    open_record(writer);
    do {
        step = det_walk_next(&writer->walk);
        put_step(writer, step);
    } while (step != DET_WALK_END);
    det_assert(writer->level == 0);
    return det_output_finish(&writer->output);
}

size_t det_record_to_json(
    const struct det_record *record, const void *value, unsigned flags, char *target,
    size_t capacity)
{
    struct writer writer = { .flags = flags };

    writer.output.target = target;
    writer.output.capacity = capacity;
    return write_all(&writer, record, value);
}

size_t det_record_print(
    const struct det_record *record, const void *value, unsigned flags, char *target,
    size_t capacity)
{
    struct writer writer = { .flags = flags, .for_people = true };

    writer.output.target = target;
    writer.output.capacity = capacity;
    return write_all(&writer, record, value);
}
