/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_writes.h - what the ways to write to instances share: instance_writes.c, batch.c. */
#ifndef DET_API_INSTANCE_WRITES_H
#define DET_API_INSTANCE_WRITES_H

#include "api/api_internal.h"
#include "observe/event_spans.h"

/* Events as structs may be much larger than their JSON: a text has the room that its record says.
 * So room is taken before one is read, until the end of the call. DET_ERR_LIMIT and DET_ERR_BUSY
 * when there is none, for this call or for all. */
DET_MUST_CHECK int api_take_room(struct api_call *call, size_t size, struct det_error *reterr);
/* The event struct of a name and a payload, in the call's arena. */
DET_MUST_CHECK int api_read_event(
    struct api_call *call, const struct det_machine *machine, const char *name,
    struct det_view data, void **ret, struct det_error *reterr);
const char *api_event_name(const struct det_send *send);
/* The answer to a write as an object. `event` NULL: there was none. */
void api_write_sent(
    struct det_json_writer *json, const struct det_machine *machine, const char *id,
    const char *event, const struct det_sent *sent);

/* The context that a write is sent with: that of the caller, or of a span below it that begins
 * here, where somebody gets spans; else `ret` is NULL. */
const struct det_trace_context *api_begin_span(
    struct api_call *call, struct det_span **ret, const struct det_episode_what *what);
void api_end_span(
    struct api_call *call, struct det_span *span, const struct det_machine *machine, int r,
    const struct det_sent *sent, const struct det_error *error);

#endif
