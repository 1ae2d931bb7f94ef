/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* meter.c - the kinds meter and farm. */
#include <stdio.h>

#include <detent/driver/world.h>

#include "meter.h"

struct meter_deps {
    _Atomic(uint64_t) level;
};
#define WORKER_SPEC "meter.worker"
#include <detent/worker/define.h>

#define WORKER_SPEC "farm.worker"
#include <detent/worker/define.h>

_Atomic(det_time) meter_set_at;
_Atomic(uint64_t) meter_set_level;

static struct meter_next meter_in_stopped(const struct meter_view *view)
{
    (void)view;
    return meter_goto(METER_STARTING, "is to run");
}

static struct meter_next meter_in_starting(const struct meter_view *view)
{
    if (view->observed->level == view->desired->level)
        return meter_goto(METER_RUNNING, "the level is reached");
    return meter_do(METER_SET, "the level is another one");
}

static struct meter_next meter_in_running(const struct meter_view *view)
{
    if (view->observed->level != view->desired->level)
        return meter_do(METER_SET, "the level is another one");
    return meter_hold("the level is as wanted");
}

static int meter_do_set(
    struct det_worker_context *context, struct meter_deps *deps,
    const struct meter_desired *desired)
{
    atomic_store(&meter_set_at, context->world->ops->now(context->world, DET_CLOCK_MONOTONIC));
    atomic_store(&meter_set_level, desired->level);
    atomic_store(&deps->level, desired->level);
    return 0;
}

static int meter_collect(
    struct det_worker_context *context, struct meter_deps *deps,
    const struct meter_desired *desired, struct meter_observed *observed)
{
    (void)context;
    (void)desired;
    observed->level = atomic_load(&deps->level);
    return 0;
}

static int meter_open(struct det_worker_context *context, struct meter_deps *deps)
{
    (void)context;
    atomic_store(&deps->level, 0);
    return 0;
}

static void meter_close(struct meter_deps *deps)
{
    (void)deps;
}

static struct farm_next farm_in_stopped(const struct farm_view *view)
{
    (void)view;
    return farm_goto(FARM_RUNNING, "is to run");
}

static struct farm_next farm_in_running(const struct farm_view *view)
{
    (void)view;
    return farm_hold("has meters");
}

static int farm_collect(
    struct det_worker_context *context, struct det_empty *deps, const struct farm_desired *desired,
    struct det_empty *observed)
{
    (void)context;
    (void)deps;
    (void)desired;
    (void)observed;
    return 0;
}

static int farm_children(const struct farm_view *view, struct det_children *children)
{
    int r = 0;

    for (uint32_t i = 0; i < view->desired->meters && r == 0; i++) {
        char name[16];
        struct det_child_spec spec = { .name = name,
                                       .kind = "meter",
                                       .config = "{level: 0, name: \"{{ .internal.id }}\"}" };

        (void)snprintf(name, sizeof name, "m%u", i);
        r = children->add(children, &spec);
    }
    return r;
}

const struct det_worker_kind *const meter_kinds[] = { &meter_kind, &farm_kind, NULL };
