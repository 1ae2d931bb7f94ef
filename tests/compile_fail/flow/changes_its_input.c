/* expect: read-only|const-qualified */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_CHARGE
#include "shop.h"

static int charge(struct det_stage_call *call, const struct order *in)
{
#ifndef MENDED
    in->cents = 0;
#else
    (void)in;
#endif
    return charge_emit(call, (struct bill){ .cents = in->cents });
}
