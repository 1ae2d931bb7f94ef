/* expect: read-only|const-qualified */
#include "door.h"

#define FSM_SPEC "door.fsm"
#include <detent/fsm/define.h>
static int ring(
    struct det_effect_call *call, const struct det_empty *data, const struct door_event *event,
    struct door_event *ret)
{
    (void)call;
    (void)data;
    (void)event;
#ifndef MENDED
    event->knock.times = 0;
#endif
    *ret = door_slam();
    return DET_EFFECT_PRODUCED;
}
