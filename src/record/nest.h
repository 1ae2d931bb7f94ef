/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nest.h - which record inside which is under way, while one is written or read as bytes.
 *
 *     levels[0]   outside     stands for what the outermost record is in: has one element
 *     levels[1]   invoice     at its field lines, element 2 of 6
 *     levels[2]   line        at its field cents
 *
 * The codec goes through the fields of the innermost record, and through the records after it in
 * the same array, until they end or one of them has a field of records. Then it asks
 * det_nest_next() where to go on. This is field_walk.h without a step for every value.
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
    const struct det_field *field; /* the one under way */
    size_t left;                   /* as many fields are left with it; at 0 there is none */
    size_t base;                   /* offset of the record in memory */
    uint32_t version;              /* of the record in the bytes */
    uint32_t index;                /* of the element of `field` under way, or DET_PLACE_WHOLE */
    uint32_t count;                /* of its elements */
    uint32_t nested_version;       /* of its elements in the bytes, when they are records */
};

struct det_nest {
    unsigned depth;
    struct det_level levels[DET_RECORD_DEPTH_MAX + 1];
};

static inline struct det_level *det_nest_level(struct det_nest *nest)
{
    return &nest->levels[nest->depth];
}

/* Goes into the records at `base`, of which the level around has `count`. */
static inline void det_nest_enter(
    struct det_nest *nest, const struct det_record *record, size_t base)
{
    struct det_level *level = det_nest_level(nest);

    det_assert(record != NULL);
    det_assert(nest->depth < DET_RECORD_DEPTH_MAX);
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

/* Goes on to the record that follows in the same array. False when the codec stopped inside of the
 * one under way, or that was the last. */
static inline bool det_level_again(struct det_level *level)
{
    if (level->left > 0 || ++level[-1].index == level[-1].count)
        return false;
    level->field = level->record->fields;
    level->left = level->record->field_count;
    level->base += level->record->size;
    return true;
}

/* Goes on into the records of the field where the codec stopped, or behind those that have ended.
 * False when the outermost has. */
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
