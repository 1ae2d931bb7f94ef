/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_pages.h - documents of workers and their deltas as JSON, for pages and for streams. */
#ifndef DET_API_DOCUMENT_PAGES_H
#define DET_API_DOCUMENT_PAGES_H

#include <detent/tool/documents.h>

#include "api/api.h"

/* Reads `below`, `kind` and `role` from the query. False: the call has failed. */
bool api_documents_query(struct api_call *call, struct det_document_query *ret);
/* Reads `reveal` from the query: show configs of manually created workers, over the unix socket
 * only. False: the call has failed. */
bool api_documents_reveal(struct api_call *call, bool *ret);
/* Writes a delta. Numbers are copied from the store; a manually created worker shows its config
 * only if `is_revealed`. */
void api_delta_line(struct det_json_writer *json, const struct det_delta *delta, bool is_revealed);
/* Writes a page of deltas, in a lane; `own` of the call is the sync id before the first. */
void api_list_deltas(struct api_call *call);

#endif
