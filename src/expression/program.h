/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* program.h - a compiled expression: steps over slots.
 *
 *     total > 1000 and level >= 2          0  load_u64     s0 = inputs[0] + 16
 *                                          1  gt_w_k_jf    s0 = s0 > 1000; if not: 4
 *                                          2  load_u8      s0 = inputs[0] + 24
 *                                          3  ge_i_k       s0 = s0 >= 2
 *                                          4  return       s0
 *
 * Slot n holds the value at depth n of the operands that wait. Jumps lead forward only, so a step
 * runs at most once.
 *
 * Invariants:
 *   1. an integer, a time, a duration and an enum fill all 128 bits of their slot, sign extended;
 *   2. steps ending in _i are used only where the ranges of operands and result, which the compiler
 *      knows, fit 64 bits with a sign; they test nothing. Those ending in _w test the result;
 *   3. the last step returns. */
#ifndef DET_EXPRESSION_PROGRAM_H
#define DET_EXPRESSION_PROGRAM_H

#include <detent/expression.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/text.h"

/* The range of integers. */
#define EXPRESSION_INT_MIN ((det_i128)INT64_MIN)
#define EXPRESSION_INT_MAX ((det_i128)UINT64_MAX)

#define EXPRESSION_SLOTS   (DET_EXPRESSION_DEPTH_MAX + 4)

/* The elements of an array in memory. */
struct expression_elements {
    const uint8_t *data;
    uint64_t count;
};

union expression_slot {
    struct {
        uint64_t low;
        int64_t high;
    } w;
    int64_t i; /* the low half */
    double f;
    bool b;
    struct det_view text; /* texts and bytes */
    struct expression_elements elements;
    const uint8_t *place;
};

static inline det_i128 expression_wide(const union expression_slot *slot)
{
    return (det_i128)(((det_u128)(uint64_t)slot->w.high << 64) | slot->w.low);
}

static inline void expression_set_wide(union expression_slot *slot, det_i128 value)
{
    slot->w.low = (uint64_t)(det_u128)value;
    slot->w.high = (int64_t)(value >> 64);
}

static inline void expression_set_int(union expression_slot *slot, int64_t value)
{
    slot->w.low = (uint64_t)value;
    slot->w.high = value >> 63;
}

/* Where the elements of an array field are. */
struct expression_array {
    uint32_t offset, presence; /* of the first element and of the count, from the same base */
    uint32_t size, count_max;
    const struct det_field *field;
};

/* The constants of a list, sorted; one of the three. */
struct expression_list {
    size_t count;
    det_i128 *integers;
    double *floats;
    struct det_view *texts;
};

enum expression_operation {
#define OPERATION(name, ...) EXPRESSION_##name,
#include "expression/operations.def"
#undef OPERATION
    EXPRESSION_OPERATION_COUNT
};

/* A comparison is followed by its variants: with a constant on the right side; that jumps if false,
 * without and with a constant; that jumps if true. */
enum expression_variant {
    EXPRESSION_PLAIN,
    EXPRESSION_K,
    EXPRESSION_JUMP_IF_FALSE = 2,
    EXPRESSION_JUMP_IF_TRUE = 4,
    EXPRESSION_VARIANTS = 6,
    EXPRESSION_FIELD_VARIANTS = 3, /* of a field: plain, if false, if true */
};

/* The rows that are evaluated one after the other: the last step goes on with the next one. */
struct expression_batch {
    const void *inputs[DET_EXPRESSION_INPUT_MAX]; /* of the current row */
    const size_t *strides;
    size_t input_count;
    size_t index, count;
    int8_t *results;
    size_t target_stride;
};

/* One call of det_expression_run(). */
struct expression_frame {
    struct det_expression_scratch *scratch;
    uint8_t *target;                /* the struct to store in; NULL: none */
    struct expression_batch *batch; /* NULL: one evaluation */
    const char *reason;             /* of an error */
};

/* Evaluates a function: arguments from `slots`, the result into the first of them. Returns 0, 1 if
 * the result is absent, or an error with a reason. */
typedef int expression_call(struct expression_frame *frame, union expression_slot *slots);

struct expression_step {
    uint16_t operation;
    uint16_t jump; /* where a step that jumps goes; of calls and indexes, if the value is absent;
                    * 0: an error instead */
    uint8_t target, a, b;
    uint8_t input;
    union {
        int64_t i;
        double f;
        struct {
            uint32_t offset, capacity;
        } place;
        const struct det_view *text;
        const struct expression_array *array;
        const struct expression_list *list;
        const struct det_enum *enumeration;
        const struct expression_target *target;
        expression_call *call;
    } k;
};

/* Where det_expression_store() puts the result. */
struct expression_target {
    const struct det_field *field; /* NULL: nowhere */
    uint32_t base;                 /* offset of the record of the field */
    enum det_expression_type type; /* of the result */
    bool is_checked;               /* an integer may be out of range */
};

struct det_expression {
    struct det_arena arena; /* the expression itself is not in it */
    const struct det_allocator *allocator;
    struct expression_step *steps;
    uint16_t *columns; /* offset in the text, for each step */
    size_t step_count;
    enum det_expression_type type;
    size_t input_count;
    struct expression_target target;
    struct det_expression_read *reads;
    size_t read_count;
};

/* Runs the steps: 0 with the result in slot 0, 1 if it is absent, or an error; `ret_step` has then
 * the failed step. */
int det_expression_run(
    const struct expression_step *steps, const void *const *inputs, struct expression_frame *frame,
    const struct expression_step **ret_step);

/* Goes on with the next row; false if there is none. */
static inline bool expression_next_row(struct expression_frame *frame, int8_t result)
{
    struct expression_batch *batch = frame->batch;

    if (!batch)
        return false;
    batch->results[batch->index] = result;
    if (++batch->index == batch->count)
        return false;
    for (size_t i = 0; i < batch->input_count; i++)
        if (batch->strides[i] > 0)
            batch->inputs[i] = (const uint8_t *)batch->inputs[i] + batch->strides[i];
    if (frame->target)
        frame->target += batch->target_stride;
    frame->scratch->used = 0;
    return true;
}

/* The error of a failed step, with its column. */
int det_expression_report(
    const struct det_expression *expression, const struct expression_step *step,
    const struct expression_frame *frame, int code, struct det_error *reterr);
static inline const union expression_slot *expression_result(
    const struct det_expression_scratch *scratch)
{
    return (const union expression_slot *)(const void *)scratch->slots;
}

/* Stores the result of a step in its field; an error has its reason in the frame. */
int det_expression_store_value(
    const struct expression_target *target, struct expression_frame *frame,
    const union expression_slot *slot);

/* Whether a list has a value. */
bool det_expression_list_has(const struct expression_list *list, const union expression_slot *slot);
bool det_expression_list_has_float(const struct expression_list *list, double value);
bool det_expression_list_has_text(const struct expression_list *list, struct det_view text);
bool det_expression_array_has(
    struct expression_elements elements, const struct expression_array *array,
    const union expression_slot *slot);
/* Negative, 0 or positive: by the bytes; the shorter one of two that begin alike is less. */
int det_expression_compare_texts(struct det_view a, struct det_view b);

#endif
