/* expect: conflicting types for */
#include "motor.h"

struct motor {
    struct det_component component;
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

#ifndef MENDED
static int spin(
    struct det_effect_call *call, const struct motor_event *event, struct motor_event *ret)
#else
static int spin(struct motor *call, const struct motor_event *event, struct motor_event *ret)
#endif
{
    (void)call;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}
