/* expect: too few arguments */
#include "door.h"

int use(struct det_runtime *runtime);
int use(struct det_runtime *runtime)
{
#ifndef MENDED
    struct door_event event = door_knock();
#else
    struct door_event event = door_knock((struct knock){ .times = 3 });
#endif
    return door_send(runtime, "front", event, NULL);
}
