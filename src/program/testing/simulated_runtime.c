/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* simulated_runtime.c - opens and closes a simulated world with its runtime. */
#include "testing/simulated_runtime.h"

#include "base/assert.h"
#include "os/os.h"

static int open_runtime(struct cli_stage *stage, const struct det_runtime_options *runtime)
{
    struct det_store_options store = { .world = stage->world, .allocator = runtime->allocator };
    struct det_runtime_options options = *runtime;
    int r;

    options.world = stage->world;
    r = det_store_open_with("memory:", &store, &stage->store, NULL);
    if (r == 0)
        r = det_runtime_open(stage->store, &options, &stage->runtime, NULL);
    return r;
}

int cli_stage_open(
    struct cli_stage *stage, const struct det_sim_options *sim,
    const struct det_runtime_options *runtime)
{
    int r;

    *stage = (struct cli_stage){ 0 };
    r = det_sim_open(sim, &stage->sim, NULL);
    if (r < 0)
        return r;
    stage->world = det_sim_world(stage->sim);
    r = det_mutex_open(stage->world, &stage->mutex);
    if (r == 0)
        r = det_condition_open(stage->world, &stage->changed);
    if (r == 0)
        r = open_runtime(stage, runtime);
    return r;
}

static void let_go(struct cli_stage *stage)
{
    det_mutex_lock(stage->world, stage->mutex);
    det_assert(!stage->is_closing);
    stage->is_closing = true;
    det_condition_broadcast(stage->world, stage->changed);
    det_mutex_unlock(stage->world, stage->mutex);
}

uint64_t cli_stage_close(struct cli_stage *stage)
{
    uint64_t hash;

    /* A simulation that was broken off cannot end its threads, so what they use stays as it is. */
    if (!stage->is_broken) {
        if (stage->runtime)
            let_go(stage);
        det_runtime_close(stage->runtime);
        det_store_close(stage->store);
        if (stage->world) {
            det_condition_close(stage->world, stage->changed);
            det_mutex_close(stage->world, stage->mutex);
        }
    }
    hash = stage->sim ? det_sim_hash(stage->sim) : 0;
    det_sim_close(stage->sim);
    return hash;
}

int cli_stage_note(struct cli_stage *stage, int error)
{
    stage->is_broken = error == DET_ERR_LIMIT || error == DET_ERR_DEADLOCK;
    return error;
}

det_time cli_stage_now(const struct cli_stage *stage)
{
    return det_world_now(stage->world, DET_CLOCK_MONOTONIC);
}

void cli_stage_spend(struct cli_stage *stage, det_time span)
{
    det_time deadline = cli_stage_now(stage) + span;

    det_assert(span >= 0);
    while (!stage->is_closing && cli_stage_now(stage) < deadline)
        (void)det_condition_wait(stage->world, stage->changed, stage->mutex, deadline);
}
