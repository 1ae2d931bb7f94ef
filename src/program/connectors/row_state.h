/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_state.h - a state of rows and numbers, with a record that is made for a stage.
 *
 *     header | rows (rows_max of the record) | numbers (numbers_max) */
#ifndef DET_CONNECTORS_ROW_STATE_H
#define DET_CONNECTORS_ROW_STATE_H

#include <detent/expression.h>
#include <detent/flow.h>

/* The begin of a state; rows follow. */
struct row_state {
    uint32_t row_count, number_count;
};

struct row_state_layout {
    const struct det_record *row;
    uint32_t rows_max, numbers_max; /* not 0 */
};

/* Makes the record of such states; DET_ERR_LIMIT if they are too large. For open_state() and
 * close_state() of a connector. */
DET_MUST_CHECK int row_state_open(
    const struct row_state_layout *layout, const struct det_allocator *allocator,
    const struct det_record **ret, struct det_error *reterr);
void row_state_close(const struct det_record *record, const struct det_allocator *allocator);

void *row_state_row(const struct row_state_layout *layout, struct row_state *state, uint32_t index);
uint64_t *row_state_numbers(const struct row_state_layout *layout, struct row_state *state);

/* Returns true if values of this type have an order. */
bool row_value_is_ordered(enum det_expression_type type);
/* Compares two values of one type, by their order or, of other types than those, for equality. */
int row_value_compare(const struct det_expression_value *a, const struct det_expression_value *b);

#endif
