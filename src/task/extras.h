/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* extras.h - makes and frees parts that few tasks have. */
#ifndef DET_TASK_EXTRAS_H
#define DET_TASK_EXTRAS_H

#include "task/registry.h"

/* Copies what the spec points to. */
DET_MUST_CHECK int det_task_extras_open(
    struct det_task *task, const struct det_task_spec *spec, struct det_error *reterr);
void det_task_extras_close(struct det_task *task);

/* Everything that the spec points to, except its argument. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_task_spec_copy(
    struct det_arena *arena, const struct det_task_spec *spec, struct det_task_spec *ret);

#endif
