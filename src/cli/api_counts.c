/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_counts.c - how much of what there is: machines with their instances by state, the store. */
#include <string.h>

#include "cli/api_parts.h"

void api_get_machines(struct api_call *call)
{
    api_fail(call, DET_ERR_UNSUPPORTED, "not yet");
}

void api_get_store(struct api_call *call)
{
    api_fail(call, DET_ERR_UNSUPPORTED, "not yet");
}
