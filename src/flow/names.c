/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* names.c - names of facts, rejections and states of a flow. */
#include <detent/flow.h>

const char *det_flow_fact_name(enum det_flow_fact_kind kind)
{
    switch (kind) {
#define DET_FLOW_FACT(name, number, text, is_of_stage) \
    case DET_FLOW_FACT_##name:                         \
        return text;
#include <detent/flow_facts.def>
#undef DET_FLOW_FACT
    }
    return NULL;
}

const char *det_row_rejection_name(enum det_row_rejection why)
{
    static const char *const names[DET_REJECTIONS] = {
        [DET_REJECT_UNKNOWN] = "unknown",       [DET_REJECT_TIMEOUT] = "timeout",
        [DET_REJECT_REMOTE] = "remote",         [DET_REJECT_RATE_LIMITED] = "rate_limited",
        [DET_REJECT_PERMANENT] = "permanent",   [DET_REJECT_DESERIALIZATION] = "deserialization",
        [DET_REJECT_VALIDATION] = "validation", [DET_REJECT_DOMAIN] = "domain",
    };

    return (unsigned)why < DET_REJECTIONS ? names[why] : "unknown";
}
