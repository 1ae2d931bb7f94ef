/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machines.h - the machines of a detent.yaml, served while `detent up` runs.
 *
 *     open ---> serving ---up_machines_stop---> stopping ---close---> closed
 *               |  ^ |                              | what runs has a few seconds
 *          rest |  | | steps, failures: notes
 *               v  | | lost: the store has failed, and the run is over
 *            resting -- free --> closed
 *               | definitions and modules are as they were loaded, whatever is on the disk by now
 *
 * The runtime has threads of its own, and effects run on its pool. Whatever they have to tell is
 * posted to the loop of `up`.
 *
 * Invariants
 *   1. Notes on their way to the loop are bounded; those beyond are counted, and that is told.
 *   2. The HTTP API, which sends to the runtime, is paused before that is closed. */
#ifndef DET_DAEMON_MACHINES_H
#define DET_DAEMON_MACHINES_H

#include <stdatomic.h>

#include "daemon/daemon.h"
#include "daemon/effect.h"
#include "inspect/store_url.h"
#include "os/pool.h"

#define UP_LOST_HINT "a write has failed; look after the disk, and start it again"

struct up_machines {
    struct up *up;
    const struct config_machine *list; /* of the file it was opened by, which stays as long */
    size_t count;
    struct effects effects;
    const char *address, *url; /* as it is opened, and as it is shown */
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_spec **specs;     /* by index of the list; NULL: it is not served */
    struct det_machine **served; /* the same: its definition, from its spec or from a module */
    atomic_size_t notes;         /* on their way */
    atomic_uint_fast64_t hidden;
};

/* The URL of the store as it is opened. NULL: no memory. */
const char *up_store_address(struct up *up);
/* Opens the store and serves what the file says. Close it in either case. */
DET_MUST_CHECK int up_machines_open(struct up *up, struct det_error *reterr);
/* What runs is given a few seconds. */
void up_machines_stop(struct up *up);
/* Turns the loop until all was told. */
void up_machines_close(struct up *up);
/* Nothing is served any more, and what runs is cut off, to be tried again. Turns the loop. NULL:
 * none were served. */
struct up_machines *up_machines_rest(struct up *up);
/* Those that rest go on. Close it in either case. */
DET_MUST_CHECK int up_machines_wake(struct up_machines *machines, struct det_error *reterr);
/* Those that rest. Takes NULL. */
void up_machines_free(struct up_machines *machines);
/* How many are served. */
size_t up_machines_count(const struct up *up);
/* Tells people what is served. */
void up_machines_say(struct up *up);
/* What is served under this name, as its file says it, or NULL; and the definition. */
const struct det_spec *up_machines_spec(const struct up_machines *machines, const char *name);
struct det_machine *up_machines_find(struct up_machines *machines, const char *name);

/* commit_steps.c: what a call that waits for its commit has done, with the deferred events that
 * follow. The runtime reports a commit on the thread that made it, so the steps between begin and
 * end are those of this thread's call. */
#define UP_STEPS_MAX 64
struct up_step {
    uint16_t event, from, to, outcome;
};
struct up_steps {
    const char *instance;
    struct up_step items[UP_STEPS_MAX];
    size_t count;
};
/* `steps` is zeroed but for `instance`, and stays until the end. */
void up_steps_begin(struct up_steps *steps);
void up_steps_end(void);
/* A commit of this thread. */
void up_steps_observe(const struct det_note *note);

#endif
