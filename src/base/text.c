/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text.c - views, copies that fit, names, numbers and the nearest word. */
#include "base/text.h"

#include <limits.h>
#include <string.h>

#include "base/assert.h"

/* Words longer than this are not considered misspellings of each other. */
#define WORD_MAX DET_NAME_MAX

struct det_view det_view_text(const char *text)
{
    return det_view_of(text, strlen(text));
}

bool det_view_equal(struct det_view a, struct det_view b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool det_view_is(struct det_view view, const char *text)
{
    return det_view_equal(view, det_view_text(text));
}

/* Returns at most `size`, not inside a character. A character has at most three bytes after its
 * lead, so text that is not UTF-8 is cut at `size`. */
static size_t cut_between_characters(const char *text, size_t size)
{
    for (size_t back = 0; back <= 3 && back <= size; back++) {
        if (((unsigned char)text[size - back] & 0xC0) != 0x80)
            return size - back;
    }
    return size;
}

bool det_text_copy(char *target, size_t capacity, const char *source)
{
    size_t length, size;

    det_assert(capacity > 0);
    length = strnlen(source, capacity);
    size = length < capacity ? length : cut_between_characters(source, capacity - 1);
    memcpy(target, source, size);
    target[size] = '\0';
    return length < capacity;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char to_lower(char c)
{
    /* Upper and lower case differ in one bit. */
    if (c >= 'A' && c <= 'Z')
        c |= 0x20;
    return c;
}

static bool is_name_char(char c)
{
    char lower = to_lower(c);

    return (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '.' || c == '_' || c == '-';
}

bool det_name_is_valid(const char *name)
{
    size_t length = 0;

    while (name[length] != '\0') {
        if (length == DET_NAME_MAX || !is_name_char(name[length]))
            return false;
        length++;
    }
    return length > 0;
}

static bool all_digits(struct det_view text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is_digit(text.data[i]))
            return false;
    }
    return text.size > 0;
}

int det_parse_u64(struct det_view text, uint64_t *ret)
{
    uint64_t value = 0;

    if (!all_digits(text))
        return DET_ERR_MALFORMED;
    for (size_t i = 0; i < text.size; i++) {
        uint64_t digit = (uint64_t)(text.data[i] - '0');

        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return DET_ERR_OVERFLOW;
    }
    *ret = value;
    return 0;
}

int det_parse_i64(struct det_view text, int64_t *ret)
{
    bool is_negative = text.size > 0 && text.data[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + (is_negative ? 1 : 0);
    uint64_t magnitude;
    int r;

    if (is_negative)
        text = det_view_of(text.data + 1, text.size - 1);
    r = det_parse_u64(text, &magnitude);
    if (r < 0)
        return r;
    if (magnitude > most)
        return DET_ERR_OVERFLOW;
    /* The conversion is modular in both compilers; the magnitude was checked above. */
    *ret = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    return 0;
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return to_lower(a) == to_lower(b);
}

/* Edit distance in which a transposition of two neighbours counts once. Keeps three rows of the
 * usual table at a time. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][WORD_MAX + 1];

    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t cost = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;

            row[j] = least_of(least_of(above[j], row[j - 1]) + 1, above[j - 1] + cost);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1]))
                row[j] = least_of(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}

int det_text_nearest(const char *word, const char *const *words, size_t count)
{
    size_t word_size = strnlen(word, WORD_MAX + 1);
    size_t best_distance = SIZE_MAX;
    int best = -1;

    det_assert(count <= INT_MAX);
    for (size_t i = 0; i < count && word_size <= WORD_MAX; i++) {
        size_t size = strnlen(words[i], WORD_MAX + 1);
        size_t longer = size > word_size ? size : word_size;
        size_t distance;

        if (size > WORD_MAX)
            continue;
        distance = edit_distance(word, word_size, words[i], size);
        if (distance * 3 <= longer && distance < best_distance) {
            best_distance = distance;
            best = (int)i;
        }
    }
    return best;
}

const char *det_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *det_is_or_are(uint64_t count)
{
    return count == 1 ? "is" : "are";
}

const char *det_was_or_were(uint64_t count)
{
    return count == 1 ? "was" : "were";
}

const char *det_article(const char *noun)
{
    return noun[0] != '\0' && strchr("aeiouAEIOU", noun[0]) != NULL ? "an" : "a";
}
