/* expect: motor_instance_start */
#include "motor.h"

#include <detent/strict.h>

int use(struct motor *motor, const char *name);
int use(struct motor *motor, const char *name)
{
    (void)motor;
    (void)name;
#ifndef MENDED
    return motor_instance_start(NULL, name, NULL);
#else
    return motor_offer(motor, motor_switch_on());
#endif
}
