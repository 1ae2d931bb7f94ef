/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* utf8.c - which bytes are UTF-8, after RFC 3629.
 *
 *   lead       second     then        characters
 *   00..7F                            U+0000..U+007F
 *   C2..DF     80..BF                 U+0080..U+07FF
 *   E0         A0..BF     80..BF      U+0800..U+0FFF (less would be over-long)
 *   E1..EC,EE,EF 80..BF   80..BF      U+1000..U+FFFF
 *   ED         80..9F     80..BF      up to U+D7FF (above are surrogates)
 *   F0         90..BF     80..BF x2   U+10000..U+3FFFF
 *   F1..F3     80..BF     80..BF x2   U+40000..U+FFFFF
 *   F4         80..8F     80..BF x2   up to U+10FFFF */
#include <string.h>

#include "base/text.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Returns the length of a character by its lead byte; 0 if no character starts with it. */
static size_t sequence_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

/* Some lead bytes restrict the range of the second byte. */
static bool second_is_valid(unsigned char lead, unsigned char second)
{
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;

    return second >= low && second <= high;
}

/* Returns the length of the character at `bytes`; 0 if it is invalid or incomplete. */
static size_t character_length(const unsigned char *bytes, size_t size)
{
    size_t length = sequence_length(bytes[0]);

    if (length == 0 || length > size)
        return 0;
    if (length > 1 && !second_is_valid(bytes[0], bytes[1]))
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    }
    return length;
}

static bool eight_are_ascii(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return (word & HIGH_BITS) == 0;
}

size_t det_utf8_check(const char *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    size_t at = 0, length;

    while (at < size) {
        if (size - at >= 8 && eight_are_ascii(bytes + at)) {
            at += 8;
            continue;
        }
        length = character_length(bytes + at, size - at);
        if (length == 0)
            return at;
        at += length;
    }
    return size;
}
