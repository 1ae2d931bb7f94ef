/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* actor.h - the actor of a task, as its spec declares it. */
#ifndef DET_TASK_ACTOR_H
#define DET_TASK_ACTOR_H

#include "task/registry.h"

#define FSM_SPEC "task/actor.fsm"
#include <detent/fsm/declare.h>

#endif
