/* expect: the context must have a member `handler` */
#include "motor.h"

struct motor {
    struct det_component component;
#ifndef MENDED
    struct motor_handler *handler;
#else
    const struct motor_handler *handler;
#endif
};

#define FSM_SPEC "motor.fsm"
#include <detent/fsm/define.h>

static int wait_for_it(struct motor *motor, struct motor_event *ret)
{
    (void)motor;
    (void)ret;
    return DET_DIRECTIVE_CONTINUE;
}

static int spin(struct motor *motor, const struct motor_event *event, struct motor_event *ret)
{
    (void)motor;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}
