/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.h - the workers of a detent.yaml, supervised while `detent up` runs.
 *
 *     open ---> supervising ---up_workers_stop---> stopping ---the root is gone---> over -> closed
 *                  | ^ events: lines and metrics      | once more, or the grace is over: taken down
 *                  | | up_workers_reload: the tree of the file as it is now
 *                  | | verbs: worker_requests.c
 *
 * The supervisor ticks on the loop of `up`: a tick does nothing that waits, since user code runs on
 * its threads, and documents are written on the thread of its recorder. What waits for the store
 * when somebody asks for it runs on a pool, and calls the supervisor from there; so the loop must
 * turn while that is waited for.
 *
 * Invariants
 *   1. The store of workers is opened before machines and durable slots, which then are on it too,
 *      and closed after them: machines may be closed and opened again meanwhile.
 *   2. Nothing here points into a configuration, which a reload may take away. */
#ifndef DET_DAEMON_WORKERS_H
#define DET_DAEMON_WORKERS_H

#include <detent/driver/loop.h>
#include <detent/workers.h>

#include "config/module.h"
#include "daemon/daemon.h"
#include "daemon/verbs.h"
#include "kinds/communicator.h"
#include "os/pool.h"
#include "json/writer.h"

struct up_workers {
    struct modules modules; /* the first member: what functions of kinds get as their user */
    struct up *up;
    struct det_arena arena; /* of paths */
    struct det_workers *workers;
    const struct det_worker_kind **kinds; /* NULL at the end */
    size_t kind_count, kind_room;
    char name[DET_WORKER_NAME_MAX + 1]; /* of the root */
    struct channel *channel;            /* of communicators */
    struct communicator_defaults communicator;
    struct det_pool *pool; /* of what is asked; NULL: nothing is taken any more */
    size_t asks;           /* on their way */
    struct det_timer look; /* for figures */
    bool is_over;          /* the root has gone */
};

/* Where the relay is and the token for it, from the environment. */
void up_communicator_read_defaults(struct communicator_defaults *ret);
/* Adds or deletes the communicator that the environment asks for. */
DET_MUST_CHECK int up_communicator_switch(struct up_workers *workers, struct det_error *reterr);

/* The store that workers, and what else there is, are on. Nothing without workers. */
DET_MUST_CHECK int up_workers_open_store(struct up *up, struct det_error *reterr);
void up_workers_close_store(struct up *up);
/* Opens them if the file has any. Close it in either case. */
DET_MUST_CHECK int up_workers_open(struct up *up, struct det_error *reterr);
/* All of them are asked to stop; once more: taken down. */
void up_workers_stop(struct up *up);
/* Whether none is left, or there are none. */
bool up_workers_are_over(const struct up *up);
/* Waits for them, which turns the loop; what did not stop by itself is told. */
void up_workers_finish(struct up *up);
void up_workers_close(struct up *up);
/* How many there are, and how many stop: for people. */
size_t up_workers_count(const struct up *up);

/* The file is another one: what it says counts. A supervisor that there was not is opened; of one
 * that runs only a want of memory keeps it from that. */
DET_MUST_CHECK int up_workers_reload(struct up *up, struct det_error *reterr);
/* Whether what another file says goes with the kinds that are there. As config_check_workers(). */
DET_MUST_CHECK int up_workers_check(
    const struct up *up, const struct config_workers *config, struct cli_problems *problems);

/* The kind of this name; NULL: there is none. */
const struct det_worker_kind *up_workers_kind(const struct up_workers *workers, const char *name);

/* worker_queries.c: what verbs share. An id is that of a worker, or the same without the root:
 * "plant/press" or "press". */

/* Whether they can be asked; NULL after it was said why not. */
struct up_workers *up_workers_of(struct up *up, struct socket_call *call);
/* The id as the supervisor has it; false: there is no such worker, and `target` is what its id
 * would be. */
bool up_workers_resolve(
    struct up_workers *workers, const char *id, char target[DET_WORKER_PATH_MAX + 1]);
/* How many there are, by phase: an object. */
void up_write_workers_figures(struct up *up, struct det_json_writer *json, const char *key);
/* The argument "id" of a request; false after it was said why not. */
bool up_workers_take_id(
    struct up_workers *workers, const struct socket_request *request, struct socket_call *call,
    char target[DET_WORKER_PATH_MAX + 1]);
extern const struct up_argument up_workers_id[];

/* worker_totals.c */

/* Whether somebody should look at it: it is degraded, stale, paused or down, or fails again
 * and again. */
bool up_workers_is_unwell(const struct det_worker_status *status);

#endif
