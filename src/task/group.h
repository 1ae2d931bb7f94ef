/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group.h - the machine of a group, as its spec declares it. */
#ifndef DET_TASK_GROUP_H
#define DET_TASK_GROUP_H

#include "task/tree.h"

#define FSM_SPEC "task/group.fsm"
#include <detent/fsm/declare.h>

#endif
