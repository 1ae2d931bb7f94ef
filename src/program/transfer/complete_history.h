/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* complete_history.h - the complete events of an instance up to the sequence at which it was
 * loaded. They are read page by page, while other processes may add events and delete old ones. */
#ifndef DET_TRANSFER_COMPLETE_HISTORY_H
#define DET_TRANSFER_COMPLETE_HISTORY_H

#include "inspect/store_url.h"

/* Attempts to load an instance that matches its events. */
#define WHOLE_TRIES 5

struct history_visit {
    const struct det_store_loaded *loaded;
    uint64_t first;    /* required sequence of the first event; 0: any */
    bool allows_holes; /* the visitor handles them */
    int (*visit)(void *context, const struct det_store_event *row);
    void *context;
};

/* Like `events` of the store; returns DET_ERR_BUSY if events are missing: if other processes have
 * deleted them, load the instance again. */
DET_MUST_CHECK int complete_events(
    const struct cli_store *store, const struct history_visit *history_visit);

#endif
