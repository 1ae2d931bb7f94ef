/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_reading.h - the journal of a flow, opened for one job of a lane. */
#ifndef DET_API_FLOW_READING_H
#define DET_API_FLOW_READING_H

#include "api/api.h"
#include "config/flow_file.h"
#include "daemon/flows.h"
#include "inspect/flow_rows.h"

/* While the pipeline of a flow is open, its journal is shared with it; otherwise, and for an
 * earlier run, the files are opened for reading. */
struct flow_reading {
    struct api *api;
    struct up_flow_hold hold;
    struct det_journal *own; /* opened here; NULL: none */
    struct flow_view view;   /* its journal is NULL: the flow has not run, or nothing is left */
};

/* `run`: 0: the last one. DET_ERR_NOT_FOUND: no such flow. In a lane; it must not wait for anything
 * but the disk until flow_reading_close(). */
DET_MUST_CHECK int flow_reading_open(
    struct api *api, const char *name, uint64_t run, struct flow_reading *ret,
    struct det_error *reterr);
void flow_reading_close(struct flow_reading *reading);

/* flow_routes.c. The query key `stream`; NULL: not given. False: the call has failed. */
bool api_query_stream(struct api_call *call, const char **ret);
/* True for a stream that exists, or will: a stage has none before its first row. */
bool api_flow_has_stream(const struct det_flow *flow, const char *stream);
/* Sets the error that it has none, with the nearest one. `name` is that of the flow in the project.
 * Returns DET_ERR_NOT_FOUND. */
int api_flow_fail_stream(
    const struct det_flow *flow, const char *name, const char *stream, struct det_error *reterr);

#endif
