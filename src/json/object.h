/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* object.h - a JSON object as its members, read strictly and without a tree: what a record is
 * made of stays text, since the record reads it best. */
#ifndef DET_JSON_OBJECT_H
#define DET_JSON_OBJECT_H

#include "base/arena.h"
#include "record/json.h"

#define DET_JSON_MEMBERS_MAX 32

struct det_json_member {
    struct det_view key;     /* still escaped */
    enum det_json_kind kind; /* of the first token of its value */
    struct det_view raw;     /* the whole value */
    struct det_view text;    /* of a string or a number */
};

struct det_json_object {
    struct det_json_member items[DET_JSON_MEMBERS_MAX];
    size_t count;
    struct det_arena *arena; /* where texts are put */
    /* The first thing that was asked for and is not right; later ones do not count. */
    char wrong[64];
    bool has_failed; /* no memory */
};

/* Reads one object, the whole text. 0, or DET_ERR_MALFORMED and others of the reader; DET_ERR_LIMIT
 * when it has too many members; DET_ERR_DUPLICATE_FIELD when a key occurs twice, also when it is
 * escaped in two ways. */
DET_MUST_CHECK int det_json_object_read(
    struct det_json_object *members, struct det_arena *arena, struct det_view text,
    struct det_error *reterr);
/* NULL when there is none. */
const struct det_json_member *det_json_object_find(
    const struct det_json_object *members, const char *key);

/* Values by key. What is missing or of another kind makes the object wrong, and is zero; `or_null`
 * texts may be null, or not there. */
const char *det_json_object_text(struct det_json_object *members, const char *key);
const char *det_json_object_text_or_null(struct det_json_object *members, const char *key);
uint64_t det_json_object_number(struct det_json_object *members, const char *key);
int64_t det_json_object_signed(struct det_json_object *members, const char *key);
bool det_json_object_bool(struct det_json_object *members, const char *key);
det_time det_json_object_time(struct det_json_object *members, const char *key);

/* The elements of an array, in order; stops at the first answer that is not 0, and returns it. */
typedef int det_json_element_fn(void *context, struct det_view element);
DET_MUST_CHECK int det_json_object_each(
    struct det_json_object *members, const char *key, det_json_element_fn *each, void *context);
/* Says that a member is wrong. */
void det_json_object_fail(struct det_json_object *members, const char *key);

#endif
