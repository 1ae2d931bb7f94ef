/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* application.c - the kind of the root. It has no observations and no actions: it reports the
 * health of its children. */
#include "base/text.h"
#include "worker/worker_tree.h"

#define WORKER_LOCAL
#define WORKER_SPEC "worker/application.worker"
#include <detent/worker/declare.h>
#define WORKER_LOCAL
#define WORKER_SPEC "worker/application.worker"
#include <detent/worker/define.h>

const struct det_worker_kind *det_application(void)
{
    return &application_kind;
}

static bool is_ill(const struct application_view *view)
{
    const struct det_children_view *children = view->all->children;

    return children->circuits_open || children->stale || children->down;
}

static const char *ill(const struct application_view *view)
{
    const struct det_children_view *children = view->all->children;

    return det_reason(
        view->all, "infrastructure degraded: circuit_open=%u, stale=%u, down=%u",
        children->circuits_open, children->stale, children->down);
}

static const char *well(const struct application_view *view)
{
    const struct det_children_view *children = view->all->children;

    return det_reason(
        view->all, "%u of %u %s healthy", children->healthy, children->count,
        det_is_or_are(children->healthy));
}

static struct application_next application_in_stopped(const struct application_view *view)
{
    (void)view;
    return application_goto(APPLICATION_RUNNING, "start requested");
}

static struct application_next application_in_running(const struct application_view *view)
{
    return is_ill(view) ? application_goto(APPLICATION_DEGRADED, ill(view))
                        : application_hold(well(view));
}

static struct application_next application_in_degraded(const struct application_view *view)
{
    return is_ill(view) ? application_hold(ill(view))
                        : application_goto(APPLICATION_RUNNING, well(view));
}
