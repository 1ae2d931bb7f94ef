/* expect: incompatible type */
#include "door.h"

#include <detent/strict.h>

int use(struct det_runtime *runtime);
int use(struct det_runtime *runtime)
{
#ifndef MENDED
    struct lamp_event event = { 0 };
#else
    struct door_event event = door_slam();
#endif
    return door_send(runtime, "front", event, NULL);
}
