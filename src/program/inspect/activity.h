/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity.h - which effects of an instance run now, and which wait for a thread. The store records
 * an attempt when it has ended; before that only the program that serves the instance knows. */
#ifndef DET_INSPECT_ACTIVITY_H
#define DET_INSPECT_ACTIVITY_H

#include "inspect/stored_instance.h"

/* For the program that serves it: `machine` is served by `runtime`, `threads_max` limits concurrent
 * effects. May wait for the instance's writer. After an error the activity is unknown. */
void activity_learn(
    struct instance *instance, struct det_runtime *runtime, const struct det_machine *machine,
    uint32_t threads_max);
/* Merges one effect of the runtime; an effect that has ended since the store was read stays
 * unchanged. `context` is the instance. Returns 0. */
int activity_take(void *context, const struct det_pending_effect *row);

#endif
