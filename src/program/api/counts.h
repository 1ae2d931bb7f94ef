/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* counts.h - how much there is in the store, counted now and then: to count looks at every
 * instance, so many who ask share one count, and it is made no more often than it can be paid for.
 */
#ifndef DET_API_COUNTS_H
#define DET_API_COUNTS_H

#include "api/api.h"

struct api_counts;

DET_MUST_CHECK int api_counts_open(struct api *api, struct det_error *reterr);
void api_counts_close(struct api *api);
/* The machines of the store, as elements of an array that is open. On the pool, with the reader of
 * the call; false: the call has failed. `ret_bytes` (may be NULL): of the store. */
bool api_counts_write(struct api_call *call, uint64_t *ret_bytes);

/* How many effects were dead when it was last counted. On the pool. */
uint64_t api_counts_dead(struct api *api);

#endif
