/* expect: incompatible type */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#include "shop.h"

#define FLOW_LOCAL
#define FLOW_SPEC "yard.flow"
#include <detent/flow/declare.h>
#define FLOW_LOCAL
#define FLOW_SPEC "yard.flow"
#include <detent/flow/define.h>

const struct det_flow *yard(void);
const struct det_flow *yard(void)
{
    return &yard_flow;
}

static int unload(struct det_stage_call *call)
{
#ifndef MENDED
    return unload_emit(call, (struct order){ .cents = 3 });
#else
    return unload_emit(call, (struct crate){ .weight = 3 });
#endif
}

static int stack(struct det_stage_call *call, const struct crate *in)
{
    (void)call;
    return in->weight > 100 ? DET_ERR_RANGE : 0;
}
