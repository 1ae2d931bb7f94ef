/* expect: conflicting types */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_CHARGE
#include "shop.h"

#ifndef MENDED
static int charge(struct det_stage_call *call, const struct bill *in)
#else
static int charge(struct det_stage_call *call, const struct order *in)
#endif
{
    return charge_emit(call, (struct bill){ .cents = in->cents });
}
