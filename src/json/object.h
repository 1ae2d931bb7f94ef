/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* object.h - reads members of a JSON object: get all of them, then test `wrong` once. It names the
 * first member that was missing or of another kind. */
#ifndef DET_JSON_OBJECT_H
#define DET_JSON_OBJECT_H

#include "json/reader.h"

struct det_json_object {
    const struct det_json_value *value;
    struct det_arena *arena; /* of the tree; for values that are converted */
    char wrong[64];
    bool has_failed; /* memory for a converted value failed */
};

/* Uses a value that was read; DET_ERR_MALFORMED: not an object. */
DET_MUST_CHECK int det_json_object_init(
    struct det_json_object *object, struct det_arena *arena, const struct det_json_value *value,
    struct det_error *reterr);
/* The same for a text, which is read with det_json_read(). */
DET_MUST_CHECK int det_json_object_read(
    struct det_json_object *object, struct det_arena *arena, struct det_view text,
    struct det_error *reterr);
/* Returns NULL if the object does not have the key. */
const struct det_json_value *det_json_object_find(
    const struct det_json_object *object, const char *key);

/* Returns values by key. A member that is missing or of another kind sets `wrong`, and is zero;
 * `or_null` texts may be null or missing. */
const char *det_json_object_text(struct det_json_object *object, const char *key);
const char *det_json_object_text_or_null(struct det_json_object *object, const char *key);
uint64_t det_json_object_number(struct det_json_object *object, const char *key);
int64_t det_json_object_signed(struct det_json_object *object, const char *key);
bool det_json_object_bool(struct det_json_object *object, const char *key);
det_time det_json_object_time(struct det_json_object *object, const char *key);
/* Returns an array, for DET_JSON_EACH(); NULL after a failure. */
const struct det_json_value *det_json_object_array(struct det_json_object *object, const char *key);
/* Sets `wrong` to the key; the first one stays. */
void det_json_object_fail(struct det_json_object *object, const char *key);

#endif
