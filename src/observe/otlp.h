/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp.h - spans as the body of an OTLP/HTTP request in JSON, an ExportTraceServiceRequest: ids in
 * hexadecimal and 64-bit numbers as strings, as the JSON mapping of OTLP wants them. */
#ifndef DET_OBSERVE_OTLP_H
#define DET_OBSERVE_OTLP_H

#include "base/buffer.h"
#include "observe/span.h"

/* Who the spans are of. NULL: not told. */
struct det_otlp_resource {
    const char *service_name;
    const char *service_version;
    const char *instance_id;
};

/* Appends the request; the buffer's error says what went wrong. */
void det_otlp_write(
    struct det_buffer *buffer, const struct det_otlp_resource *resource,
    const struct det_span *spans, size_t count);

#endif
