/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* location.h - a location within a plant: the five levels of ISA-95. */
#ifndef DET_WORKER_LOCATION_H
#define DET_WORKER_LOCATION_H

#include "yaml/datum.h"

#define DET_LOCATION_LEVELS(X)  \
    X(ENTERPRISE, "enterprise") \
    X(SITE, "site")             \
    X(AREA, "area")             \
    X(LINE, "line")             \
    X(CELL, "cell")
enum det_location_level {
#define DET_LOCATION_LEVEL(name, text) DET_LOCATION_##name,
    DET_LOCATION_LEVELS(DET_LOCATION_LEVEL)
#undef DET_LOCATION_LEVEL
        DET_LOCATION_COUNT
};

/* Borrowed texts; NULL: the level is not set. "" is a value: it empties the level. */
struct det_location {
    const char *levels[DET_LOCATION_COUNT];
};

/* Reads a map {site: x, line: y} or a list [{type: site, value: x}, ...], where the last value of a
 * level wins; NULL and null are no location. Texts are borrowed from `datum`, or, for numbers
 * (line: 4), from the arena. DET_ERR_INVALID with place, reason and remedy, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_location_read(
    struct det_arena *arena, const struct det_datum *datum, struct det_location *ret,
    struct det_error *reterr);
/* Merges level by level; levels set by the child win. */
struct det_location det_location_merge(
    const struct det_location *parent, const struct det_location *child);
/* The levels that are not empty, joined by ".". NULL: no memory. */
const char *det_location_path(struct det_arena *arena, const struct det_location *location);
bool det_location_is_empty(const struct det_location *location);
bool det_location_equal(const struct det_location *a, const struct det_location *b);
uint64_t det_location_hash(const struct det_location *location);
/* A copy with texts in the arena. */
DET_MUST_CHECK int det_location_copy(
    struct det_arena *arena, const struct det_location *location, struct det_location *ret);

#endif
