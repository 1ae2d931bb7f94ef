/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_send.c - sends to instances in memory, in a simulated world, so that chance has a seed. */
#include <detent/sim.h>

#include "gate.h"
#include "load.h"

#define INSTANCES 100

static int work(void *argument, unsigned operations)
{
    const struct load *load = argument;
    int r = 0;

    for (unsigned i = 0; i < operations && r == 0; i++) {
        struct load_event event = load_next((struct amount){ .amount = i });

        r = load_send(load->runtime, load->ids[i % INSTANCES], event, NULL);
    }
    return r;
}

int gate_send(unsigned operations)
{
    /* No switching of threads where none is needed: the count is of the sender alone. */
    struct det_sim_options sim_options = { .seed = 1, .preempt = UINT32_MAX };
    struct det_runtime_options options = { 0 };
    DET_SCOPED(sim) sim = NULL;
    struct load load;
    int r = det_sim_open(&sim_options, &sim, NULL);

    if (r < 0)
        return r;
    options.world = det_sim_world(sim);
    r = load_open(&load, INSTANCES, &options, NULL);
    if (r < 0)
        return r;
    r = gate_measured(work, &load, operations);
    load_close(&load);
    return r;
}
