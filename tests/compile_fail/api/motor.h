/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* motor.h - a component, for programs that use it wrongly. */
#define FSM_SPEC "motor.fsm"
#include <detent/fsm/declare.h>

struct motor_handler {
    int speed;
};

struct lamp_event {
    int kind;
};
