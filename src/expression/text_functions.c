/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_functions.c - functions of texts. What they make is in the scratch until the next
 * evaluation. Texts may be any bytes: nothing is read outside of them. */
#include <string.h>

#include "expression/functions.h"
#include "record/number.h"

/* Room for a text; NULL: the scratch is full. */
static char *take_room(struct expression_frame *frame, size_t size)
{
    struct det_expression_scratch *scratch = frame->scratch;
    char *room = scratch->text + scratch->used;

    if (size > sizeof scratch->text - scratch->used) {
        frame->reason = "the texts of this evaluation are larger than 16384 bytes";
        return NULL;
    }
    scratch->used += size;
    return room;
}

static int put_text(struct expression_frame *frame, union expression_slot *slot, const char *text)
{
    struct det_view view = det_view_text(text);
    char *room = take_room(frame, view.size);

    if (!room)
        return DET_ERR_LIMIT;
    memcpy(room, view.data, view.size);
    slot->text = det_view_of(room, view.size);
    return 0;
}

/* A text that was made last is extended where it is: long sums of texts are not copied again. */
int det_expression_concatenate(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view a = slots[0].text, b = slots[1].text;
    const char *end = frame->scratch->text + frame->scratch->used;
    bool is_last = a.size > 0 && a.data + a.size == end;
    char *room = take_room(frame, is_last ? b.size : a.size + b.size);

    if (!room)
        return DET_ERR_LIMIT;
    if (is_last)
        room -= a.size;
    else if (a.size > 0)
        memcpy(room, a.data, a.size);
    if (b.size > 0)
        memcpy(room + a.size, b.data, b.size);
    slots[0].text = det_view_of(room, a.size + b.size);
    return 0;
}

static int map_letters(
    struct expression_frame *frame, union expression_slot *slots, char first, char last)
{
    struct det_view text = slots[0].text;
    char *room = take_room(frame, text.size);

    if (!room)
        return DET_ERR_LIMIT;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        /* Upper and lower case differ in one bit. */
        if (c >= first && c <= last)
            c ^= 0x20;
        room[i] = c;
    }
    slots[0].text.data = room;
    return 0;
}

int det_expression_call_lower(struct expression_frame *frame, union expression_slot *slots)
{
    return map_letters(frame, slots, 'A', 'Z');
}

