/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_request.c - payloads from rows, and the meaning of the answers. */
#include "connectors/machine_request.h"

#include <string.h>

#include "base/text.h"
#include "json/writer.h"

static int add_member(
    struct machine_members *members, const struct settings *settings, const struct det_datum *item,
    const struct det_allocator *allocator, const struct columns *columns, struct det_error *reterr)
{
    struct machine_member *member = &members->list[members->count];
    struct det_error error = { 0 };
    int r;

    if (members->count == MACHINE_MEMBERS_MAX)
        return settings_fail(
            settings, item, reterr, "at most %d members are possible", MACHINE_MEMBERS_MAX);
    if (!item->text)
        return settings_fail(
            settings, item, reterr, "expected a field or an expression, found %s",
            det_datum_kind_text(item->kind));
    r = row_value_init(
        &member->value, allocator, item->text, columns, det_record_of(settings->stage->in), &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    if (r < 0)
        return settings_fail(settings, item, reterr, "%s", error.text);
    member->name = item->key;
    members->count++;
    return 0;
}

int machine_members_init(
    struct machine_members *members, const struct settings *settings, const char *key,
    const struct det_allocator *allocator, const struct columns *columns, struct det_error *reterr)
{
    const struct det_datum *map = det_datum_get(settings->root, key);
    int r = 0;

    *members = (struct machine_members){ .is_set = map != NULL };
    if (map && map->kind != DET_DATUM_MAP)
        return settings_fail(
            settings, map, reterr, "expected a map of members to fields or expressions, found %s",
            det_datum_kind_text(map->kind));
    for (const struct det_datum *item = map ? map->first : NULL; item && r == 0; item = item->next)
        r = add_member(members, settings, item, allocator, columns, reterr);
    if (r < 0)
        machine_members_deinit(members);
    return r;
}

void machine_members_deinit(struct machine_members *members)
{
    for (size_t i = 0; i < members->count; i++)
        row_value_deinit(&members->list[i].value);
    members->count = 0;
}

int machine_members_write(
    const struct machine_members *members, const void *row, struct det_expression_scratch *scratch,
    struct det_buffer *buffer, struct det_error *reterr)
{
    det_buffer_append_char(buffer, '{');
    for (size_t i = 0; i < members->count; i++) {
        int r;

        if (i > 0)
            det_buffer_append_char(buffer, ',');
        det_json_quote(buffer, det_view_text(members->list[i].name));
        det_buffer_append_char(buffer, ':');
        r = row_value_write(&members->list[i].value, row, true, scratch, buffer, reterr);
        if (r < 0)
            return r;
    }
    det_buffer_append_char(buffer, '}');
    return 0;
}

static bool is_one_of(const char *code, const char *const *codes)
{
    for (; *codes; codes++)
        if (strcmp(code, *codes) == 0)
            return true;
    return false;
}

enum machine_result machine_result_of(const char *code)
{
    static const char *const later[] = { "NO_MEMORY", "BUSY",       "TIMEOUT", "CANCELLED",
                                         "CLOSED",    "IO",         "LOCKED",  "LOCK_LOST",
                                         "NO_SPACE",  "CONTENTION", "LIMIT",   NULL };
    static const char *const refused[] = { "UNHANDLED", "STOPPED", "REFUSED", "ACTION_FAILED",
                                           NULL };

    if (!code)
        return MACHINE_SENT;
    if (strcmp(code, "NOT_FOUND") == 0)
        return MACHINE_MISSING;
    if (is_one_of(code, later))
        return MACHINE_LATER;
    return is_one_of(code, refused) ? MACHINE_REFUSED : MACHINE_UNUSABLE;
}
