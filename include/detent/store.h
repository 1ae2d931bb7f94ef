/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.h - stores keep instances. A store is opened by URL and passed to a runtime.
 *
 *     memory:            this process only, gone when it is closed; bounded; for tests and for
 *                        machines that need not outlive the process
 *     sqlite:orders.db   one file; one process writes, others may read
 *     postgres://user@host/database?schema=detent     shared by any number of processes; other
 *     postgresql://...   forms of libpq URLs work too
 *
 * In the last two a commit is on the disk when the sender gets its answer. A store outlives the
 * runtimes on it, and serves one runtime at a time. src/store/drivers.def lists the drivers;
 * driver/store.h has the contract of a driver. */
#ifndef DETENT_STORE_H
#define DETENT_STORE_H

#include <detent/world.h>

DET_BEGIN

struct det_store;

/* Limits of one instance in a store. */
#define DET_ID_MAX          128  /* bytes of an instance id or an event id: [A-Za-z0-9._:-] */
#define DET_HISTORY_MAX     64   /* states kept in an instance's history */
#define DET_DEFERRED_MAX    16   /* deferred events of an instance */
#define DET_EFFECTS_PENDING 1024 /* pending effects of one instance */
#define DET_DEAD_MAX        64   /* dead effects of one instance; older ones are forgotten */
#define DET_BATCH_MAX       256  /* events in one commit */

struct det_store_options {
    struct det_world *world;               /* NULL: the real one */
    const struct det_allocator *allocator; /* NULL: the default one */
    uint32_t events_kept;                  /* memory: per instance; 0: 64; at most 65,536 */
    /* memory: remembered event ids per instance; 0: 64; at most 65,536. Older ones are forgotten,
     * and their event would be applied again. A send with an id searches them linearly. */
    uint32_t event_ids_kept;
    /* sqlite, postgres: minimum time for which an event id is remembered; 0: 7 days. */
    det_time event_ids_span;
    bool is_read_only; /* sqlite, postgres: permits no change, and waits for no other process */
    /* sqlite, read only: permits a backup of a store that has lost acknowledged commits. */
    bool accepts_loss;
    bool must_exist;      /* sqlite: do not create it; postgres: do not create the tables */
    uint32_t connections; /* sqlite: reading connections, 0: 2; postgres: all connections, 0: 4; at
                           * most 64 */
    det_time timeout;     /* postgres: limit for one statement and for connecting; 0: 10 s */
    const char *identity; /* refuse any other store than this one (DET_ERR_FOREIGN); NULL: any */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Opens a store. DET_ERR_UNSUPPORTED: unknown scheme; DET_ERR_INVALID: the URL or an option is
 * invalid for the driver. */
DET_API int det_store_open(const char *url, struct det_store **ret, struct det_error *reterr)
    DET_MUST_CHECK;
DET_API int det_store_open_with(
    const char *url, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Limits how long current and later calls wait for the server of the store: until `span` from now;
 * 0: not at all; DET_NEVER removes the limit. Any thread, any time, also while another thread
 * closes the runtime; the last call wins. Use it to stop within a deadline while the server is
 * unreachable. Past the limit a call that was sent and not answered ends with DET_ERR_CANCELLED: it
 * may have happened. A call that was not sent ends with DET_ERR_CLOSED: nothing happened. No effect
 * on stores without a server. Does not wait. */
DET_API void det_store_cancel(struct det_store *store, det_time span);
/* Closes a store. Not while a runtime uses it. */
DET_API void det_store_close(struct det_store *store);
DET_SCOPED_CLOSE(store)

DET_END
#endif
