/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_tick.c - one tick of one worker that runs, of a hundred, in virtual time: nothing is due. */
#include <detent/sim.h>

#include "gate.h"
#include "meter.h"

#define METERS 100
#define YAML   "children: [{name: farm, kind: farm, config: {meters: 100}}]"

static int tick(void *argument, unsigned operations)
{
    for (unsigned i = 0; i < operations / METERS; i++)
        det_workers_tick(argument);
    return 0;
}

/* Until all run. */
static int warm(struct det_workers *workers, struct det_loop *loop, struct det_sim *sim)
{
    struct det_workers_summary summary = { 0 };
    int r = 0;

    for (int i = 0; i < 1000 && r >= 0; i++) {
        det_workers_tick(workers);
        r = det_loop_turn(loop, 0);
        det_workers_summary(workers, &summary);
        if (summary.by_phase[DET_PHASE_RUNNING] == METERS + 2)
            return 0;
        if (r == 0)
            r = det_sim_advance(sim, 10 * DET_MILLISECOND);
    }
    return r < 0 ? r : DET_ERR_TIMEOUT;
}

static int run_workers(struct det_sim *sim, unsigned operations)
{
    struct det_workers_options options = { .kinds = meter_kinds, .is_paused = true };
    DET_SCOPED(loop) loop = NULL;
    DET_SCOPED(workers) workers = NULL;
    int r;

    r = det_loop_open(det_sim_world(sim), NULL, &loop);
    options.loop = loop;
    if (r == 0)
        r = det_workers_open(&options, &workers, NULL);
    if (r == 0)
        r = det_workers_apply(workers, YAML, NULL);
    if (r == 0)
        r = warm(workers, loop, sim);
    return r < 0 ? r : gate_measured(tick, workers, operations);
}

int gate_tick(unsigned operations)
{
    struct det_sim *sim;
    int r;

    r = det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, NULL);
    if (r < 0)
        return r;
    r = run_workers(sim, operations);
    det_sim_close(sim);
    return r;
}
