/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* complete_history.h - the events of an instance up to where it stood when it was loaded, with none
 * missing. They are read page by page, and meanwhile others may add events and delete old ones. */
#ifndef DET_TRANSFER_COMPLETE_HISTORY_H
#define DET_TRANSFER_COMPLETE_HISTORY_H

#include "inspect/store_url.h"

/* How often an instance is loaded again, so that its events fit it. */
#define WHOLE_TRIES 5

struct whole {
    const struct det_store_loaded *loaded;
    uint64_t first;    /* where they must begin; 0: wherever they do */
    bool allows_holes; /* and the visitor sees them */
    int (*visit)(void *context, const struct det_store_event *row);
    void *context;
};

/* As the store's `events`; and DET_ERR_BUSY when some are gone that should be there: when others
 * have deleted them, an instance that is loaded again fits its events again. */
DET_MUST_CHECK int whole_events(const struct cli_store *store, const struct whole *whole);

#endif
