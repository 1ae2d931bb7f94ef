/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage_key.c - the key of a row, as bytes. */
#include "flow/stages/stage_key.h"

#include <string.h>

#include "base/memory.h"
#include "record/word64.h"

int det_stage_key_open(
    struct det_stage_key *key, const struct det_flow_stage *stage, const char *text,
    const struct det_record *record, struct det_error *reterr)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct det_error error;
    int r;

    if (!text)
        return 0;
    r = det_flow_key_open(text, record, allocator, &key->expression, &error);
    if (r < 0)
        return det_error_set(reterr, r, "key of stage %s: %s", stage->spec->name, error.text);
    key->scratch = DET_NEW(allocator, struct det_expression_scratch);
    if (!key->scratch)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "out of memory for stage %s", stage->spec->name);
    return 0;
}

void det_stage_key_close(struct det_stage_key *key, const struct det_flow_stage *stage)
{
    det_expression_close(key->expression);
    if (key->scratch)
        DET_DELETE(stage->pipeline->allocator, key->scratch);
}

/* Numbers above INT64_MAX differ from negative ones by the first byte. */
static struct det_view number_key(struct det_stage_key *key, bool is_unsigned, uint64_t number)
{
    key->bytes[0] = is_unsigned;
    det_word_store(key->bytes + 1, number);
    return det_view_of((const char *)key->bytes, sizeof key->bytes);
}

static struct det_view key_bytes(
    struct det_stage_key *key, const struct det_expression_value *value)
{
    switch (value->type) {
    case DET_EXPRESSION_INT:
        return number_key(key, value->is_unsigned, value->natural);
    case DET_EXPRESSION_ENUM:
        return number_key(key, false, (uint64_t)value->integer);
    case DET_EXPRESSION_TIME:
    case DET_EXPRESSION_DURATION:
        return number_key(key, false, (uint64_t)value->time);
    case DET_EXPRESSION_BOOL:
        return number_key(key, false, value->truth);
    case DET_EXPRESSION_TEXT:
    case DET_EXPRESSION_BYTES:
        return det_view_of(value->text.data, value->text.size);
    case DET_EXPRESSION_ANY:
    case DET_EXPRESSION_FLOAT:
    case DET_EXPRESSION_RECORD:
    case DET_EXPRESSION_ARRAY:
        break; /* refused by det_flow_key_open() */
    }
    return det_view_of("", 0);
}

int det_stage_key_of(
    struct det_stage_key *key, const void *value, struct det_view *ret, struct det_error *reterr)
{
    struct det_expression_value result;
    int r;

    if (!key->expression) {
        *ret = det_view_of("", 0);
        return 0;
    }
    r = det_expression_value(key->expression, &value, key->scratch, &result, reterr);
    if (r < 0)
        return r;
    *ret = key_bytes(key, &result);
    return 0;
}

int det_stage_key_reject(struct det_flow_call *call, int code, const struct det_error *error)
{
    (void)det_stage_reject(
        &call->base, DET_REJECT_VALIDATION, "its key has no value: %s", error->text);
    return code;
}
