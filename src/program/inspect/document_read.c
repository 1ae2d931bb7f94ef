/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_read.c - documents and deltas as JSON, without secrets. */
#include "inspect/document_read.h"

#include <stdio.h>

/* The members of a spec that may have some in them. */
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

/* A key of ours fits; one that does not is cut. */
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

static json_t *parse(const char *text, size_t size)
{
    return json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
}

/* Takes it away first: without memory it is missing, and not shown. */
static void hide_member(json_t *object, const char *name)
{
    if (!json_object_get(object, name))
        return;
    (void)json_object_del(object, name);
    (void)json_object_set_new(object, name, json_string(DOCUMENT_REDACTED));
}

static void cover_all(json_t *object)
{
    for (size_t i = 0; i < sizeof secret_members / sizeof secret_members[0]; i++)
        hide_member(object, secret_members[i]);
}

json_t *cli_document_read(const struct det_document *document, bool is_revealed, bool *ret_may_show)
{
    json_t *object = parse(document->text, document->size);

    *ret_may_show = is_revealed || document->role != DET_DOCUMENT_SPEC;
    if (!*ret_may_show)
        cover_all(object);
    return object;
}

/* {"added": {...}, "modified": {"name": {"old": ..., "new": ...}}, "removed": {...}} */
json_t *cli_delta_read(const struct det_delta *delta, bool is_revealed, bool *ret_may_show)
{
    json_t *change = parse(delta->text, delta->size);
    json_t *modified = json_object_get(change, "modified");

    *ret_may_show = is_revealed || delta->role != DET_DOCUMENT_SPEC;
    if (*ret_may_show)
        return change;
    cover_all(json_object_get(change, "added"));
    cover_all(json_object_get(change, "removed"));
    for (size_t i = 0; i < sizeof secret_members / sizeof secret_members[0]; i++) {
        json_t *both = json_object_get(modified, secret_members[i]);

        hide_member(both, "old");
        hide_member(both, "new");
    }
    return change;
}
