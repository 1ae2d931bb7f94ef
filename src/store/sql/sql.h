/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql.h - operations that SQLite and PostgreSQL share. The questions and the meaning of rows are
 * defined here, once; a driver has the statements in its dialect and runs them.
 *
 *     driver/store.h --> sql/jobs.c, ... --> struct det_sql_ops --> sqlite/session.c
 *                                                               \-> postgres/session.c
 *
 * Commits, loading, claims and the log are not here: each driver implements them for its database.
 *
 * Invariants
 *   1. A statement has the same parameters and the same columns in both dialects. A dialect may
 *      omit its last parameters.
 *   2. Pointers into a row are valid until `read` returns.
 *   3. A driver's store begins with struct det_sql_store. */
#ifndef DET_STORE_SQL_SQL_H
#define DET_STORE_SQL_SQL_H

#include <detent/driver/store.h>

#include "base/assert.h"
#include "store/chain.h"

enum det_sql_statement {
#define DET_SQL_STATEMENT(name) DET_SQL_##name,
#include "store/sql/statements.def"
#undef DET_SQL_STATEMENT
    DET_SQL_STATEMENT_COUNT
};

/* Parameters. Texts and bytes are borrowed. */

#define DET_SQL_VALUES_MAX 12

enum det_sql_kind { DET_SQL_NUMBER, DET_SQL_TEXT, DET_SQL_BYTES };

struct det_sql_value {
    enum det_sql_kind kind;
    int64_t number;
    struct det_chain_bytes bytes; /* also for texts; data NULL: NULL */
};

struct det_sql_values {
    int count;
    struct det_sql_value list[DET_SQL_VALUES_MAX];
};

void det_sql_add_number(struct det_sql_values *values, int64_t number);
/* A NULL text becomes NULL. */
void det_sql_add_text(struct det_sql_values *values, const char *text);
/* NULL data are a value of no bytes. */
void det_sql_add_bytes(struct det_sql_values *values, const void *data, size_t size);
/* `count` is at most INT64_MAX. */
void det_sql_add_count(struct det_sql_values *values, uint64_t count);

/* Rows. */

struct det_sql_row {
    const struct det_sql_row_ops *ops;
    void *answer; /* private to the driver */
    int index;
};

struct det_sql_row_ops {
    int64_t (*number)(const struct det_sql_row *row, int column);
    bool (*flag)(const struct det_sql_row *row, int column);
    const char *(*text)(const struct det_sql_row *row, int column);
    struct det_chain_bytes (*bytes)(const struct det_sql_row *row, int column);
    int (*status)(const struct det_sql_row *row);
};

/* 0 for NULL. */
static inline int64_t det_sql_number(const struct det_sql_row *row, int column)
{
    return row->ops->number(row, column);
}

static inline uint64_t det_sql_count(const struct det_sql_row *row, int column)
{
    return (uint64_t)row->ops->number(row, column);
}

/* False for NULL. */
static inline bool det_sql_flag(const struct det_sql_row *row, int column)
{
    return row->ops->flag(row, column);
}

/* NULL for NULL. */
static inline const char *det_sql_text_or_null(const struct det_sql_row *row, int column)
{
    return row->ops->text(row, column);
}

/* "" for NULL, which only damaged rows have in these columns. */
static inline const char *det_sql_text(const struct det_sql_row *row, int column)
{
    const char *text = row->ops->text(row, column);

    return text ? text : "";
}

/* Data is NULL for NULL. */
static inline struct det_chain_bytes det_sql_bytes(const struct det_sql_row *row, int column)
{
    return row->ops->bytes(row, column);
}

/* 0, or the error of reading the columns so far. Call this before using a row. */
static inline int det_sql_status(const struct det_sql_row *row)
{
    return row->ops->status(row);
}

/* Like det_sql_status(), and DET_ERR_CORRUPT if the row does not match its checksum (the column is
 * false). */
DET_MUST_CHECK int det_sql_check(const struct det_sql_row *row, int column);

/* Statements. */

/* A statement that reads. `read` gets each row; a non-zero return value ends the walk and is
 * returned. */
struct det_sql_question {
    enum det_sql_statement statement;
    const struct det_sql_values *values; /* NULL: none */
    int (*read)(void *context, const struct det_sql_row *row);
    void *context;
    bool has_row; /* returns exactly one row; anything else is an error of the database */
    bool is_scan; /* reads whole tables, and may take long */
};

#define DET_SQL_QUESTIONS_MAX 4

