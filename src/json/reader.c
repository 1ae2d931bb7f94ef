/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reader.c - builds the tree of values from the tokens, with a stack instead of recursion.
 *
 *     open:  { "a": [ . ] }       open[0] the object, open[1] the array; last[1] its newest element
 *
 * Invariants:
 *   1. depth is that of the scanner.
 *   2. A key is pending exactly between the token KEY and its value. */
#include "json/reader.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "record/field_value.h"

/* Objects with fewer members are searched from the front. */
#define INDEX_MIN 16

struct reader {
    struct det_arena *arena;
    struct det_view text;
    struct det_json_scanner scanner;
    struct det_json_token token;
    struct det_error *reterr;
    struct det_json_value *open[DET_JSON_DEPTH_MAX], *last[DET_JSON_DEPTH_MAX];
    unsigned depth;
    struct det_view key;
    struct det_json_value *root;
    size_t value_count;
};

static int no_memory(struct reader *reader)
{
    return det_error_set(reader->reterr, DET_ERR_NO_MEMORY, "out of memory");
}

static int unescape(struct reader *reader, struct det_view escaped, struct det_view *ret)
{
    size_t size = det_json_unescape(escaped, NULL, 0);
    char *copy = det_arena_alloc(reader->arena, size + 1);

    if (!copy)
        return no_memory(reader);
    det_json_unescape(escaped, copy, size);
    *ret = det_view_of(copy, size);
    return 0;
}

static int take_key(struct reader *reader)
{
    struct det_view key = reader->token.text;

    if (memchr(key.data, '\\', key.size))
        return unescape(reader, key, &reader->key);
    reader->key = key;
    return 0;
}

static void link_value(struct reader *reader, struct det_json_value *value)
{
    unsigned top = reader->depth - 1;
    struct det_json_value *parent;

    if (reader->depth == 0) {
        reader->root = value;
        return;
    }
    parent = reader->open[top];
    det_assert((parent->kind == DET_JSON_OBJECT) == (reader->key.data != NULL));
    value->key = reader->key;
    reader->key = (struct det_view){ 0 };
    if (reader->last[top])
        reader->last[top]->next = value;
    else
        parent->first = value;
    reader->last[top] = value;
    parent->count++;
}

static int add_value(struct reader *reader)
{
    const struct det_json_token *token = &reader->token;
    struct det_json_value *value;

    if (reader->value_count++ == DET_JSON_VALUES_MAX)
        return DET_FAIL_AT(
            reader->reterr, DET_ERR_LIMIT, token->offset, "the JSON has more than %d values",
            DET_JSON_VALUES_MAX);
    value = det_arena_alloc(reader->arena, sizeof *value);
    if (!value)
        return no_memory(reader);
    value->kind = token->kind;
    value->raw.data = reader->text.data + token->offset;
    value->raw.size = reader->scanner.offset - token->offset;
    link_value(reader, value);
    if (token->kind == DET_JSON_OBJECT || token->kind == DET_JSON_ARRAY) {
        reader->last[reader->depth] = NULL;
        reader->open[reader->depth++] = value;
        det_assert(reader->depth == reader->scanner.depth);
    }
    if (token->kind == DET_JSON_STRING)
        return unescape(reader, token->text, &value->text);
    value->text = token->text;
    return 0;
}

static size_t index_size(const struct det_json_value *object)
{
    size_t size = 64;

    while (size < 2 * (size_t)object->count)
        size *= 2;
    return size;
}

/* Returns the slot of the key in the index, or the free slot where it belongs. The seed is the
 * address of the object: a sender cannot choose keys that collide. */
static const struct det_json_value **find_slot(
    const struct det_json_value *object, struct det_view key)
{
    size_t mask = index_size(object) - 1;
    size_t i = (size_t)det_hash64(key.data, key.size, (uintptr_t)object) & mask;

    while (object->index[i] && !det_view_equal(object->index[i]->key, key))
        i = (i + 1) & mask;
    return &object->index[i];
}

static const struct det_json_value *find_before(
    const struct det_json_value *object, struct det_view key, const struct det_json_value *end)
{
    for (const struct det_json_value *value = object->first; value != end; value = value->next) {
        if (det_view_equal(value->key, key))
            return value;
    }
    return NULL;
}

static int fail_duplicate(struct reader *reader, const struct det_json_value *value)
{
    struct det_view key = value->key;

    return DET_FAIL_AT(
        reader->reterr, DET_ERR_DUPLICATE_FIELD, (size_t)(value->raw.data - reader->text.data),
        "duplicate key '%.*s'", (int)(key.size < 60 ? key.size : 60), key.data);
}

