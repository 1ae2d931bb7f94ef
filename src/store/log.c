/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.c - which rows of the log are wanted, and when a walk ends. */
#include "store/log.h"

#include <string.h>

void det_rows_log_begin(struct det_log_walk *walk, const struct det_store_log_query *query)
{
    *walk = (struct det_log_walk){ .query = query, .next = query->after };
}

bool det_log_ends(const struct det_log_walk *walk, uint64_t position)
{
    const struct det_store_log_query *query = walk->query;

    if (walk->looked == 0 || position == walk->next)
        return false;
    return (query->limit && walk->wanted >= query->limit) ||
           (query->budget && walk->looked >= query->budget);
}

static bool is_named(const char *wanted, const char *name)
{
    return !wanted || (name && strcmp(wanted, name) == 0);
}

bool det_log_look(struct det_log_walk *walk, const struct det_store_logged *row)
{
    const struct det_store_log_query *query = walk->query;
    bool is_wanted = row->machine && is_named(query->machine, row->machine) &&
                     is_named(query->id, row->id) && is_named(query->event, row->event) &&
                     is_named(query->state, row->to) && row->at >= query->since &&
                     (!query->until || row->at < query->until);

    walk->next = row->position;
    walk->looked++;
    walk->wanted += is_wanted;
    return is_wanted;
}

struct det_chain_bytes det_trace_context_bytes(
    const struct det_trace_context *trace, unsigned char room[DET_TRACE_SIZE])
{
    if (!trace)
        return (struct det_chain_bytes){ NULL, 0 };
    memcpy(room, trace->trace_id, sizeof trace->trace_id);
    memcpy(room + sizeof trace->trace_id, trace->span_id, sizeof trace->span_id);
    room[DET_TRACE_SIZE - 1] = trace->flags;
    return (struct det_chain_bytes){ room, DET_TRACE_SIZE };
}

bool det_trace_context_read(struct det_chain_bytes bytes, struct det_trace_context *ret)
{
    const unsigned char *data = bytes.data;

    if (!data || bytes.size != DET_TRACE_SIZE)
        return false;
    memcpy(ret->trace_id, data, sizeof ret->trace_id);
    memcpy(ret->span_id, data + sizeof ret->trace_id, sizeof ret->span_id);
    ret->flags = data[DET_TRACE_SIZE - 1];
    return true;
}
