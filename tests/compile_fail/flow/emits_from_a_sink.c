/* expect: -Werror: ship_emit */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_SHIP
#include "shop.h"

static int ship(struct det_stage_call *call, const struct bill *in)
{
#ifndef MENDED
    return ship_emit(call, *in);
#else
    (void)in;
    return det_stage_is_cancelled(call) ? DET_ERR_CANCELLED : 0;
#endif
}
