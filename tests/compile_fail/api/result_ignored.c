/* expect: unused-result */
#include "door.h"

#include <detent/strict.h>

void use(struct det_runtime *runtime);
void use(struct det_runtime *runtime)
{
    struct det_instance instance;

#ifndef MENDED
    det_runtime_get(runtime, &door_machine, "front", &instance, NULL, NULL);
#else
    (void)!det_runtime_get(runtime, &door_machine, "front", &instance, NULL, NULL);
#endif
}
