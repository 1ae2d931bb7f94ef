/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_writes.h - shared by instance_writes.c and event_batch.c. */
#ifndef DET_API_INSTANCE_WRITES_H
#define DET_API_INSTANCE_WRITES_H

#include "api/api_internal.h"
#include "observe/event_spans.h"

/* A decoded event may be much larger than its JSON, since each text has the capacity that its
 * record declares. So reserve memory before decoding, until the end of the call. DET_ERR_LIMIT: too
 * much for this call; DET_ERR_BUSY: too much for all calls. */
DET_MUST_CHECK int api_take_room(struct api_call *call, size_t size, struct det_error *reterr);
/* Decodes an event from a name and a payload, in the arena of the call. */
DET_MUST_CHECK int api_read_event(
    struct api_call *call, const struct det_machine *machine, const char *name,
    struct det_view data, void **ret, struct det_error *reterr);
const char *api_event_name(const struct det_send *send);
/* Writes the answer to a write as an object. `event` NULL: none. */
void api_write_sent(
    struct det_json_writer *json, const struct det_machine *machine, const char *id,
    const char *event, const struct det_sent *sent);

/* Returns the trace context of a write: that of a new span, if spans are exported; otherwise that
 * of the caller, and `ret` is NULL. */
const struct det_trace_context *api_begin_span(
    struct api_call *call, struct det_span **ret, const struct det_episode_what *what);
void api_end_span(
    struct api_call *call, struct det_span *span, const struct det_machine *machine, int r,
    const struct det_sent *sent, const struct det_error *error);

#endif