/* A statement that writes. */
struct det_sql_change {
    enum det_sql_statement statement;
    const struct det_sql_values *values;
    bool is_repeatable; /* may be repeated after an unknown outcome */
    uint64_t rows;      /* out: number of rows written or deleted */
};

/* A transaction of several statements. */
struct det_sql_session {
    struct det_store *store;
    const struct det_sql_ops *ops;
    void *connection; /* private to the driver */
};

/* A head or snapshot with a renamed state. */
struct det_sql_head_change {
    int64_t key;
    const char *state;
    uint32_t checksum;
    const char *history; /* only for a snapshot */
};

/* Operations of a driver. `retreason` (may be NULL) is the database's error text; it is unchanged
 * after other errors. */
struct det_sql_ops {
    /* Asks the questions in order, in one snapshot. */
    int (*ask)(
        struct det_store *store, const struct det_sql_question *questions, size_t count,
        struct det_error *retreason);
    /* Runs the statement in its own transaction. DET_ERR_READ_ONLY. */
    int (*change)(
        struct det_store *store, struct det_sql_change *change, struct det_error *retreason);
    /* Runs a function in a transaction, which is committed if it returns 0. DET_ERR_READ_ONLY. */
    int (*transact)(
        struct det_store *store, int (*run)(struct det_sql_session *session, void *context),
        void *context, struct det_error *retreason);
    int (*session_ask)(struct det_sql_session *session, const struct det_sql_question *question);
    int (*session_change)(struct det_sql_session *session, struct det_sql_change *change);
    /* Excludes other migrations; refuses while other programs use the store. May be NULL. */
    int (*begin_migration)(struct det_sql_session *session, struct det_error *reterr);
    /* A new position, above those of all recorded events. */
    int (*take_position)(struct det_sql_session *session, int64_t *ret);
    int (*write_heads)(
        struct det_sql_session *session, const struct det_sql_head_change *changes, size_t count,
        bool are_snapshots);
    /* Size of the store in bytes. */
    int (*measure)(struct det_store *store, uint64_t *ret);
    /* The key and the machine of an instance. */
    int64_t (*key_of)(
        const struct det_store_instance *instance, const struct det_machine **ret_machine);
};

struct det_renames;

struct det_sql_store {
    struct det_store store;
    const struct det_sql_ops *sql;
    bool is_read_only;
    struct det_mutex *mutex;
    struct det_renames *_Atomic renames; /* NULL: none; see sql/renames.h */
};

static inline struct det_sql_store *det_sql_store_of(const struct det_store *store)
{
    return (struct det_sql_store *)(uintptr_t)store;
}

static inline const struct det_sql_ops *det_sql_ops_of(const struct det_store *store)
{
    return det_sql_store_of(store)->sql;
}

static inline bool det_sql_is_read_only(const struct det_store *store)
{
    return det_sql_store_of(store)->is_read_only;
}

static inline int det_sql_ask(
    struct det_store *store, const struct det_sql_question *questions, size_t count,
    struct det_error *retreason)
{
    det_assert(count > 0 && count <= DET_SQL_QUESTIONS_MAX);
    return det_sql_ops_of(store)->ask(store, questions, count, retreason);
}

static inline int det_sql_change(
    struct det_store *store, struct det_sql_change *change, struct det_error *retreason)
{
    return det_sql_ops_of(store)->change(store, change, retreason);
}

static inline int det_sql_transact(
    struct det_store *store, int (*run)(struct det_sql_session *session, void *context),
    void *context, struct det_error *retreason)
{
    return det_sql_ops_of(store)->transact(store, run, context, retreason);
}

static inline int det_sql_session_ask(
    struct det_sql_session *session, const struct det_sql_question *question)
{
    det_assert(session->ops == det_sql_ops_of(session->store));
    return session->ops->session_ask(session, question);
}

static inline int det_sql_session_change(
    struct det_sql_session *session, struct det_sql_change *change)
{
    det_assert(session->ops == det_sql_ops_of(session->store));
    return session->ops->session_change(session, change);
}

/* The reason of an error `r`: that of the database, if there is one. */
static inline const char *det_sql_reason(const struct det_error *reason, int r)
{
    return reason->code == r && reason->text[0] ? reason->text : det_error_text(r);
}

/* Repeats a statement that changes at most `at_once` rows until no row is left; `ret` is the number
 * of changed rows. */
DET_MUST_CHECK int det_sql_change_all(
    struct det_store *store, struct det_sql_change *change, uint64_t at_once, uint64_t *ret);

#endif
