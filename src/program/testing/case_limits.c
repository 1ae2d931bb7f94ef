/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_limits.c - limits of the fields of a record, for messages about test files. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "testing/case_internal.h"

/* A field that a path such as "basket.lines[0].item" leads to, and whether one element is meant. */
struct target {
    const struct det_field *field; /* NULL: none */
    bool is_element;
};

static struct target follow_path(const struct det_record *record, const char *path)
{
    struct target target = { 0 };

    for (path += strcspn(path, ".:"); *path == '.'; path += strcspn(path, ".:")) {
        size_t size = strcspn(path + 1, ".[:");
        char name[DET_NAME_MAX + 1];

        snprintf(name, sizeof name, "%.*s", (int)size, path + 1);
        target.field = record ? det_record_field(record, name) : NULL;
        if (!target.field)
            return target;
        path += 1 + size;
        target.is_element = *path == '[';
        record = det_record_of(target.field->record);
    }
    return target;
}

static void values_text(const struct det_enum *enumeration, char *target, size_t capacity)
{
    size_t used = 0;

    for (size_t i = 0; enumeration && i < enumeration->value_count && used < capacity; i++)
        used += (size_t)snprintf(
            target + used, capacity - used, "%s%s", i ? ", " : "; one of ",
            enumeration->values[i].name);
}

/* Writes "; 0 to 255" and so on; "" without a limit. */
static void limit_text(const struct det_field *field, char *target, size_t capacity)
{
    unsigned unused = 64 - field->size * 8;

    det_assert(
        (field->kind != DET_KIND_UNSIGNED && field->kind != DET_KIND_SIGNED) || field->size <= 8);
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        snprintf(target, capacity, "; 0 to %llu", (unsigned long long)(UINT64_MAX >> unused));
        break;
    case DET_KIND_SIGNED:
        snprintf(
            target, capacity, "; %lld to %lld", -(long long)(INT64_MAX >> unused) - 1,
            (long long)(INT64_MAX >> unused));
        break;
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        snprintf(
            target, capacity, "; at most %u byte%s", field->capacity, det_plural(field->capacity));
        break;
    case DET_KIND_ENUM:
        values_text(det_enum_of(field->enumeration), target, capacity);
        break;
    case DET_KIND_FLOAT:
    case DET_KIND_BOOL:
    case DET_KIND_TIME:
    case DET_KIND_RECORD:
        break;
    }
}

const char *case_field_limit(const struct det_record *record, const char *text, char *target)
{
    struct target found = follow_path(record, text);

    target[0] = '\0';
    if (!found.field)
        return target;
    if ((found.field->flags & DET_FIELD_ARRAY) && !found.is_element)
        snprintf(target, CASE_LIMIT_TEXT, "; at most %u", found.field->count_max);
    else
        limit_text(found.field, target, CASE_LIMIT_TEXT);
    return target;
}
