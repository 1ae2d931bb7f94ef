/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.c - selects rows of the log, and ends a walk. */
#include <detent/tool/store.h>

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

bool det_log_select(struct det_log_walk *walk, const struct det_store_logged *row)
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

bool det_trace_context_read(struct det_chain_bytes bytes, struct det_trace_context *ret)
{
    if (!bytes.data || bytes.size != sizeof *ret)
        return false;
    memcpy(ret, bytes.data, sizeof *ret);
    return true;
}
