/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* complete_history.h - the complete events of an instance up to the sequence at which it was
 * loaded. They are read page by page, while other processes may add events and delete old ones. */
#ifndef DET_TRANSFER_COMPLETE_HISTORY_H
#define DET_TRANSFER_COMPLETE_HISTORY_H

#include "inspect/store_url.h"

/* How often an instance is loaded again to match its events. */
#define WHOLE_TRIES 5

struct whole {
    const struct det_store_loaded *loaded;
    uint64_t first;    /* where they must begin; 0: anywhere */
    bool allows_holes; /* and the visitor sees them */
    int (*visit)(void *context, const struct det_store_event *row);
    void *context;
};

/* Like `events` of the store; returns DET_ERR_BUSY if events are missing: if other processes have
 * deleted them, load the instance again. */
DET_MUST_CHECK int whole_events(const struct cli_store *store, const struct whole *whole);

#endif
