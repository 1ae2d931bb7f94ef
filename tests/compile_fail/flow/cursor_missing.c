/* expect: conflicting types */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#define OWN_READ
#include "shop.h"

#ifndef MENDED
static int read_orders(struct det_stage_call *call)
{
    return read_orders_emit(call, (struct order){ .cents = 3 });
}
#else
static int read_orders(struct det_stage_call *call, struct place *cursor)
{
    return read_orders_emit(call, (struct order){ .cents = cursor->offset });
}
#endif
