/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator.h - the worker that connects a program to a relay: its C types, and the functions of
 * its actions. docs/communicator.md is for users. */
#ifndef DET_KINDS_COMMUNICATOR_H
#define DET_KINDS_COMMUNICATOR_H

#include "kinds/channel.h"
#include "kinds/relay.h"

#define WORKER_SPEC "kinds/communicator.worker"
#include <detent/worker/declare.h>

/* Up to this many consecutive failures are a disturbance; more are an outage. */
#define COMMUNICATOR_ERRORS_MAX  5
#define COMMUNICATOR_TIMEOUT     (10 * DET_SECOND)
#define COMMUNICATOR_TIMEOUT_MAX (30 * DET_SECOND)

/* Defaults for omitted members of a config, from the environment of the program; "": not set. */
struct communicator_defaults {
    const char *relay_url, *auth_token;
};
/* The name by which it is inherited; optional. */
#define COMMUNICATOR_DEFAULTS "communicator_defaults"
/* Variables of the environment. */
#define COMMUNICATOR_URL_VARIABLE   "API_URL"
#define COMMUNICATOR_TOKEN_VARIABLE "AUTH_TOKEN"

struct communicator_deps {
    const struct det_allocator *allocator;
    struct communicator_defaults defaults;
    struct channel *channel;
    struct relay *relay; /* of the running action; NULL: not needed yet */
    /* Accessed between det_worker_lock() and det_worker_unlock(). */
    bool is_busy;                       /* an action is running, possibly an abandoned one */
    struct communicator_desired served; /* the config of the rest */
    struct communicator_observed observed;
};

/* The actions. Each is one attempt. Return 0 also if the relay failed: the observed state shows
 * that. DET_ERR_CANCELLED, DET_ERR_NO_MEMORY, DET_ERR_BUSY, DET_ERR_INVALID: not logged in. */
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
