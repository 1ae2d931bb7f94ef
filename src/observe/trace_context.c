/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_context.c - reads and writes the header traceparent. */
#include <detent/trace.h>

#include <string.h>

#include "base/hex.h"

/* Offsets of the parts of a traceparent. */
enum { VERSION_AT = 0, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, END = 55 };

static bool is_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

/* A later version may only append parts after a dash; version ff is invalid. */
static bool is_shaped(const char *text, size_t size, unsigned version)
{
    if (version == 0xFF || text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-')
        return false;
    return size == END || (version > 0 && text[END] == '-');
}

int det_trace_parse(const char *text, size_t size, struct det_trace_context *ret)
{
    struct det_trace_context context;
    unsigned char version, flags;

    if (size < END || !det_hex_read(text + VERSION_AT, &version, 1) ||
        !is_shaped(text, size, version) ||
        !det_hex_read(text + TRACE_AT, context.trace_id, sizeof context.trace_id) ||
        !det_hex_read(text + SPAN_AT, context.span_id, sizeof context.span_id) ||
        !det_hex_read(text + FLAGS_AT, &flags, 1))
        return DET_ERR_MALFORMED;
    if (is_zero(context.trace_id, sizeof context.trace_id) ||
        is_zero(context.span_id, sizeof context.span_id))
        return DET_ERR_MALFORMED;
    context.flags = flags & DET_TRACE_SAMPLED;
    *ret = context;
    return 0;
}

char *det_trace_format(const struct det_trace_context *context, char target[DET_TRACEPARENT_TEXT])
{
    unsigned char flags = context->flags & DET_TRACE_SAMPLED;

    memcpy(target, "00-", TRACE_AT);
    det_hex_write(context->trace_id, sizeof context->trace_id, target + TRACE_AT);
    target[SPAN_AT - 1] = '-';
    det_hex_write(context->span_id, sizeof context->span_id, target + SPAN_AT);
    target[FLAGS_AT - 1] = '-';
    det_hex_write(&flags, 1, target + FLAGS_AT);
    return target;
}
