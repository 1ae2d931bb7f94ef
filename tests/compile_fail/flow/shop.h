/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shop.h - the shop in C; a test replaces a function by defining its name before. */
#define FLOW_LOCAL
#define FLOW_SPEC "shop.flow"
#include <detent/flow/declare.h>
#define FLOW_LOCAL
#define FLOW_SPEC "shop.flow"
#include <detent/flow/define.h>

const struct det_flow *shop(void);
const struct det_flow *shop(void)
{
    return &shop_flow;
}

#ifndef OWN_READ
static int read_orders(struct det_stage_call *call, struct place *cursor)
{
    cursor->offset++;
    return read_orders_emit(call, (struct order){ .cents = 3 });
}
#endif
#ifndef OWN_CHARGE
static int charge(struct det_stage_call *call, const struct order *in)
{
    return charge_emit(call, (struct bill){ .cents = in->cents });
}
#endif
#ifndef OWN_SUM
static int sum(struct det_stage_call *call, struct place *state, const struct bill *in)
{
    (void)call;
    state->offset += in->cents;
    return 0;
}
#endif
#ifndef OWN_RESULT
static int sum_result(struct det_stage_call *call, struct place *state)
{
    return sum_emit_at(call, (struct bill){ .cents = state->offset }, call->now);
}
#endif
#ifndef OWN_SHIP
static int ship(struct det_stage_call *call, const struct bill *in)
{
    (void)call;
    (void)in;
    return 0;
}
#endif
