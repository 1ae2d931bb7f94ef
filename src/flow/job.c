/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* job.c - functions of a stage on the pool: they get copies of their inputs, and leave their
 * outputs in a turn of their own, which the loop joins to that of the stage.
 *
 *     FREE --give, submit--> RUNNING (a thread owns all but `phase`) --> DONE --> FREE */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

static void run_on_pool(void *argument)
{
    struct det_flow_job *job = argument;

    job->result = job->run(job);
}

static void note_done(void *argument)
{
    struct det_flow_job *job = argument;
    struct det_flow_stage *stage = job->call.stage;

    det_assert(job->phase == DET_JOB_RUNNING);
    if (job->job.is_dropped)
        job->result = DET_ERR_CANCELLED;
    job->phase = DET_JOB_DONE;
    det_component_wake(&stage->component);
}

static int open_inputs(struct det_flow_job *job, size_t value_size, uint32_t inputs)
{
    const struct det_allocator *allocator = job->call.stage->pipeline->allocator;

    if (inputs == 0)
        return 0;
    job->value_size = (value_size + 15) & ~(size_t)15;
    job->slots = DET_NEW_ARRAY(allocator, inputs, struct det_slot);
    job->values = det_alloc_array(allocator, inputs, job->value_size);
    job->capacity = inputs;
    return job->slots && job->values ? 0 : DET_ERR_NO_MEMORY;
}

int det_flow_job_open(struct det_flow_stage *stage, uint32_t inputs, struct det_flow_job **ret)
{
    const struct det_allocator *allocator = stage->pipeline->allocator;
    struct det_flow_job *job = DET_NEW(allocator, struct det_flow_job);
    int r;

    if (!job)
        return DET_ERR_NO_MEMORY;
    job->job = (struct det_job){
        .run = run_on_pool,
        .done = note_done,
        .argument = job,
        .loop = stage->pipeline->loop,
    };
    det_flow_turn_init(&job->turn, allocator, NULL, stage->out ? stage->out->size : 1);
    det_flow_call_init(&job->call, stage, &job->turn);
    r = open_inputs(job, stage->in ? stage->in->size : 1, inputs);
    if (r < 0) {
        det_flow_job_close(job);
        return r;
    }
    *ret = job;
    return 0;
}

void det_flow_job_close(struct det_flow_job *job)
{
    const struct det_allocator *allocator;

    if (!job)
        return;
    det_assert(job->phase != DET_JOB_RUNNING);
    allocator = job->call.stage->pipeline->allocator;
    det_flow_turn_deinit(&job->turn);
    if (job->slots)
        DET_DELETE_ARRAY(allocator, job->slots, job->capacity);
    if (job->values)
        det_free(allocator, job->values, job->capacity * job->value_size);
    DET_DELETE(allocator, job);
}

void det_flow_job_submit(struct det_flow_job *job, int (*run)(struct det_flow_job *job))
{
    det_assert(job->phase == DET_JOB_FREE);
    job->run = run;
    job->phase = DET_JOB_RUNNING;
    (void)det_pool_submit(job->call.stage->pipeline->pool, &job->job);
}

void det_flow_job_give(struct det_flow_job *job, struct det_flow_edge *edge, uint64_t count)
{
    const struct det_ring *ring = &edge->from->ring;

    det_assert(count <= job->capacity);
    job->edge = edge;
    job->count = (uint32_t)count;
    job->done = job->joined = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        uint64_t sequence = edge->given + 1 + i;

        job->slots[i] = *det_ring_slot(ring, sequence);
        memcpy(
            job->values + i * job->value_size, det_ring_value(ring, sequence), edge->to->in->size);
    }
    edge->given += count;
}
