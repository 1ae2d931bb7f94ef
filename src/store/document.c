/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document.c - parses the top-level fields of a document.
 *
 * A document is read once, token by token, into canonical bytes that are equal when the values are:
 *
 *     null true false     '0' 't' 'f'
 *     -12.50              'n' '-' "125" 'e' -1 END        digits without outer zeros, and 8 bytes
 *                                                         of exponent
 *     0                   'n' '0' END
 *     "text"              '"' the text without escapes END
 *     [1,2]               '[' each ']'
 *     {"b":1,"a":2}       '{' each name, END, value '}'   in the order of the names
 *
 * END is a byte that no text has. When an object ends, its members are sorted; two equal
 * neighbours are a duplicate key. */
#include "store/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/json.h"

#define END          ((char)0xff) /* never in UTF-8 */
#define CAPACITY_MIN 16u
#define EXPONENT_MAX 1000000000000000 /* larger exponents are compared as text */

/* A walk through a document. */
struct reading {
    struct det_document_fields *fields;
    const char *text;
    unsigned depth;
    /* For each open object or array: the start of its bytes, and for an object its first member. */
    struct {
        size_t place, first;
        bool is_object;
    } open[DET_JSON_DEPTH_MAX + 1];
};

void det_document_fields_init(
    struct det_document_fields *fields, const struct det_allocator *allocator)
{
    *fields = (struct det_document_fields){ .allocator = allocator };
    det_buffer_init(&fields->canonical, allocator);
    det_buffer_init(&fields->scratch, allocator);
}

void det_document_fields_deinit(struct det_document_fields *fields)
{
    det_buffer_deinit(&fields->canonical);
    det_buffer_deinit(&fields->scratch);
    if (fields->items)
        DET_DELETE_ARRAY(fields->allocator, fields->items, fields->capacity);
}

/* Values. */

static void put_string(struct det_buffer *canonical, struct det_view escaped)
{
    size_t size;
    char *target;

    if (!memchr(escaped.data, '\\', escaped.size)) {
        det_buffer_append(canonical, escaped.data, escaped.size);
        det_buffer_append_char(canonical, END);
        return;
    }
    size = det_json_unescape(escaped, NULL, 0);
    target = det_buffer_extend(canonical, size);
    if (target)
        (void)det_json_unescape(escaped, target, size);
    det_buffer_append_char(canonical, END);
}

/* A valid number: digits before and after the point, and the exponent. */
struct number {
    struct det_view whole, fraction;
    int64_t exponent;
    bool is_negative, is_huge;
};

