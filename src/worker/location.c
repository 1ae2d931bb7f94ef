/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* location.c - the five levels of a location. */
#include "worker/location.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"

static const char *const names[] = {
#define DET_LOCATION_LEVEL(name, text) text,
    DET_LOCATION_LEVELS(DET_LOCATION_LEVEL)
#undef DET_LOCATION_LEVEL
};

#define FAIL(reterr, datum, ...) \
    det_datum_fail(reterr, DET_ERR_INVALID, "location", (datum)->line, (datum)->column, __VA_ARGS__)

/* The level with this name; negative: unknown. */
static int find_level(const char *name, uint32_t line, uint32_t column, struct det_error *reterr)
{
    int nearest;

    for (int i = 0; i < DET_LOCATION_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    nearest = det_text_nearest(name, names, DET_LOCATION_COUNT);
    return det_datum_fail(
        reterr, DET_ERR_INVALID, "location", line, column, "there is no level '%.64s'; %s%s", name,
        nearest >= 0 ? "did you mean " : "the levels are enterprise, site, area, line, cell",
        nearest >= 0 ? names[nearest] : "");
}

/* Texts and whole numbers; null is ignored. */
static int read_value(
    struct det_arena *arena, const struct det_datum *datum, const char **ret,
    struct det_error *reterr)
{
    if (datum->kind == DET_DATUM_NULL)
        return 0;
    if (datum->kind == DET_DATUM_SIGNED) {
        *ret = det_arena_format(arena, "%lld", (long long)datum->as.number);
        return *ret ? 0 : det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    }
    if (datum->kind != DET_DATUM_TEXT)
        return FAIL(
            reterr, datum, "expected text, found %s; put quotes around it",
            det_datum_kind_text(datum->kind));
    *ret = datum->text;
    return 0;
}

static int read_map(
    struct det_arena *arena, const struct det_datum *map, struct det_location *ret,
    struct det_error *reterr)
{
    int r;

    for (const struct det_datum *item = map->first; item; item = item->next) {
        int level = find_level(item->key, item->key_line, item->key_column, reterr);

        if (level < 0)
            return level;
        r = read_value(arena, item, &ret->levels[level], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_entry(
    struct det_arena *arena, const struct det_datum *entry, struct det_location *ret,
    struct det_error *reterr)
{
    const struct det_datum *type = det_datum_get(entry, "type");
    const struct det_datum *value = det_datum_get(entry, "value");
    int level;

    if (!type || type->kind != DET_DATUM_TEXT || !value || entry->count != 2)
        return FAIL(reterr, entry, "a level in a list is {type: site, value: name}");
    level = find_level(type->text, type->line, type->column, reterr);
    return level < 0 ? level : read_value(arena, value, &ret->levels[level], reterr);
}

int det_location_read(
    struct det_arena *arena, const struct det_datum *datum, struct det_location *ret,
    struct det_error *reterr)
{
    struct det_location location = { { NULL } };
    int r = 0;

    if (datum && datum->kind == DET_DATUM_MAP) {
        r = read_map(arena, datum, &location, reterr);
    } else if (datum && datum->kind == DET_DATUM_LIST) {
        for (const struct det_datum *item = datum->first; item && r == 0; item = item->next)
            r = read_entry(arena, item, &location, reterr);
    } else if (datum && datum->kind != DET_DATUM_NULL) {
        r = FAIL(
            reterr, datum, "expected a map of levels, {site: a, line: b}, found %s",
            det_datum_kind_text(datum->kind));
    }
    if (r == 0)
        *ret = location;
    return r;
}

struct det_location det_location_merge(
    const struct det_location *parent, const struct det_location *child)
{
    struct det_location merged = *parent;

    for (int i = 0; i < DET_LOCATION_COUNT; i++)
        if (child->levels[i])
            merged.levels[i] = child->levels[i];
    return merged;
}

const char *det_location_path(struct det_arena *arena, const struct det_location *location)
{
    size_t size = 1, used = 0;
    char *path;

    for (int i = 0; i < DET_LOCATION_COUNT; i++)
        size += location->levels[i] ? strlen(location->levels[i]) + 1 : 0;
    path = det_arena_alloc(arena, size);
    for (int i = 0; path && i < DET_LOCATION_COUNT; i++) {
        const char *level = location->levels[i];

        if (level && *level)
            used += (size_t)snprintf(path + used, size - used, "%s%s", used ? "." : "", level);
    }
    det_assert(used < size);
    return path;
}

bool det_location_is_empty(const struct det_location *location)
{
    for (int i = 0; i < DET_LOCATION_COUNT; i++)
        if (location->levels[i])
            return false;
    return true;
}

bool det_location_equal(const struct det_location *a, const struct det_location *b)
{
    for (int i = 0; i < DET_LOCATION_COUNT; i++) {
        if (!a->levels[i] != !b->levels[i])
            return false;
        if (a->levels[i] && strcmp(a->levels[i], b->levels[i]) != 0)
            return false;
    }
    return true;
}

uint64_t det_location_hash(const struct det_location *location)
{
    uint64_t hash = DET_LOCATION_COUNT;

    for (int i = 0; i < DET_LOCATION_COUNT; i++) {
        const char *level = location->levels[i];

        hash = det_hash_mix(hash, level ? det_hash64(level, strlen(level), 1) : 0);
    }
    return hash;
}

int det_location_copy(
    struct det_arena *arena, const struct det_location *location, struct det_location *ret)
{
    struct det_location copy = { { NULL } };

    for (int i = 0; i < DET_LOCATION_COUNT; i++) {
        if (!location->levels[i])
            continue;
        copy.levels[i] = det_arena_copy(arena, location->levels[i]);
        if (!copy.levels[i])
            return DET_ERR_NO_MEMORY;
    }
    *ret = copy;
    return 0;
}
