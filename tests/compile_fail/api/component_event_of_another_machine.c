/* expect: incompatible type */
#include "motor.h"

#include <detent/strict.h>

int use(struct motor *motor);
int use(struct motor *motor)
{
#ifndef MENDED
    struct lamp_event event = { 0 };
#else
    struct motor_event event = motor_switch_on();
#endif
    return motor_offer(motor, event);
}
