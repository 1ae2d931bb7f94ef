/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* escape.c - escapes arbitrary bytes for display. */
#include "base/escape.h"

#include "base/text.h"

size_t det_character_size(const char *text, size_t size)
{
    unsigned char lead = (unsigned char)*text;
    size_t wanted = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;

    if (wanted > size || det_utf8_check(text, wanted) != wanted)
        return 0;
    return wanted;
}

uint32_t det_character_code(const char *text, size_t size)
{
    static const unsigned char masks[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    uint32_t code = (unsigned char)*text & masks[size];

    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    return code;
}

bool det_is_unprintable(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0) ||
           code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}

void det_escape(struct det_buffer *buffer, const char *text, size_t size)
{
    while (size) {
        size_t length = det_character_size(text, size);
        uint32_t code = length ? det_character_code(text, length) : 0;

        if (length == 0)
            det_buffer_format(buffer, "\\x%02x", (unsigned)(unsigned char)*text);
        else if (!det_is_unprintable(code))
            det_buffer_append(buffer, text, length);
        else
            det_buffer_format(buffer, code < 0x80 ? "\\x%02x" : "\\u{%x}", code);
        text += length ? length : 1;
        size -= length ? length : 1;
    }
}
