/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* unsupported.c - the functions of a running flow, until it is built. */
#include <detent/flow.h>

int det_pipeline_open(
    const struct det_flow *flow, const struct det_pipeline_options *options,
    struct det_pipeline **ret, struct det_error *reterr)
{
    (void)options;
    (void)ret;
    return det_error_set(reterr, DET_ERR_UNSUPPORTED, "flow %s cannot run yet", flow->name);
}

int det_pipeline_run(struct det_pipeline *pipeline)
{
    (void)pipeline;
    return DET_ERR_UNSUPPORTED;
}

int det_pipeline_drain(struct det_pipeline *pipeline, det_time timeout)
{
    (void)pipeline;
    (void)timeout;
    return DET_ERR_UNSUPPORTED;
}

int det_pipeline_cancel(struct det_pipeline *pipeline)
{
    (void)pipeline;
    return DET_ERR_UNSUPPORTED;
}

int det_pipeline_abort(struct det_pipeline *pipeline, const char *reason)
{
    (void)pipeline;
    (void)reason;
    return DET_ERR_UNSUPPORTED;
}

enum det_pipeline_state det_pipeline_state(const struct det_pipeline *pipeline)
{
    (void)pipeline;
    return DET_PIPELINE_FAILED;
}

const char *det_pipeline_state_name(enum det_pipeline_state state)
{
    (void)state;
    return "failed";
}

int det_pipeline_wait_state(
    struct det_pipeline *pipeline, enum det_pipeline_state state, det_time deadline)
{
    (void)pipeline;
    (void)state;
    (void)deadline;
    return DET_ERR_UNSUPPORTED;
}

int det_pipeline_wait(
    struct det_pipeline *pipeline, det_time deadline, struct det_pipeline_end *ret)
{
    (void)pipeline;
    (void)deadline;
    (void)ret;
    return DET_ERR_UNSUPPORTED;
}

int det_pipeline_status(
    struct det_pipeline *pipeline, struct det_stage_status *stages, size_t *stage_count,
    struct det_edge_status *edges, size_t *edge_count)
{
    (void)pipeline;
    (void)stages;
    (void)stage_count;
    (void)edges;
    (void)edge_count;
    return DET_ERR_UNSUPPORTED;
}

uint64_t det_pipeline_run_number(const struct det_pipeline *pipeline)
{
    (void)pipeline;
    return 0;
}

struct det_journal *det_pipeline_journal(struct det_pipeline *pipeline)
{
    (void)pipeline;
    return NULL;
}

void det_pipeline_close(struct det_pipeline *pipeline)
{
    (void)pipeline;
}
