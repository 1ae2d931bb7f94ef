/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nest.h - tracks the current record and those around it while records are encoded or decoded.
 *
 *     levels[0]   outside     represents the container of the outermost record: has one element
 *     levels[1]   invoice     at its field lines, element 2 of 6
 *     levels[2]   line        at its field cents
 *
 * The codec processes the fields of the innermost record, and the following records of the same
 * array, until they end or it reaches a field of records. Then det_nest_next() says where to
 * continue. This is field_walk.h without a step for every value.
 *
 * Invariants:
 *   1. 1 <= depth <= DET_RECORD_DEPTH_MAX, until det_nest_next() returns false.
 *   2. In all levels but the innermost, `field` is one of records, and index < count. */
#ifndef DET_RECORD_NEST_H
#define DET_RECORD_NEST_H

#include "base/assert.h"
#include "record/field_walk.h"

struct det_level {
    const struct det_record *record;
    const struct det_field *field; /* the current field */
    size_t left;                   /* number of fields left, including the current one; 0: none */
    size_t base;                   /* offset of the record in memory */
    uint32_t version;              /* version of the record in the bytes */
    uint32_t index;                /* index of the current element of `field`, or DET_PLACE_ALL */
    uint32_t count;                /* number of its elements */
    uint32_t nested_version;       /* version of its elements in the bytes, if they are records */
};

struct det_nest {
    unsigned depth;
    struct det_level levels[DET_RECORD_DEPTH_MAX + 1];
};

static inline struct det_level *det_nest_level(struct det_nest *nest)
{
    return &nest->levels[nest->depth];
}

/* Enters the records at `base`; the enclosing level has their count. */
static inline void det_nest_enter(
    struct det_nest *nest, const struct det_record *record, size_t base)
{
    struct det_level *level = det_nest_level(nest);

    det_assert(record != NULL);
    det_assert(nest->depth < DET_RECORD_DEPTH_MAX && level->count > 0);
    nest->depth++;
    level->index = 0;
    level[1] = (struct det_level){ .record = record,
                                   .field = record->fields,
                                   .left = record->field_count,
                                   .base = base,
                                   .version = level->nested_version };
}

static inline void det_nest_init(
    struct det_nest *nest, const struct det_record *record, uint32_t version)
{
    nest->depth = 0;
    nest->levels[0] = (struct det_level){ .count = 1, .nested_version = version };
    det_nest_enter(nest, record, 0);
}

/* Moves to the next record of the same array. Returns false if the codec stopped inside the current
 * record, or it was the last. */
static inline bool det_level_again(struct det_level *level)
{
    if (level->left > 0 || ++level[-1].index == level[-1].count)
        return false;
    level->field = level->record->fields;
    level->left = level->record->field_count;
    level->base += level->record->size;
    return true;
}

/* Moves to the records of the field where the codec stopped, or past those that have ended. Returns
 * false at the end of the outermost record. */
static inline bool det_nest_next(struct det_nest *nest)
{
    struct det_level *level = det_nest_level(nest);

    if (level->left > 0) {
        det_nest_enter(
            nest, det_record_of(level->field->record), level->base + level->field->offset);
        return true;
    }
    if (--nest->depth == 0)
        return false;
    level[-1].field++;
    level[-1].left--;
    return true;
}

#endif
