/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp.h - spans as the body of an OTLP/HTTP request in JSON, an ExportTraceServiceRequest: ids in
 * hexadecimal and 64-bit numbers as strings, as the JSON mapping of OTLP requires. */
#ifndef DET_OBSERVE_OTLP_H
#define DET_OBSERVE_OTLP_H

#include "observe/span.h"
#include "json/writer.h"

/* The service that the spans belong to. NULL: not reported. */
struct det_otlp_resource {
    const char *service_name;
    const char *service_version;
    const char *instance_id;
};

/* Writes the request; check the status of the buffer afterwards. */
void det_otlp_write(
    struct det_json_writer *json, const struct det_otlp_resource *resource,
    const struct det_span *spans, size_t count);

#endif
