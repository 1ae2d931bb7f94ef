/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_read.c - documents and deltas as JSON, without secrets. */
#include "inspect/document_read.h"

#include <stdio.h>

/* Members of a spec that may have secrets. */
static const char *const secret_members[] = { "config", "variables" };

bool cli_document_is_secret(struct det_view name)
{
    for (size_t i = 0; i < sizeof secret_members / sizeof secret_members[0]; i++)
        if (det_view_equal(name, det_view_text(secret_members[i])))
            return true;
    return false;
}

bool cli_document_may_show(enum det_document_role role, bool is_revealed)
{
    return is_revealed || role != DET_DOCUMENT_SPEC;
}

int cli_document_parse(
    struct det_arena *arena, const char *text, size_t size, const struct det_json_value **ret)
{
    const struct det_json_value *value = NULL;
    int r;

    *ret = NULL;
    r = det_json_read(arena, det_view_of(text, size), &value, NULL);
    if (r == 0 && value->kind == DET_JSON_OBJECT)
        *ret = value;
    return r == DET_ERR_NO_MEMORY ? r : 0;
}

/* Cuts a key that does not fit; ours do. */
static const char *key_of(const struct det_json_value *member, char target[64])
{
    snprintf(
        target, 64, "%.*s", (int)(member->key.size < 63 ? member->key.size : 63), member->key.data);
    return target;
}

static void put_fields(
    struct det_json_writer *json, const char *key, const struct det_json_value *object,
    bool is_covered, bool is_modified)
{
    char name[64];

    det_json_open(json, key, '{');
    DET_JSON_EACH (member, object) {
        if (!is_covered || !cli_document_is_secret(member->key)) {
            det_json_copy(json, key_of(member, name), member);
        } else if (!is_modified) {
            det_json_text(json, key_of(member, name), DOCUMENT_REDACTED);
        } else {
            det_json_open(json, key_of(member, name), '{');
            det_json_text(json, "old", DOCUMENT_REDACTED);
            det_json_text(json, "new", DOCUMENT_REDACTED);
            det_json_close(json, '}');
        }
    }
    det_json_close(json, '}');
}

void cli_document_put(
    struct det_json_writer *json, const char *key, const struct det_json_value *object,
    bool is_covered)
{
    put_fields(json, key, object, is_covered, false);
}

void cli_delta_put(
    struct det_json_writer *json, const char *key, const struct det_json_value *change,
    bool is_covered)
{
    char name[64];

    det_json_open(json, key, '{');
    DET_JSON_EACH (member, change)
        put_fields(
            json, key_of(member, name), member, is_covered, det_view_is(member->key, "modified"));
    det_json_close(json, '}');
}