/* Different readers of an object with duplicate keys may read different values. */
static int check_keys(struct reader *reader, struct det_json_value *object)
{
    if (object->count >= INDEX_MIN) {
        object->index =
            det_arena_array(reader->arena, index_size(object), sizeof(struct det_json_value *));
        if (!object->index)
            return no_memory(reader);
    }
    DET_JSON_EACH (value, object) {
        const struct det_json_value **slot = object->index ? find_slot(object, value->key) : NULL;

        if (slot ? *slot != NULL : find_before(object, value->key, value) != NULL)
            return fail_duplicate(reader, value);
        if (slot)
            *slot = value;
    }
    return 0;
}

static int close_value(struct reader *reader)
{
    struct det_json_value *value = reader->open[--reader->depth];

    value->raw.size = reader->scanner.offset - (size_t)(value->raw.data - reader->text.data);
    return value->kind == DET_JSON_OBJECT ? check_keys(reader, value) : 0;
}

static int take_token(struct reader *reader)
{
    switch (reader->token.kind) {
    case DET_JSON_KEY:
        return take_key(reader);
    case DET_JSON_OBJECT_END:
    case DET_JSON_ARRAY_END:
        return close_value(reader);
    case DET_JSON_OBJECT:
    case DET_JSON_ARRAY:
    case DET_JSON_STRING:
    case DET_JSON_NUMBER:
    case DET_JSON_TRUE:
    case DET_JSON_FALSE:
    case DET_JSON_NULL:
        return add_value(reader);
    case DET_JSON_END:
        break;
    }
    return 0;
}

int det_json_read(
    struct det_arena *arena, struct det_view text, const struct det_json_value **ret,
    struct det_error *reterr)
{
    struct reader reader = { .arena = arena, .text = text, .reterr = reterr };
    int r;

    if (text.size > DET_JSON_SIZE_MAX)
        return DET_FAIL_AT(
            reterr, DET_ERR_LIMIT, DET_JSON_SIZE_MAX, "the JSON has more than %d bytes",
            DET_JSON_SIZE_MAX);
    det_json_scanner_init(&reader.scanner, text.data, text.size);
    do {
        r = det_json_scan(&reader.scanner, &reader.token, reterr);
        if (r == 0)
            r = take_token(&reader);
    } while (r == 0 && reader.token.kind != DET_JSON_END);
    if (r < 0)
        return r;
    det_assert(reader.root && reader.depth == 0);
    *ret = reader.root;
    return 0;
}

const struct det_json_value *det_json_get(const struct det_json_value *object, const char *key)
{
    struct det_view view = det_view_text(key);

    if (!det_json_is(object, DET_JSON_OBJECT))
        return NULL;
    return object->index ? *find_slot(object, view) : find_before(object, view, NULL);
}

const char *det_json_value_text(const struct det_json_value *value)
{
    if (!det_json_is(value, DET_JSON_STRING) || memchr(value->text.data, 0, value->text.size))
        return NULL;
    return value->text.data;
}

static int read_integer(
    const struct det_json_value *value, bool *ret_is_negative, uint64_t *ret_number)
{
    return det_json_is(value, DET_JSON_NUMBER)
               ? det_json_integer(value->text, ret_is_negative, ret_number)
               : DET_ERR_TYPE;
}

int det_json_value_u64(const struct det_json_value *value, uint64_t *ret)
{
    bool is_negative = false;
    uint64_t number = 0;
    int r;

    r = read_integer(value, &is_negative, &number);
    if (r < 0)
        return r;
    if (is_negative && number)
        return DET_ERR_RANGE;
    *ret = number;
    return 0;
}

int det_json_value_i64(const struct det_json_value *value, int64_t *ret)
{
    bool is_negative = false;
    uint64_t number = 0;
    int r;

    r = read_integer(value, &is_negative, &number);
    if (r < 0)
        return r;
    if (number > (uint64_t)INT64_MAX + is_negative)
        return DET_ERR_RANGE;
    *ret = (int64_t)(is_negative ? 0 - number : number);
    return 0;
}

int det_json_value_time(const struct det_json_value *value, det_time *ret)
{
    return det_json_is(value, DET_JSON_STRING) ? det_parse_time(value->text, ret) : DET_ERR_TYPE;
}

const char *det_json_get_text(const struct det_json_value *object, const char *key)
{
    return det_json_value_text(det_json_get(object, key));
}

uint64_t det_json_get_number(const struct det_json_value *object, const char *key)
{
    uint64_t number = 0;

    return det_json_value_u64(det_json_get(object, key), &number) < 0 ? 0 : number;
}

int64_t det_json_get_signed(const struct det_json_value *object, const char *key)
{
    int64_t number = 0;

    return det_json_value_i64(det_json_get(object, key), &number) < 0 ? 0 : number;
}

bool det_json_get_bool(const struct det_json_value *object, const char *key)
{
    return det_json_is(det_json_get(object, key), DET_JSON_TRUE);
}

det_time det_json_get_time(const struct det_json_value *object, const char *key)
{
    det_time at = 0;

    return det_json_value_time(det_json_get(object, key), &at) < 0 ? 0 : at;
}
