/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_writer.c - writes JSON objects, a line each. */
#include "json/json_writer.h"

#include <string.h>

#include "base/escape.h"
#include "base/text.h"

void line_init(struct line *line, const struct det_allocator *allocator)
{
    *line = (struct line){ .needs_comma = false };
    det_buffer_init(&line->text, allocator);
}

void line_deinit(struct line *line)
{
    det_buffer_deinit(&line->text);
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

static void write_escaped(struct line *line, char c)
{
    const char *escape = escape_of(c);

    if (escape)
        det_buffer_append_text(&line->text, escape);
    else
        det_buffer_format(&line->text, "\\u%04x", (unsigned)(unsigned char)c);
}

/* What needs no escape, which is nearly all of it, is copied as a whole. */
static void write_string(struct line *line, const char *text, size_t size)
{
    size_t from = 0;

    det_buffer_append_char(&line->text, '"');
    for (size_t i = 0; i < size; i++) {
        if (is_plain(text[i]))
            continue;
        det_buffer_append(&line->text, text + from, i - from);
        write_escaped(line, text[i]);
        from = i + 1;
    }
    det_buffer_append(&line->text, text + from, size - from);
    det_buffer_append_char(&line->text, '"');
}

/* Keys are words of ours: there is nothing to escape in them. */
static void write_key(struct line *line, const char *key)
{
    size_t size = key ? strlen(key) : 0;
    bool needs_comma = line->needs_comma;
    char *target;

    line->needs_comma = true;
    if (!key) {
        if (needs_comma)
            det_buffer_append_char(&line->text, ',');
        return;
    }
    target = det_buffer_extend(&line->text, size + 3 + needs_comma);
    if (!target)
        return;
    if (needs_comma)
        *target++ = ',';
    *target++ = '"';
    memcpy(target, key, size);
    memcpy(target + size, "\":", 2);
}

void line_open(struct line *line, const char *key, char bracket)
{
    write_key(line, key);
    det_buffer_append_char(&line->text, bracket);
    line->needs_comma = false;
}

void line_close(struct line *line, char bracket)
{
    det_buffer_append_char(&line->text, bracket);
    line->needs_comma = true;
}

/* Bytes that are no UTF-8 have no place in JSON: they are shown as cli_print() does. */
void line_bytes(struct line *line, const char *key, const char *text, size_t size)
{
    struct det_buffer shown;

    write_key(line, key);
    if (det_utf8_check(text, size) == size) {
        write_string(line, text, size);
        return;
    }
    det_buffer_init(&shown, line->text.allocator);
    det_escape(&shown, text, size);
    write_string(line, det_buffer_text(&shown), shown.size);
    if (det_buffer_status(&shown) < 0)
        line->text.error = det_buffer_status(&shown);
    det_buffer_deinit(&shown);
}

void line_text(struct line *line, const char *key, const char *text)
{
    if (text) {
        line_bytes(line, key, text, strlen(text));
        return;
    }
    write_key(line, key);
    det_buffer_append_text(&line->text, "null");
}

static void write_digits(struct line *line, uint64_t number)
{
    char digits[20];
    size_t from = sizeof digits;

    do
        digits[--from] = (char)('0' + number % 10);
    while (number /= 10);
    det_buffer_append(&line->text, digits + from, sizeof digits - from);
}

void line_number(struct line *line, const char *key, uint64_t number)
{
    write_key(line, key);
    write_digits(line, number);
}

void line_signed(struct line *line, const char *key, int64_t number)
{
    write_key(line, key);
    if (number < 0)
        det_buffer_append_char(&line->text, '-');
    write_digits(line, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void line_bool(struct line *line, const char *key, bool is_true)
{
    write_key(line, key);
    det_buffer_append_text(&line->text, is_true ? "true" : "false");
}

void line_time(struct line *line, const char *key, det_time at)
{
    char text[DET_TIME_TEXT];

    line_text(line, key, det_format_time(at, text, sizeof text));
}

void line_record(
    struct line *line, const char *key, const struct det_record *record, const void *value,
    unsigned flags)
{
    size_t size = det_record_to_json(record, value, flags, NULL, 0);
    char *target;

    write_key(line, key);
    /* With room for the final 0, which is then given back. */
    target = det_buffer_extend(&line->text, size + 1);
    if (!target)
        return;
    det_record_to_json(record, value, flags, target, size + 1);
    line->text.size--;
}

void line_raw(struct line *line, const char *key, const char *text, size_t size)
{
    write_key(line, key);
    if (text)
        det_buffer_append(&line->text, text, size);
    else
        line->text.error = DET_ERR_NO_MEMORY;
}
