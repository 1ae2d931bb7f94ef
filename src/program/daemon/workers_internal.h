/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_internal.h - the supervisor of workers, shared by its files: workers.c, worker_*.c and
 * communicator_host.c. */
#ifndef DET_DAEMON_WORKERS_INTERNAL_H
#define DET_DAEMON_WORKERS_INTERNAL_H

#include <detent/driver/loop.h>
#include <detent/workers.h>

#include "base/arena.h"
#include "config/module.h"
#include "daemon/workers.h"
#include "kinds/communicator.h"
#include "os/pool.h"

struct up_request;

struct up_workers {
    struct modules modules; /* first: functions of kinds cast to it */
    struct up *up;
    struct det_arena arena; /* of paths */
    struct det_workers *supervisor;
    const struct det_worker_kind **kinds; /* NULL at the end */
    size_t kind_count, kind_room;
    char name[DET_WORKER_NAME_MAX + 1]; /* of the root */
    struct channel *channel;            /* of communicators */
    struct communicator_defaults communicator;
    struct det_pool *pool;  /* of requests; NULL: no request is accepted */
    size_t jobs;            /* jobs of the pool that are not completed */
    struct det_timer timer; /* for metrics and messages */
    bool is_over;           /* the root is gone */
};

/* run_parts.c */
struct up_workers *up_workers(const struct up *up);
void up_set_workers(struct up *up, struct up_workers *workers);
void up_set_shared_store(struct up *up, struct det_store *store);

/* workers.c. The kind of this name; NULL: none. */
const struct det_worker_kind *up_workers_kind(const struct up_workers *workers, const char *name);

/* communicator_host.c */

/* The address of the relay and the token for it, from the environment. */
void up_communicator_read_defaults(struct communicator_defaults *ret);
/* Adds or deletes the communicator that the environment asks for. */
DET_MUST_CHECK int up_communicator_switch(struct up_workers *workers, struct det_error *reterr);

/* worker_queries.c. Ids may be given without the root: "plant/press" or "press". */

/* NULL: there are no workers, and the request has failed. */
struct up_workers *up_workers_asked(struct up *up, struct up_request *request);
/* Writes the complete id into `target`. False: no such worker. */
bool up_workers_resolve(
    const struct up_workers *workers, const char *id, char target[DET_WORKER_PATH_MAX + 1]);
/* Like up_workers_resolve(); without such a worker, the request has failed. */
bool up_workers_find(
    const struct up_workers *workers, struct up_request *request, const char *id,
    char target[DET_WORKER_PATH_MAX + 1]);

/* worker_totals.c. True if the worker needs attention: it is degraded, stale, paused or down, or
 * has failed several times in a row. */
bool up_workers_is_unwell(const struct det_worker_status *status);

#endif
