/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace.h - trace context: the request that something belongs to, across programs, as the header
 * `traceparent` of the W3C carries it. Neither of its ids is all zero in one that is valid.
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version  trace id                    span id       flags */
#ifndef DETENT_TRACE_H
#define DETENT_TRACE_H

#include <detent/base.h>

DET_BEGIN

#define DET_TRACE_SAMPLED 0x01 /* this trace is kept */
/* A traceparent as it is written, with its final 0. */
#define DET_TRACEPARENT_TEXT 56

/* A span of a trace; neither id is all zero in one that is valid. It is for observation alone and
 * changes nothing. */
struct det_trace_context {
    unsigned char trace_id[16], span_id[8];
    uint8_t flags;
};

/* Reads a traceparent, strictly: lower case, nothing around it, ids that are not zero. What a later
 * version appends is passed over, and unknown flags are left out. DET_ERR_MALFORMED. */
DET_API int det_trace_parse(const char *text, size_t size, struct det_trace_context *ret)
    DET_MUST_CHECK;
/* Writes a traceparent of version 00. Returns `target`. */
DET_API char *det_trace_format(
    const struct det_trace_context *context, char target[DET_TRACEPARENT_TEXT]);

DET_END
#endif
