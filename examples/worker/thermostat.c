/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* thermostat.c - the functions of thermostat.worker, on the room that main() provides. */
#include "thermostat.h"

#include <detent/world.h>

#include <string.h>

#include "room.h"

#define WORKER_SPEC "thermostat.worker"
#include <detent/worker/define.h>

/* From the config to the desired state: pure. */
static int thermostat_derive(
    struct det_derive *derive, const struct thermostat_config *config,
    struct thermostat_desired *desired)
{
    if (strcmp(config->warmth, "cosy") == 0)
        *desired = (struct thermostat_desired){ .on_below = 21, .off_above = 22 };
    else if (strcmp(config->warmth, "fresh") == 0)
        *desired = (struct thermostat_desired){ .on_below = 17, .off_above = 18 };
    else
        return derive->refuse(derive, "warmth is cosy or fresh, not '%s'", config->warmth);
    return 0;
}

/* Observes, and changes nothing. */
static int thermostat_collect(
    struct det_worker_context *context, struct det_empty *deps,
    const struct thermostat_desired *desired, struct thermostat_observed *observed)
{
    struct room *room = det_worker_inherited(context, "room");

    (void)deps;
    (void)desired;
    observed->degrees = room_degrees(room, det_world_now(context->world, DET_CLOCK_MONOTONIC));
    observed->is_heating = room_is_heating(room);
    return 0;
}

/* Changes nothing if the heater is already as requested. */
static void set_heating(struct det_worker_context *context, bool is_heating)
{
    det_time now = det_world_now(context->world, DET_CLOCK_MONOTONIC);

    room_set_heating(det_worker_inherited(context, "room"), now, is_heating);
}

static int thermostat_do_heat(
    struct det_worker_context *context, struct det_empty *deps,
    const struct thermostat_desired *desired)
{
    (void)deps;
    (void)desired;
    set_heating(context, true);
    return 0;
}

static int thermostat_do_stop_heating(
    struct det_worker_context *context, struct det_empty *deps,
    const struct thermostat_desired *desired)
{
    (void)deps;
    (void)desired;
    set_heating(context, false);
    return 0;
}

/* The states: each decides by its view alone. */

static const char *print(const struct thermostat_view *view)
{
    return det_reason(view->all, "it has %.1f degrees", view->observed->degrees);
}

static bool is_cold(const struct thermostat_view *view)
{
    return view->observed->degrees < view->desired->on_below;
}

static struct thermostat_next thermostat_in_stopped(const struct thermostat_view *view)
{
    (void)view;
    return thermostat_goto(THERMOSTAT_WARMING, "start requested");
}

static struct thermostat_next thermostat_in_warming(const struct thermostat_view *view)
{
    if (!is_cold(view))
        return thermostat_goto(THERMOSTAT_WARM, print(view));
    if (!view->observed->is_heating)
        return thermostat_do(THERMOSTAT_HEAT, print(view));
    return thermostat_hold(print(view));
}

static struct thermostat_next thermostat_in_warm(const struct thermostat_view *view)
{
    double degrees = view->observed->degrees;

    if (degrees < view->desired->on_below - 1)
        return thermostat_goto(THERMOSTAT_TOO_COLD, print(view));
    if (is_cold(view) && !view->observed->is_heating)
        return thermostat_do(THERMOSTAT_HEAT, print(view));
    if (degrees > view->desired->off_above && view->observed->is_heating)
        return thermostat_do(THERMOSTAT_STOP_IT, print(view));
    return thermostat_hold(print(view));
}

static struct thermostat_next thermostat_in_too_cold(const struct thermostat_view *view)
{
    if (!is_cold(view))
        return thermostat_goto(THERMOSTAT_WARM, print(view));
    if (!view->observed->is_heating)
        return thermostat_do(THERMOSTAT_HEAT, print(view));
    return thermostat_hold(print(view));
}

static struct thermostat_next thermostat_in_switching_off(const struct thermostat_view *view)
{
    if (view->observed->is_heating)
        return thermostat_do(THERMOSTAT_STOP_IT, "the heater is still on");
    return thermostat_goto(THERMOSTAT_STOPPED, "the heater is off");
}
