/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator.h - the worker that keeps a relay and a program in touch: its types for C, and the
 * calls that its actions are. docs/communicator.md is for who uses it. */
#ifndef DET_KINDS_COMMUNICATOR_H
#define DET_KINDS_COMMUNICATOR_H

#include "kinds/channel.h"
#include "kinds/relay.h"

#define WORKER_SPEC "kinds/communicator.worker"
#include <detent/worker/declare.h>

/* So many failures in a row are a disturbance; more are an outage. */
#define COMMUNICATOR_ERRORS_MAX  5
#define COMMUNICATOR_TIMEOUT     (10 * DET_SECOND)
#define COMMUNICATOR_TIMEOUT_MAX (30 * DET_SECOND)

/* What a config leaves out, from the environment of the program; "": not there either. */
struct communicator_defaults {
    const char *relay_url, *auth_token;
};
/* The name by which it is inherited; it may be missing. */
#define COMMUNICATOR_DEFAULTS "communicator_defaults"
/* Variables of the environment. */
#define COMMUNICATOR_URL_VARIABLE   "API_URL"
#define COMMUNICATOR_TOKEN_VARIABLE "AUTH_TOKEN"

struct communicator_deps {
    const struct det_allocator *allocator;
    struct communicator_defaults defaults;
    struct channel *channel;
    struct relay *relay; /* of the action that runs; NULL: not needed yet */
    /* These are touched between det_worker_lock() and det_worker_unlock(). */
    bool is_busy;                       /* an action runs: one that was given up, perhaps */
    struct communicator_desired served; /* what the rest is about */
    struct communicator_observed observed;
};

/* What the actions do. Each is one attempt. 0 also when the relay has failed us: that is in what is
 * observed. DET_ERR_CANCELLED, DET_ERR_NO_MEMORY, DET_ERR_BUSY, DET_ERR_INVALID: nobody has logged
 * in. */
DET_MUST_CHECK int communicator_authenticate(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired);
DET_MUST_CHECK int communicator_sync(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired);
DET_MUST_CHECK int communicator_reset(
    struct det_worker_context *context, struct communicator_deps *deps,
    const struct communicator_desired *desired);

#endif
