/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flights.c - the stages of flights.flow that have no connector, as a module of detent:
 * cc -I. -shared -fPIC flights.c -o flights.so */
#include <stdio.h>
#include <string.h>

#define FLOW_SPEC "flights.flow"
#include <detent/flow/declare.h>
#define FLOW_SPEC "flights.flow"
#include <detent/flow/define.h>
#include <detent/module.h>

/* A carrier that is not in carriers.csv keeps its code. */
static int name_carrier(
    struct det_stage_call *call, const struct carrier *reference, const struct flight *in)
{
    struct delay delay = { .minutes = in->minutes };

    snprintf(delay.number, sizeof delay.number, "%s", in->number);
    snprintf(delay.carrier, sizeof delay.carrier, "%s", reference ? reference->name : in->carrier);
    snprintf(delay.origin, sizeof delay.origin, "%s", in->origin);
    return name_carrier_emit(call, delay);
}

static int sum_up(struct det_stage_call *call, struct summary *state, const struct delay *in)
{
    (void)call;
    snprintf(state->carrier, sizeof state->carrier, "%s", in->carrier);
    state->flights++;
    state->minutes += in->minutes;
    if (state->worst < in->minutes)
        state->worst = in->minutes;
    return 0;
}

static int sum_up_result(struct det_stage_call *call, struct summary *state)
{
    return sum_up_emit(call, *state);
}

DET_MODULE("flights", DET_MODULE_FLOWS(&flights_flow));
