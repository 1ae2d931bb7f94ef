/* expect: the context must have a member `struct det_component component` */
#include "motor.h"

struct motor {
#ifndef MENDED
    struct det_component *component;
#else
    struct det_component component;
#endif
    const struct motor_handler *handler;
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
