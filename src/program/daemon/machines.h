/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machines.h - the machines of a detent.yaml, served while `detent up` runs.
 *
 *     open ---> serving ---up_machines_stop---> stopping ---close---> closed
 *               |  ^ |                              | running effects have a few seconds
 *          rest |  | | steps, failures: messages
 *               v  | | lost: the store has failed, and the run is over
 *            resting -- free --> closed
 *               | definitions and modules stay as loaded, even if their files change
 *
 * The runtime has its own threads, and effects run on its pool. They post their messages to the
 * loop of `up`.
 *
 * Invariants
 *   1. Messages posted to the loop are limited in number; further ones are counted and reported.
 *   2. The HTTP API sends to the runtime, and is paused before the runtime is closed. */
#ifndef DET_DAEMON_MACHINES_H
#define DET_DAEMON_MACHINES_H

#include <stdatomic.h>

#include "daemon/daemon.h"
#include "daemon/effect.h"
#include "inspect/store_url.h"
#include "os/pool.h"

#define UP_LOST_HINT "a write has failed; check the disk, then restart detent"

struct up_machines {
    struct up *up;
    const struct config_machine *list; /* of the file that it was opened with, which outlives it */
    size_t count;
    struct effects effects;
    const char *address, *url; /* for opening; for display */
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_spec **specs;     /* by index of the list; NULL: not served */
    struct det_machine **served; /* the same: the definition, of the spec or a module */
    atomic_size_t notes;         /* posted, not printed yet */
    atomic_uint_fast64_t hidden;
};

/* The URL for opening the store. NULL: out of memory. */
const char *up_store_address(struct up *up);
/* Opens the store and serves the machines of the file. Close it even after an error. */
DET_MUST_CHECK int up_machines_open(struct up *up, struct det_error *reterr);
/* Running effects have a few seconds left. */
void up_machines_stop(struct up *up);
/* Turns the loop until all messages are printed. */
void up_machines_close(struct up *up);
/* Stops serving; running effects are interrupted and postponed. Turns the loop. Returns the resting
 * machines; NULL: none were served. */
struct up_machines *up_machines_rest(struct up *up);
/* Serves resting machines again. Close them even after an error. */
DET_MUST_CHECK int up_machines_wake(struct up_machines *machines, struct det_error *reterr);
/* Frees resting machines; NULL does nothing. */
void up_machines_free(struct up_machines *machines);
/* Number of served machines. */
size_t up_machines_count(const struct up *up);
/* Prints which machines are served. */
void up_machines_print(struct up *up);
/* The spec and the definition of a served machine, as loaded from the file; NULL: not served. */
const struct det_spec *up_machines_spec(const struct up_machines *machines, const char *name);
struct det_machine *up_machines_find(struct up_machines *machines, const char *name);

/* commit_steps.c: steps of a call that waits for its commit, including deferred events that follow.
 * The runtime reports a commit on the thread that made it, so the steps between begin and end
 * belong to the call of this thread. */
#define UP_STEPS_MAX 64
struct up_step {
    uint16_t event, from, to, outcome;
};
struct up_steps {
    const char *instance;
    struct up_step items[UP_STEPS_MAX];
    size_t count;
};
/* Zero `steps` except `instance`; it must stay valid until the end. */
void up_steps_begin(struct up_steps *steps);
void up_steps_end(void);
/* Reports a commit of this thread. */
void up_steps_observe(const struct det_note *note);

#endif
