/* expect: too many arguments */
#include "door.h"

int use(struct det_runtime *runtime);
int use(struct det_runtime *runtime)
{
#ifndef MENDED
    struct door_event event = door_slam((struct knock){ .times = 3 });
#else
    struct door_event event = door_slam();
#endif
    return door_send(runtime, "front", event, NULL);
}
