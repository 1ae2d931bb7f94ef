/* expect: incompatible type */
#include "door.h"

int use(struct det_runtime *runtime);
int use(struct det_runtime *runtime)
{
#ifndef MENDED
    return door_send(runtime, "front", DOOR_SLAM, NULL);
#else
    return door_send(runtime, "front", door_slam(), NULL);
#endif
}
