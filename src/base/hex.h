/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hex.h - bytes as hexadecimal digits: written and read in lower case, the form of ids, hashes and
 * checksums; single digits also in upper case, as in URLs. */
#ifndef DET_BASE_HEX_H
#define DET_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Writes two digits for each byte and a final NUL. */
static inline void det_hex_write(const unsigned char *bytes, size_t size, char *target)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        target[2 * i] = digits[bytes[i] >> 4];
        target[2 * i + 1] = digits[bytes[i] & 0x0F];
    }
    target[2 * size] = '\0';
}

/* Returns the value of a lower-case digit; -1 for any other character. */
static inline int det_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the value of a digit in either case; -1 for any other character. */
static inline int det_hex_digit_any_case(char c)
{
    return det_hex_digit(c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c);
}

/* Reads 2 * size digits; returns false if one is invalid. */
static inline bool det_hex_read(const char *text, unsigned char *target, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int high = det_hex_digit(text[2 * i]), low = det_hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        target[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

#endif
