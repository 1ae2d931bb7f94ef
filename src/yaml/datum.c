/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum.c - builds, searches, copies, merges, compares and hashes trees of data. */
#include "yaml/datum.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "yaml/datum_walk.h"

/* Maps with fewer keys are searched from the front. */
#define INDEX_MIN 9

const char *det_datum_kind_text(enum det_datum_kind kind)
{
    static const char *const texts[] = {
#define DET_DATUM_KIND(name, text) text,
        DET_DATUM_KINDS(DET_DATUM_KIND)
#undef DET_DATUM_KIND
    };

    return texts[kind];
}

int det_datum_fail(
    struct det_error *reterr, int code, const char *what, uint32_t line, uint32_t column,
    const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (line == 0)
        return det_error_set(reterr, code, "%s: %s", what, text);
    return det_error_set(reterr, code, "%s, line %u, column %u: %s", what, line, column, text);
}

static uint64_t hash_of(const char *key)
{
    return det_hash64(key, strlen(key), 0);
}

static bool has_key(const struct det_datum *item, const char *key, uint64_t hash)
{
    return item->key_hash == hash && strcmp(item->key, key) == 0;
}

/* A power of two, at least twice the number of keys. */
static size_t index_size(const struct det_datum *map)
{
    size_t size = 32;

    while (size < 2 * (size_t)map->count)
        size *= 2;
    return size;
}

/* Returns the slot of the key in the index, or the free slot where it belongs. */
static struct det_datum **find_slot(const struct det_datum *map, const char *key, uint64_t hash)
{
    size_t mask = index_size(map) - 1, i = (size_t)hash & mask;

    det_assert(map->count >= INDEX_MIN && mask > map->count);
    while (map->index[i] && !has_key(map->index[i], key, hash))
        i = (i + 1) & mask;
    return &map->index[i];
}

static struct det_datum *find_before(
    const struct det_datum *map, const char *key, uint64_t hash, const struct det_datum *end)
{
    for (struct det_datum *item = map->first; item != end; item = item->next)
        if (has_key(item, key, hash))
            return item;
    return NULL;
}

static struct det_datum *find(const struct det_datum *map, const char *key, uint64_t hash)
{
    return map->index ? *find_slot(map, key, hash) : find_before(map, key, hash, NULL);
}

const struct det_datum *det_datum_get(const struct det_datum *map, const char *key)
{
    return map && map->kind == DET_DATUM_MAP ? find(map, key, hash_of(key)) : NULL;
}

int det_datum_seal(
    struct det_arena *arena, struct det_datum *map, const struct det_datum **ret_twice)
{
    det_assert(map->kind == DET_DATUM_MAP);
    map->index = NULL;
    if (map->count >= INDEX_MIN) {
        map->index = det_arena_array(arena, index_size(map), sizeof(struct det_datum *));
        if (!map->index)
            return DET_ERR_NO_MEMORY;
    }
    for (struct det_datum *item = map->first; item; item = item->next) {
        struct det_datum **slot, *other;

        slot = map->index ? find_slot(map, item->key, item->key_hash) : NULL;
        other = slot ? *slot : find_before(map, item->key, item->key_hash, item);
        if (other) {
            *ret_twice = item;
            return DET_ERR_EXISTS;
        }
        if (slot)
            *slot = item;
    }
    return 0;
}

struct det_datum *det_datum_new(struct det_arena *arena, enum det_datum_kind kind)
{
    struct det_datum *datum = det_arena_alloc(arena, sizeof *datum);

    if (datum)
        datum->kind = kind;
    return datum;
}

struct det_datum *det_datum_new_text(struct det_arena *arena, const char *text)
{
    struct det_datum *datum = det_datum_new(arena, DET_DATUM_TEXT);

    if (!datum)
        return NULL;
    datum->text = det_arena_copy(arena, text);
    return datum->text ? datum : NULL;
}

static void link_item(struct det_datum *parent, struct det_datum *item)
{
    item->next = NULL;
    if (parent->last)
        parent->last->next = item;
    else
        parent->first = item;
    parent->last = item;
    parent->count++;
}

struct det_datum *det_datum_append(
    struct det_arena *arena, struct det_datum *parent, const char *key, struct det_datum *item)
{
    det_assert(parent->kind == (key ? DET_DATUM_MAP : DET_DATUM_LIST));
    det_assert(!parent->index);
    if (!item)
        return NULL;
    if (key) {
        item->key = det_arena_copy(arena, key);
        if (!item->key)
            return NULL;
        item->key_hash = hash_of(key);
    }
    link_item(parent, item);
    return item;
}

/* Copies a datum without its children, its key and its neighbours. */
static struct det_datum *copy_one(struct det_arena *arena, const struct det_datum *datum)
{
    struct det_datum *copy = det_arena_alloc(arena, sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *datum;
    copy->next = NULL;
    copy->key = NULL;
    if (datum->text) {
        copy->text = det_arena_copy(arena, datum->text);
        return copy->text ? copy : NULL;
    }
    copy->count = 0;
    copy->first = copy->last = NULL;
    copy->index = NULL;
    return copy;
}

static bool seal_copy(struct det_arena *arena, struct det_datum *copy)
{
    const struct det_datum *twice;

    return copy->kind != DET_DATUM_MAP || det_datum_seal(arena, copy, &twice) == 0;
}

struct det_datum *det_datum_copy(struct det_arena *arena, const struct det_datum *datum)
{
    struct det_datum *open[DET_DATUM_STACK], *root = NULL, *copy;
    struct det_datum_walk walk;
    enum det_datum_step step;

