/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_object.h - a JSON object as its members, read strictly and without a tree: what a record is
 * made of stays text, since the record reads it best. */
#ifndef DET_JSON_JSON_OBJECT_H
#define DET_JSON_JSON_OBJECT_H

#include "base/arena.h"
#include "record/json.h"

#define MEMBERS_MAX 32

struct member {
    struct det_view key;     /* still escaped */
    enum det_json_kind kind; /* of the first token of its value */
    struct det_view raw;     /* the whole value */
    struct det_view text;    /* of a string or a number */
};

struct members {
    struct member items[MEMBERS_MAX];
    size_t count;
    struct det_arena *arena; /* where texts are put */
    /* The first thing that was asked for and is not right; later ones do not count. */
    char wrong[64];
    bool has_failed; /* no memory */
};

/* Reads one object, the whole text. 0, or DET_ERR_MALFORMED and others of the reader; DET_ERR_LIMIT
 * when it has too many members; DET_ERR_DUPLICATE_FIELD when a key occurs twice, also when it is
 * escaped in two ways. */
DET_MUST_CHECK int members_read(
    struct members *members, struct det_arena *arena, struct det_view text,
    struct det_error *reterr);
/* NULL when there is none. */
const struct member *members_find(const struct members *members, const char *key);

/* Values by key. What is missing or of another kind makes the object wrong, and is zero; `or_null`
 * texts may be null, or not there. */
const char *members_text(struct members *members, const char *key);
const char *members_text_or_null(struct members *members, const char *key);
uint64_t members_number(struct members *members, const char *key);
int64_t members_signed(struct members *members, const char *key);
bool members_bool(struct members *members, const char *key);
det_time members_time(struct members *members, const char *key);

/* The elements of an array, in order; stops at the first answer that is not 0, and returns it. */
typedef int member_fn(void *context, struct det_view element);
DET_MUST_CHECK int members_each(
    struct members *members, const char *key, member_fn *each, void *context);
/* Says that a member is wrong. */
void members_fail(struct members *members, const char *key);

#endif
