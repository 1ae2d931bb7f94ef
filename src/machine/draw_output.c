/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_output.c - writes text into the caller's memory, escaped for Mermaid or DOT.
 *
 * Mermaid: `#59;` is the character 59 in all of its languages, and is replaced before any of its
 * parsers runs. The escaped set is the union of the characters that any of them interprets, and
 * that the Markdown renderer of labels interprets. `#` itself is escaped in the same pass, so
 * nothing is escaped twice.
 *
 * DOT: a string ends at a quote and interprets backslashes; its labels also interpret `&amp;`. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/draw.h"

#define REPLACEMENT      0xFFFD
#define CONTROL_PICTURES 0x2400
#define INDENT           "    "

static void put_bytes(struct det_pen *pen, const char *bytes, size_t size)
{
    size_t room = pen->capacity > pen->length + 1 ? pen->capacity - (size_t)pen->length - 1 : 0;

    if (room > 0)
        memcpy(pen->target + pen->length, bytes, size < room ? size : room);
    pen->length += size;
}

int64_t det_pen_finish(struct det_pen *pen)
{
    size_t end = pen->length < pen->capacity ? (size_t)pen->length : pen->capacity - 1;

    if (pen->capacity > 0)
        pen->target[end] = '\0';
    return (int64_t)pen->length;
}

void det_pen_raw(struct det_pen *pen, const char *text)
{
    put_bytes(pen, text, strlen(text));
}

void det_pen_format(struct det_pen *pen, const char *format, ...)
{
    char text[64];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    det_assert(length >= 0 && (size_t)length < sizeof text);
    put_bytes(pen, text, (size_t)length);
}

void det_pen_indent(struct det_pen *pen, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        det_pen_raw(pen, INDENT);
}

void det_pen_duration(struct det_pen *pen, det_time span)
{
    char text[DET_DURATION_TEXT];

    det_pen_raw(pen, det_format_duration(span, text, sizeof text));
}

/* Returns the length of the character by its lead byte; the caller checks the rest. */
static size_t lead_length(unsigned char lead)
{
    if (lead < 0xC0)
        return 1;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Replaces control characters and those that XML does not permit. */
static uint32_t made_visible(uint32_t c)
{
    if (c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029)
        return '\n';
    if (c == '\t')
        return ' ';
    if (c < ' ')
        return CONTROL_PICTURES + c;
    if (c >= 0x7F && c < 0xA0)
        return REPLACEMENT;
    return (c & 0xFFFE) == 0xFFFE ? REPLACEMENT : c;
}

/* Reads one character, or one invalid byte. */
static uint32_t next_character(const char **at)
{
    const unsigned char *bytes = (const unsigned char *)*at;
    size_t length = lead_length(bytes[0]);
    uint32_t c = bytes[0];

    if (strnlen(*at, length) < length || det_utf8_check(*at, length) < length) {
        *at += 1;
        return REPLACEMENT;
    }
    if (length > 1)
        c &= 0xFFu >> (length + 1);
    for (size_t i = 1; i < length; i++)
        c = c << 6 | (bytes[i] & 0x3Fu);
    *at += length;
    return made_visible(c);
}

size_t det_text_length(const char *text)
{
    size_t count = 0;

    for (; *text; count++)
        (void)next_character(&text);
    return count;
}

static void put_character(struct det_pen *pen, uint32_t c)
{
    char bytes[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = size - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    bytes[0] = (char)(size == 1 ? c : c | (0xF00u >> size & 0xFF));
    put_bytes(pen, bytes, size);
}

/* Bidirectional controls change the direction of text, also in the source of the drawing. */
static bool is_bidi_control(uint32_t c)
{
    return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c & 0x80) != 0 || c == '_';
}

/* At the edge of a word an underscore is emphasis. */
static bool is_emphasis(const char *start, const char *at)
{
    return *at == '_' && (at == start || !is_word(at[-1]) || !is_word(at[1]));
}

/* "1.", "2)", "-" and "+" at the start make a list. */
static bool is_list_mark(const char *start, const char *at)
{
    const char *mark = at + strspn(at, "0123456789");

    if (at != start)
        return false;
    return mark > at ? *mark == '.' || *mark == ')' : *mark == '-' || *mark == '+';
}

/* Words that Mermaid interprets anywhere: www. is a link, and "redirection", a newline and "LR"
 * turn the diagram. */
static bool is_taken_word(const char *at)
{
    static const char direction[] = "direction";
    size_t length = sizeof direction - 1;

    if (strncasecmp(at, "www.", 4) == 0)
        return true;
    return strncasecmp(at, direction, length) == 0 && !is_word(at[length]);
}

/* Returns true if the character `c` at `at` must be written as its number. The two non-ASCII
 * characters are those with which Mermaid replaces `#59;`. */
static bool is_mermaid_mark(const char *start, const char *at, uint32_t c)
{
    if (c >= 0x80)
        return c == 0xB6 || c == 0xFB02 || is_bidi_control(c);
    if (strchr("\"#$%&*:;<>@\\`~", (int)c))
        return true;
    return is_emphasis(start, at) || is_list_mark(start, at) || is_taken_word(at);
}

static void put_mermaid(struct det_pen *pen, const char *start, const char *at, uint32_t c)
{
    if (c == '\n')
        det_pen_raw(pen, "<br/>");
    else if (is_mermaid_mark(start, at, c))
        det_pen_format(pen, "#%u;", (unsigned)c);
    else
        put_character(pen, c);
}

static void put_dot(struct det_pen *pen, uint32_t c)
{
    if (c == '\n')
        det_pen_raw(pen, "\\n");
    else if (c == '&')
        det_pen_raw(pen, "&amp;");
    else if (is_bidi_control(c))
        det_pen_format(pen, "&#%u;", (unsigned)c);
    else if (c == '"' || c == '\\')
        det_pen_format(pen, "\\%c", (int)c);
    else
        put_character(pen, c);
}

size_t det_pen_text_cut(struct det_pen *pen, const char *text, size_t count)
{
    const char *at = text, *start;
    uint32_t c;

    while (*at && count > 0) {
        start = at;
        c = next_character(&at);
        switch (pen->dialect) {
        case DET_PEN_MERMAID:
            put_mermaid(pen, text, start, c);
            break;
        case DET_PEN_DOT:
            put_dot(pen, c);
            break;
        }
        count--;
    }
    return count;
}

void det_pen_text(struct det_pen *pen, const char *text)
{
    (void)det_pen_text_cut(pen, text, SIZE_MAX);
}
