/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_state.c - the record of a state of rows and numbers. */
#include "connectors/row_state.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

struct made_record {
    struct det_record record; /* first */
    struct det_field fields[2];
    struct made_record *self; /* to be freed: users have a pointer to const */
};

static size_t aligned(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static size_t numbers_offset(const struct row_state_layout *layout)
{
    return aligned(sizeof(struct row_state) + (size_t)layout->row->size * layout->rows_max);
}

static void fill_record(struct made_record *made, const struct row_state_layout *layout)
{
    made->fields[0] = (struct det_field){
        .name = "rows",
        .kind = DET_KIND_RECORD,
        .flags = DET_FIELD_ARRAY,
        .offset = sizeof(struct row_state),
        .size = layout->row->size,
        .presence = offsetof(struct row_state, row_count),
        .count_max = layout->rows_max,
        .record = { .record = layout->row },
    };
    made->fields[1] = (struct det_field){
        .name = "numbers",
        .kind = DET_KIND_UNSIGNED,
        .flags = DET_FIELD_ARRAY,
        .offset = (uint32_t)numbers_offset(layout),
        .size = sizeof(uint64_t),
        .presence = offsetof(struct row_state, number_count),
        .count_max = layout->numbers_max,
    };
    made->self = made;
    made->record = (struct det_record){
        .name = "row_state",
        .size = (uint32_t)(numbers_offset(layout) + layout->numbers_max * sizeof(uint64_t)),
        .fields = made->fields,
        .field_count = 2,
    };
}

int row_state_open(
    const struct row_state_layout *layout, const struct det_allocator *allocator,
    const struct det_record **ret, struct det_error *reterr)
{
    struct made_record *made;
    int r;

    det_assert(layout->rows_max > 0 && layout->numbers_max > 0);
    if (numbers_offset(layout) > DET_RECORD_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT,
            "a state of %u rows of %s has more than %d bytes: keep fewer rows, or smaller ones",
            layout->rows_max, layout->row->name, DET_RECORD_SIZE_MAX);
    made = DET_NEW(allocator, struct made_record);
    if (!made)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a state");
    fill_record(made, layout);
    r = det_record_check(&made->record, reterr);
    if (r < 0) {
        DET_DELETE(allocator, made);
        return r;
    }
    *ret = &made->record;
    return 0;
}

void row_state_close(const struct det_record *record, const struct det_allocator *allocator)
{
    const struct made_record *made = (const struct made_record *)(const void *)record;

    DET_DELETE(allocator, made->self);
}

void *row_state_row(const struct row_state_layout *layout, struct row_state *state, uint32_t index)
{
    det_assert(index < layout->rows_max);
    return (char *)(state + 1) + (size_t)index * layout->row->size;
}

uint64_t *row_state_numbers(const struct row_state_layout *layout, struct row_state *state)
{
    return (uint64_t *)(void *)((char *)state + numbers_offset(layout));
}

bool row_value_is_ordered(enum det_expression_type type)
{
    return type == DET_EXPRESSION_INT || type == DET_EXPRESSION_FLOAT ||
           type == DET_EXPRESSION_TEXT || type == DET_EXPRESSION_TIME ||
           type == DET_EXPRESSION_DURATION;
}

static int compare_texts(struct det_expression_text a, struct det_expression_text b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int r = size ? memcmp(a.data, b.data, size) : 0;

    return r != 0 ? r : (a.size > b.size) - (a.size < b.size);
}

int row_value_compare(const struct det_expression_value *a, const struct det_expression_value *b)
{
    if (a->is_absent || b->is_absent)
        return (int)b->is_absent - (int)a->is_absent;
    switch (a->type) {
    case DET_EXPRESSION_INT:
        if (a->is_unsigned || b->is_unsigned)
            return a->is_unsigned != b->is_unsigned
                       ? (int)a->is_unsigned - (int)b->is_unsigned
                       : (a->natural > b->natural) - (a->natural < b->natural);
        return (a->integer > b->integer) - (a->integer < b->integer);
    case DET_EXPRESSION_ENUM:
        return (a->integer > b->integer) - (a->integer < b->integer);
    case DET_EXPRESSION_FLOAT:
        return (a->number > b->number) - (a->number < b->number);
    case DET_EXPRESSION_BOOL:
        return (int)a->truth - (int)b->truth;
    case DET_EXPRESSION_TIME:
    case DET_EXPRESSION_DURATION:
        return (a->time > b->time) - (a->time < b->time);
    case DET_EXPRESSION_TEXT:
    case DET_EXPRESSION_BYTES:
        return compare_texts(a->text, b->text);
    case DET_EXPRESSION_ANY:
    case DET_EXPRESSION_RECORD:
    case DET_EXPRESSION_ARRAY:
        break; /* refused when the settings are read */
    }
    return 0;
}
