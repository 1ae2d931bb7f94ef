/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_stream.h - opens and closes the streams of flows. */
#ifndef DET_API_FLOW_STREAM_H
#define DET_API_FLOW_STREAM_H

#include "api/api.h"

struct api_flows;

DET_MUST_CHECK int api_flows_open(struct api *api, struct det_error *reterr);
void api_flows_close(struct api *api);
/* Reports new rows of a flow, or a change of its state. On any thread, as api_notice(). */
void api_notice_flow(struct up *up);

#endif
