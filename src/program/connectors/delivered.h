/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* delivered.h - the position of the last delivered row of each stage that a sink reads.
 *
 * A target saves it in the transaction of the rows. A row at or before the saved position is in the
 * target already; a sink that resumes skips it. Rows of one stage come in the order of their
 * positions, those of several stages in any order: hence one position for each.
 *
 *     done[stream] <= pending[stream]        equal between two transactions */
#ifndef DET_CONNECTORS_DELIVERED_H
#define DET_CONNECTORS_DELIVERED_H

#include <detent/flow.h>

#include "base/buffer.h"

struct delivered {
    uint64_t done[DET_JOURNAL_STREAMS_MAX];    /* saved in the target */
    uint64_t pending[DET_JOURNAL_STREAMS_MAX]; /* and in the transaction */
    uint16_t end;                              /* no stream from here on has a position */
};

/* A position that was read from the target; false: no such stream. */
bool delivered_load(struct delivered *delivered, int64_t stream, int64_t position);
/* Returns true if the row is in the target or in the transaction. */
bool delivered_has(const struct delivered *delivered, const struct det_row_info *row);
void delivered_add(struct delivered *delivered, const struct det_row_info *row);
/* Returns the next stream from `stream` on whose position the transaction changes; -1: none. */
int delivered_next(const struct delivered *delivered, int stream);
void delivered_commit(struct delivered *delivered);
void delivered_roll_back(struct delivered *delivered);

/* All positions with those of the transaction, as text: "3:120,5:77". */
void delivered_write(const struct delivered *delivered, struct det_buffer *buffer);
/* Reads such a text; false: it is damaged. */
bool delivered_read(struct delivered *delivered, const char *text, size_t size);

#endif
