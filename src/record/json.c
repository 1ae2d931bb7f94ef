/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json.c - the strict reader of JSON.
 *
 *     { --> AT_FIRST_MEMBER --- key: -----> AT_VALUE <---- , key: ----.
 *                `---- } ---------------------- | ------------------> AFTER_VALUE --> END
 *                                   scalar, or |                        |  ^
 *                                   { ... }    `------------------------|--'
 *     [ --> AT_FIRST_ELEMENT -- scalar, ] ----------------------------> ' , scalar, ], }
 *
 * Invariants:
 *   1. offset <= size, and everything before it was checked.
 *   2. depth <= DET_JSON_DEPTH_MAX; the bits of `objects` below depth are set for objects, not for
 *      arrays. */
#include "record/json.h"

#include <string.h>

#include "base/assert.h"
#include "record/field_value.h"

void det_json_scanner_init(struct det_json_scanner *json, const char *text, size_t size)
{
    *json = (struct det_json_scanner){ .text = text, .size = size, .place = DET_JSON_AT_VALUE };
}

static int fail_at(
    const struct det_json_scanner *json, struct det_error *reterr, size_t offset,
    const char *expected)
{
    if (offset >= json->size)
        return DET_FAIL_AT(
            reterr, DET_ERR_TRUNCATED, json->size, "the JSON ends at byte %zu: expected %s",
            json->size, expected);
    return DET_FAIL_AT(
        reterr, DET_ERR_MALFORMED, offset, "invalid JSON at byte %zu: expected %s", offset,
        expected);
}

/* Returns the byte at the offset, or -1 at the end. */
static int peek_byte(const struct det_json_scanner *json)
{
    return json->offset < json->size ? (unsigned char)json->text[json->offset] : -1;
}

static bool take_byte(struct det_json_scanner *json, char c)
{
    if (peek_byte(json) != c)
        return false;
    json->offset++;
    return true;
}

static void skip_space(struct det_json_scanner *json)
{
    while (peek_byte(json) == ' ' || peek_byte(json) == '\n' || peek_byte(json) == '\r' ||
           peek_byte(json) == '\t')
        json->offset++;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Returns the value of the four digits after \u, or -1; `size` is the number of bytes left. */
static int32_t hex_code(const char *text, size_t size)
{
    int32_t code = 0;
    int digit;

    if (size < 4)
        return -1;
    for (unsigned i = 0; i < 4; i++) {
        digit = hex_digit(text[i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

static bool is_high_surrogate(int32_t code)
{
    return code >= 0xd800 && code <= 0xdbff;
}

static bool is_low_surrogate(int32_t code)
{
    return code >= 0xdc00 && code <= 0xdfff;
}

/* Returns the offset of the first byte that is not a hexadecimal digit: the place of the error. */
static size_t hex_end(const struct det_json_scanner *json, size_t offset)
{
    while (offset < json->size && hex_digit(json->text[offset]) >= 0)
        offset++;
    return offset;
}

/* Called after "\u": skips one code, or two that form a pair. */
static int skip_unicode(struct det_json_scanner *json, struct det_error *reterr)
{
    size_t start = json->offset - 2;
    int32_t code = hex_code(json->text + json->offset, json->size - json->offset);

    if (code < 0)
        return fail_at(json, reterr, hex_end(json, json->offset), "four hexadecimal digits");
    json->offset += 4;
    if (is_low_surrogate(code))
        return fail_at(json, reterr, start, "the first half of a surrogate pair");
    if (!is_high_surrogate(code))
        return 0;
    if (!take_byte(json, '\\') || !take_byte(json, 'u'))
        return fail_at(
            json, reterr, peek_byte(json) < 0 ? json->size : start,
            "the second half of a surrogate pair");
    code = hex_code(json->text + json->offset, json->size - json->offset);
    if (code < 0)
        return fail_at(json, reterr, hex_end(json, json->offset), "four hexadecimal digits");
    if (!is_low_surrogate(code))
        return fail_at(json, reterr, start, "the second half of a surrogate pair");
    json->offset += 4;
    return 0;
}

static int skip_escape(struct det_json_scanner *json, struct det_error *reterr)
{
    int c;

    json->offset++;
    c = peek_byte(json);
    if (c < 0 || c == 0 || !strchr("\"\\/bfnrtu", c))
        return fail_at(json, reterr, json->offset, "an escaped character");
    json->offset++;
    return c == 'u' ? skip_unicode(json, reterr) : 0;
}

/* Skips plain characters up to a quote, a backslash or the end. */
static int skip_plain(struct det_json_scanner *json, struct det_error *reterr)
{
    size_t start = json->offset, valid;
    int c;

    while ((c = peek_byte(json)) >= 0x20 && c != '"' && c != '\\')
        json->offset++;
    valid = det_utf8_check(json->text + start, json->offset - start);
    if (start + valid < json->offset)
        return fail_at(json, reterr, start + valid, "UTF-8");
    if (c >= 0 && c < 0x20)
        return fail_at(json, reterr, json->offset, "a character other than a control character");
    return 0;
}

static int read_string(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    size_t start = ++json->offset;
    int r = 0, c;

    while ((c = peek_byte(json)) != '"') {
        if (c < 0)
            return fail_at(json, reterr, json->offset, "the end of a string");
        r = c == '\\' ? skip_escape(json, reterr) : skip_plain(json, reterr);
        if (r < 0)
            return r;
    }
    ret->text = det_view_of(json->text + start, json->offset - start);
    json->offset++;
    return 0;
}

static bool skip_digits(struct det_json_scanner *json)
{
    size_t start = json->offset;

    while (peek_byte(json) >= '0' && peek_byte(json) <= '9')
        json->offset++;
    return json->offset > start;
}

static int read_number(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    size_t start = json->offset;

    take_byte(json, '-');
    if (!take_byte(json, '0') && !skip_digits(json))
        return fail_at(json, reterr, json->offset, "a digit");
    if (take_byte(json, '.') && !skip_digits(json))
        return fail_at(json, reterr, json->offset, "a digit");
    if (take_byte(json, 'e') || take_byte(json, 'E')) {
        if (!take_byte(json, '+'))
            take_byte(json, '-');
        if (!skip_digits(json))
            return fail_at(json, reterr, json->offset, "a digit");
    }
    ret->kind = DET_JSON_NUMBER;
    ret->text = det_view_of(json->text + start, json->offset - start);
    return 0;
}

static int read_word(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    static const struct {
        const char *text;
        enum det_json_kind kind;
    } words[] = { { "true", DET_JSON_TRUE },
                  { "false", DET_JSON_FALSE },
                  { "null", DET_JSON_NULL } };
    size_t left = json->size - json->offset, length, same;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        length = strlen(words[i].text);
        for (same = 0; same < length && same < left; same++)
            if (json->text[json->offset + same] != words[i].text[same])
                break;
        if (same == length) {
            ret->kind = words[i].kind;
            json->offset += length;
            return 0;
        }
        if (same > 0)
            return fail_at(json, reterr, json->offset + same, words[i].text);
    }
    return fail_at(json, reterr, json->offset, "a value");
}

static int open_bracket(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    bool is_object = peek_byte(json) == '{';
    uint64_t bit;

    if (json->depth == DET_JSON_DEPTH_MAX)
        return DET_FAIL_AT(
            reterr, DET_ERR_LIMIT, json->offset, "the JSON nests deeper than %d at byte %zu",
            DET_JSON_DEPTH_MAX, json->offset);
    bit = (uint64_t)1 << json->depth++;
    json->objects = is_object ? json->objects | bit : json->objects & ~bit;
    json->place = is_object ? DET_JSON_AT_FIRST_MEMBER : DET_JSON_AT_FIRST_ELEMENT;
    json->offset++;
    ret->kind = is_object ? DET_JSON_OBJECT : DET_JSON_ARRAY;
    return 0;
}

static bool in_object(const struct det_json_scanner *json)
{
    return json->depth > 0 && (json->objects >> (json->depth - 1) & 1);
}

static void close_bracket(struct det_json_scanner *json, struct det_json_token *ret)
{
    det_assert(json->depth > 0);
    ret->kind = in_object(json) ? DET_JSON_OBJECT_END : DET_JSON_ARRAY_END;
    json->offset++;
    json->depth--;
    json->place = DET_JSON_AFTER_VALUE;
}

static int read_value(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    int c = peek_byte(json);

    if (c == '{' || c == '[')
        return open_bracket(json, ret, reterr);
    json->place = DET_JSON_AFTER_VALUE;
    if (c == '"') {
        ret->kind = DET_JSON_STRING;
        return read_string(json, ret, reterr);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(json, ret, reterr);
    return read_word(json, ret, reterr);
}

static int read_key(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    int r;

    if (peek_byte(json) != '"')
        return fail_at(json, reterr, json->offset, "the name of a member");
    ret->kind = DET_JSON_KEY;
    r = read_string(json, ret, reterr);
    if (r < 0)
        return r;
    skip_space(json);
    if (!take_byte(json, ':'))
        return fail_at(json, reterr, json->offset, "a colon");
    json->place = DET_JSON_AT_VALUE;
    return 0;
}

/* Called after a value: reads the end, a closing bracket, or a comma and the next token. */
static int read_after(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    if (json->depth == 0) {
        ret->kind = DET_JSON_END;
        return peek_byte(json) < 0 ? 0 : fail_at(json, reterr, json->offset, "the end of the text");
    }
    if (peek_byte(json) == (in_object(json) ? '}' : ']')) {
        close_bracket(json, ret);
        return 0;
    }
    if (!take_byte(json, ','))
        return fail_at(json, reterr, json->offset, "a comma or a closing bracket");
    skip_space(json);
    ret->offset = json->offset;
    return in_object(json) ? read_key(json, ret, reterr) : read_value(json, ret, reterr);
}

int det_json_scan(
    struct det_json_scanner *json, struct det_json_token *ret, struct det_error *reterr)
{
    skip_space(json);
    det_assert(json->offset <= json->size && json->depth <= DET_JSON_DEPTH_MAX);
    *ret = (struct det_json_token){ .offset = json->offset };
    switch (json->place) {
    case DET_JSON_AT_FIRST_ELEMENT:
    case DET_JSON_AT_FIRST_MEMBER:
        if (peek_byte(json) == (in_object(json) ? '}' : ']')) {
            close_bracket(json, ret);
            return 0;
        }
        return in_object(json) ? read_key(json, ret, reterr) : read_value(json, ret, reterr);
    case DET_JSON_AT_VALUE:
        return read_value(json, ret, reterr);
    case DET_JSON_AFTER_VALUE:
        break;
    }
    return read_after(json, ret, reterr);
}

static size_t encode_utf8(uint32_t code, char target[4])
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    if (size == 1) {
        target[0] = (char)code;
        return 1;
    }
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        target[i] = (char)(0x80 | (code & 0x3f));
    target[0] = (char)((0xf00u >> size & 0xf0u) | code);
    return size;
}

/* Converts one valid escape, starting at its backslash; returns the number of bytes read. */
static size_t unescape_one(const char *text, char target[4], size_t *ret_size)
{
    static const char names[] = "bfnrt", codes[] = "\b\f\n\r\t";
    const char *known = strchr(names, text[1]);
    int32_t code, low;

    if (text[1] != 'u') {
        target[0] = text[1];
        if (known)
            target[0] = codes[known - names];
        *ret_size = 1;
        return 2;
    }
    code = hex_code(text + 2, 4);
    det_assert(code >= 0 && !is_low_surrogate(code));
    if (!is_high_surrogate(code)) {
        *ret_size = encode_utf8((uint32_t)code, target);
        return 6;
    }
    low = hex_code(text + 8, 4);
    det_assert(is_low_surrogate(low));
    *ret_size = encode_utf8((uint32_t)(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)), target);
    return 12;
}

size_t det_json_unescape(struct det_view escaped, char *target, size_t capacity)
{
    size_t used = 0, size;
    char one[4];

    for (size_t i = 0; i < escaped.size;) {
        if (escaped.data[i] == '\\') {
            i += unescape_one(escaped.data + i, one, &size);
        } else {
            one[0] = escaped.data[i++];
            size = 1;
        }
        for (size_t k = 0; k < size; k++, used++)
            if (used < capacity)
                target[used] = one[k];
    }
    return used;
}

bool det_json_text_is(struct det_view escaped, const char *text)
{
    char copy[DET_NAME_MAX];
    size_t size;

    if (!memchr(escaped.data, '\\', escaped.size))
        return det_view_is(escaped, text);
    size = det_json_unescape(escaped, copy, sizeof copy);
    return size <= sizeof copy && det_view_is(det_view_of(copy, size), text);
}

int det_json_integer(struct det_view number, bool *ret_negative, uint64_t *ret)
{
    bool is_negative = number.size > 0 && number.data[0] == '-';
    struct det_view digits = { number.data + is_negative, number.size - is_negative };
    int r;

    for (size_t i = 0; i < digits.size; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return DET_ERR_TYPE;
    r = det_parse_u64(digits, ret);
    if (r < 0)
        return DET_ERR_RANGE;
    *ret_negative = is_negative;
    return 0;
}
