/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* writer.c - writes JSON objects, a line each. */
#include "json/writer.h"

#include <string.h>

#include "base/escape.h"
#include "base/text.h"

void det_json_writer_init(struct det_json_writer *json, const struct det_allocator *allocator)
{
    *json = (struct det_json_writer){ .needs_comma = false };
    det_buffer_init(&json->text, allocator);
}

void det_json_writer_deinit(struct det_json_writer *json)
{
    det_buffer_deinit(&json->text);
}

/* The reason to escape it, or NULL. */
static const char *escape_of(char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\t':
        return "\\t";
    case '\r':
        return "\\r";
    default:
        return NULL;
    }
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

static void write_escaped(struct det_json_writer *json, char c)
{
    const char *escape = escape_of(c);

    if (escape)
        det_buffer_append_text(&json->text, escape);
    else
        det_buffer_format(&json->text, "\\u%04x", (unsigned)(unsigned char)c);
}

/* What needs no escape, which is nearly all of it, is copied as a whole. */
static void write_string(struct det_json_writer *json, const char *text, size_t size)
{
    size_t from = 0;

    det_buffer_append_char(&json->text, '"');
    for (size_t i = 0; i < size; i++) {
        if (is_plain(text[i]))
            continue;
        det_buffer_append(&json->text, text + from, i - from);
        write_escaped(json, text[i]);
        from = i + 1;
    }
    det_buffer_append(&json->text, text + from, size - from);
    det_buffer_append_char(&json->text, '"');
}

/* Keys are words of ours: there is nothing to escape in them. */
static void write_key(struct det_json_writer *json, const char *key)
{
    size_t size = key ? strlen(key) : 0;
    bool needs_comma = json->needs_comma;
    char *target;

    json->needs_comma = true;
    if (!key) {
        if (needs_comma)
            det_buffer_append_char(&json->text, ',');
        return;
    }
    target = det_buffer_extend(&json->text, size + 3 + needs_comma);
    if (!target)
        return;
    if (needs_comma)
        *target++ = ',';
    *target++ = '"';
    memcpy(target, key, size);
    memcpy(target + size, "\":", 2);
}

void det_json_open(struct det_json_writer *json, const char *key, char bracket)
{
    write_key(json, key);
    det_buffer_append_char(&json->text, bracket);
    json->needs_comma = false;
}

void det_json_close(struct det_json_writer *json, char bracket)
{
    det_buffer_append_char(&json->text, bracket);
    json->needs_comma = true;
}

/* Bytes that are no UTF-8 have no place in JSON: they are shown as cli_print() does. */
void det_json_bytes(struct det_json_writer *json, const char *key, const char *text, size_t size)
{
    struct det_buffer shown;

    write_key(json, key);
    if (det_utf8_check(text, size) == size) {
        write_string(json, text, size);
        return;
    }
    det_buffer_init(&shown, json->text.allocator);
    det_escape(&shown, text, size);
    write_string(json, det_buffer_text(&shown), shown.size);
    if (det_buffer_status(&shown) < 0)
        json->text.error = det_buffer_status(&shown);
    det_buffer_deinit(&shown);
}

void det_json_text(struct det_json_writer *json, const char *key, const char *text)
{
    if (text) {
        det_json_bytes(json, key, text, strlen(text));
        return;
    }
    write_key(json, key);
    det_buffer_append_text(&json->text, "null");
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

void det_json_bool(struct det_json_writer *json, const char *key, bool is_true)
{
    write_key(json, key);
    det_buffer_append_text(&json->text, is_true ? "true" : "false");
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
    /* With room for the final 0, which is then given back. */
    target = det_buffer_extend(&json->text, size + 1);
    if (!target)
        return;
    det_record_to_json(record, value, flags, target, size + 1);
    json->text.size--;
}

void det_json_raw(struct det_json_writer *json, const char *key, const char *text, size_t size)
{
    write_key(json, key);
    if (text)
        det_buffer_append(&json->text, text, size);
    else
        json->text.error = DET_ERR_NO_MEMORY;
}
