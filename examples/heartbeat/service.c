/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* service.c - the service machine: its table, and the functions that service.fsm names. */
#include "service.h"

#define FSM_SPEC "service.fsm"
#include <detent/fsm/define.h>
#include <detent/strict.h>

/* A check of a service that is well in 80 of 100 cases, shaky in 15, and down in 5. A real one
 * would ask the service. The runtime's `user` is the world, and with it the dice. */
static int check_health(
    struct det_effect_call *call, const struct service_data *data,
    const struct service_event *event, struct service_event *ret)
{
    struct det_world *world = call->move.user;
    unsigned dice = (unsigned)(det_world_random_u64(world) % 100);

    (void)data;
    (void)event;
    *ret = dice < 80 ? service_healthy() : dice < 95 ? service_unstable() : service_failed();
    return DET_EFFECT_PRODUCED;
}

static int call_somebody(
    struct det_effect_call *call, const struct service_data *data,
    const struct service_event *event, struct service_event *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}

static void count_reset(struct service_data *data, const struct service_event *event)
{
    (void)event;
    data->resets++;
}
