/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* key.h - the keys of stages: expressions over one record. */
#ifndef DET_FLOW_KEY_H
#define DET_FLOW_KEY_H

#include <detent/expression.h>
#include <detent/flow.h>

/* Compiles a key over the record. Its value is not a float, a record or an array: it is compared
 * for equality, and always present. Errors as of det_expression_open(). */
DET_MUST_CHECK int det_flow_key_open(
    const char *text, const struct det_record *record, const struct det_allocator *allocator,
    struct det_expression **ret, struct det_error *reterr);
/* True if values of the two types can be equal. */
bool det_flow_key_matches(const struct det_expression *a, const struct det_expression *b);
/* The sentence of an error of an expression without its column. */
const char *det_flow_key_sentence(const char *text);

#endif
