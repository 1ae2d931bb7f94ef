/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* complete_history.c - reads consecutive events, up to the sequence of their instance. */
#include "transfer/complete_history.h"

struct walk {
    const struct whole *whole;
    uint64_t next;  /* sequence of the next one; 0: the first one is unknown */
    bool has_newer; /* than the instance that was loaded */
};

static int take_event(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;
    const struct whole *whole = walk->whole;

    if (row->sequence > whole->loaded->head.sequence) {
        walk->has_newer = true;
        return 0;
    }
    if (walk->next && row->sequence != walk->next && !whole->allows_holes)
        return DET_ERR_BUSY;
    walk->next = row->sequence + 1;
    return whole->visit(whole->context, row);
}

/* If none is stored, none is missing. */
static bool has_come_to_the_end(const struct walk *walk)
{
    if (walk->next)
        return walk->next == walk->whole->loaded->head.sequence + 1;
    return !walk->has_newer;
}

int whole_events(const struct cli_store *store, const struct whole *whole)
{
    struct walk walk = { .whole = whole, .next = whole->first };
    int r;

    r = store->ops->events(store->store, whole->loaded->instance, 0, take_event, &walk);
    if (r == 0 && !whole->allows_holes && !has_come_to_the_end(&walk))
        r = DET_ERR_BUSY;
    return r;
}
