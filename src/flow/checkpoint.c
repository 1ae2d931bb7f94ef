/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checkpoint.c - the progress of all stages in one group, from which an open begins to read; and
 * with it the release of what no open will read again. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

/* Bytes between two checkpoints, about: what an open reads at most. */
#define CHECKPOINT_BYTES ((uint64_t)16 << 20)

int det_checkpoints_open(struct det_pipeline *pipeline, struct det_error *reterr)
{
    struct det_pipeline_checkpoints *checkpoints = &pipeline->checkpoints;
    const struct det_flow *flow = pipeline->flow;

    checkpoints->data_size = DET_CHECKPOINT_END_ROW_MAX;
    for (uint16_t i = 0; i < flow->stage_count; i++)
        checkpoints->data_size += det_checkpoint_row_max(
            strlen(flow->stages[i].name), pipeline->stages[i].input_count,
            pipeline->stages[i].cursor.max);
    checkpoints->data = det_alloc(pipeline->allocator, checkpoints->data_size);
    checkpoints->rows =
        DET_NEW_ARRAY(pipeline->allocator, flow->stage_count + 1u, struct det_journal_row);
    if (!checkpoints->data || !checkpoints->rows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a flow");
    return 0;
}

void det_checkpoints_close(struct det_pipeline *pipeline)
{
    struct det_pipeline_checkpoints *checkpoints = &pipeline->checkpoints;

    if (checkpoints->data)
        det_free(pipeline->allocator, checkpoints->data, checkpoints->data_size);
    if (checkpoints->rows)
        DET_DELETE_ARRAY(pipeline->allocator, checkpoints->rows, pipeline->flow->stage_count + 1u);
}

static void lower(uint64_t *floor, uint64_t position)
{
    if (position < *floor)
        *floor = position;
}

/* The first position that an open from this checkpoint reads. */
static uint64_t floor_of(const struct det_pipeline *pipeline, uint64_t checkpoint)
{
    uint64_t floor = checkpoint;

    for (uint16_t i = 0; i < pipeline->flow->edge_count; i++) {
        const struct det_flow_edge *edge = &pipeline->edges[i];

        if (edge->done.sequence < edge->from->ring.written)
            lower(&floor, edge->done.position + 1);
    }
    for (uint16_t i = 0; i < pipeline->flow->stage_count; i++) {
        const struct det_flow_stage *stage = &pipeline->stages[i];

        if (stage->table && stage->kept.state_from > 0)
            lower(&floor, stage->kept.state_from);
    }
    return floor;
}

int det_checkpoint_append(struct det_pipeline *pipeline)
{
    struct det_pipeline_checkpoints *checkpoints = &pipeline->checkpoints;
    uint16_t count = pipeline->flow->stage_count;
    struct det_checkpoint_end checkpoint = { pipeline->fingerprint, pipeline->run, count };
    uint8_t *end = checkpoints->data;
    uint64_t last;
    int r;

    for (uint16_t i = 0; i <= count; i++) {
        struct det_flow_progress progress;
        size_t size;

        if (i < count) {
            det_stage_progress(&pipeline->stages[i], pipeline->stages[i].marks, &progress);
            size = det_checkpoint_row_write(pipeline->flow->stages[i].name, &progress, end);
        } else {
            size = det_checkpoint_end_row_write(&checkpoint, end);
        }
        checkpoints->rows[i] = (struct det_journal_row){
            .data = end,
            .size = (uint32_t)size,
            .stream = checkpoints->stream,
            .kind = i < count ? DET_ROW_CHECKPOINT : DET_ROW_CHECKPOINT_END,
        };
        end += size;
    }
    det_assert((size_t)(end - checkpoints->data) <= checkpoints->data_size);
    r = det_journal_offer(pipeline->journal, checkpoints->rows, count + 1u, &last, NULL);
    if (r < 0)
        return r;
    checkpoints->bytes = 0;
    checkpoints->position = last;
    checkpoints->floor = floor_of(pipeline, last - count);
    det_checkpoint_acknowledged(pipeline);
    return 0;
}

/* Without room the next group tries again; a journal that has failed is reported elsewhere. */
void det_checkpoint_count(struct det_pipeline *pipeline, uint64_t bytes)
{
    pipeline->checkpoints.bytes += bytes;
    if (pipeline->checkpoints.bytes >= CHECKPOINT_BYTES && det_checkpoint_append(pipeline) < 0)
        return;
}

void det_checkpoint_acknowledged(struct det_pipeline *pipeline)
{
    struct det_pipeline_checkpoints *checkpoints = &pipeline->checkpoints;

    if (checkpoints->floor == 0 ||
        det_journal_acknowledged(pipeline->journal) < checkpoints->position)
        return;
    if (!pipeline->folder || pipeline->options.retain_size || pipeline->options.retain_age)
        (void)det_journal_release(pipeline->journal, checkpoints->floor);
    checkpoints->floor = 0;
}