static size_t count_digits(const char *text, const char *end)
{
    size_t count = 0;

    while (text + count < end && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

static void read_exponent(struct number *number, const char *text, const char *end)
{
    bool is_negative = text < end && *text == '-';

    if (text < end && (*text == '-' || *text == '+'))
        text++;
    for (; text < end; text++) {
        if (number->exponent < EXPONENT_MAX)
            number->exponent = number->exponent * 10 + (*text - '0');
    }
    number->is_huge = number->exponent >= EXPONENT_MAX;
    if (is_negative)
        number->exponent = -number->exponent;
}

static struct number read_number(struct det_view text)
{
    const char *place = text.data, *end = text.data + text.size;
    struct number number = { .is_negative = *place == '-' };

    place += number.is_negative;
    number.whole = det_view_of(place, count_digits(place, end));
    place += number.whole.size;
    if (place < end && *place == '.') {
        place++;
        number.fraction = det_view_of(place, count_digits(place, end));
        place += number.fraction.size;
    }
    if (place < end)
        read_exponent(&number, place + 1, end);
    return number;
}

/* Removes leading and trailing zeros; removed trailing zeros increase the exponent. */
static void trim_number(struct number *number)
{
    struct det_view *whole = &number->whole, *fraction = &number->fraction;

    while (fraction->size && fraction->data[fraction->size - 1] == '0')
        fraction->size--;
    number->exponent -= (int64_t)fraction->size;
    for (; !fraction->size && whole->size && whole->data[whole->size - 1] == '0'; whole->size--)
        number->exponent++;
    for (; whole->size && *whole->data == '0'; whole->size--)
        whole->data++;
    for (; !whole->size && fraction->size && *fraction->data == '0'; fraction->size--)
        fraction->data++;
}

static void put_number(struct det_buffer *canonical, struct det_view text)
{
    struct number number = read_number(text);

    trim_number(&number);
    det_buffer_append_char(canonical, 'n');
    if (!number.whole.size && !number.fraction.size) {
        det_buffer_append_char(canonical, '0');
    } else if (number.is_huge) {
        det_buffer_append(canonical, text.data, text.size);
    } else {
        det_buffer_append_char(canonical, number.is_negative ? '-' : '+');
        det_buffer_append(canonical, number.whole.data, number.whole.size);
        if (number.fraction.size)
            det_buffer_append(canonical, number.fraction.data, number.fraction.size);
        det_buffer_append_char(canonical, 'e');
        det_buffer_append(canonical, &number.exponent, sizeof number.exponent);
    }
    det_buffer_append_char(canonical, END);
}

/* Members. */

static struct det_document_field *add_field(struct det_document_fields *fields)
{
    size_t capacity = fields->capacity ? fields->capacity * 2 : CAPACITY_MIN;
    struct det_document_field *items;

    if (fields->count == fields->capacity) {
        items = det_realloc(
            fields->allocator, fields->items, fields->capacity * sizeof *items,
            capacity * sizeof *items);
        if (!items)
            return NULL;
        fields->items = items;
        fields->capacity = capacity;
    }
    return &fields->items[fields->count++];
}

static int put_key(struct reading *reading, struct det_view key)
{
    struct det_document_fields *fields = reading->fields;
    struct det_document_field *field = add_field(fields);

    if (!field)
        return DET_ERR_NO_MEMORY;
    *field = (struct det_document_field){ .key = key, .place = fields->canonical.size };
    put_string(&fields->canonical, key);
    if (det_buffer_status(&fields->canonical) < 0)
        return DET_ERR_NO_MEMORY;
    /* Without END, so that a prefix sorts first. */
    field->key_size = fields->canonical.size - field->place - 1;
    return 0;
}

/* Notes where a value begins or ends in the text, if it is the value of the newest member. */
static void value_begins(struct reading *reading, size_t offset)
{
    struct det_document_fields *fields = reading->fields;

    if (reading->depth && reading->open[reading->depth - 1].is_object)
        fields->items[fields->count - 1].value.data = reading->text + offset;
}

static void value_ends(struct reading *reading, size_t offset)
{
    struct det_document_fields *fields = reading->fields;
    struct det_document_field *field;

    if (!reading->depth || !reading->open[reading->depth - 1].is_object)
        return;
    field = &fields->items[fields->count - 1];
    field->value.size = (size_t)(reading->text + offset - field->value.data);
    field->size = fields->canonical.size - field->place;
}

static int by_key(const void *left, const void *right)
{
    const struct det_document_field *a = left, *b = right;

    return det_document_compare_bytes(a->bytes, a->key_size, b->bytes, b->key_size);
}

/* True if the fields were already sorted. */
static bool sort_fields(struct det_document_fields *fields, size_t first)
{
    bool is_sorted = true;

    for (size_t i = first; i < fields->count; i++) {
        fields->items[i].bytes = fields->canonical.data + fields->items[i].place;
        if (i > first && by_key(&fields->items[i - 1], &fields->items[i]) > 0)
            is_sorted = false;
    }
    if (!is_sorted)
        qsort(fields->items + first, fields->count - first, sizeof *fields->items, by_key);
    return is_sorted;
}

static int find_double(
    const struct det_document_fields *fields, size_t first, struct det_error *reterr)
{
    for (size_t i = first + 1; i < fields->count; i++) {
        const struct det_document_field *field = &fields->items[i];

        if (by_key(field - 1, field) == 0)
            return det_error_set(
                reterr, DET_ERR_INVALID, "duplicate field \"%.*s\"",
                field->key.size < 100 ? (int)field->key.size : 100, field->key.data);
    }
    return 0;
}

/* Moves the bytes of the members, which begin at `place`, into the order of the members. */
static int move_bytes(struct det_document_fields *fields, size_t first, size_t place)
{
    char *target = fields->canonical.data + place;
    int r;

    det_buffer_clear(&fields->scratch);
    for (size_t i = first; i < fields->count; i++)
        det_buffer_append(&fields->scratch, fields->items[i].bytes, fields->items[i].size);
    r = det_buffer_status(&fields->scratch);
    if (r < 0)
        return r;
    memcpy(target, fields->scratch.data, fields->scratch.size);
    for (size_t i = first; i < fields->count; i++) {
        fields->items[i].place = place;
        place += fields->items[i].size;
    }
    return 0;
}

/* Ends an object: of a nested one only the bytes are kept. */
static int end_object(struct reading *reading, size_t offset, struct det_error *reterr)
{
    struct det_document_fields *fields = reading->fields;
    size_t first = reading->open[reading->depth - 1].first;
    size_t place = reading->open[reading->depth - 1].place;
    bool is_sorted;
    int r;

    r = det_buffer_status(&fields->canonical);
    if (r < 0)
        return r;
    is_sorted = sort_fields(fields, first);
    r = find_double(fields, first, reterr);
    if (r == 0 && !is_sorted)
        r = move_bytes(fields, first, place);
    reading->depth--;
    if (reading->depth)
        fields->count = first;
    det_buffer_append_char(&fields->canonical, '}');
    value_ends(reading, offset + 1);
    return r;
}

/* Reading. */

static void open_one(struct reading *reading, const struct det_json_token *token)
{
    struct det_document_fields *fields = reading->fields;
    bool is_object = token->kind == DET_JSON_OBJECT;

    value_begins(reading, token->offset);
    det_buffer_append_char(&fields->canonical, is_object ? '{' : '[');
    reading->open[reading->depth].is_object = is_object;
    reading->open[reading->depth].place = fields->canonical.size;
    reading->open[reading->depth++].first = fields->count;
    if (reading->depth > fields->depth)
        fields->depth = reading->depth;
}

static void end_array(struct reading *reading, size_t offset)
{
    reading->depth--;
    det_buffer_append_char(&reading->fields->canonical, ']');
    value_ends(reading, offset + 1);
}

static void put_scalar(struct reading *reading, const struct det_json_token *token)
{
    struct det_buffer *canonical = &reading->fields->canonical;
    size_t end = token->offset + token->text.size;

    value_begins(reading, token->offset);
    if (token->kind == DET_JSON_STRING) {
        det_buffer_append_char(canonical, '"');
        put_string(canonical, token->text);
        end += 2;
    } else if (token->kind == DET_JSON_NUMBER) {
        put_number(canonical, token->text);
    } else {
        bool is_true = token->kind == DET_JSON_TRUE, is_null = token->kind == DET_JSON_NULL;

        det_buffer_append_char(canonical, is_true ? 't' : is_null ? '0' : 'f');
        end = token->offset + (is_true || is_null ? 4 : 5);
    }
    value_ends(reading, end);
}

static int take_token(
    struct reading *reading, const struct det_json_token *token, struct det_error *reterr)
{
    if (!reading->depth && token->kind != DET_JSON_OBJECT)
        return det_error_set(
            reterr, DET_ERR_INVALID, "not a JSON object; write {\"name\": value, ...}");
    switch (token->kind) {
    case DET_JSON_OBJECT:
    case DET_JSON_ARRAY:
        open_one(reading, token);
        return 0;
    case DET_JSON_OBJECT_END:
        return end_object(reading, token->offset, reterr);
    case DET_JSON_ARRAY_END:
        end_array(reading, token->offset);
        return 0;
    case DET_JSON_KEY:
        return put_key(reading, token->text);
    case DET_JSON_STRING:
    case DET_JSON_NUMBER:
    case DET_JSON_TRUE:
    case DET_JSON_FALSE:
    case DET_JSON_NULL:
        put_scalar(reading, token);
        return 0;
    case DET_JSON_END:
        break;
    }
    return 0;
}

int det_document_fields_read(
    struct det_document_fields *fields, const char *text, size_t size, struct det_error *reterr)
{
    struct reading reading = { .fields = fields, .text = text };
    struct det_error error = { 0 };
    struct det_json_token token;
    struct det_json_scanner json;
    int r;

    det_buffer_clear(&fields->canonical);
    det_buffer_clear(&fields->scratch);
    fields->count = 0;
    fields->depth = 0;
    det_json_scanner_init(&json, text, size);
    while ((r = det_json_scan(&json, &token, &error)) == 0 && token.kind != DET_JSON_END) {
        r = take_token(&reading, &token, reterr);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "not JSON, at byte %zu: %s", error.offset, error.text);
    return det_buffer_status(&fields->canonical);
}

bool det_document_fields_equal(
    const struct det_document_fields *left, const struct det_document_fields *right)
{
    return left->canonical.size == right->canonical.size &&
           memcmp(left->canonical.data, right->canonical.data, left->canonical.size) == 0;
}
