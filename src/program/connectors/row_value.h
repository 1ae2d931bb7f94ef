/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_value.h - a value that is computed from a row: a field by its name, or an expression. */
#ifndef DET_CONNECTORS_ROW_VALUE_H
#define DET_CONNECTORS_ROW_VALUE_H

#include <detent/expression.h>

#include "connectors/columns.h"

struct row_value {
    const struct column *column;       /* a field; else NULL */
    struct det_expression *expression; /* else NULL */
};

/* The columns and the record outlive the value. Errors are those of det_expression_open(). */
DET_MUST_CHECK int row_value_init(
    struct row_value *value, const struct det_allocator *allocator, const char *text,
    const struct columns *columns, const struct det_record *record, struct det_error *reterr);
void row_value_deinit(struct row_value *value);
/* Appends the value as JSON, absent ones as null, or as text, absent ones as "". A negative result
 * is that of the evaluation; failures of the buffer stick to it. */
DET_MUST_CHECK int row_value_write(
    const struct row_value *value, const void *row, bool is_json,
    struct det_expression_scratch *scratch, struct det_buffer *buffer, struct det_error *reterr);

#endif
