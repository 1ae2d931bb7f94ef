/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* field_walk.c - the walk over a record, and the names of the places it visits. */
#include "record/field_walk.h"

#include <stdio.h>

#include "base/assert.h"
#include "record/field_value.h"

static void push_frame(struct det_walk *walk, const struct det_record *record)
{
    struct det_walk_frame *frame;

    det_assert(record != NULL);
    det_assert(walk->depth < DET_RECORD_DEPTH_MAX);
    frame = &walk->frames[walk->depth++];
    frame->place = (struct det_place){ record, NULL, 0 };
    frame->base = walk->offset;
    frame->next_field = 0;
    frame->phase = DET_WALK_BETWEEN;
}

void det_walk_init(struct det_walk *walk, const struct det_record *record, const void *value)
{
    walk->value = value;
    walk->field = NULL;
    walk->offset = 0;
    walk->depth = 0;
    push_frame(walk, record);
}

static enum det_walk_step start_field(struct det_walk *walk, struct det_walk_frame *frame)
{
    const struct det_field *field = &frame->place.record->fields[frame->next_field++];

    walk->field = frame->place.field = field;
    walk->offset = frame->base + field->offset;
    frame->place.index = DET_PLACE_ALL;
    frame->next_index = 0;
    frame->phase = DET_WALK_STARTED;
    return DET_WALK_FIELD;
}

static enum det_walk_step leave_record(struct det_walk *walk)
{
    struct det_walk_frame *outer;

    if (walk->depth == 1)
        return DET_WALK_END;
    walk->depth--;
    outer = det_walk_frame(walk);
    walk->field = outer->place.field;
    return DET_WALK_CLOSE;
}

static enum det_walk_step next_element(struct det_walk *walk, struct det_walk_frame *frame)
{
    const struct det_field *field = frame->place.field;

    if (frame->next_index == frame->count) {
        frame->phase = DET_WALK_BETWEEN;
        return DET_WALK_DONE;
    }
    frame->place.index = frame->next_index++;
    walk->offset = frame->base + field->offset + (size_t)frame->place.index * field->size;
    if (field->kind != DET_KIND_RECORD)
        return DET_WALK_VALUE;
    push_frame(walk, det_record_of(field->record));
    return DET_WALK_OPEN;
}

static uint32_t count_elements(const struct det_walk *walk, const struct det_walk_frame *frame)
{
    const struct det_field *field = frame->place.field;
    uint32_t count;

    if (!walk->value)
        return 1;
    count = det_field_count(field, walk->value + frame->base);
    if (field->flags & DET_FIELD_ARRAY)
        return count < field->count_max ? count : field->count_max;
    return count > 0;
}

enum det_walk_step det_walk_next(struct det_walk *walk)
{
    struct det_walk_frame *frame = det_walk_frame(walk);

    switch (frame->phase) {
    case DET_WALK_BETWEEN:
        if (frame->next_field < frame->place.record->field_count)
            return start_field(walk, frame);
        return leave_record(walk);
    case DET_WALK_STARTED:
        frame->count = count_elements(walk, frame);
        frame->phase = DET_WALK_ELEMENTS;
        break;
    case DET_WALK_ELEMENTS:
        break;
    }
    return next_element(walk, frame);
}

void det_walk_skip(struct det_walk *walk)
{
    struct det_walk_frame *frame = det_walk_frame(walk);

    det_assert(frame->phase == DET_WALK_STARTED);
    frame->phase = DET_WALK_BETWEEN;
}

size_t det_walk_presence(struct det_walk *walk)
{
    return det_walk_frame(walk)->base + walk->field->presence;
}

char *det_place_format(const struct det_place *places, size_t count, char *target, size_t capacity)
{
    size_t used;

    det_assert(count > 0 && places[0].record != NULL);
    used = (size_t)snprintf(target, capacity, "%s", places[0].record->name);
    for (size_t i = 0; i < count && places[i].field && used < capacity; i++) {
        const struct det_field *field = places[i].field;

        used += (size_t)snprintf(target + used, capacity - used, ".%s", field->name);
        if ((field->flags & DET_FIELD_ARRAY) && places[i].index != DET_PLACE_ALL && used < capacity)
            used += (size_t)snprintf(target + used, capacity - used, "[%u]", places[i].index);
    }
    return target;
}

char *det_walk_place(const struct det_walk *walk, char *target, size_t capacity)
{
    struct det_place places[DET_RECORD_DEPTH_MAX] = { 0 };

    for (unsigned i = 0; i < walk->depth; i++)
        places[i] = walk->frames[i].place;
    return det_place_format(places, walk->depth, target, capacity);
}
