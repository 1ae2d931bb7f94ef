/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* functions.h - what the functions of expressions compute. */
#ifndef DET_EXPRESSION_FUNCTIONS_H
#define DET_EXPRESSION_FUNCTIONS_H

#include "expression/program.h"

#define FUNCTION(name, ...) expression_call det_expression_call_##name;
#define SPECIAL(name, ...)
#include "expression/functions.def"
#undef FUNCTION
#undef SPECIAL

/* The functions that have one for each type. */
expression_call det_expression_floor, det_expression_ceil, det_expression_round,
    det_expression_truncate, det_expression_abs_int, det_expression_abs_span,
    det_expression_abs_float, det_expression_text_of_int, det_expression_text_of_float,
    det_expression_text_of_bool, det_expression_text_of_time, det_expression_text_of_duration,
    det_expression_hash_text, det_expression_hash_int, det_expression_length_text,
    det_expression_length_bytes, det_expression_concatenate;

#endif
