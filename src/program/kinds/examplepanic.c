/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* examplepanic.c - a connection whose function panics if configured. */
#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/examplepanic.worker"
#include <detent/worker/declare.h>

struct examplepanic_deps {
    bool is_connected;
};

#define WORKER_SPEC "kinds/examplepanic.worker"
#include <detent/worker/define.h>

static struct examplepanic_next examplepanic_in_stopped(const struct examplepanic_view *view)
{
    (void)view;
    return examplepanic_goto(EXAMPLEPANIC_TRYING_TO_CONNECT, "must run");
}

static struct examplepanic_next examplepanic_in_trying_to_connect(
    const struct examplepanic_view *view)
{
    if (view->observed->is_connected)
        return examplepanic_goto(EXAMPLEPANIC_CONNECTED, "connected");
    return examplepanic_do(EXAMPLEPANIC_CONNECT, "not connected");
}

static struct examplepanic_next examplepanic_in_connected(const struct examplepanic_view *view)
{
    if (!view->observed->is_connected)
        return examplepanic_goto(EXAMPLEPANIC_TRYING_TO_CONNECT, "the connection was lost");
    return examplepanic_hold("connected");
}

static int examplepanic_do_connect(
    struct det_worker_context *context, struct examplepanic_deps *deps,
    const struct examplepanic_desired *desired)
{
    if (desired->should_panic)
        det_worker_panic(context, "configured panic");
    det_worker_lock(context);
    deps->is_connected = true;
    det_worker_unlock(context);
    return 0;
}

static int examplepanic_collect(
    struct det_worker_context *context, struct examplepanic_deps *deps,
    const struct examplepanic_desired *desired, struct examplepanic_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    observed->is_connected = deps->is_connected;
    det_worker_unlock(context);
    return 0;
}

static int examplepanic_open(struct det_worker_context *context, struct examplepanic_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void examplepanic_close(struct examplepanic_deps *deps)
{
    (void)deps;
}
