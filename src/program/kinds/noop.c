/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* noop.c - observes its desired state, and is always healthy. */
#include <string.h>

#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/noop.worker"
#include <detent/worker/declare.h>

#define WORKER_SPEC "kinds/noop.worker"
#include <detent/worker/define.h>

static struct noop_next noop_in_stopped(const struct noop_view *view)
{
    (void)view;
    return noop_goto(NOOP_RUNNING, "must run");
}

static struct noop_next noop_in_running(const struct noop_view *view)
{
    (void)view;
    return noop_hold("there is nothing to do");
}

static int noop_collect(
    struct det_worker_context *context, struct det_empty *deps, const struct noop_desired *desired,
    struct noop_observed *observed)
{
    (void)context;
    (void)deps;
    memcpy(observed->value, desired->value, sizeof observed->value);
    return 0;
}
