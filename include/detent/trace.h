/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace.h - trace context: identifies the request that an event or effect belongs to, across
 * programs, as in the W3C header `traceparent`.
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version  trace id                    span id       flags */
#ifndef DETENT_TRACE_H
#define DETENT_TRACE_H

#include <detent/base.h>

DET_BEGIN

#define DET_TRACE_SAMPLED 0x01 /* this trace is recorded */
/* Bytes of a traceparent, including its final 0. */
#define DET_TRACEPARENT_TEXT 56

/* A span of a trace; neither id of a valid context is all zero. For observation only. */
struct det_trace_context {
    unsigned char trace_id[16], span_id[8];
    uint8_t flags;
};

/* Parses a traceparent, strictly: lower case, no surrounding text, no zero ids. Extensions of later
 * versions are ignored, and unknown flags are dropped. DET_ERR_MALFORMED. */
DET_API int det_trace_parse(const char *text, size_t size, struct det_trace_context *ret)
    DET_MUST_CHECK;
/* Writes a traceparent of version 00. Returns `target`. */
DET_API char *det_trace_format(
    const struct det_trace_context *context, char target[DET_TRACEPARENT_TEXT]);

DET_END
#endif
