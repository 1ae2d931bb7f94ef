/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_prefix.c - output lines of tasks with their names, each written in one piece. */
#include "terminal/line_prefix.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/escape.h"
#include "base/hash.h"
#include "base/text.h"
#include "json/writer.h"

#define RESET "\033[0m"
#define FAINT "\033[2m"
#define RED   "\033[31m"
/* Maximum length of an escape sequence that sets colors. */
#define SEQUENCE_MAX 40

/* Red is for errors; black and white may be the background. */
static const char *const colors[] = {
    "\033[32m", "\033[33m", "\033[34m", "\033[35m", "\033[36m",
    "\033[92m", "\033[93m", "\033[94m", "\033[95m", "\033[96m",
};

/* "2026-01-31T10:00:00.250Z": as wide for every time. */
#define TIME_SIZE 32
static const char *time_text(det_time at, char *target)
{
    det_time rest = at % DET_SECOND;
    char seconds[DET_TIME_TEXT];

    rest += rest < 0 ? DET_SECOND : 0;
    det_assert(rest >= 0 && rest < DET_SECOND);
    det_format_time(at - rest, seconds, sizeof seconds);
    snprintf(target, TIME_SIZE, "%.19s.%03dZ", seconds, (int)(rest / DET_MILLISECOND));
    return target;
}

void prefix_init(struct prefix *prefix, struct cli *cli, bool has_times)
{
    *prefix = (struct prefix){ .cli = cli, .has_times = has_times };
}

void prefix_learn(struct prefix *prefix, const char *name)
{
    size_t width = cli_width(name, strlen(name));

    width = width < PREFIX_WIDTH_MAX ? width : PREFIX_WIDTH_MAX;
    prefix->width = prefix->width > width ? prefix->width : width;
    det_assert(prefix->width >= width && prefix->width <= PREFIX_WIDTH_MAX);
}

static void append_in(
    const struct prefix *prefix, struct det_buffer *buffer, const char *color, const char *text,
    size_t size)
{
    if (prefix->cli->out_has_color)
        det_buffer_append_text(buffer, color);
    det_escape(buffer, text, size);
    if (prefix->cli->out_has_color)
        det_buffer_append_text(buffer, RESET);
}

static const char *color_of(const char *name)
{
    uint64_t hash = det_hash64(name, strlen(name), 0);

    return colors[hash % (sizeof colors / sizeof *colors)];
}

/* Appends the time, the name, its padding, and the mark. */
static void append_head(
    struct prefix *prefix, struct det_buffer *buffer, const char *name, det_time at, char mark)
{
    size_t size = strlen(name), width = cli_width(name, size);
    const char *color = color_of(name);
    char time[TIME_SIZE];

    prefix_learn(prefix, name);
    if (prefix->has_times) {
        time_text(at, time);
        append_in(prefix, buffer, FAINT, time, strlen(time));
        det_buffer_append_char(buffer, ' ');
    }
    append_in(prefix, buffer, color, name, size);
    for (; width < prefix->width; width++)
        det_buffer_append_char(buffer, ' ');
    det_buffer_append_char(buffer, ' ');
    append_in(prefix, buffer, mark == '!' ? RED : color, &mark, 1);
    det_buffer_append_char(buffer, ' ');
}

