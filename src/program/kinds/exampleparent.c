/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exampleparent.c - rests for 5 s, runs for 10 s, and so on; its children run while it starts, runs
 * or is degraded, and it is degraded while one of them is not healthy. */
#include <stdio.h>
#include <string.h>

#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/exampleparent.worker"
#include <detent/worker/declare.h>

struct exampleparent_deps {
    bool is_started;
};

#define WORKER_SPEC "kinds/exampleparent.worker"
#include <detent/worker/define.h>

#define CHILDREN_MAX 100000
/* Config of its children. Rendered for each child, with a separate DEVICE_ID. */
#define CHILD_KIND   "examplechild"
#define CHILD_CONFIG "address: \"{{ .IP }}:{{ .PORT }}\"\ndevice: \"{{ .DEVICE_ID }}\"\n"

static bool has_been(const struct exampleparent_view *view, uint32_t seconds)
{
    return view->all->now - view->all->since >= (det_time)seconds * DET_SECOND;
}

static const char *children_reason(const struct exampleparent_view *view)
{
    const struct det_children_view *children = view->all->children;

    return det_reason(
        view->all, "%u of %u children are not healthy",
        (unsigned)(children->count - children->healthy), (unsigned)children->count);
}

static struct exampleparent_next exampleparent_in_stopped(const struct exampleparent_view *view)
{
    if (!has_been(view, view->desired->rest_seconds))
        return exampleparent_hold("rests");
    return exampleparent_goto(EXAMPLEPARENT_TRYING_TO_START, "has rested");
}

static struct exampleparent_next exampleparent_in_trying_to_start(
    const struct exampleparent_view *view)
{
    if (!view->observed->is_started)
        return exampleparent_do(EXAMPLEPARENT_START, "not started yet");
    if (det_children_all_healthy(view->all->children))
        return exampleparent_goto(EXAMPLEPARENT_RUNNING, "started; all children are healthy");
    if (has_been(view, view->desired->start_seconds))
        return exampleparent_goto(EXAMPLEPARENT_DEGRADED, children_reason(view));
    return exampleparent_hold(children_reason(view));
}

static struct exampleparent_next exampleparent_in_running(const struct exampleparent_view *view)
{
    if (!det_children_all_healthy(view->all->children))
        return exampleparent_goto(EXAMPLEPARENT_DEGRADED, children_reason(view));
    if (has_been(view, view->desired->run_seconds))
        return exampleparent_goto(EXAMPLEPARENT_TRYING_TO_STOP, "has run long enough");
    return exampleparent_hold("running; all children are healthy");
}

static struct exampleparent_next exampleparent_in_degraded(const struct exampleparent_view *view)
{
    if (det_children_all_healthy(view->all->children))
        return exampleparent_goto(EXAMPLEPARENT_RUNNING, "all children are healthy again");
    return exampleparent_hold(children_reason(view));
}

static struct exampleparent_next exampleparent_in_trying_to_stop(
    const struct exampleparent_view *view)
{
    const struct det_children_view *children = view->all->children;

    if (!det_children_all_stopped(children))
        return exampleparent_hold(det_reason(
            view->all, "%u of %u children are still running",
            (unsigned)(children->count - children->stopped), (unsigned)children->count));
    if (view->observed->is_started)
        return exampleparent_do(EXAMPLEPARENT_STOP, "not stopped yet");
    return exampleparent_goto(EXAMPLEPARENT_STOPPED, "all children are stopped");
}

static int set_started(
    struct det_worker_context *context, struct exampleparent_deps *deps, bool is_started)
{
    det_worker_lock(context);
    deps->is_started = is_started;
    det_worker_unlock(context);
    return 0;
}

static int exampleparent_do_start(
    struct det_worker_context *context, struct exampleparent_deps *deps,
    const struct exampleparent_desired *desired)
{
    (void)desired;
    return set_started(context, deps, true);
}

static int exampleparent_do_stop(
    struct det_worker_context *context, struct exampleparent_deps *deps,
    const struct exampleparent_desired *desired)
{
    (void)desired;
    return set_started(context, deps, false);
}

static int exampleparent_collect(
    struct det_worker_context *context, struct exampleparent_deps *deps,
    const struct exampleparent_desired *desired, struct exampleparent_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    observed->is_started = deps->is_started;
    det_worker_unlock(context);
    return 0;
}

static int exampleparent_open(struct det_worker_context *context, struct exampleparent_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void exampleparent_close(struct exampleparent_deps *deps)
{
    (void)deps;
}

static void set_text(char *target, size_t size, const char *text)
{
    (void)snprintf(target, size, "%s", text);
}

static int exampleparent_derive(
    struct det_derive *derive, const struct exampleparent_desired *config,
    struct exampleparent_desired *desired)
{
    if (config->children_count > CHILDREN_MAX)
        return derive->refuse(
            derive, "children_count is %u; at most %u are possible",
            (unsigned)config->children_count, (unsigned)CHILDREN_MAX);
    *desired = *config;
    if (!*desired->child_kind)
        set_text(desired->child_kind, sizeof desired->child_kind, CHILD_KIND);
    if (!*desired->child_config && strcmp(desired->child_kind, CHILD_KIND) == 0)
        set_text(desired->child_config, sizeof desired->child_config, CHILD_CONFIG);
    if (!desired->rest_seconds)
        desired->rest_seconds = 5;
    if (!desired->run_seconds)
        desired->run_seconds = 10;
    if (!desired->start_seconds)
        desired->start_seconds = 30;
    return 0;
}

static int exampleparent_children(
    const struct exampleparent_view *view, struct det_children *children)
{
    char name[DET_WORKER_NAME_MAX + 1], variables[64];
    struct det_child_spec spec = {
        .name = name,
        .kind = view->desired->child_kind,
        .config = view->desired->child_config,
        .variables = variables,
        .run_in = DET_IN(EXAMPLEPARENT_TRYING_TO_START) | DET_IN(EXAMPLEPARENT_RUNNING) |
                  DET_IN(EXAMPLEPARENT_DEGRADED),
    };

    for (unsigned i = 0; i < view->desired->children_count; i++) {
        int r;

        (void)snprintf(name, sizeof name, "child-%u", i);
        (void)snprintf(variables, sizeof variables, "DEVICE_ID: device-%u\n", i);
        r = children->add(children, &spec);
        if (r < 0)
            return r;
    }
    return 0;
}
