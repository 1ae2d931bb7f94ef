/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* key.c - the keys of stages: expressions over one record. */
#include "flow/key.h"

#include <string.h>

static bool is_key(enum det_expression_type type)
{
    return type == DET_EXPRESSION_INT || type == DET_EXPRESSION_BOOL ||
           type == DET_EXPRESSION_TEXT || type == DET_EXPRESSION_BYTES ||
           type == DET_EXPRESSION_TIME || type == DET_EXPRESSION_DURATION ||
           type == DET_EXPRESSION_ENUM;
}

int det_flow_key_open(
    const char *text, const struct det_record *record, const struct det_allocator *allocator,
    struct det_expression **ret, struct det_error *reterr)
{
    const struct det_expression_input input = { .record = record };
    struct det_expression_options options = {
        .inputs = &input,
        .input_count = 1,
        .allocator = allocator,
    };
    struct det_expression *key = NULL;
    enum det_expression_type type;
    int r;

    r = det_expression_open(text, strlen(text), &options, &key, reterr);
    if (r < 0)
        return r;
    type = det_expression_type(key);
    if (!is_key(type)) {
        det_expression_close(key);
        return det_error_set(
            reterr, DET_ERR_TYPE, "column 1: a key cannot be of the type %s",
            det_expression_type_name(type));
    }
    *ret = key;
    return 0;
}

bool det_flow_key_matches(const struct det_expression *a, const struct det_expression *b)
{
    return det_expression_type(a) == det_expression_type(b);
}

const char *det_flow_key_sentence(const char *text)
{
    static const char head[] = "column ";
    size_t digits;

    if (strncmp(text, head, sizeof head - 1) != 0)
        return text;
    digits = strspn(text + sizeof head - 1, "0123456789");
    return strncmp(text + sizeof head - 1 + digits, ": ", 2) == 0
               ? text + sizeof head - 1 + digits + 2
               : text;
}