/* Returns the length of a color sequence at the start of the text; 0 if there is none. */
static size_t sequence_size(const char *text, size_t size)
{
    size_t at = 2;

    if (size < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    size = size < SEQUENCE_MAX ? size : SEQUENCE_MAX;
    while (at < size &&
           ((text[at] >= '0' && text[at] <= '9') || text[at] == ';' || text[at] == ':'))
        at++;
    return at < size && text[at] == 'm' ? at + 1 : 0;
}

/* Appends the text of a task, whose colors end with the line. */
static void append_text(
    const struct prefix *prefix, struct det_buffer *buffer, const char *text, size_t size)
{
    bool has_color = prefix->cli->out_has_color, is_colored = false;
    size_t from = 0;

    for (size_t at = 0; at < size;) {
        const char *escape = memchr(text + at, '\033', size - at);
        size_t length;

        at = escape ? (size_t)(escape - text) : size;
        length = sequence_size(text + at, size - at);
        if (length == 0) {
            at += escape ? 1 : 0;
            continue;
        }
        det_escape(buffer, text + from, at - from);
        if (has_color)
            det_buffer_append(buffer, text + at, length);
        is_colored = is_colored || has_color;
        at += length;
        from = at;
    }
    det_assert(from <= size);
    det_escape(buffer, text + from, size - from);
    if (is_colored)
        det_buffer_append_text(buffer, RESET);
}

/* Ends the line and writes it. */
static void finish_line(struct prefix *prefix, struct det_buffer *buffer)
{
    det_buffer_append_char(buffer, '\n');
    if (det_buffer_status(buffer) < 0)
        prefix->cli->has_failed = true;
    else
        cli_write(prefix->cli, buffer->data, buffer->size);
    det_buffer_deinit(buffer);
}

static void print_note(struct prefix *prefix, const char *name, det_time at, const char *text)
{
    struct det_buffer buffer;

    det_buffer_init(&buffer, prefix->cli->allocator);
    append_head(prefix, &buffer, name, at, '=');
    append_in(prefix, &buffer, FAINT, text, strlen(text));
    finish_line(prefix, &buffer);
}

static void print_line_json(struct prefix *prefix, const struct det_line *line, det_time at)
{
    struct det_json_writer json;
    char time[TIME_SIZE];

    cli_json_begin(prefix->cli, &json, NULL);
    det_json_text(&json, "kind", "line");
    det_json_text(&json, "at", time_text(at, time));
    det_json_text(&json, "name", line->name);
    det_json_text(&json, "stream", line->stream == DET_STREAM_ERROR ? "error" : "output");
    det_json_bytes(&json, "text", line->text, line->size);
    det_json_bool(&json, "cut", line->is_cut);
    if (line->dropped)
        det_json_number(&json, "dropped", line->dropped);
    cli_json_end(prefix->cli, &json);
}

static void print_note_json(struct prefix *prefix, const char *name, det_time at, const char *text)
{
    struct det_json_writer json;
    char time[TIME_SIZE];

    cli_json_begin(prefix->cli, &json, NULL);
    det_json_text(&json, "kind", "note");
    det_json_text(&json, "at", time_text(at, time));
    det_json_text(&json, "name", name);
    det_json_text(&json, "text", text);
    cli_json_end(prefix->cli, &json);
}

void prefix_line(struct prefix *prefix, const struct det_line *line, det_time at)
{
    struct det_buffer buffer;

    if (prefix->cli->is_json) {
        print_line_json(prefix, line, at);
        return;
    }
    if (line->dropped)
        prefix_note(
            prefix, line->name, at, "%llu byte%s of output %s dropped: it wrote too fast",
            (unsigned long long)line->dropped, det_plural(line->dropped),
            det_was_or_were(line->dropped));
    /* An empty rest of a cut line carries no information. */
    if (line->is_cut && line->size == 0 && line->dropped)
        return;
    det_buffer_init(&buffer, prefix->cli->allocator);
    append_head(prefix, &buffer, line->name, at, line->stream == DET_STREAM_ERROR ? '!' : '|');
    append_text(prefix, &buffer, line->text, line->size);
    if (line->is_cut)
        append_in(prefix, &buffer, FAINT, "\\", 1);
    finish_line(prefix, &buffer);
}

void prefix_note(struct prefix *prefix, const char *name, det_time at, const char *format, ...)
{
    va_list arguments;
    char *text;

    det_assert(!strchr(format, '\n'));
    va_start(arguments, format);
    text = cli_format(prefix->cli, format, arguments);
    va_end(arguments);
    if (!text)
        return;
    if (prefix->cli->is_json)
        print_note_json(prefix, name, at, text);
    else
        print_note(prefix, name, at, text);
    free(text);
}

void prefix_flush(struct prefix *prefix)
{
    cli_flush(prefix->cli);
}
