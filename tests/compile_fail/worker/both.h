/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* both.h - two kinds of workers: lamp is whole, of link the functions of its states and actions are
 * left to the file that includes this. */
#include <detent/base.h>

#define WORKER_SPEC "link.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "lamp.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "link.worker"
#include <detent/worker/define.h>
#define WORKER_SPEC "lamp.worker"
#include <detent/worker/define.h>

#include <detent/strict.h>

static struct lamp_next lamp_in_off(const struct lamp_view *view)
{
    (void)view;
    return lamp_goto(LAMP_ON, "it gets dark");
}

static struct lamp_next lamp_in_on(const struct lamp_view *view)
{
    (void)view;
    return lamp_do(LAMP_SWITCH, "it is dark");
}

static int lamp_do_switch_on(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired)
{
    (void)context;
    (void)deps;
    (void)desired;
    return 0;
}

static int lamp_collect(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired,
    struct det_empty *observed)
{
    (void)context;
    (void)deps;
    (void)desired;
    (void)observed;
    return 0;
}

static int link_collect(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired,
    struct link_observed *observed)
{
    (void)context;
    (void)deps;
    (void)desired;
    (void)observed;
    return 0;
}
