/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit_batch.h - a batch of commits for one statement.
 *
 *     commit --stage--> staged: hashes, checksum, encoded data --fill--> columns --send--> results
 *                       |                                                                    |
 *                       +-- failed: its result is set --------- settled <--------------------+
 *
 * All buffers are reused by the next batch, so a busy writer allocates nothing. */
#ifndef DET_STORE_POSTGRES_COMMIT_BATCH_H
#define DET_STORE_POSTGRES_COMMIT_BATCH_H

#include "store/postgres/postgres.h"
#include "store/row.h"

enum postgres_column_id {
#define DET_POSTGRES_ARRAY(name, type) POSTGRES_COLUMN_##name,
#include "store/postgres/columns.def"
#undef DET_POSTGRES_ARRAY
    POSTGRES_COLUMN_COUNT
};

/* The bits of a statement's parts, in the order of postgres/statement_parts.c. */
enum postgres_part {
    POSTGRES_EVENTS = 1,
    POSTGRES_NEW = 2,
    POSTGRES_TIMERS = 4,
    POSTGRES_ASK = 8,
    POSTGRES_TOUCH = 16,
    POSTGRES_ANSWERS = 32,
    POSTGRES_RARE = 64,
    POSTGRES_BURY = 128,
};

/* An array in PostgreSQL's binary form, while it is filled. */
struct postgres_column {
    struct det_buffer bytes;
    uint32_t count;
    bool has_null;
};

struct postgres_staged_event {
    struct det_chain_hash hash;
    size_t payload; /* offset in the scratch */
    size_t payload_size;
    bool has_payload;
};

struct postgres_staged {
    struct det_store_commit *commit;
    struct postgres_instance *instance;
    struct det_chain_hash hash; /* after the commit */
    uint32_t checksum;
    size_t data; /* offset in the scratch */
    size_t data_size;
    size_t first_event; /* index of its first staged event */
    int64_t n;          /* its number in the statement, from 1; 0: not in the statement */
    bool has_data;
    bool begins; /* record its start */
    bool is_settled;
};

struct postgres_batch {
    struct postgres_store *store;
    struct det_buffer scratch; /* data and payloads of all commits */
    struct det_buffer text;    /* of one row, while it is filled */
    struct postgres_staged *staged;
    size_t count, capacity;
    struct postgres_staged_event *events;
    size_t event_count, event_capacity;
    struct postgres_column columns[POSTGRES_COLUMN_COUNT];
    unsigned parts;
    bool is_plain;
    size_t row_count; /* commits in the statement */
    const struct postgres_statement *statement;
    const char *values[POSTGRES_COLUMN_COUNT + 1];
    int lengths[POSTGRES_COLUMN_COUNT + 1];
};

/* postgres/column.c */
/* The type numbers (OIDs) of the server. */
#define POSTGRES_NUMBERS 20
#define POSTGRES_TEXTS   25
void det_postgres_column_clear(struct postgres_column *column);
/* Initializes an array outside of a batch. */
void det_postgres_column_number(struct postgres_column *column, int64_t n);
void det_postgres_column_bytes(struct postgres_column *column, struct det_chain_bytes bytes);
void det_postgres_put_number(struct postgres_batch *batch, enum postgres_column_id id, int64_t n);
void det_postgres_put_flag(struct postgres_batch *batch, enum postgres_column_id id, bool flag);
/* A NULL text becomes NULL. */
void det_postgres_put_text(
    struct postgres_batch *batch, enum postgres_column_id id, const char *text);
void det_postgres_put_bytes(
    struct postgres_batch *batch, enum postgres_column_id id, struct det_chain_bytes bytes);
/* Completes an array; an error if memory ran out. */
DET_MUST_CHECK int det_postgres_column_finish(
    struct postgres_column *column, enum postgres_column_id id, const char **ret, int *ret_length);

/* postgres/stage.c */
/* Replaces the staged commits; a commit that cannot be written gets its result. */
void det_postgres_stage(
    struct postgres_batch *batch, struct det_store_commit *const *commits, size_t count);
struct det_chain_bytes det_postgres_staged_data(
    const struct postgres_batch *batch, const struct postgres_staged *staged);

/* postgres/fill.c */
/* The rows of a staged commit. */
DET_MUST_CHECK int det_postgres_fill(
    struct postgres_batch *batch, const struct postgres_staged *staged);
/* True if the plain statement can write the commit. */
bool det_postgres_is_plain(const struct postgres_staged *staged);

/* Maximum number of array parameters of a statement. */
#define POSTGRES_ARRAYS_MAX 14
struct postgres_arrays {
    struct postgres_column columns[POSTGRES_ARRAYS_MAX];
};
void det_postgres_arrays_init(
    struct postgres_arrays *arrays, const struct det_allocator *allocator);
void det_postgres_arrays_deinit(struct postgres_arrays *arrays);
void det_postgres_arrays_text(struct postgres_arrays *arrays, size_t column, const char *text);
/* Completes the column and adds it to the parameters. */
DET_MUST_CHECK int det_postgres_arrays_add(
    struct postgres_arrays *arrays, size_t column, uint32_t type,
    struct postgres_parameters *parameters);

#endif
