/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* simulated_runtime.h - a runtime in a separate simulated world, for the cases of `test` and the
 * walks of `sim`.
 *
 * Functions that stand in for those of the machine may wait in it, under its mutex; when it closes,
 * all waiting calls return.
 *
 *     open --> (broken, when the simulation cannot continue) --> closing --> closed */
#ifndef DET_TESTING_SIMULATED_RUNTIME_H
#define DET_TESTING_SIMULATED_RUNTIME_H

#include <detent/runtime.h>
#include <detent/sim.h>

struct cli_stage {
    struct det_sim *sim;
    struct det_world *world;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_mutex *mutex; /* guards the condition of `changed` */
    struct det_condition *changed;
    bool is_closing;
    bool is_broken;
};

/* The world and the store of the runtime are those of the stage. On failure close it all the same.
 */
DET_MUST_CHECK int cli_stage_open(
    struct cli_stage *stage, const struct det_sim_options *sim,
    const struct det_runtime_options *runtime);
/* Cancels waiting calls; returns the hash of all events, 0 if it was never opened. */
uint64_t cli_stage_close(struct cli_stage *stage);
/* Records an error of the simulation, which is returned: after some it cannot continue. */
int cli_stage_note(struct cli_stage *stage, int error);

det_time cli_stage_now(const struct cli_stage *stage);
/* Call it with the mutex: waits for a span, unless the stage closes. */
void cli_stage_spend(struct cli_stage *stage, det_time span);

#endif
