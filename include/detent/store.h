/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.h - where instances live. A store is opened by URL and given to a runtime.
 *
 *     memory:       this process only, gone when it is closed; bounded; for tests and for machines
 *                   that need not outlive the process
 *
 * A store outlives the runtimes on it, and serves one runtime at a time. The drivers are listed in
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
};

/* DET_ERR_UNSUPPORTED for a scheme that is not known, DET_ERR_INVALID for a URL or an option that
 * the driver does not take. */
DET_API int det_store_open(const char *url, struct det_store **ret, struct det_error *reterr)
    DET_MUST_CHECK;
DET_API int det_store_open_with(
    const char *url, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Not while a runtime uses it. */
DET_API void det_store_close(struct det_store *store);
DET_SCOPED_CLOSE(store)

DET_END
#endif
