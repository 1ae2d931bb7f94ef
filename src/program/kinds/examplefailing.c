/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* examplefailing.c - a connection that fails max_failures times in each of failure_cycles cycles;
 * it requests a restart after restart_after_failures of them, if that is not 0. */
#include "base/text.h"
#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/examplefailing.worker"
#include <detent/worker/declare.h>

struct examplefailing_deps {
    bool is_connected;
    uint32_t failures; /* in all */
    uint32_t in_cycle; /* of them, in this cycle */
    uint32_t cycle;    /* how many are over */
};

#define WORKER_SPEC "kinds/examplefailing.worker"
#include <detent/worker/define.h>

/* Time that it stays connected before the next cycle. */
#define CONNECTED_SPAN (2 * DET_SECOND)

static struct examplefailing_next examplefailing_in_stopped(const struct examplefailing_view *view)
{
    (void)view;
    return examplefailing_goto(EXAMPLEFAILING_TRYING_TO_CONNECT, "must run");
}

static struct examplefailing_next examplefailing_in_trying_to_connect(
    const struct examplefailing_view *view)
{
    uint32_t failures = view->observed->failures, most = view->desired->restart_after_failures;

    if (view->observed->is_connected)
        return examplefailing_goto(
            EXAMPLEFAILING_CONNECTED, det_reason(
                                          view->all, "connected after %u failure%s",
                                          (unsigned)failures, det_plural(failures)));
    if (most > 0 && failures >= most)
        return examplefailing_restart(det_reason(
            view->all, "%u failure%s %s enough", (unsigned)failures, det_plural(failures),
            det_is_or_are(failures)));
    return examplefailing_do(
        EXAMPLEFAILING_CONNECT,
        det_reason(
            view->all, "not connected, %u failure%s", (unsigned)failures, det_plural(failures)));
}

static struct examplefailing_next examplefailing_in_connected(
    const struct examplefailing_view *view)
{
    if (!view->observed->is_connected)
        return examplefailing_goto(EXAMPLEFAILING_DISCONNECTED, "the connection was lost");
    if (view->observed->cycle < view->desired->failure_cycles &&
        view->all->now - view->all->since >= CONNECTED_SPAN)
        return examplefailing_do(EXAMPLEFAILING_DISCONNECT, "the next cycle begins");
    return examplefailing_hold("connected");
}

static struct examplefailing_next examplefailing_in_disconnected(
    const struct examplefailing_view *view)
{
    (void)view;
    return examplefailing_goto(EXAMPLEFAILING_TRYING_TO_CONNECT, "connects again");
}

static struct examplefailing_next examplefailing_in_trying_to_stop(
    const struct examplefailing_view *view)
{
    if (view->observed->is_connected)
        return examplefailing_do(EXAMPLEFAILING_DISCONNECT, "still connected");
    return examplefailing_goto(EXAMPLEFAILING_STOPPED, "disconnected");
}

/* Returns true if this attempt succeeds. */
static bool try_once(struct examplefailing_deps *deps, const struct examplefailing_desired *desired)
{
    if (deps->is_connected)
        return true;
    if (deps->cycle < desired->failure_cycles && deps->in_cycle < desired->max_failures) {
        deps->in_cycle++;
        deps->failures++;
        return false;
    }
    deps->is_connected = true;
    deps->in_cycle = 0;
    deps->cycle++;
    return true;
}

static int examplefailing_do_connect(
    struct det_worker_context *context, struct examplefailing_deps *deps,
    const struct examplefailing_desired *desired)
{
    uint32_t failure;
    bool is_connected;

    det_worker_lock(context);
    is_connected = try_once(deps, desired);
    failure = deps->in_cycle;
    det_worker_unlock(context);
    if (is_connected)
        return 0;
    return det_worker_fail(
        context, DET_ERR_IO, "failure %u of %u, as configured", (unsigned)failure,
        (unsigned)desired->max_failures);
}

static int examplefailing_do_disconnect(
    struct det_worker_context *context, struct examplefailing_deps *deps,
    const struct examplefailing_desired *desired)
{
    (void)desired;
    det_worker_lock(context);
    deps->is_connected = false;
    det_worker_unlock(context);
    return 0;
}

static int examplefailing_collect(
    struct det_worker_context *context, struct examplefailing_deps *deps,
    const struct examplefailing_desired *desired, struct examplefailing_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    observed->is_connected = deps->is_connected;
    observed->failures = deps->failures;
    observed->cycle = deps->cycle;
    det_worker_unlock(context);
    return 0;
}

static int examplefailing_open(struct det_worker_context *context, struct examplefailing_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void examplefailing_close(struct examplefailing_deps *deps)
{
    (void)deps;
}

static int examplefailing_derive(
    struct det_derive *derive, const struct examplefailing_config *config,
    struct examplefailing_desired *desired)
{
    (void)derive;
    if (config->should_fail) {
        desired->max_failures = config->has_max_failures ? config->max_failures : 3;
        desired->failure_cycles = config->has_failure_cycles ? config->failure_cycles : 1;
    }
    desired->restart_after_failures = config->restart_after_failures;
    return 0;
}
