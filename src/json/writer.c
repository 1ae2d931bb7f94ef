/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* writer.c - writes JSON into a buffer. */
#include "json/writer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/escape.h"
#include "record/number.h"
#include "record/text_sink.h"
#include "json/reader.h"

void det_json_writer_init(struct det_json_writer *json, const struct det_allocator *allocator)
{
    *json = (struct det_json_writer){ .needs_comma = false };
    det_buffer_init(&json->text, allocator);
}

void det_json_writer_deinit(struct det_json_writer *json)
{
    det_buffer_deinit(&json->text);
}

void det_json_writer_clear(struct det_json_writer *json)
{
    det_buffer_clear(&json->text);
    json->needs_comma = false;
    json->depth = 0;
}

/* Copies a run without escapes at once: nearly every text is one run. */
static void quote_plain(struct det_buffer *buffer, struct det_view text)
{
    char *target = det_buffer_extend(buffer, text.size + 2);

    if (!target)
        return;
    *target = '"';
    if (text.size)
        memcpy(target + 1, text.data, text.size);
    target[text.size + 1] = '"';
}

void det_json_quote(struct det_buffer *buffer, struct det_view text)
{
    struct det_output output = { 0 };

    if (det_output_plain_size(text) == text.size) {
        quote_plain(buffer, text);
        return;
    }
    det_output_quoted(&output, text);
    output.capacity = output.length;
    output.target = det_buffer_extend(buffer, output.length);
    output.length = 0;
    if (output.target)
        det_output_quoted(&output, text);
}

static void begin_line(struct det_json_writer *json)
{
    if (json->indent)
        det_buffer_format(&json->text, "\n%*s", (int)(json->indent * json->depth), "");
}

static void write_comma(struct det_json_writer *json)
{
    if (json->needs_comma)
        det_buffer_append_char(&json->text, ',');
    json->needs_comma = true;
    if (json->depth)
        begin_line(json);
}

static void write_colon(struct det_json_writer *json)
{
    det_buffer_append_text(&json->text, json->indent ? ": " : ":");
}

static void write_key(struct det_json_writer *json, const char *key)
{
    write_comma(json);
    if (!key)
        return;
    det_json_quote(&json->text, det_view_text(key));
    write_colon(json);
}

void det_json_key(struct det_json_writer *json, const char *key)
{
    write_key(json, key);
}

void det_json_open(struct det_json_writer *json, const char *key, char bracket)
{
    det_assert(bracket == '{' || bracket == '[');
    write_key(json, key);
    det_buffer_append_char(&json->text, bracket);
    json->needs_comma = false;
    json->depth++;
}

void det_json_close(struct det_json_writer *json, char bracket)
{
    det_assert(bracket == '}' || bracket == ']');
    if (json->depth)
        json->depth--;
    if (json->needs_comma)
        begin_line(json);
    det_buffer_append_char(&json->text, bracket);
    json->needs_comma = true;
}

/* Bytes that are not UTF-8 are written like on a terminal, because JSON cannot contain them. */
static void quote_escaped(struct det_json_writer *json, const char *text, size_t size)
{
    struct det_buffer shown;

    det_buffer_init(&shown, json->text.allocator);
    det_escape(&shown, text, size);
    det_json_quote(&json->text, det_view_of(det_buffer_text(&shown), shown.size));
    if (det_buffer_status(&shown) < 0)
        json->text.error = det_buffer_status(&shown);
    det_buffer_deinit(&shown);
}

void det_json_bytes(struct det_json_writer *json, const char *key, const char *text, size_t size)
{
    write_key(json, key);
    if (det_utf8_check(text, size) == size)
        det_json_quote(&json->text, det_view_of(text, size));
    else
        quote_escaped(json, text, size);
}

void det_json_text(struct det_json_writer *json, const char *key, const char *text)
{
    if (text)
        det_json_bytes(json, key, text, strlen(text));
    else
        det_json_null(json, key);
}

void det_json_format(struct det_json_writer *json, const char *key, const char *format, ...)
{
    struct det_buffer text;
    va_list arguments, again;
    char *target = NULL;
    int size;

    det_buffer_init(&text, json->text.allocator);
    va_start(arguments, format);
    va_copy(again, arguments);
    size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size >= 0)
        target = det_buffer_extend(&text, (size_t)size + 1);
    if (target) {
        vsnprintf(target, (size_t)size + 1, format, again);
        det_json_bytes(json, key, target, (size_t)size);
    } else {
        json->text.error = DET_ERR_NO_MEMORY;
    }
    va_end(again);
    det_buffer_deinit(&text);
}

