/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rejections.h - rows that a target has refused, until the flush: only there may a sink reject
 * other rows than the one in hand. */
#ifndef DET_CONNECTORS_REJECTIONS_H
#define DET_CONNECTORS_REJECTIONS_H

#include <detent/flow.h>

struct rejection {
    struct det_row_info row;
    enum det_row_rejection why;
    char text[DET_ERROR_TEXT_MAX];
};

struct rejections {
    const struct det_allocator *allocator;
    struct rejection *list;
    size_t count, capacity;
};

void rejections_init(struct rejections *rejections, const struct det_allocator *allocator);
void rejections_deinit(struct rejections *rejections);
/* DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int rejections_add(
    struct rejections *rejections, const struct det_row_info *row, enum det_row_rejection why,
    const char *text);
/* In flush(), as the last step: rejects all of them. Fails the stage without memory. */
DET_MUST_CHECK int rejections_report(struct rejections *rejections, struct det_stage_call *call);

#endif
