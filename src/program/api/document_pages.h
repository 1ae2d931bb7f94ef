/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_pages.h - documents of workers and their deltas as JSON, for pages and for streams. */
#ifndef DET_API_DOCUMENT_PAGES_H
#define DET_API_DOCUMENT_PAGES_H

#include <detent/tool/documents.h>

#include "api/api.h"

/* What the query says: below, kind, role. False: the call has failed. */
bool api_documents_query(struct api_call *call, struct det_document_query *ret);
/* Numbers stay as they are in the store; what people put by hand shows no config. */
void api_delta_line(struct det_json_writer *json, const struct det_delta *delta);
/* A page of deltas, in a lane; `own` of the call is the sync id that it is behind. */
void api_list_deltas(struct api_call *call);

#endif
