/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.h - a walk through the log, for both SQL drivers: selects rows and ends the walk. */
#ifndef DET_STORE_LOG_H
#define DET_STORE_LOG_H

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include "store/chain.h"

/* Size in tables, equal to that in memory: bytes without padding. */
#define DET_TRACE_SIZE 25
_Static_assert(sizeof(struct det_trace_context) == DET_TRACE_SIZE, "as docs/formats says");

struct det_log_walk {
    const struct det_store_log_query *query;
    uint64_t next; /* the last position read */
    size_t looked, wanted;
};

void det_rows_log_begin(struct det_log_walk *walk, const struct det_store_log_query *query);
/* True if the walk ends before a row at this position: a walk never ends between rows that share a
 * position. */
bool det_log_ends(const struct det_log_walk *walk, uint64_t position);
/* Counts a row; returns true if it is selected. A row of a deleted instance has no machine, and is
 * never selected. */
bool det_log_select(struct det_log_walk *walk, const struct det_store_logged *row);

/* Converts a trace context to table bytes and back; NULL and false: none or invalid. */
static inline struct det_chain_bytes det_trace_context_bytes(const struct det_trace_context *trace)
{
    return (struct det_chain_bytes){ trace, trace ? sizeof *trace : 0 };
}
bool det_trace_context_read(struct det_chain_bytes bytes, struct det_trace_context *ret);

#endif
