/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* thermostat.c - what the rows of thermostat.worker do, with the room that main() provides. */
#include "thermostat.h"

#include <detent/world.h>

#include <string.h>

#include "room.h"

#define WORKER_SPEC "thermostat.worker"
#include <detent/worker/define.h>

/* From what the user says to what it comes to: pure. */
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

/* Looks, and changes nothing. */
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

/* Changes something, and does nothing if it is so already. */
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

/* The states: what they see decides, and nothing else. */

static const char *say(const struct thermostat_view *view)
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
    return thermostat_goto(THERMOSTAT_WARMING, "somebody wants it warm");
}

static struct thermostat_next thermostat_in_warming(const struct thermostat_view *view)
{
    if (!is_cold(view))
        return thermostat_goto(THERMOSTAT_WARM, say(view));
    if (!view->observed->is_heating)
        return thermostat_do(THERMOSTAT_HEAT, say(view));
    return thermostat_hold(say(view));
}

static struct thermostat_next thermostat_in_warm(const struct thermostat_view *view)
{
    double degrees = view->observed->degrees;

    if (degrees < view->desired->on_below - 1)
        return thermostat_goto(THERMOSTAT_TOO_COLD, say(view));
    if (is_cold(view) && !view->observed->is_heating)
        return thermostat_do(THERMOSTAT_HEAT, say(view));
    if (degrees > view->desired->off_above && view->observed->is_heating)
        return thermostat_do(THERMOSTAT_STOP_IT, say(view));
    return thermostat_hold(say(view));
}

static struct thermostat_next thermostat_in_too_cold(const struct thermostat_view *view)
{
    if (!is_cold(view))
        return thermostat_goto(THERMOSTAT_WARM, say(view));
    if (!view->observed->is_heating)
        return thermostat_do(THERMOSTAT_HEAT, say(view));
    return thermostat_hold(say(view));
}

static struct thermostat_next thermostat_in_switching_off(const struct thermostat_view *view)
{
    if (view->observed->is_heating)
        return thermostat_do(THERMOSTAT_STOP_IT, "the heater is on yet");
    return thermostat_goto(THERMOSTAT_STOPPED, "the heater is off");
}
