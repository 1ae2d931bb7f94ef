/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.h - where instances live. A store is opened by URL and given to a runtime.
 *
 *     memory:            this process only, gone when it is closed; bounded; for tests and for
 *                        machines that need not outlive the process
 *     sqlite:orders.db   one file; one process writes, others may read
 *     postgres://user@host/database?schema=detent     shared by any number of processes; whatever
 *     postgresql://...   else libpq takes in a URL works too
 *
 * A commit in the last two is on the disk when the sender has its answer. A store outlives the
 * runtimes on it, and serves one runtime at a time. The drivers are listed in
 * src/store/drivers.def; what a driver must do is driver/store.h. */
#ifndef DETENT_STORE_H
#define DETENT_STORE_H

#include <detent/world.h>

DET_BEGIN

struct det_store;

/* Limits of what a store keeps of one instance. */
#define DET_ID_MAX          128  /* bytes of an instance id or an event id: [A-Za-z0-9._:-] */
#define DET_HISTORY_MAX     64   /* states kept in an instance's history */
#define DET_DEFERRED_MAX    16   /* events an instance keeps for later */
#define DET_EFFECTS_PENDING 1024 /* effects of one instance that have not ended */
#define DET_DEAD_MAX        64   /* dead effects kept; older ones are forgotten */
#define DET_BATCH_MAX       256  /* events in one commit */

struct det_store_options {
    struct det_world *world;               /* NULL: the real one */
    const struct det_allocator *allocator; /* NULL: the default one */
    uint32_t events_kept;                  /* memory: per instance; 0: 64; at most 65,536 */
    /* memory: how many event ids are remembered per instance; 0: 64; at most 65,536. An older one
     * is forgotten: sent again it would be applied again. A send with an id looks through them. */
    uint32_t event_ids_kept;
    /* sqlite, postgres: how long an event id is remembered at least; 0: 7 days. */
    det_time event_ids_span;
    bool is_read_only; /* sqlite, postgres: changes nothing, and waits for no other process */
    /* sqlite, read only: also back up a store that has lost what it had acknowledged, as it is. */
    bool accepts_loss;
    bool must_exist;      /* sqlite: do not create it; postgres: do not create the tables */
    uint32_t connections; /* sqlite: for reading, 0: 2; postgres: in all, 0: 4; at most 64 */
    det_time timeout;     /* postgres: for one statement and for connecting; 0: 10 s */
    const char *identity; /* refuse any other store than this one (DET_ERR_FOREIGN); NULL: any */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* DET_ERR_UNSUPPORTED for a scheme that is not known, DET_ERR_INVALID for a URL or an option that
 * the driver does not take. */
DET_API int det_store_open(const char *url, struct det_store **ret, struct det_error *reterr)
    DET_MUST_CHECK;
DET_API int det_store_open_with(
    const char *url, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Limits how long calls wait for the server of the store, those under way and later ones: until
 * `span` from now, and not at all with 0. DET_NEVER removes the limit. From any thread, at any
 * time, also while another one closes the runtime; the last call counts. For a stop with a deadline
 * while the server is away. Past the limit a call that was sent and not answered ends with
 * DET_ERR_CANCELLED: it is not known whether it happened. A call that was not sent yet ends with
 * DET_ERR_CLOSED: nothing happened. No effect on stores without a server. Does not wait itself. */
DET_API void det_store_cancel(struct det_store *store, det_time span);
/* Not while a runtime uses it. */
DET_API void det_store_close(struct det_store *store);
DET_SCOPED_CLOSE(store)

DET_END
#endif
