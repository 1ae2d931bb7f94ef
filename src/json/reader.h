/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reader.h - reads JSON (RFC 8259) strictly into a tree of values.
 *
 *     r = det_json_read(&arena, text, &root, &error);
 *     name = det_json_get_text(root, "name");
 *     DET_JSON_EACH (item, det_json_get(root, "items"))
 *         total += det_json_get_number(item, "cents");
 *
 * The text must be one whole value of valid UTF-8 with paired surrogates and without duplicate keys
 * (also if escaped differently), within limits on size, depth and number of values. Numbers keep
 * their text, so they are exact. The tree lives in the arena and borrows the text, which must
 * outlive it. The getters accept NULL for a missing value, so that they can be chained. */
#ifndef DET_JSON_READER_H
#define DET_JSON_READER_H

#include "base/arena.h"
#include "record/json.h"

#define DET_JSON_SIZE_MAX   67108864 /* bytes of one text */
#define DET_JSON_VALUES_MAX 1000000

struct det_json_value {
    enum det_json_kind kind; /* OBJECT, ARRAY, STRING, NUMBER, TRUE, FALSE or NULL */
    uint32_t count;          /* of members or elements */
    struct det_view key;     /* of a member, unescaped; no data elsewhere */
    struct det_view text;    /* STRING: unescaped, with a final 0; NUMBER: as written */
    struct det_view raw;     /* the whole value as in the text */
    const struct det_json_value *first, *next;
    const struct det_json_value **index; /* of an object with many members; else NULL */
};

/* DET_ERR_MALFORMED, DET_ERR_TRUNCATED, DET_ERR_DUPLICATE_FIELD, DET_ERR_LIMIT with the offset in
 * the text, or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_json_read(
    struct det_arena *arena, struct det_view text, const struct det_json_value **ret,
    struct det_error *reterr);

/* Returns the value of a key; NULL if `object` does not have the key, is not an object, or
 * is NULL. */
const struct det_json_value *det_json_get(const struct det_json_value *object, const char *key);

static inline const struct det_json_value *det_json_first(const struct det_json_value *value)
{
    return value ? value->first : NULL;
}

/* Iterates over the members of an object or the elements of an array, in order. */
#define DET_JSON_EACH(item, parent) \
    for (const struct det_json_value *item = det_json_first(parent); item; item = item->next)

static inline bool det_json_is(const struct det_json_value *value, enum det_json_kind kind)
{
    return value && value->kind == kind;
}

/* Returns the text of a string; NULL: not a string, or it contains U+0000. */
const char *det_json_value_text(const struct det_json_value *value);
/* Reads a whole number. DET_ERR_TYPE: not a whole number; DET_ERR_RANGE: it does not fit. */
DET_MUST_CHECK int det_json_value_u64(const struct det_json_value *value, uint64_t *ret);
DET_MUST_CHECK int det_json_value_i64(const struct det_json_value *value, int64_t *ret);
DET_MUST_CHECK int det_json_value_time(const struct det_json_value *value, det_time *ret);

/* Return values by key, for texts that detent wrote: NULL, 0 or false if missing or of another
 * kind. */
const char *det_json_get_text(const struct det_json_value *object, const char *key);
uint64_t det_json_get_number(const struct det_json_value *object, const char *key);
int64_t det_json_get_signed(const struct det_json_value *object, const char *key);
bool det_json_get_bool(const struct det_json_value *object, const char *key);
det_time det_json_get_time(const struct det_json_value *object, const char *key);

#endif
