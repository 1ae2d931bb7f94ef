/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* examplechild.c - a connection that succeeds at once. */
#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/examplechild.worker"
#include <detent/worker/declare.h>

struct examplechild_deps {
    bool is_connected;
};

#define WORKER_SPEC "kinds/examplechild.worker"
#include <detent/worker/define.h>

static struct examplechild_next examplechild_in_stopped(const struct examplechild_view *view)
{
    (void)view;
    return examplechild_goto(EXAMPLECHILD_TRYING_TO_CONNECT, "must run");
}

static struct examplechild_next examplechild_in_trying_to_connect(
    const struct examplechild_view *view)
{
    if (view->observed->is_connected)
        return examplechild_goto(
            EXAMPLECHILD_CONNECTED,
            det_reason(view->all, "connected to %s", view->desired->address));
    return examplechild_do(
        EXAMPLECHILD_CONNECT, det_reason(view->all, "not connected to %s", view->desired->address));
}

static struct examplechild_next examplechild_in_connected(const struct examplechild_view *view)
{
    if (!view->observed->is_connected)
        return examplechild_goto(EXAMPLECHILD_DISCONNECTED, "the connection was lost");
    return examplechild_hold(det_reason(view->all, "connected to %s", view->desired->address));
}

static struct examplechild_next examplechild_in_disconnected(const struct examplechild_view *view)
{
    (void)view;
    return examplechild_goto(EXAMPLECHILD_TRYING_TO_CONNECT, "connects again");
}

static struct examplechild_next examplechild_in_trying_to_stop(const struct examplechild_view *view)
{
    if (view->observed->is_connected)
        return examplechild_do(EXAMPLECHILD_DISCONNECT, "still connected");
    return examplechild_goto(EXAMPLECHILD_STOPPED, "disconnected");
}

static int set_connected(
    struct det_worker_context *context, struct examplechild_deps *deps, bool is_connected)
{
    det_worker_lock(context);
    deps->is_connected = is_connected;
    det_worker_unlock(context);
    return 0;
}

static int examplechild_do_connect(
    struct det_worker_context *context, struct examplechild_deps *deps,
    const struct examplechild_desired *desired)
{
    (void)desired;
    return set_connected(context, deps, true);
}

static int examplechild_do_disconnect(
    struct det_worker_context *context, struct examplechild_deps *deps,
    const struct examplechild_desired *desired)
{
    (void)desired;
    return set_connected(context, deps, false);
}

static int examplechild_collect(
    struct det_worker_context *context, struct examplechild_deps *deps,
    const struct examplechild_desired *desired, struct examplechild_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    observed->is_connected = deps->is_connected;
    det_worker_unlock(context);
    return 0;
}

static int examplechild_open(struct det_worker_context *context, struct examplechild_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void examplechild_close(struct examplechild_deps *deps)
{
    (void)deps;
}
