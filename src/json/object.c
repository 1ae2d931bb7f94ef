/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* object.c - takes JSON objects apart. */
#include "json/object.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY_MAX 64

/* Where a value ends: its first token was read, and what is open is closed. */
static int skip_value(
    struct det_json_scanner *json, struct det_json_token *token, size_t *ret_end,
    struct det_error *reterr)
{
    unsigned depth = json->depth;
    int r = 0;

    if (token->kind == DET_JSON_OBJECT || token->kind == DET_JSON_ARRAY) {
        while (r == 0 && json->depth >= depth)
            r = det_json_scan(json, token, reterr);
    }
    *ret_end = json->offset;
    return r;
}

/* Whether two keys are the same text, however each is escaped. A longer one that is escaped is none
 * of ours: it is compared as it stands. */
static bool is_same_key(struct det_view a, struct det_view b)
{
    char one[KEY_MAX], other[KEY_MAX];
    size_t size;

    if (det_view_equal(a, b))
        return true;
    if (!memchr(a.data, '\\', a.size) && !memchr(b.data, '\\', b.size))
        return false;
    size = det_json_unescape(a, one, sizeof one);
    return size <= sizeof one && det_json_unescape(b, other, sizeof other) == size &&
           memcmp(one, other, size) == 0;
}

/* Two readers of an object with duplicate keys may see two objects. */
static int check_key(
    const struct det_json_object *members, const struct det_json_member *member,
    struct det_error *reterr)
{
    for (size_t i = 0; i < members->count; i++) {
        if (is_same_key(members->items[i].key, member->key))
            return det_error_set(
                reterr, DET_ERR_DUPLICATE_FIELD, "duplicate key '%.*s'",
                (int)(member->key.size < 60 ? member->key.size : 60), member->key.data);
    }
    return 0;
}

static int take_member(
    struct det_json_object *members, struct det_json_scanner *json, struct det_view text,
    struct det_json_token *token, struct det_error *reterr)
{
    struct det_json_member *member = &members->items[members->count];
    size_t end = 0;
    int r;

    if (members->count == DET_JSON_MEMBERS_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "it has more than %d members", DET_JSON_MEMBERS_MAX);
    member->key = token->text;
    r = check_key(members, member, reterr);
    if (r < 0)
        return r;
    r = det_json_scan(json, token, reterr);
    if (r < 0)
        return r;
    member->kind = token->kind;
    member->text = token->text;
    member->raw.data = text.data + token->offset;
    r = skip_value(json, token, &end, reterr);
    member->raw.size = end - (size_t)(member->raw.data - text.data);
    members->count++;
    return r;
}

int det_json_object_read(
    struct det_json_object *members, struct det_arena *arena, struct det_view text,
    struct det_error *reterr)
{
    struct det_json_token token;
    struct det_json_scanner json;
    int r;

    *members = (struct det_json_object){ .arena = arena };
    det_json_scanner_init(&json, text.data, text.size);
    r = det_json_scan(&json, &token, reterr);
    if (r == 0 && token.kind != DET_JSON_OBJECT)
        return det_error_set(reterr, DET_ERR_MALFORMED, "it is no object");
    while (r == 0) {
        r = det_json_scan(&json, &token, reterr);
        if (r < 0 || token.kind != DET_JSON_KEY)
            break;
        r = take_member(members, &json, text, &token, reterr);
    }
    return r < 0 ? r : det_json_scan(&json, &token, reterr);
}

const struct det_json_member *det_json_object_find(
    const struct det_json_object *members, const char *key)
{
    for (size_t i = 0; i < members->count; i++) {
        if (det_json_text_is(members->items[i].key, key))
            return &members->items[i];
    }
    return NULL;
}

void det_json_object_fail(struct det_json_object *members, const char *key)
{
    if (!members->wrong[0])
        snprintf(members->wrong, sizeof members->wrong, "%s", key);
}

static const struct det_json_member *want(
    struct det_json_object *members, const char *key, enum det_json_kind kind)
{
    const struct det_json_member *member = det_json_object_find(members, key);

    if (member && member->kind == kind)
        return member;
    det_json_object_fail(members, key);
    return NULL;
}

static const char *copy_text(
    struct det_json_object *members, const char *key, const struct det_json_member *member)
{
    size_t size = det_json_unescape(member->text, NULL, 0);
    char *copy = det_arena_alloc(members->arena, size + 1);

    if (!copy) {
        members->has_failed = true;
        return "";
    }
    det_json_unescape(member->text, copy, size);
    /* No text of ours has a 0 inside. */
    if (strlen(copy) != size)
        det_json_object_fail(members, key);
    return copy;
}

const char *det_json_object_text(struct det_json_object *members, const char *key)
{
    const struct det_json_member *member = want(members, key, DET_JSON_STRING);

    return member ? copy_text(members, key, member) : "";
}

const char *det_json_object_text_or_null(struct det_json_object *members, const char *key)
{
    const struct det_json_member *member = det_json_object_find(members, key);

    if (!member || member->kind == DET_JSON_NULL)
        return NULL;
    return det_json_object_text(members, key);
}

uint64_t det_json_object_number(struct det_json_object *members, const char *key)
{
    const struct det_json_member *member = want(members, key, DET_JSON_NUMBER);
    bool is_negative = false;
    uint64_t number = 0;

    if (member && (det_json_integer(member->text, &is_negative, &number) < 0 || is_negative)) {
        det_json_object_fail(members, key);
        return 0;
    }
    return number;
}

int64_t det_json_object_signed(struct det_json_object *members, const char *key)
{
    const struct det_json_member *member = want(members, key, DET_JSON_NUMBER);
    bool is_negative = false;
    uint64_t number = 0;

    if (member &&
        (det_json_integer(member->text, &is_negative, &number) < 0 || number > INT64_MAX)) {
        det_json_object_fail(members, key);
        return 0;
    }
    return is_negative ? -(int64_t)number : (int64_t)number;
}

bool det_json_object_bool(struct det_json_object *members, const char *key)
{
    const struct det_json_member *member = det_json_object_find(members, key);

    if (!member || (member->kind != DET_JSON_TRUE && member->kind != DET_JSON_FALSE)) {
        det_json_object_fail(members, key);
        return false;
    }
    return member->kind == DET_JSON_TRUE;
}

det_time det_json_object_time(struct det_json_object *members, const char *key)
{
    const char *text = det_json_object_text(members, key);
    det_time at = 0;

    if (!*text || det_parse_time(det_view_text(text), &at) < 0)
        det_json_object_fail(members, key);
    return at;
}

int det_json_object_each(
    struct det_json_object *members, const char *key, det_json_element_fn *each, void *context)
{
    const struct det_json_member *member = want(members, key, DET_JSON_ARRAY);
    struct det_json_token token;
    struct det_json_scanner json;
    int r = 0;

    if (!member)
        return 0;
    det_json_scanner_init(&json, member->raw.data, member->raw.size);
    r = det_json_scan(&json, &token, NULL);
    while (r == 0) {
        size_t from, end = 0;

        r = det_json_scan(&json, &token, NULL);
        if (r < 0 || token.kind == DET_JSON_ARRAY_END)
            break;
        from = token.offset;
        r = skip_value(&json, &token, &end, NULL);
        if (r == 0)
            r = each(context, det_view_of(member->raw.data + from, end - from));
    }
    return r;
}
