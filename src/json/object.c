/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* object.c - reads the members of a JSON object. */
#include "json/object.h"

#include <stdio.h>

#include "base/assert.h"

int det_json_object_init(
    struct det_json_object *object, struct det_arena *arena, const struct det_json_value *value,
    struct det_error *reterr)
{
    *object = (struct det_json_object){ .value = value, .arena = arena };
    if (!det_json_is(value, DET_JSON_OBJECT))
        return det_error_set(reterr, DET_ERR_MALFORMED, "not a JSON object");
    return 0;
}

int det_json_object_read(
    struct det_json_object *object, struct det_arena *arena, struct det_view text,
    struct det_error *reterr)
{
    const struct det_json_value *value = NULL;
    int r;

    *object = (struct det_json_object){ 0 };
    r = det_json_read(arena, text, &value, reterr);
    return r < 0 ? r : det_json_object_init(object, arena, value, reterr);
}

const struct det_json_value *det_json_object_find(
    const struct det_json_object *object, const char *key)
{
    det_assert(det_json_is(object->value, DET_JSON_OBJECT));
    return det_json_get(object->value, key);
}

void det_json_object_fail(struct det_json_object *object, const char *key)
{
    if (!object->wrong[0])
        snprintf(object->wrong, sizeof object->wrong, "%s", key);
}

const char *det_json_object_text(struct det_json_object *object, const char *key)
{
    const char *text = det_json_get_text(object->value, key);

    if (text)
        return text;
    det_json_object_fail(object, key);
    return "";
}

const char *det_json_object_text_or_null(struct det_json_object *object, const char *key)
{
    const struct det_json_value *value = det_json_get(object->value, key);

    if (!value || value->kind == DET_JSON_NULL)
        return NULL;
    return det_json_object_text(object, key);
}

uint64_t det_json_object_number(struct det_json_object *object, const char *key)
{
    uint64_t number = 0;

    if (det_json_value_u64(det_json_get(object->value, key), &number) < 0)
        det_json_object_fail(object, key);
    return number;
}

int64_t det_json_object_signed(struct det_json_object *object, const char *key)
{
    int64_t number = 0;

    if (det_json_value_i64(det_json_get(object->value, key), &number) < 0)
        det_json_object_fail(object, key);
    return number;
}

bool det_json_object_bool(struct det_json_object *object, const char *key)
{
    const struct det_json_value *value = det_json_get(object->value, key);
    bool is_true = det_json_is(value, DET_JSON_TRUE);

    if (!is_true && !det_json_is(value, DET_JSON_FALSE))
        det_json_object_fail(object, key);
    return is_true;
}

det_time det_json_object_time(struct det_json_object *object, const char *key)
{
    det_time at = 0;

    if (det_json_value_time(det_json_get(object->value, key), &at) < 0)
        det_json_object_fail(object, key);
    return at;
}

const struct det_json_value *det_json_object_array(struct det_json_object *object, const char *key)
{
    const struct det_json_value *value = det_json_get(object->value, key);

    if (det_json_is(value, DET_JSON_ARRAY))
        return value;
    det_json_object_fail(object, key);
    return NULL;
}
