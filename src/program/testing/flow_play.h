/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_play.h - runs one case of a flow: a simulated world, the journal on its disk, the pipeline
 * with the rows of the case instead of sources and sinks. */
#ifndef DET_TESTING_FLOW_PLAY_H
#define DET_TESTING_FLOW_PLAY_H

#include "testing/flow_case.h"
#include "testing/play.h"

struct flow_play_options {
    const struct det_allocator *allocator;
    const char *folder; /* that settings are relative to */
    uint32_t window;    /* 0: that of pipelines */
    uint64_t steps_max; /* 0: PLAY_STEPS_DEFAULT */
    bool *reached;      /* by stage: set for those that rows have reached */
};

/* 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int flow_play_case(
    const struct flow_case *one, const struct det_flow *flow,
    const struct flow_play_options *options, struct play_result *ret);

#endif
