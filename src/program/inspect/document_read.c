/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_read.c - documents and deltas as JSON, without secrets. */
#include "inspect/document_read.h"

/* The members of a spec that may have some in them. */
static const char *const secret_members[] = { "config", "variables" };

bool cli_document_is_secret(struct det_view name)
{
    for (size_t i = 0; i < sizeof secret_members / sizeof secret_members[0]; i++)
        if (det_view_equal(name, det_view_text(secret_members[i])))
            return true;
    return false;
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
