/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_fields.h - fills an output row: fields by expressions, and copies of fields with equal names.
 *
 *     {set: {celsius: "(fahrenheit - 32) / 1.8"}}
 *
 * A field without an expression gets the input's field of the same name: fields of the same type
 * are copied as bytes, others are converted by an expression. */
#ifndef DET_CONNECTORS_ROW_FIELDS_H
#define DET_CONNECTORS_ROW_FIELDS_H

#include <detent/expression.h>

#include "connectors/settings.h"

/* The inputs of expressions about a row: its fields by their names, `now` and `event_time`. */
#define ROW_INPUTS 3
void row_inputs(const struct det_record *in, struct det_expression_input target[ROW_INPUTS]);
void row_pointers(
    const struct det_stage_call *call, const void *in, const void *target[ROW_INPUTS]);

struct row_copy {
    uint32_t from, to, size;
};
struct row_formula {
    struct det_expression *expression;
    char *field; /* its path in the target */
};

/* The zero value with an allocator is empty. */
struct row_fields {
    const struct det_allocator *allocator;
    uint32_t copy_count, formula_count;
    struct row_copy copies[2 * DET_RECORD_FIELD_MAX];
    struct row_formula formulas[DET_RECORD_FIELD_MAX];
};

/* For what is added: where the settings are, what expressions read, and what is filled. Inputs and
 * target are borrowed as long as the fields live. */
struct row_fields_options {
    const struct settings *settings;
    const struct det_expression_input *inputs;
    size_t input_count;
    const struct det_record *target;
};

void row_fields_close(struct row_fields *fields);
/* Adds an expression for a field of the target; `datum` is its place in the settings. */
DET_MUST_CHECK int row_fields_add(
    struct row_fields *fields, const struct row_fields_options *options,
    const struct det_datum *datum, const char *field, const char *text, struct det_error *reterr);
/* Adds the expressions of the map at `key`, which may be missing: path of a field, and text. */
DET_MUST_CHECK int row_fields_add_map(
    struct row_fields *fields, const struct row_fields_options *options, const char *key,
    struct det_error *reterr);
/* Adds the fields of the target that are not set yet, from those of `in` with equal names. If
 * `is_complete`, it is an error with a remedy that a field gets no value and is not optional. */
DET_MUST_CHECK int row_fields_add_copies(
    struct row_fields *fields, const struct row_fields_options *options,
    const struct det_record *in, bool is_complete, struct det_error *reterr);
/* Adds one field of `in` that becomes a field of the target. */
DET_MUST_CHECK int row_fields_add_copy(
    struct row_fields *fields, const struct row_fields_options *options,
    const struct det_field *from, const struct det_field *to, struct det_error *reterr);
/* Counts a field of the target as set: the caller sets it. */
void row_fields_reserve(struct row_fields *fields, const struct det_field *field);
/* Returns true if an expression or a copy sets a field of the target. */
bool row_fields_have(const struct row_fields *fields, const struct det_field *field);
/* Fills a row of the target. Copies are from `in`. The error of an expression begins with the name
 * of its field. */
DET_MUST_CHECK int row_fields_fill(
    const struct row_fields *fields, const void *in, const void *const *inputs,
    struct det_expression_scratch *scratch, void *row, struct det_error *reterr);

/* Compiles one expression of the settings. The error has its key. */
DET_MUST_CHECK int row_expression(
    const struct row_fields_options *options, const char *key, const char *text,
    enum det_expression_type type, const struct det_allocator *allocator,
    struct det_expression **ret, struct det_error *reterr);

#endif
