/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_sink.c - writes text to a fixed array: JSON strings, base64, hexadecimal. */
#include "record/text_sink.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void det_output_append(struct det_output *output, const char *data, size_t size)
{
    size_t room = output->length < output->capacity ? output->capacity - output->length : 0;
    size_t part = size < room ? size : room;

    if (part)
        memcpy(output->target + output->length, data, part);
    output->length += size;
}

void det_output_text(struct det_output *output, const char *text)
{
    det_output_append(output, text, strlen(text));
}

void det_output_char(struct det_output *output, char c)
{
    det_output_append(output, &c, 1);
}

size_t det_output_finish(struct det_output *output)
{
    if (output->capacity > 0)
        output->target[output->length < output->capacity ? output->length : output->capacity - 1] =
            0;
    return output->length;
}

/* Returns true if an ASCII character needs no escape inside quotes. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_escape(struct det_output *output, uint32_t code)
{
    static const char short_codes[] = "\"\\\b\f\n\r\t", short_names[] = "\"\\bfnrt";
    const char *known = code && code < 0x80 ? strchr(short_codes, (int)code) : NULL;
    char text[8];

    if (known) {
        text[0] = '\\';
        text[1] = short_names[known - short_codes];
        det_output_append(output, text, 2);
        return;
    }
    snprintf(text, sizeof text, "\\u%04x", code & 0xffff);
    det_output_append(output, text, 6);
}

/* C1 controls, line and paragraph separators, bidirectional marks, the byte order mark and
 * noncharacters: YAML does not accept those unescaped. */
static bool steers_terminal(uint32_t code)
{
    return (code >= 0x80 && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

/* Decodes the character with a lead byte >= 0x80; the size is 0 if it is not UTF-8. */
static uint32_t decode_wide(const unsigned char *data, size_t left, size_t *ret_size)
{
    size_t size = data[0] >= 0xf0 ? 4 : data[0] >= 0xe0 ? 3 : 2;
    uint32_t code = data[0] & (0x7fu >> size);

    *ret_size = 0;
    if (size > left || det_utf8_check((const char *)data, size) != size)
        return 0;
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (data[i] & 0x3fu);
    *ret_size = size;
    return code;
}

/* Writes one character that needs an escape; returns how many bytes it had. */
static size_t put_special(struct det_output *output, const unsigned char *data, size_t left)
{
    uint32_t code = data[0];
    size_t size = 1;

    if (code >= 0x80)
        code = decode_wide(data, left, &size);
    if (size == 0) {
        put_escape(output, 0xfffd);
        return 1;
    }
    if (size == 1 || steers_terminal(code))
        put_escape(output, code);
    else
        det_output_append(output, (const char *)data, size);
    return size;
}

size_t det_output_plain_size(struct det_view text)
{
    size_t size = 0;

    while (size < text.size && is_plain((unsigned char)text.data[size]))
        size++;
    return size;
}

void det_output_quoted(struct det_output *output, struct det_view text)
{
    const unsigned char *data = (const unsigned char *)text.data;
    size_t start, i = 0;

    det_output_char(output, '"');
    while (i < text.size) {
        start = i;
        i += det_output_plain_size(det_view_of(text.data + i, text.size - i));
        det_output_append(output, text.data + start, i - start);
        if (i < text.size)
            i += put_special(output, data + i, text.size - i);
    }
    det_output_char(output, '"');
}

void det_output_base64(struct det_output *output, struct det_view bytes)
{
    const unsigned char *data = (const unsigned char *)bytes.data;
    uint32_t group;
    size_t left;
    char text[4];

    for (size_t i = 0; i < bytes.size; i += 3) {
        left = bytes.size - i;
        group = (uint32_t)data[i] << 16 | (uint32_t)(left > 1 ? data[i + 1] : 0) << 8 |
                (uint32_t)(left > 2 ? data[i + 2] : 0);
        text[0] = base64_digits[group >> 18];
        text[1] = base64_digits[group >> 12 & 63];
        text[2] = '=';
        text[3] = '=';
        if (left > 1)
            text[2] = base64_digits[group >> 6 & 63];
        if (left > 2)
            text[3] = base64_digits[group & 63];
        det_output_append(output, text, 4);
    }
}

void det_output_hex(struct det_output *output, struct det_view bytes)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *data = (const unsigned char *)bytes.data;

    for (size_t i = 0; i < bytes.size; i++) {
        det_output_char(output, digits[data[i] >> 4]);
        det_output_char(output, digits[data[i] & 15]);
    }
}

/* Decodes four digits, of which the last `padding` are "="; -1 if one is not a digit. */
static int32_t decode_group(const char *text, size_t padding)
{
    uint32_t group = 0;
    const char *digit;

    for (size_t i = 0; i < 4; i++) {
        group <<= 6;
        if (i >= 4 - padding)
            continue;
        digit = text[i] ? strchr(base64_digits, text[i]) : NULL;
        if (!digit)
            return -1;
        group |= (uint32_t)(digit - base64_digits);
    }
    return (int32_t)group;
}

int det_base64_decode(struct det_view text, void *target, size_t capacity, size_t *ret_size)
{
    uint8_t *bytes = target;
    size_t padding = 0, size, used = 0;
    int32_t group;

    if (text.size % 4)
        return DET_ERR_MALFORMED;
    while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=')
        padding++;
    size = text.size / 4 * 3 - padding;
    if (size > capacity)
        return DET_ERR_RANGE;
    for (size_t i = 0; i < text.size; i += 4) {
        group = decode_group(text.data + i, i + 4 == text.size ? padding : 0);
        /* The bits that the padding leaves unused must be zero; otherwise one value would have
         * several texts. */
        if (group < 0 || (size - used < 3 && (group & (0xffffff >> (8 * (size - used))))))
            return DET_ERR_MALFORMED;
        for (unsigned k = 0; k < 3 && used < size; k++)
            bytes[used++] = (uint8_t)(group >> (16 - 8 * k));
    }
    det_assert(used == size);
    *ret_size = size;
    return 0;
}
