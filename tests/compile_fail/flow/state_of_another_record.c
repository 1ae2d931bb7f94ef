/* expect: conflicting types */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_SUM
#include "shop.h"

#ifndef MENDED
static int sum(struct det_stage_call *call, struct bill *state, const struct bill *in)
{
    state->cents += in->cents;
    return call == NULL;
}
#else
static int sum(struct det_stage_call *call, struct place *state, const struct bill *in)
{
    state->offset += in->cents;
    return call == NULL;
}
#endif
