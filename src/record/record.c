/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record.c - validity and equality of a record value, without allocation. */
#include <detent/record.h>

#include <string.h>

#include "base/assert.h"
#include "base/unset.h"
#include "record/field_value.h"
#include "record/field_walk.h"

const struct det_record *det_empty_record(void)
{
    static const struct det_record empty = { "empty", 1, sizeof(struct det_empty), NULL, 0 };

    return &empty;
}

const struct det_field *det_record_field(const struct det_record *record, const char *name)
{
    for (size_t i = 0; i < record->field_count; i++)
        if (strcmp(record->fields[i].name, name) == 0)
            return &record->fields[i];
    return NULL;
}

/* A separate function, so that a valid record does not pay for the text of the place. */
static int fail_at_place(
    const struct det_walk *walk, int code, size_t offset, const char *reason,
    struct det_error *reterr)
{
    char place[DET_PLACE_TEXT];

    return DET_FAIL_AT(
        reterr, code, offset, "%s: %s", det_walk_place(walk, place, sizeof place), reason);
}

static int check_count(struct det_walk *walk, struct det_error *reterr)
{
    const struct det_field *field = walk->field;
    uint32_t count = det_field_count(field, walk->value + det_walk_frame(walk)->base);

    if (det_field_count_is_valid(field, count))
        return 0;
    return fail_at_place(
        walk, DET_ERR_RANGE, det_walk_presence(walk),
        field->flags & DET_FIELD_ARRAY ? "the count exceeds the maximum"
                                       : "the presence is neither 0 nor 1",
        reterr);
}

/* After a step: checks the value in memory. Returns 0, DET_ERR_RANGE or DET_ERR_MALFORMED, with the
 * place in the text and the offset in the struct. */
static int check_step(struct det_walk *walk, enum det_walk_step step, struct det_error *reterr)
{
    const char *reason = NULL;
    int r;

    if (step == DET_WALK_FIELD)
        return check_count(walk, reterr);
    if (step != DET_WALK_VALUE)
        return 0;
    r = det_value_check(walk->field, walk->value + walk->offset, &reason);
    if (r < 0)
        return fail_at_place(walk, r, walk->offset, reason, reterr);
    return 0;
}

/* Most records are flat and valid, which this detects without a walk. Returns false if a walk must
 * decide. */
static bool is_plainly_valid(const struct det_record *record, const uint8_t *value)
{
    const char *reason;

    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];

        if ((field->flags & (DET_FIELD_ARRAY | DET_FIELD_OPTIONAL)) ||
            field->kind == DET_KIND_RECORD ||
            det_value_check(field, value + field->offset, &reason) < 0)
            return false;
    }
    return true;
}

int det_record_validate(
    const struct det_record *record, const void *value, struct det_error *reterr)
{
    DET_UNSET struct det_walk walk;
    enum det_walk_step step;
    int r;

    if (is_plainly_valid(record, value))
        return 0;
    det_walk_init(&walk, record, value);
    while ((step = det_walk_next(&walk)) != DET_WALK_END) {
        r = check_step(&walk, step, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

bool det_record_equal(const struct det_record *record, const void *a, const void *b)
{
    const uint8_t *left = a, *right = b;
    struct det_walk walk;
    enum det_walk_step step;
    size_t base;

    det_walk_init(&walk, record, a);
    while ((step = det_walk_next(&walk)) != DET_WALK_END) {
        base = det_walk_frame(&walk)->base;
        if (step == DET_WALK_FIELD &&
            det_field_count(walk.field, left + base) != det_field_count(walk.field, right + base))
            return false;
        if (step == DET_WALK_VALUE &&
            !det_value_equal(walk.field, left + walk.offset, right + walk.offset))
            return false;
    }
    return true;
}

static bool is_long_text(const struct det_field *field)
{
    return field->kind == DET_KIND_TEXT && field->size >= DET_RECORD_LONG &&
           !(field->flags & DET_FIELD_ARRAY);
}

void det_record_copy(const struct det_record *record, void *target, const void *source)
{
    const char *from = source;
    char *to = target;
    size_t at = 0, length;

    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];

        /* Fields in another order than in the struct are copied whole. */
        if (!is_long_text(field) || field->offset < at)
            continue;
        memcpy(to + at, from + at, field->offset - at);
        length = strnlen(from + field->offset, field->size - 1);
        memcpy(to + field->offset, from + field->offset, length + 1);
        at = (size_t)field->offset + field->size;
    }
    det_assert(at <= record->size);
    memcpy(to + at, from + at, record->size - at);
}
