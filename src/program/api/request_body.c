/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_body.c - the body of a request: a JSON object with known members. */
#include <string.h>

#include "api/api_internal.h"
#include "base/memory.h"

bool api_is_listed(const char *list, struct det_view word)
{
    while (*list) {
        size_t size = strcspn(list, " ");

        if (det_view_equal(det_view_of(list, size), word))
            return true;
        list += size + strspn(list + size, " ");
    }
    return false;
}

int api_object(
    struct det_json_object *members, struct det_arena *arena, const struct det_json_value *value,
    const char *keys, struct det_error *reterr)
{
    int r = det_json_object_init(members, arena, value, reterr);

    if (r < 0)
        return r;
    DET_JSON_EACH (member, value) {
        struct det_view key = member->key;

        if (!api_is_listed(keys, key))
            return det_error_set(
                reterr, DET_ERR_UNKNOWN_FIELD, "unknown member '%.*s'; allowed: %s",
                (int)(key.size < 60 ? key.size : 60), key.data, *keys ? keys : "none");
    }
    return 0;
}

struct det_json_object *api_body(struct api_call *call, const char *keys)
{
    struct det_json_object *members = det_arena_alloc(&call->arena, sizeof *members);
    struct det_error error = { 0 };
    const struct det_json_value *value = NULL;
    int r = DET_ERR_NO_MEMORY;

    if (members)
        r = det_json_read(&call->arena, call->body, &value, &error);
    if (r == 0)
        r = api_object(members, &call->arena, value, keys, &error);
    if (r < 0)
        api_fail_with(call, r, &error);
    return r < 0 ? NULL : members;
}

bool api_body_is_right(struct api_call *call, const struct det_json_object *members)
{
    if (members->wrong[0])
        api_fail(call, DET_ERR_INVALID, "'%s' of the body is missing or invalid", members->wrong);
    else
        return true;
    return false;
}

bool api_body_object(
    struct api_call *call, struct det_json_object *members, const char *key, struct det_view *ret)
{
    const struct det_json_value *member = det_json_object_find(members, key);

    *ret = member ? member->raw : det_view_text("{}");
    if (!member || member->kind == DET_JSON_OBJECT)
        return true;
    api_fail(call, DET_ERR_TYPE, "'%s' of the body must be an object", key);
    return false;
}

int api_payload(
    const struct det_json_object *members, struct det_view *ret, struct det_error *reterr)
{
    const struct det_json_value *payload = det_json_object_find(members, "payload");
    const struct det_json_value *data = det_json_object_find(members, "data");
    const struct det_json_value *member = payload ? payload : data;

    if (payload && data)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "both 'payload' and its deprecated name 'data' are given; use 'payload' alone");
    *ret = member ? member->raw : det_view_text("{}");
    if (!member || member->kind == DET_JSON_OBJECT)
        return 0;
    return det_error_set(
        reterr, DET_ERR_TYPE, "'%s' must be an object", payload ? "payload" : "data");
}

void api_read_expected(struct det_json_object *members, uint64_t *ret)
{
    uint64_t expected;

    if (!det_json_object_find(members, "expected"))
        return;
    expected = det_json_object_number(members, "expected");
    /* Sequences have 63 bits; DET_EXPECT_NO_EVENT is larger. */
    if (expected > INT64_MAX)
        det_json_object_fail(members, "expected");
    else
        *ret = expected ? expected : DET_EXPECT_NO_EVENT;
}

bool api_body_expected(struct api_call *call, struct det_json_object *members, uint64_t *ret)
{
    api_read_expected(members, ret);
    return api_body_is_right(call, members);
}

bool api_body_text(
    struct api_call *call, struct det_json_object *members, const char *key, size_t most,
    const char **ret)
{
    *ret = det_json_object_find(members, key) ? det_json_object_text(members, key) : NULL;
    if (*ret && strlen(*ret) > most)
        det_json_object_fail(members, key);
    return api_body_is_right(call, members);
}
