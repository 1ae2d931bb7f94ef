/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_machine.h - a built machine with everything it owns. */
#ifndef DET_MACHINE_BUILDER_MACHINE_H
#define DET_MACHINE_BUILDER_MACHINE_H

#include <detent/tool/builder.h>

#include "base/arena.h"

/* Only the functions of a machine may change after the build: they may be bound later. */
struct det_built {
    struct det_machine machine; /* first: callers have its address */
    const struct det_allocator *allocator;
    struct det_arena arena; /* everything the machine points to */
    struct det_guard_def *guards;
    struct det_hook_def *hooks;
    struct det_update_def *updates;
    struct det_fill_def *fills;
    struct det_effect_def *effects; /* the same as the machine's */
    size_t guard_count, hook_count, update_count, fill_count, effect_count;
};

#endif
