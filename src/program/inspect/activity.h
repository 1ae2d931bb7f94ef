/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity.h - which effects of an instance run now, and which wait for a thread. The store learns
 * of an attempt when it has ended; before that only the program that serves the instance knows. */
#ifndef DET_INSPECT_ACTIVITY_H
#define DET_INSPECT_ACTIVITY_H

#include "inspect/stored_instance.h"

/* In the program that serves it: `machine` is the one that `runtime` serves, `threads_max` the most
 * effects that run at the same time. May wait for the instance's writer. After an error nothing is
 * known. */
void activity_learn(
    struct instance *instance, struct det_runtime *runtime, const struct det_machine *machine,
    uint32_t threads_max);
/* Takes over one effect of the runtime: what has ended since the store was read is left as it is.
 * `context` is the instance. Returns 0. */
int activity_take(void *context, const struct det_pending_effect *row);

#endif
