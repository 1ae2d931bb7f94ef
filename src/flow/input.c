/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input.c - the inputs of a stage: which rows it may take, and in which order. */
#include "base/assert.h"
#include "flow/flow_internal.h"

/* Rows up to `limit` that are acknowledged. */
static uint64_t count_acknowledged(struct det_flow_edge *edge, uint64_t count)
{
    const struct det_ring *ring = &edge->from->ring;
    uint64_t position = det_journal_acknowledged(edge->to->pipeline->journal);

    if (count == 0 || det_ring_slot(ring, edge->given + count)->position <= position)
        return count;
    /* Positions ascend: the first row that is not acknowledged, by halving. */
    for (uint64_t low = 0; low < count;) {
        uint64_t middle = low + (count - low) / 2;

        if (det_ring_slot(ring, edge->given + 1 + middle)->position <= position)
            low = middle + 1;
        else
            count = middle;
    }
    edge->to->waits_for_journal = true;
    return count;
}

uint64_t det_edge_available(struct det_flow_edge *edge, bool acknowledged)
{
    uint64_t count = edge->from->ring.written - edge->given;

    return acknowledged ? count_acknowledged(edge, count) : count;
}

struct det_flow_edge *det_stage_next_input(
    struct det_flow_stage *stage, bool acknowledged, uint64_t *ret_count)
{
    for (uint32_t i = 0; i < stage->input_count; i++) {
        struct det_flow_edge *edge = stage->inputs[stage->next_input];

        stage->next_input = (uint16_t)((stage->next_input + 1u) % stage->input_count);
        *ret_count = det_edge_available(edge, acknowledged);
        if (*ret_count > 0)
            return edge;
    }
    return NULL;
}

static int take_end(struct det_flow_edge *edge, const struct det_slot *slot)
{
    if (slot->count != edge->taken.rows)
        return det_component_fail(
            &edge->to->component, DET_ERR_CORRUPT,
            "the end of stage %s is after row %llu, but %s has read %llu", edge->from->spec->name,
            (unsigned long long)slot->count, edge->to->spec->name,
            (unsigned long long)edge->taken.rows);
    edge->taken.end = slot->end;
    return 0;
}

int det_edge_take(struct det_flow_edge *edge, const struct det_slot *slot)
{
    det_check(slot->sequence == edge->taken.sequence + 1);
    edge->taken.sequence = slot->sequence;
    edge->taken.position = slot->position;
    if (edge->given < slot->sequence)
        edge->given = slot->sequence;
    if (slot->kind == DET_SLOT_ROW)
        edge->taken.rows++;
    return slot->kind == DET_SLOT_END ? take_end(edge, slot) : 0;
}

void det_edge_leave(struct det_flow_edge *edge)
{
    edge->is_left = true;
    det_ring_remove(&edge->from->ring, &edge->reader);
    det_component_wake(&edge->from->component);
}

enum det_end_kind det_stage_input_end(const struct det_flow_stage *stage)
{
    enum det_end_kind worst = DET_END_NATURAL;

    for (uint32_t i = 0; i < stage->input_count; i++) {
        enum det_end_kind end = (enum det_end_kind)stage->inputs[i]->taken.end;

        if (end == DET_END_NONE)
            return DET_END_NONE;
        if (end > worst)
            worst = end;
    }
    return worst;
}