    det_datum_walk_init(&walk, datum);
    while ((step = det_datum_walk_next(&walk)) != DET_DATUM_AT_END) {
        if (step == DET_DATUM_AT_CLOSE) {
            if (!seal_copy(arena, open[walk.depth]))
                return NULL;
            continue;
        }
        /* The depth of the walk includes a list or map that it opens. */
        size_t depth = walk.depth - (step == DET_DATUM_AT_OPEN);

        copy = copy_one(arena, walk.at);
        if (!copy)
            return NULL;
        if (depth == 0)
            root = copy;
        else if (!det_datum_append(
                     arena, open[depth - 1],
                     open[depth - 1]->kind == DET_DATUM_MAP ? walk.at->key : NULL, copy))
            return NULL;
        if (step == DET_DATUM_AT_OPEN)
            open[depth] = copy;
    }
    return root;
}

static bool merge_items(
    struct det_arena *arena, struct det_datum *target, const struct det_datum *from,
    const struct det_datum *over, bool only_new)
{
    const struct det_datum *item = from ? from->first : NULL;

    for (; item; item = item->next) {
        const struct det_datum *other = over ? find(over, item->key, item->key_hash) : NULL;
        struct det_datum *copy;

        if (only_new && other)
            continue;
        copy = det_datum_copy(arena, other ? other : item);
        if (!det_datum_append(arena, target, item->key, copy))
            return false;
        copy->key_line = (other ? other : item)->key_line;
        copy->key_column = (other ? other : item)->key_column;
    }
    return true;
}

struct det_datum *det_datum_merge(
    struct det_arena *arena, const struct det_datum *parent, const struct det_datum *child)
{
    struct det_datum *merged = det_datum_new(arena, DET_DATUM_MAP);

    det_assert(!parent || parent->kind == DET_DATUM_MAP);
    det_assert(!child || child->kind == DET_DATUM_MAP);
    if (!merged || !merge_items(arena, merged, parent, child, false) ||
        !merge_items(arena, merged, child, parent, true) || !seal_copy(arena, merged))
        return NULL;
    return merged;
}

/* All NaNs have the same bits. */
static uint64_t real_bits(double real)
{
    uint64_t bits;

    if (real != real)
        return UINT64_C(0x7ff8000000000000);
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static bool one_is_equal(const struct det_datum *a, const struct det_datum *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DET_DATUM_NULL:
        return true;
    case DET_DATUM_BOOL:
        return a->as.truth == b->as.truth;
    case DET_DATUM_SIGNED:
        return a->as.number == b->as.number;
    case DET_DATUM_UNSIGNED:
        return a->as.large == b->as.large;
    case DET_DATUM_FLOAT:
        return real_bits(a->as.real) == real_bits(b->as.real);
    case DET_DATUM_TEXT:
        return strcmp(a->text, b->text) == 0;
    case DET_DATUM_LIST:
    case DET_DATUM_MAP:
        return a->count == b->count;
    }
    return false;
}

bool det_datum_equal(const struct det_datum *a, const struct det_datum *b)
{
    const struct det_datum *maps[DET_DATUM_STACK + 1]; /* the map on the other side */
    const struct det_datum *items[DET_DATUM_STACK + 1] = {
        b
    }; /* the next element of the list on the other side */
    struct det_datum_walk walk;
    enum det_datum_step step;

    det_datum_walk_init(&walk, a);
    while ((step = det_datum_walk_next(&walk)) != DET_DATUM_AT_END) {
        size_t depth = walk.depth - (step == DET_DATUM_AT_OPEN);
        const struct det_datum *other;

        if (step == DET_DATUM_AT_CLOSE)
            continue;
        if (depth && walk.open[depth - 1]->kind == DET_DATUM_MAP)
            other = find(maps[depth], walk.at->key, walk.at->key_hash);
        else
            other = items[depth];
        if (!other || !one_is_equal(walk.at, other))
            return false;
        items[depth] = other->next;
        if (step == DET_DATUM_AT_OPEN) {
            maps[walk.depth] = other;
            items[walk.depth] = other->first;
        }
    }
    return true;
}

static uint64_t hash_one(const struct det_datum *datum)
{
    uint64_t seed = (uint64_t)datum->kind + 1;

    switch (datum->kind) {
    case DET_DATUM_NULL:
    case DET_DATUM_LIST:
    case DET_DATUM_MAP:
        return det_hash_mix(seed, datum->count);
    case DET_DATUM_BOOL:
        return det_hash_mix(seed, datum->as.truth);
    case DET_DATUM_SIGNED:
        return det_hash_mix(seed, (uint64_t)datum->as.number);
    case DET_DATUM_UNSIGNED:
        return det_hash_mix(seed, datum->as.large);
    case DET_DATUM_FLOAT:
        return det_hash_mix(seed, real_bits(datum->as.real));
    case DET_DATUM_TEXT:
        return det_hash64(datum->text, strlen(datum->text), seed);
    }
    return 0;
}

/* A map hashes the sum of its members, each mixed with its key, so their order does not matter. */
uint64_t det_datum_hash(const struct det_datum *datum)
{
    uint64_t sums[DET_DATUM_STACK + 1] = { 0 }, hash;
    struct det_datum_walk walk;
    enum det_datum_step step;

    det_datum_walk_init(&walk, datum);
    while ((step = det_datum_walk_next(&walk)) != DET_DATUM_AT_END) {
        if (step == DET_DATUM_AT_OPEN) {
            sums[walk.depth] = hash_one(walk.at);
            continue;
        }
        hash = step == DET_DATUM_AT_CLOSE ? sums[walk.depth + 1] : hash_one(walk.at);
        if (walk.depth && walk.open[walk.depth - 1]->kind == DET_DATUM_MAP)
            sums[walk.depth] += det_hash_mix(walk.at->key_hash, hash);
        else
            sums[walk.depth] = det_hash_mix(sums[walk.depth], hash);
    }
    return sums[0];
}
