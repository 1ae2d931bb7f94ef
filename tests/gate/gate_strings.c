/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_strings.c - strcmp() and strncmp() whose cost depends on the strings alone.
 *
 * Those of glibc are chosen by the processor, and take up to 65 instructions more for a string that
 * begins near the end of a page: gate.tick failed because the linker had placed a literal there.
 * These replace them in the gate program and in what is linked into it. */
#include <stddef.h>
#include <string.h>

int strcmp(const char *left, const char *right)
{
    while (*left && *left == *right) {
        left++;
        right++;
    }
    return (unsigned char)*left - (unsigned char)*right;
}

int strncmp(const char *left, const char *right, size_t limit)
{
    while (limit > 0 && *left && *left == *right) {
        left++;
        right++;
        limit--;
    }
    return limit > 0 ? (unsigned char)*left - (unsigned char)*right : 0;
}
