/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.h - how much a store has, added up as it is found and reported in order: each machine,
 * followed by its states. */
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
/* Adds the numbers of `row`. What is said of a state counts for its machine too, which has a row
 * from its first mention on. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_count_add(struct det_count *count, const struct det_store_counted *row);
/* A non-zero answer ends it, and is returned. */
int det_count_tell(
    struct det_count *count, int (*visit)(void *context, const struct det_store_counted *row),
    void *context);

#endif
