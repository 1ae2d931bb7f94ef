/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_offer.c - an event offered to a component: a step and two actions; and a wake with the turn
 * that it brings. */
#include <detent/sim.h>

#define FSM_SPEC "gate_offer.fsm"
#include <detent/fsm/declare.h>

#include "gate.h"

struct swing {
    struct det_component component;
    uint64_t pushes, weight;
};

#define FSM_SPEC "gate_offer.fsm"
#include <detent/fsm/define.h>

static int count(struct swing *swing, const struct swing_event *event, struct swing_event *ret)
{
    (void)event;
    (void)ret;
    swing->pushes++;
    return DET_EFFECT_DONE;
}

static int weigh(struct swing *swing, const struct swing_event *event, struct swing_event *ret)
{
    (void)event;
    (void)ret;
    swing->weight += det_component_state(&swing->component);
    return DET_EFFECT_DONE;
}

static int offer(void *argument, unsigned operations)
{
    struct swing *swing = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r == 0; i++)
        r = swing_offer(swing, swing_push());
    gate_use(swing->pushes + swing->weight);
    return r;
}

/* A turn wakes nobody twice: as many components as operations would be another measure. */
static int wake(void *argument, unsigned operations)
{
    struct swing *swing = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r >= 0; i++) {
        det_component_wake(&swing->component);
        r = det_loop_turn(det_executor_loop(swing->component.internal.executor), 0);
    }
    return r < 0 ? r : 0;
}

/* In a simulated world, so that no clock takes part. */
static int run(gate_work_fn *work, unsigned operations)
{
    struct det_supervise_options options = { .without_handle = true };
    DET_SCOPED(sim) sim = NULL;
    DET_SCOPED(loop) loop = NULL;
    DET_SCOPED(executor) executor = NULL;
    struct swing swing = { .pushes = 0 };
    int r;

    r = det_sim_open(NULL, &sim, NULL);
    if (r == 0)
        r = det_loop_open(det_sim_world(sim), NULL, &loop);
    if (r == 0)
        r = det_executor_open(loop, NULL, &executor, NULL);
    if (r == 0)
        r = swing_supervise(executor, &swing, &options, NULL, NULL);
    if (r == 0)
        r = det_loop_turn(loop, 0);
    if (r >= 0)
        r = gate_measured(work, &swing, operations);
    det_executor_close(executor);
    executor = NULL;
    return r;
}

int gate_offer(unsigned operations)
{
    return run(offer, operations);
}

int gate_wake(unsigned operations)
{
    return run(wake, operations);
}
