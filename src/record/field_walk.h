/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* field_walk.h - visits a record field by field at any depth of nesting, without recursion.
 *
 *     FIELD --> VALUE ... VALUE ------------------> DONE      a plain value, or the elements
 *       |  `--> OPEN, FIELD ... DONE, CLOSE, OPEN --^         nested records
 *       `--> the next FIELD, when skipped                     and END after the last field
 *
 * Invariants:
 *   1. 1 <= depth <= DET_RECORD_DEPTH_MAX until END; frames[0] is the outermost record.
 *   2. `offset` counts from the start of the outermost record, and its value is inside it.
 *   3. A count in memory that exceeds the field's maximum is treated as the maximum. */
#ifndef DET_RECORD_FIELD_WALK_H
#define DET_RECORD_FIELD_WALK_H

#include <detent/record.h>

enum det_walk_step {
    DET_WALK_FIELD, /* `field` starts */
    DET_WALK_VALUE, /* a plain value of it, at `offset` */
    DET_WALK_OPEN,  /* a record in it: the fields of that record follow */
    DET_WALK_CLOSE, /* the record ends; `field` is the enclosing one again */
    DET_WALK_DONE,  /* `field` ends */
    DET_WALK_END,
};

/* Place of an error: a field of a record, and the index of its element. */
struct det_place {
    const struct det_record *record;
    const struct det_field *field; /* NULL: the record itself */
    uint32_t index;                /* DET_PLACE_ALL: the field itself */
};

#define DET_PLACE_ALL UINT32_MAX

enum det_walk_phase {
    DET_WALK_BETWEEN, /* the next field is to start */
    DET_WALK_STARTED, /* FIELD was returned, the count is not read yet */
    DET_WALK_ELEMENTS,
};

struct det_walk_frame {
    struct det_place place;
    size_t base;         /* offset of this record */
    size_t next_field;   /* the number of the field after the current one */
    uint32_t next_index; /* of the next element */
    uint32_t count;      /* elements of the current field */
    enum det_walk_phase phase;
};

struct det_walk {
    const uint8_t *value; /* NULL: walks the definition; each field has one element */
    const struct det_field *field;
    size_t offset;
    unsigned depth;
    struct det_walk_frame frames[DET_RECORD_DEPTH_MAX];
};

void det_walk_init(struct det_walk *walk, const struct det_record *record, const void *value);
enum det_walk_step det_walk_next(struct det_walk *walk);
/* After FIELD: skips to the next field. */
void det_walk_skip(struct det_walk *walk);
/* Returns the current record, the innermost one. */
static inline struct det_walk_frame *det_walk_frame(struct det_walk *walk)
{
    return &walk->frames[walk->depth - 1];
}

/* Returns the offset of the presence or count of `field`. */
size_t det_walk_presence(struct det_walk *walk);

#define DET_PLACE_TEXT 224
/* Formats "payment.lines[3].name", truncated if too long. Returns target. */
char *det_place_format(const struct det_place *places, size_t count, char *target, size_t capacity);
char *det_walk_place(const struct det_walk *walk, char *target, size_t capacity);

#endif
