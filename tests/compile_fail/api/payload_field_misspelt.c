/* expect: tines */
#include "door.h"

int use(struct det_runtime *runtime);
int use(struct det_runtime *runtime)
{
#ifndef MENDED
    struct knock knock = { .tines = 3 };
#else
    struct knock knock = { .times = 3 };
#endif
    return door_send(runtime, "front", door_knock(knock), NULL);
}
