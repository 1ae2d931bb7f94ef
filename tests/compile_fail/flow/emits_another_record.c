/* expect: incompatible type */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_CHARGE
#include "shop.h"

static int charge(struct det_stage_call *call, const struct order *in)
{
#ifndef MENDED
    return charge_emit(call, *in);
#else
    return charge_emit(call, (struct bill){ .cents = in->cents });
#endif
}
