/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_rows.h - the rows of a run's log and their bytes (docs/formats/flow-log.md). Pure. */
#ifndef DET_FLOW_LOG_ROWS_H
#define DET_FLOW_LOG_ROWS_H

#include <detent/flow.h>

#include "base/text.h"

enum det_flow_row {
    DET_ROW_DATA = 1,
    DET_ROW_END = 2,
    DET_ROW_REJECTED = 3,
    DET_ROW_PROGRESS = 4,
    DET_ROW_STATE = 5,
    DET_ROW_GONE = 6,
    DET_ROW_FACT = 7,
    DET_ROW_CHECKPOINT = 8,
    DET_ROW_CHECKPOINT_END = 9,
};

#define DET_FLOW_LOG_VERSION 1

/* How far a stage has read one of its inputs. */
struct det_input_mark {
    uint64_t sequence, position; /* of the last row that it is done with */
    uint64_t rows;               /* DATA rows among them */
    uint8_t end;                 /* enum det_end_kind */
};

struct det_flow_progress {
    uint64_t rows_out, errors, rejected;
    uint8_t end; /* enum det_end_kind, of the output */
    uint64_t state_rows;
    uint64_t state_from;
    det_time period;
    struct det_input_mark *inputs; /* to read: `input_capacity` of them */
    uint32_t input_count, input_capacity;
    const void *cursor;
    size_t cursor_size;
};

/* Writers need room for at most the `_max` bytes, and return the bytes written. */
#define DET_END_ROW_MAX            11
#define DET_CHECKPOINT_END_ROW_MAX 27
size_t det_progress_row_max(uint32_t inputs, size_t cursor_size);
size_t det_progress_row_write(const struct det_flow_progress *progress, uint8_t *target);
size_t det_end_row_write(enum det_end_kind end, uint64_t rows, uint8_t *target);
size_t det_rejected_row_max(size_t text_size, size_t input_size);
/* The input record follows what is written. */
size_t det_rejected_row_write(
    enum det_row_rejection why, int code, struct det_view text, uint8_t *target);
size_t det_state_row_max(size_t key_size, size_t state_size);

/* What precedes the record of a STATE row. */
struct det_state_row {
    struct det_view key;
    uint64_t rows;
    uint64_t position, correlation;
    const void *state;
    size_t state_size;
};
/* The record follows what is written. */
size_t det_state_row_write(const struct det_state_row *row, uint8_t *target);
size_t det_gone_row_max(size_t key_size);
size_t det_gone_row_write(struct det_view key, uint8_t *target);
size_t det_fact_row_max(size_t text_size);
size_t det_fact_row_write(const struct det_flow_fact *fact, uint8_t *target);
size_t det_checkpoint_row_max(size_t name_size, uint32_t inputs, size_t cursor_size);
size_t det_checkpoint_row_write(
    const char *stage, const struct det_flow_progress *progress, uint8_t *target);
/* What a CHECKPOINT_END row says. */
struct det_checkpoint_end {
    uint64_t fingerprint;
    uint64_t run;  /* identity of the run */
    uint32_t rows; /* CHECKPOINT rows before it in its group */
};
size_t det_checkpoint_end_row_write(const struct det_checkpoint_end *end, uint8_t *target);

/* Readers: DET_ERR_MALFORMED or DET_ERR_TRUNCATED, DET_ERR_VERSION; views point into the data.
 * Bytes after the row are malformed. */
DET_MUST_CHECK int det_progress_row_read(
    const void *data, size_t size, struct det_flow_progress *ret);
DET_MUST_CHECK int det_end_row_read(
    const void *data, size_t size, enum det_end_kind *ret_end, uint64_t *ret_rows);
DET_MUST_CHECK int det_state_row_read(const void *data, size_t size, struct det_state_row *ret);
DET_MUST_CHECK int det_gone_row_read(const void *data, size_t size, struct det_view *ret);
DET_MUST_CHECK int det_checkpoint_row_read(
    const void *data, size_t size, struct det_view *ret_stage, struct det_flow_progress *ret);
DET_MUST_CHECK int det_checkpoint_end_row_read(
    const void *data, size_t size, struct det_checkpoint_end *ret);

#endif
