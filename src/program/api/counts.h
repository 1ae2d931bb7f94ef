/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* counts.h - counts of the content of the store. Counting visits every instance, so requests share
 * a cached count, which is refreshed at a limited rate. */
#ifndef DET_API_COUNTS_H
#define DET_API_COUNTS_H

#include "api/api.h"

struct api_counts;

DET_MUST_CHECK int api_counts_open(struct api *api, struct det_error *reterr);
void api_counts_close(struct api *api);
/* Writes the machines of the store as elements of the open array. In a lane, with the reader of the
 * call. `ret_bytes` (may be NULL): size of the store. False: the call has failed. */
bool api_counts_write(struct api_call *call, uint64_t *ret_bytes);

/* Returns the number of dead letters at the last count. In a lane. */
uint64_t api_counts_dead(struct api *api);

#endif
