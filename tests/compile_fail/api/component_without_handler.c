/* expect: too few arguments */
#include "motor.h"

int use(struct det_executor *executor, struct motor *motor, const struct motor_handler *handler);
int use(struct det_executor *executor, struct motor *motor, const struct motor_handler *handler)
{
    struct det_handle *handle;

    (void)handler;
#ifndef MENDED
    return motor_supervise(executor, motor, NULL, &handle, NULL);
#else
    return motor_supervise(executor, motor, handler, NULL, &handle, NULL);
#endif
}
