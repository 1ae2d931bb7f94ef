/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage_key.h - the key of a row, as bytes: equal for equal values of one type. */
#ifndef DET_FLOW_STAGE_KEY_H
#define DET_FLOW_STAGE_KEY_H

#include "flow/flow_internal.h"
#include "flow/key.h"

struct det_stage_key {
    struct det_expression *expression; /* NULL: one key for all rows */
    struct det_expression_scratch *scratch;
    uint8_t bytes[9];
};

/* `text` NULL: one key for all rows. */
DET_MUST_CHECK int det_stage_key_open(
    struct det_stage_key *key, const struct det_flow_stage *stage, const char *text,
    const struct det_record *record, struct det_error *reterr);
void det_stage_key_close(struct det_stage_key *key, const struct det_flow_stage *stage);
/* `ret` is valid until the next call. Errors as of det_expression_value(). */
DET_MUST_CHECK int det_stage_key_of(
    struct det_stage_key *key, const void *value, struct det_view *ret, struct det_error *reterr);
/* Rejects the row in hand, whose key has no value: what a function would return. */
int det_stage_key_reject(struct det_flow_call *call, int code, const struct det_error *error);

#endif