static void write_digits(struct det_json_writer *json, uint64_t number)
{
    char digits[20];
    size_t from = sizeof digits;

    do
        digits[--from] = (char)('0' + number % 10);
    while (number /= 10);
    det_buffer_append(&json->text, digits + from, sizeof digits - from);
}

void det_json_number(struct det_json_writer *json, const char *key, uint64_t number)
{
    write_key(json, key);
    write_digits(json, number);
}

void det_json_signed(struct det_json_writer *json, const char *key, int64_t number)
{
    write_key(json, key);
    if (number < 0)
        det_buffer_append_char(&json->text, '-');
    write_digits(json, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void det_json_double(struct det_json_writer *json, const char *key, double number)
{
    char text[DET_DOUBLE_TEXT];

    write_key(json, key);
    det_buffer_append_text(
        &json->text, isfinite(number) ? det_format_double(number, text) : "null");
}

void det_json_bool(struct det_json_writer *json, const char *key, bool is_true)
{
    write_key(json, key);
    det_buffer_append_text(&json->text, is_true ? "true" : "false");
}

void det_json_null(struct det_json_writer *json, const char *key)
{
    write_key(json, key);
    det_buffer_append_text(&json->text, "null");
}

void det_json_time(struct det_json_writer *json, const char *key, det_time at)
{
    char text[DET_TIME_TEXT];

    det_json_text(json, key, det_format_time(at, text, sizeof text));
}

void det_json_record(
    struct det_json_writer *json, const char *key, const struct det_record *record,
    const void *value, unsigned flags)
{
    size_t size = det_record_to_json(record, value, flags, NULL, 0);
    char *target;

    write_key(json, key);
    /* Reserves room for the final 0, and drops it afterwards. */
    target = det_buffer_extend(&json->text, size + 1);
    if (!target)
        return;
    det_record_to_json(record, value, flags, target, size + 1);
    json->text.size--;
}

void det_json_record_members(
    struct det_json_writer *json, const struct det_record *record, const void *value,
    unsigned flags)
{
    size_t size = record ? det_record_to_json(record, value, flags, NULL, 0) : 0;
    char *target;

    if (size <= 2)
        return;
    write_comma(json);
    target = det_buffer_extend(&json->text, size + 1);
    if (!target)
        return;
    det_record_to_json(record, value, flags, target, size + 1);
    /* Drops the braces and the final 0. */
    memmove(target, target + 1, size - 2);
    json->text.size -= 3;
    json->text.data[json->text.size] = '\0';
}

static void copy_key(struct det_json_writer *json, const struct det_json_value *value)
{
    write_comma(json);
    if (!value->key.data)
        return;
    det_json_quote(&json->text, value->key);
    write_colon(json);
}

/* Writes a scalar, or the opening bracket of a list or an object. */
static void copy_head(struct det_json_writer *json, const struct det_json_value *value)
{
    bool is_open = value->kind == DET_JSON_OBJECT || value->kind == DET_JSON_ARRAY;

    json->depth += is_open;
    if (value->kind == DET_JSON_STRING)
        det_json_quote(&json->text, value->text);
    else
        det_buffer_append(&json->text, value->raw.data, is_open ? 1 : value->raw.size);
    json->needs_comma = !is_open;
}

static void copy_value(struct det_json_writer *json, const struct det_json_value *value)
{
    const struct det_json_value *open[DET_JSON_DEPTH_MAX], *next = value;
    unsigned depth = 0;

    do {
        if (!next) {
            value = open[--depth];
            det_json_close(json, value->kind == DET_JSON_OBJECT ? '}' : ']');
            next = value->next;
            continue;
        }
        value = next;
        if (depth)
            copy_key(json, value);
        copy_head(json, value);
        next = value->next;
        if (value->kind == DET_JSON_OBJECT || value->kind == DET_JSON_ARRAY) {
            det_assert(depth < DET_JSON_DEPTH_MAX);
            open[depth++] = value;
            next = value->first;
        }
    } while (depth);
}

void det_json_copy(
    struct det_json_writer *json, const char *key, const struct det_json_value *value)
{
    if (!value) {
        det_json_null(json, key);
        return;
    }
    write_key(json, key);
    copy_value(json, value);
}

void det_json_copy_members(struct det_json_writer *json, const struct det_json_value *object)
{
    DET_JSON_EACH (member, object) {
        copy_key(json, member);
        copy_value(json, member);
    }
}

void det_json_raw(struct det_json_writer *json, const char *key, const char *text, size_t size)
{
    write_key(json, key);
    if (text)
        det_buffer_append(&json->text, text, size);
    else
        json->text.error = DET_ERR_NO_MEMORY;
}
