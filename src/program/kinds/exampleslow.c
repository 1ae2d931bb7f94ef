/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exampleslow.c - a connection that takes delay_seconds to come about. */
#include <detent/world.h>

#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/exampleslow.worker"
#include <detent/worker/declare.h>

struct exampleslow_deps {
    bool is_connected;
};

#define WORKER_SPEC "kinds/exampleslow.worker"
#include <detent/worker/define.h>

static struct exampleslow_next exampleslow_in_stopped(const struct exampleslow_view *view)
{
    (void)view;
    return exampleslow_goto(EXAMPLESLOW_TRYING_TO_CONNECT, "must run");
}

static struct exampleslow_next exampleslow_in_trying_to_connect(const struct exampleslow_view *view)
{
    if (view->observed->is_connected)
        return exampleslow_goto(EXAMPLESLOW_CONNECTED, "connected");
    return exampleslow_do(
        EXAMPLESLOW_CONNECT, det_reason(
                                 view->all, "not connected; connecting takes %u s",
                                 (unsigned)view->desired->delay_seconds));
}

static struct exampleslow_next exampleslow_in_connected(const struct exampleslow_view *view)
{
    if (!view->observed->is_connected)
        return exampleslow_goto(EXAMPLESLOW_TRYING_TO_CONNECT, "the connection was lost");
    return exampleslow_hold("connected");
}

static struct exampleslow_next exampleslow_in_trying_to_stop(const struct exampleslow_view *view)
{
    if (view->observed->is_connected)
        return exampleslow_do(EXAMPLESLOW_DISCONNECT, "still connected");
    return exampleslow_goto(EXAMPLESLOW_STOPPED, "disconnected");
}

static int set_connected(
    struct det_worker_context *context, struct exampleslow_deps *deps, bool is_connected)
{
    det_worker_lock(context);
    deps->is_connected = is_connected;
    det_worker_unlock(context);
    return 0;
}

static int exampleslow_do_connect(
    struct det_worker_context *context, struct exampleslow_deps *deps,
    const struct exampleslow_desired *desired)
{
    det_time now = det_world_now(context->world, DET_CLOCK_MONOTONIC);
    int r;

    if (desired->delay_seconds > 0) {
        r = det_worker_wait(context, now + (det_time)desired->delay_seconds * DET_SECOND);
        if (r < 0)
            return det_worker_fail(context, r, "cancelled during its delay");
    }
    return set_connected(context, deps, true);
}

static int exampleslow_do_disconnect(
    struct det_worker_context *context, struct exampleslow_deps *deps,
    const struct exampleslow_desired *desired)
{
    (void)desired;
    return set_connected(context, deps, false);
}

static int exampleslow_collect(
    struct det_worker_context *context, struct exampleslow_deps *deps,
    const struct exampleslow_desired *desired, struct exampleslow_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    observed->is_connected = deps->is_connected;
    det_worker_unlock(context);
    return 0;
}

static int exampleslow_open(struct det_worker_context *context, struct exampleslow_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void exampleslow_close(struct exampleslow_deps *deps)
{
    (void)deps;
}
