/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* object.h - a JSON object whose members must be right: ask for all of them, then test `wrong`
 * once. It names the first one that was missing or of another kind. */
#ifndef DET_JSON_OBJECT_H
#define DET_JSON_OBJECT_H

#include "json/reader.h"

struct det_json_object {
    const struct det_json_value *value;
    struct det_arena *arena; /* of the tree; for what is made of its values */
    char wrong[64];
    bool has_failed; /* there was no memory for what is made of its values */
};

/* An object that was read; DET_ERR_MALFORMED when the value is none. */
DET_MUST_CHECK int det_json_object_init(
    struct det_json_object *object, struct det_arena *arena, const struct det_json_value *value,
    struct det_error *reterr);
/* The same for a text: det_json_read() before. */
DET_MUST_CHECK int det_json_object_read(
    struct det_json_object *object, struct det_arena *arena, struct det_view text,
    struct det_error *reterr);
/* NULL when there is none. */
const struct det_json_value *det_json_object_find(
    const struct det_json_object *object, const char *key);

/* Values by key. What is missing or of another kind makes the object wrong, and is zero; `or_null`
 * texts may be null, or missing. */
const char *det_json_object_text(struct det_json_object *object, const char *key);
const char *det_json_object_text_or_null(struct det_json_object *object, const char *key);
uint64_t det_json_object_number(struct det_json_object *object, const char *key);
int64_t det_json_object_signed(struct det_json_object *object, const char *key);
bool det_json_object_bool(struct det_json_object *object, const char *key);
det_time det_json_object_time(struct det_json_object *object, const char *key);
/* An array, for DET_JSON_EACH(); NULL when it is none. */
const struct det_json_value *det_json_object_array(struct det_json_object *object, const char *key);
/* Says that a member is wrong; the first one stays. */
void det_json_object_fail(struct det_json_object *object, const char *key);

#endif
