/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.h - a walk through the log as both SQL drivers go: which rows are wanted, when it ends. */
#ifndef DET_STORE_LOG_H
#define DET_STORE_LOG_H

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include "store/chain.h"

/* In a table it is what it is in memory: bytes without padding. */
#define DET_TRACE_SIZE 25
_Static_assert(sizeof(struct det_trace_context) == DET_TRACE_SIZE, "as docs/formats says");

struct det_log_walk {
    const struct det_store_log_query *query;
    uint64_t next; /* the last position that was looked at */
    size_t looked, wanted;
};

void det_rows_log_begin(struct det_log_walk *walk, const struct det_store_log_query *query);
/* Whether it ends before a row at this position: nothing ends between two that share one. */
bool det_log_ends(const struct det_log_walk *walk, uint64_t position);
/* Counts a row; whether it is wanted. One whose instance is gone has no machine, and is not. */
bool det_log_look(struct det_log_walk *walk, const struct det_store_logged *row);

/* A trace as a table has it, and back; NULL and false: there is none, or it is none. */
static inline struct det_chain_bytes det_trace_context_bytes(const struct det_trace_context *trace)
{
    return (struct det_chain_bytes){ trace, trace ? sizeof *trace : 0 };
}
bool det_trace_context_read(struct det_chain_bytes bytes, struct det_trace_context *ret);

#endif
