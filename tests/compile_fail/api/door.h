/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* door.h - the door and another machine's event, for programs that use them wrongly. */
#include <detent/detent.h>

#define FSM_SPEC "door.fsm"
#include <detent/fsm/declare.h>

struct lamp_event {
    int kind;
};
