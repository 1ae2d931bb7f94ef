/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_rows.h - rows of a flow's run (docs/formats/flow-log.md) as JSON and as lines, without
 * sensitive fields. */
#ifndef DET_INSPECT_FLOW_ROWS_H
#define DET_INSPECT_FLOW_ROWS_H

#include <detent/flow.h>

#include "base/text.h"
#include "json/writer.h"

/* A journal of a run, open for reading or by its pipeline. */
struct flow_view {
    const struct det_allocator *allocator;
    const struct det_flow *flow; /* NULL: unknown, values are not shown */
    struct det_journal *journal;
    uint64_t run; /* 0: in memory */
    void *value;  /* a decoded record */
    size_t value_size;
    char stage[DET_JOURNAL_NAME_MAX + 1];
    char text[DET_ERROR_TEXT_MAX];
};

/* The journal is borrowed. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int flow_view_init(
    struct flow_view *view, const struct det_allocator *allocator, const struct det_flow *flow,
    struct det_journal *journal, uint64_t run);
void flow_view_deinit(struct flow_view *view);

/* A row as a member object (`key` NULL: an element). A value that cannot be decoded is null, and
 * `error` says why. */
void flow_row_write(
    struct flow_view *view, struct det_json_writer *json, const char *key,
    const struct det_journal_row *row);
/* What a row of the kind "rejected" says; views into the row. DET_ERR_MALFORMED. */
struct flow_rejected {
    enum det_row_rejection why;
    int code; /* 0: none */
    struct det_view text;
    const void *input; /* the record, in the binary form */
    size_t input_size; /* 0: there was none */
};
DET_MUST_CHECK int flow_rejected_read(const struct det_journal_row *row, struct flow_rejected *ret);
/* "data", "rejected", "end", "progress", "state", "gone", "fact", "checkpoint"; "unknown". */
const char *flow_row_kind(const struct det_journal_row *row);

struct flow_rows_query {
    const char *stream;       /* NULL: all streams, without progress, states and checkpoints */
    const char *kind;         /* of flow_row_kind(); NULL: all */
    bool is_stream_only_data; /* of the stream: rows, rejections and ends */
    uint64_t after;           /* position; backwards: rows before it, 0: from the end */
    size_t limit;
    size_t budget; /* rows that are read at most; 0: no limit */
    bool is_backward;
};
/* Returns 0 to continue, 1 to end before the next row, or an error. */
typedef int flow_row_fn(void *user, struct flow_view *view, const struct det_journal_row *row);

struct flow_rows_page {
    uint64_t next;     /* the `after` that continues; 0: backwards nothing is left */
    bool has_more;     /* ended by limit, budget or `each`, not by the end of the rows */
    uint64_t position; /* the last acknowledged row */
};
/* Reads acknowledged rows. DET_ERR_NOT_FOUND: no such stream. Rows that retention has dropped are
 * skipped. */
DET_MUST_CHECK int flow_rows_read(
    struct flow_view *view, const struct flow_rows_query *query, flow_row_fn *each, void *user,
    struct flow_rows_page *ret, struct det_error *reterr);

/* Reads how far a stage has read one of its inputs, which are in the order of the flow's edges: the
 * sequence of the last row that it is done with. False: the journal has no progress of the
 * stage. */
bool flow_read_place(struct det_journal *journal, const char *stage, uint32_t input, uint64_t *ret);
/* Finds a stream without creating it; -1: none. */
int flow_find_stream(struct det_journal *journal, const char *name);
/* The stream with the nearest name; NULL: none is near. */
const char *flow_near_stream(struct det_journal *journal, const char *name);

#endif
