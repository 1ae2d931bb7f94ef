/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* complete_history.c - reads consecutive events, up to the sequence of their instance. */
#include "transfer/complete_history.h"

#include "base/assert.h"

struct walk {
    const struct history_visit *history_visit;
    uint64_t next;  /* sequence of the next one; 0: the first one is unknown */
    bool has_newer; /* than the instance that was loaded */
};

static int take_event(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;
    const struct history_visit *history_visit = walk->history_visit;

    if (row->sequence > history_visit->loaded->head.sequence) {
        walk->has_newer = true;
        return 0;
    }
    if (walk->next && row->sequence != walk->next && !history_visit->allows_holes)
        return DET_ERR_BUSY;
    walk->next = row->sequence + 1;
    det_assert(walk->next <= history_visit->loaded->head.sequence + 1);
    return history_visit->visit(history_visit->context, row);
}

/* If none is stored, none is missing. */
static bool has_come_to_the_end(const struct walk *walk)
{
    if (walk->next)
        return walk->next == walk->history_visit->loaded->head.sequence + 1;
    return !walk->has_newer;
}

int complete_events(const struct cli_store *store, const struct history_visit *history_visit)
{
    struct walk walk = { .history_visit = history_visit, .next = history_visit->first };
    int r;

    r = store->ops->events(store->store, history_visit->loaded->instance, 0, take_event, &walk);
    if (r == 0 && !history_visit->allows_holes && !has_come_to_the_end(&walk))
        r = DET_ERR_BUSY;
    return r;
}
