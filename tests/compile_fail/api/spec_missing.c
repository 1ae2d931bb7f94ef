/* expect: FSM_SPEC */
#include "door.h"

#ifndef MENDED
#include <detent/fsm/define.h>
#endif
