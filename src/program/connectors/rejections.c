/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rejections.c - rows that a target has refused, until the flush. */
#include "connectors/rejections.h"

#include "base/memory.h"
#include "base/text.h"

#define FIRST 8

void rejections_init(struct rejections *rejections, const struct det_allocator *allocator)
{
    *rejections = (struct rejections){ .allocator = allocator };
}

void rejections_deinit(struct rejections *rejections)
{
    if (rejections->list)
        DET_DELETE_ARRAY(rejections->allocator, rejections->list, rejections->capacity);
    rejections->list = NULL;
    rejections->count = rejections->capacity = 0;
}

int rejections_add(
    struct rejections *rejections, const struct det_row_info *row, enum det_row_rejection why,
    const char *text)
{
    size_t capacity = rejections->capacity ? rejections->capacity * 2 : FIRST;
    struct rejection *next;

    if (rejections->count == rejections->capacity) {
        struct rejection *list = det_realloc(
            rejections->allocator, rejections->list, rejections->capacity * sizeof *list,
            capacity * sizeof *list);

        if (!list)
            return DET_ERR_NO_MEMORY;
        rejections->list = list;
        rejections->capacity = capacity;
    }
    next = &rejections->list[rejections->count++];
    next->row = *row;
    next->why = why;
    (void)det_text_copy(next->text, sizeof next->text, text);
    return 0;
}

int rejections_report(struct rejections *rejections, struct det_stage_call *call)
{
    for (size_t i = 0; i < rejections->count; i++) {
        const struct rejection *rejection = &rejections->list[i];

        call->row = rejection->row;
        if (det_stage_reject(call, rejection->why, "%s", rejection->text) == DET_ERR_NO_MEMORY)
            return det_stage_fail(call, DET_ERR_NO_MEMORY, "%s: out of memory", call->stage->name);
    }
    rejections->count = 0;
    return 0;
}