int det_expression_call_upper(struct expression_frame *frame, union expression_slot *slots)
{
    return map_letters(frame, slots, 'a', 'z');
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int det_expression_call_trim(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view *text = &slots[0].text;

    (void)frame;
    while (text->size > 0 && is_blank(text->data[0])) {
        text->data++;
        text->size--;
    }
    while (text->size > 0 && is_blank(text->data[text->size - 1]))
        text->size--;
    return 0;
}

int det_expression_call_starts_with(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view text = slots[0].text, part = slots[1].text;

    (void)frame;
    slots[0].b =
        part.size <= text.size && (part.size == 0 || memcmp(text.data, part.data, part.size) == 0);
    return 0;
}

int det_expression_call_ends_with(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view text = slots[0].text, part = slots[1].text;

    (void)frame;
    slots[0].b =
        part.size <= text.size &&
        (part.size == 0 || memcmp(text.data + text.size - part.size, part.data, part.size) == 0);
    return 0;
}

/* memmem() of two views; its time is linear. */
static const char *find_part(struct det_view text, struct det_view part)
{
    if (part.size == 0)
        return text.data;
    return text.size < part.size ? NULL : memmem(text.data, text.size, part.data, part.size);
}

int det_expression_call_contains(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    slots[0].b = slots[1].text.size == 0 || find_part(slots[0].text, slots[1].text) != NULL;
    return 0;
}

/* The offset of the code point `count` after `from`; the end if there are fewer. */
static size_t skip_points(struct det_view text, size_t from, uint64_t count)
{
    while (from < text.size && count > 0) {
        from++;
        while (from < text.size && ((unsigned char)text.data[from] & 0xC0) == 0x80)
            from++;
        count--;
    }
    return from;
}

int det_expression_call_substring(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view text = slots[0].text;
    size_t start, end;

    if (slots[1].w.high < 0 || slots[2].w.high < 0) {
        frame->reason = "a position and a count are not negative";
        return DET_ERR_RANGE;
    }
    start = skip_points(text, 0, slots[1].w.low);
    end = skip_points(text, start, slots[2].w.low);
    slots[0].text = det_view_of(text.data + start, end - start);
    return 0;
}

/* An empty part is nowhere. */
int det_expression_call_replace(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view rest = slots[0].text, part = slots[1].text, by = slots[2].text;
    size_t start = frame->scratch->used, before;
    const char *found;
    char *room;

    while (part.size > 0 && (found = find_part(rest, part)) != NULL) {
        before = (size_t)(found - rest.data);
        room = take_room(frame, before + by.size);
        if (!room)
            return DET_ERR_LIMIT;
        memcpy(room, rest.data, before);
        if (by.size > 0)
            memcpy(room + before, by.data, by.size);
        rest = det_view_of(found + part.size, rest.size - before - part.size);
    }
    if (frame->scratch->used == start && rest.size == slots[0].text.size)
        return 0;
    room = take_room(frame, rest.size);
    if (!room)
        return DET_ERR_LIMIT;
    if (rest.size > 0)
        memcpy(room, rest.data, rest.size);
    slots[0].text = det_view_of(frame->scratch->text + start, frame->scratch->used - start);
    return 0;
}

int det_expression_call_hex(struct expression_frame *frame, union expression_slot *slots)
{
    static const char digits[] = "0123456789abcdef";
    struct det_view bytes = slots[0].text;
    char *room = take_room(frame, 2 * bytes.size);

    if (!room)
        return DET_ERR_LIMIT;
    for (size_t i = 0; i < bytes.size; i++) {
        room[2 * i] = digits[(unsigned char)bytes.data[i] >> 4];
        room[2 * i + 1] = digits[(unsigned char)bytes.data[i] & 15];
    }
    slots[0].text = det_view_of(room, 2 * bytes.size);
    return 0;
}

int det_expression_length_text(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view text = slots[0].text;
    int64_t count = 0;

    (void)frame;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    expression_set_int(&slots[0], count);
    return 0;
}

int det_expression_length_bytes(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    expression_set_int(&slots[0], (int64_t)slots[0].text.size);
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int det_expression_call_parse_int(struct expression_frame *frame, union expression_slot *slots)
{
    struct det_view text = slots[0].text;
    uint64_t natural;
    int64_t integer;

    frame->reason = "the text is not an int";
    if (det_parse_u64(text, &natural) == 0)
        expression_set_wide(&slots[0], natural);
    else if (det_parse_i64(text, &integer) == 0)
        expression_set_int(&slots[0], integer);
    else
        return 1;
    return 0;
}

/* Skips digits; false: there are none. */
static bool skip_digits(struct det_view text, size_t *at)
{
    size_t start = *at;

    while (*at < text.size && is_digit(text.data[*at]))
        ++*at;
    return *at > start;
}

/* Whether it is [-]digits[.digits][e[+-]digits]. */
static bool is_float(struct det_view text)
{
    size_t at = 0;

    if (at < text.size && text.data[at] == '-')
        at++;
    if (!skip_digits(text, &at))
        return false;
    if (at < text.size && text.data[at] == '.') {
        at++;
        if (!skip_digits(text, &at))
            return false;
    }
    if (at < text.size && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at++;
        if (at < text.size && (text.data[at] == '+' || text.data[at] == '-'))
            at++;
        if (!skip_digits(text, &at))
            return false;
    }
    return at == text.size;
}

int det_expression_call_parse_float(struct expression_frame *frame, union expression_slot *slots)
{
    frame->reason = "the text is not a float";
    if (!is_float(slots[0].text))
        return 1;
    return det_parse_double(slots[0].text, &slots[0].f) < 0 ? 1 : 0;
}

/* The digits of a number that may need all 64 bits and a sign. */
int det_expression_text_of_int(struct expression_frame *frame, union expression_slot *slots)
{
    char text[32];
    size_t at = sizeof text - 1;
    det_i128 value = expression_wide(&slots[0]);
    uint64_t rest = (uint64_t)(det_u128)(value < 0 ? -value : value);

    text[at] = '\0';
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        text[--at] = '-';
    return put_text(frame, &slots[0], text + at);
}

int det_expression_text_of_float(struct expression_frame *frame, union expression_slot *slots)
{
    char text[DET_DOUBLE_TEXT];

    return put_text(frame, &slots[0], det_format_double(slots[0].f, text));
}

int det_expression_text_of_bool(struct expression_frame *frame, union expression_slot *slots)
{
    return put_text(frame, &slots[0], slots[0].b ? "true" : "false");
}

int det_expression_text_of_time(struct expression_frame *frame, union expression_slot *slots)
{
    char text[DET_TIME_TEXT];

    return put_text(frame, &slots[0], det_format_time(slots[0].i, text, sizeof text));
}

int det_expression_text_of_duration(struct expression_frame *frame, union expression_slot *slots)
{
    char text[DET_DURATION_TEXT];

    return put_text(frame, &slots[0], det_format_duration(slots[0].i, text, sizeof text));
}

/* docs/formats/expression.md has this function: it must never change. */
static uint64_t hash_bytes(const unsigned char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

int det_expression_hash_text(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    expression_set_wide(
        &slots[0], hash_bytes((const unsigned char *)slots[0].text.data, slots[0].text.size));
    return 0;
}

int det_expression_hash_int(struct expression_frame *frame, union expression_slot *slots)
{
    unsigned char bytes[8];

    (void)frame;
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(slots[0].w.low >> (8 * i));
    expression_set_wide(&slots[0], hash_bytes(bytes, sizeof bytes));
    return 0;
}
