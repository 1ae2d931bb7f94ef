/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* facts.c - facts about the life of a flow: rows of the stream `system`. A fact that finds no room
 * in the journal waits; there is a place for each that can be noted. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

/* Facts that a stage, and a pipeline, can note in one open. */
#define STAGE_FACTS    4u
#define PIPELINE_FACTS 128u

int det_facts_open(struct det_pipeline *pipeline, struct det_error *reterr)
{
    struct det_pipeline_facts *facts = &pipeline->facts;

    facts->capacity = PIPELINE_FACTS + STAGE_FACTS * pipeline->flow->stage_count;
    facts->waiting = DET_NEW_ARRAY(pipeline->allocator, facts->capacity, struct det_pending_fact);
    if (!facts->waiting)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a flow");
    return det_journal_stream(pipeline->journal, "system", &facts->stream, reterr);
}

void det_facts_close(struct det_pipeline *pipeline)
{
    if (pipeline->facts.waiting)
        DET_DELETE_ARRAY(pipeline->allocator, pipeline->facts.waiting, pipeline->facts.capacity);
}

static struct det_flow_fact describe(
    const struct det_pipeline *pipeline, const struct det_pending_fact *waiting)
{
    const struct det_flow_stage *stage = waiting->stage;
    struct det_flow_fact fact = {
        .kind = waiting->kind,
        .at = det_world_now(pipeline->world, DET_CLOCK_WALL),
        .stage = stage ? stage->spec->name : NULL,
        .reason = waiting->reason,
    };

    if (!stage) {
        det_pipeline_totals(pipeline, &fact.rows_in, &fact.rows_out, &fact.errors);
        return fact;
    }
    for (uint32_t i = 0; i < stage->input_count; i++)
        fact.rows_in += stage->inputs[i]->done.rows;
    fact.rows_out = stage->kept.rows_out;
    fact.errors = stage->kept.errors + stage->kept.rejected;
    return fact;
}

/* DET_ERR_BUSY: no room. Other errors are the end of the journal, which is reported elsewhere. */
static int append_fact(struct det_pipeline *pipeline, const struct det_pending_fact *waiting)
{
    uint8_t data[DET_ERROR_TEXT_MAX + DET_JOURNAL_NAME_MAX + 64];
    struct det_flow_fact fact = describe(pipeline, waiting);
    struct det_journal_row row = {
        .data = data,
        .stream = pipeline->facts.stream,
        .kind = DET_ROW_FACT,
    };
    int r;

    det_assert(
        det_fact_row_max(strlen(fact.reason) + (fact.stage ? strlen(fact.stage) : 0)) <=
        sizeof data);
    row.size = (uint32_t)det_fact_row_write(&fact, data);
    r = det_journal_offer(pipeline->journal, &row, 1, &fact.position, NULL);
    if (r < 0)
        return r;
    pipeline->facts.last_position = fact.position;
    if (pipeline->options.on_fact)
        pipeline->options.on_fact(pipeline->options.user, &fact);
    return 0;
}

bool det_facts_flush(struct det_pipeline *pipeline)
{
    struct det_pipeline_facts *facts = &pipeline->facts;

    while (facts->count > 0) {
        if (append_fact(pipeline, &facts->waiting[facts->first]) == DET_ERR_BUSY)
            return false;
        facts->first = (facts->first + 1) % facts->capacity;
        facts->count--;
    }
    return true;
}

void det_flow_reason(const struct det_failure *failure, char *target)
{
    static const char place[] = "dispatch of ";
    const char *text = failure->text, *end = det_error_text(failure->code), *note;
    size_t size, end_size = strlen(end);

    if (strncmp(text, place, sizeof place - 1) == 0 && (note = strstr(text, ": ")))
        text = note + 2;
    size = strlen(text);
    if (size > end_size + 2 && strcmp(text + size - end_size, end) == 0 &&
        strncmp(text + size - end_size - 2, ": ", 2) == 0)
        size -= end_size + 2;
    if (size >= DET_ERROR_TEXT_MAX)
        size = DET_ERROR_TEXT_MAX - 1;
    memcpy(target, text, size);
    target[size] = '\0';
}

void det_facts_add(
    struct det_pipeline *pipeline, enum det_flow_fact_kind kind, const struct det_flow_stage *stage,
    const char *reason)
{
    struct det_pipeline_facts *facts = &pipeline->facts;

    /* Repeated stops of a journal that is stuck: the later ones say nothing new. */
    if (facts->count == facts->capacity)
        return;
    facts->waiting[(facts->first + facts->count) % facts->capacity] =
        (struct det_pending_fact){ .kind = kind, .stage = stage, .reason = reason };
    facts->count++;
    (void)det_facts_flush(pipeline);
}
