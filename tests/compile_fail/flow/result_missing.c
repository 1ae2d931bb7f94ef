/* expect: -Werror: sum_result */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_RESULT
#include "shop.h"

#ifndef MENDED
#else
static int sum_result(struct det_stage_call *call, struct place *state)
{
    return sum_emit(call, (struct bill){ .cents = state->offset });
}
#endif
