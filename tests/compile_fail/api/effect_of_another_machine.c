/* expect: conflicting types for */
#include "door.h"

#define FSM_SPEC "door.fsm"
#include <detent/fsm/define.h>
#ifndef MENDED
static int ring(
    struct det_effect_call *call, const struct det_empty *data, const struct lamp_event *event,
    struct lamp_event *ret)
#else
static int ring(
    struct det_effect_call *call, const struct det_empty *data, const struct door_event *event,
    struct door_event *ret)
#endif
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}
