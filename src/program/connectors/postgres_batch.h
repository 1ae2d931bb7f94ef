/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_batch.h - the rows of a batch in the text format of COPY, and the statements that write
 * a part of them. Pure. */
#ifndef DET_CONNECTORS_POSTGRES_BATCH_H
#define DET_CONNECTORS_POSTGRES_BATCH_H

#include "connectors/sql_sink.h"

struct postgres_row {
    size_t begin; /* of its line */
    struct det_row_info info;
};

struct postgres_batch_rows {
    const struct det_allocator *allocator;
    struct det_buffer lines;
    struct postgres_row *rows;
    size_t count, capacity;
};

void postgres_batch_init(struct postgres_batch_rows *batch, const struct det_allocator *allocator);
void postgres_batch_deinit(struct postgres_batch_rows *batch);
void postgres_batch_clear(struct postgres_batch_rows *batch);
/* Adds a line: the values of the mapping, and the number of the row if the table has keys. */
DET_MUST_CHECK int postgres_batch_add(
    struct postgres_batch_rows *batch, const struct sql_mapping *mapping,
    const struct det_row_info *info, const void *in);
/* The lines of the rows [first, first + count). */
struct det_view postgres_batch_lines(
    const struct postgres_batch_rows *batch, size_t first, size_t count);

/* Creates the temporary table that upserts are copied into; nothing without keys. */
void postgres_write_staging(const struct sql_table *table, struct det_buffer *buffer);
/* COPY, and what moves the rows on. Of rows with equal keys the last one counts. */
void postgres_write_copy(const struct sql_table *table, struct det_buffer *buffer);

#endif
