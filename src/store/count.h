/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.h - sums up the counts of a store and reports them in order: each machine, followed by its
 * states. */
#ifndef DET_STORE_COUNT_H
#define DET_STORE_COUNT_H

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include "base/arena.h"
#include "base/buffer.h"

struct det_count {
    struct det_arena names;
    struct det_buffer rows; /* struct det_store_counted */
};

void det_count_init(struct det_count *count, const struct det_allocator *allocator);
void det_count_deinit(struct det_count *count);
/* Adds the numbers of `row`. Those of a state are also added to its machine, whose row is created
 * on first use. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_count_add(struct det_count *count, const struct det_store_counted *row);
/* A non-zero return value of the visitor ends the walk and is returned. */
int det_count_report(
    struct det_count *count, int (*visit)(void *context, const struct det_store_counted *row),
    void *context);

#endif
