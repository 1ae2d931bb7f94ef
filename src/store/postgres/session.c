/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.c - executes sql/statements.def on PostgreSQL: questions in one pipeline, whose rows are
 * read after the connection is released; changes as transactions. */
#include "store/postgres/session.h"

#include <stdlib.h>

#include "base/assert.h"
#include "store/postgres/commit_batch.h"

/* SQLite needs separate statements to use an index for some lists. */
#define POSTGRES_JOB_LIST_ID             POSTGRES_JOB_LIST
#define POSTGRES_JOB_LIST_ID_NEWEST      POSTGRES_JOB_LIST_NEWEST
#define POSTGRES_JOB_LIST_QUEUED         POSTGRES_JOB_LIST
#define POSTGRES_JOB_LIST_QUEUED_NEWEST  POSTGRES_JOB_LIST_NEWEST
#define POSTGRES_JOB_LIST_DELAYED        POSTGRES_JOB_LIST
#define POSTGRES_JOB_LIST_DELAYED_NEWEST POSTGRES_JOB_LIST_NEWEST
#define POSTGRES_JOB_LIST_RUNNING        POSTGRES_JOB_LIST
#define POSTGRES_JOB_LIST_RUNNING_NEWEST POSTGRES_JOB_LIST_NEWEST

static const enum postgres_statement_id statements[] = {
#define DET_SQL_STATEMENT(name) [DET_SQL_##name] = POSTGRES_##name,
#include "store/sql/statements.def"
#undef DET_SQL_STATEMENT
};

static int64_t row_number(const struct det_sql_row *row, int column)
{
    return det_postgres_number(row->answer, row->index, column);
}

static bool row_flag(const struct det_sql_row *row, int column)
{
    return det_postgres_bool(row->answer, row->index, column);
}

static const char *row_text(const struct det_sql_row *row, int column)
{
    return det_postgres_text(row->answer, row->index, column);
}

static struct det_chain_bytes row_bytes(const struct det_sql_row *row, int column)
{
    return det_postgres_bytes(row->answer, row->index, column);
}

static int row_status(const struct det_sql_row *row)
{
    (void)row;
    return 0;
}

struct det_sql_row det_postgres_row(const PGresult *rows, int index)
{
    static const struct det_sql_row_ops ops = { .number = row_number,
                                                .flag = row_flag,
                                                .text = row_text,
                                                .bytes = row_bytes,
                                                .status = row_status };

    return (struct det_sql_row){ .ops = &ops, .answer = (void *)(uintptr_t)rows, .index = index };
}

static void add_values(struct postgres_parameters *parameters, const struct det_sql_values *values)
{
    for (int i = 0; values && i < values->count; i++) {
        const struct det_sql_value *value = &values->list[i];

        if (value->kind == DET_SQL_NUMBER)
            det_postgres_add_number(parameters, value->number);
        else
            det_postgres_add_bytes(parameters, value->bytes);
    }
}

static void send_statement(
    struct postgres_exchange *exchange, enum det_sql_statement statement,
    const struct det_sql_values *values)
{
    struct postgres_parameters parameters = { 0 };

    add_values(&parameters, values);
    det_postgres_ask(exchange, statements[statement], &parameters);
}

struct asking {
    const struct det_sql_question *questions;
    size_t count;
    PGresult *answers[DET_SQL_QUESTIONS_MAX];
};

/* One statement is a snapshot by itself. Statements that read whole tables get a matching plan. */
static void send_questions(struct postgres_exchange *exchange, void *context)
{
    const struct asking *asking = context;

    if (asking->count > 1)
        det_postgres_ask(exchange, POSTGRES_BEGIN_READING, NULL);
    if (asking->questions[0].is_scan)
        det_postgres_ask(exchange, POSTGRES_SCAN, NULL);
    for (size_t i = 0; i < asking->count; i++)
        send_statement(exchange, asking->questions[i].statement, asking->questions[i].values);
    if (asking->count > 1)
        det_postgres_ask(exchange, POSTGRES_END_READING, NULL);
}

static int take_answers(struct postgres_exchange *exchange, void *context)
{
    struct asking *asking = context;
    int first = (asking->count > 1) + asking->questions[0].is_scan;
    PGresult **results = &exchange->results[first];

    det_assert((size_t)first + asking->count <= exchange->result_count);
    for (size_t i = 0; i < asking->count; i++) {
        if (asking->questions[i].has_row && PQntuples(results[i]) != 1)
            return det_postgres_exchange_doubt(exchange);
    }
    for (size_t i = 0; i < asking->count; i++) {
        asking->answers[i] = results[i];
        results[i] = NULL;
    }
    return 0;
}

static int read_rows(const struct det_sql_question *question, const PGresult *rows)
{
    int r = 0;

    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        const struct det_sql_row row = det_postgres_row(rows, i);

        r = question->read(question->context, &row);
    }
    return r;
}

static int explain_failure(
    const struct postgres_failure *failure, int r, struct det_error *retreason)
{
    if (r < 0 && failure->action != POSTGRES_DONE && failure->text[0])
        (void)det_error_set(retreason, r, "PostgreSQL: %s", failure->text);
    return r;
}

static int ask_all(
    struct det_store *base, const struct det_sql_question *questions, size_t count,
    struct det_error *retreason)
{
    struct asking asking = { .questions = questions, .count = count };
    const struct postgres_job job = { send_questions, take_answers, &asking, true, 0 };
    struct postgres_failure failure;
    int r;

    r = det_postgres_run_for(
        postgres_store_of(base), &job, questions[0].is_scan ? POSTGRES_LONG_SPAN : 0, &failure);
    (void)explain_failure(&failure, r, retreason);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_rows(&questions[i], asking.answers[i]);
    for (size_t i = 0; i < count; i++)
        PQclear(asking.answers[i]);
    return r;
}

static void send_change(struct postgres_exchange *exchange, void *context)
{
    const struct det_sql_change *change = context;

    send_statement(exchange, change->statement, change->values);
}

static int take_change(struct postgres_exchange *exchange, void *context)
{
    struct det_sql_change *change = context;

    change->rows = strtoull(PQcmdTuples(exchange->results[0]), NULL, 10);
    return 0;
}

static int change_alone(
    struct det_store *base, struct det_sql_change *change, struct det_error *retreason)
{
    struct postgres_store *store = postgres_store_of(base);
    const struct postgres_job job = { send_change, take_change, change, change->is_repeatable, 0 };
    struct postgres_failure failure;
    int r;

    if (store->sql.is_read_only)
        return DET_ERR_READ_ONLY;
    r = det_postgres_run(store, &job, &failure);
    return explain_failure(&failure, r, retreason);
}

/* Transactions of several exchanges. */

static int transact_session(
    struct det_store *base, int (*run)(struct det_sql_session *session, void *context),
    void *context, struct det_error *retreason)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_session postgres;
    struct det_sql_session session = { base, &det_postgres_sql, &postgres };
    int r;

    if (store->sql.is_read_only)
        return DET_ERR_READ_ONLY;
    r = det_postgres_session_open(&postgres, store);
    if (r < 0)
        return explain_failure(&postgres.failure, r, retreason);
    r = det_postgres_session_ask(&postgres, POSTGRES_BEGIN_WRITING, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(&postgres, POSTGRES_SCAN, NULL, NULL);
    if (r == 0)
        r = run(&session, context);
    if (r == 0)
        r = det_postgres_session_ask(&postgres, POSTGRES_END_READING, NULL, NULL);
    det_postgres_session_close(&postgres);
    return explain_failure(&postgres.failure, r, retreason);
}

static int session_ask(struct det_sql_session *session, const struct det_sql_question *question)
{
    struct det_sql_question plain = *question;
    struct asking asking = { .questions = &plain, .count = 1 };
    const struct postgres_job job = { send_questions, take_answers, &asking, false, 1 };
    int r;

    /* The plan setting holds for the whole transaction. */
    plain.is_scan = false;
    r = det_postgres_session_run(session->connection, &job);
    if (r == 0)
        r = read_rows(question, asking.answers[0]);
    PQclear(asking.answers[0]);
    return r;
}

static int session_change(struct det_sql_session *session, struct det_sql_change *change)
{
    const struct postgres_job job = { send_change, take_change, change, false, 1 };

    return det_postgres_session_run(session->connection, &job);
}

/* Running programs may serve the machine, and would continue with the old names. */
static int begin_migration(struct det_sql_session *session, struct det_error *reterr)
{
    struct postgres_parameters parameters = { 0 };
    PGresult *rows = NULL;
    int64_t nodes = 0;
    int r;

    det_postgres_add_text(&parameters, session->store->owner);
    r = det_postgres_session_ask(session->connection, POSTGRES_RENAME_LOCK, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(
            session->connection, POSTGRES_RENAME_NODES, &parameters, &rows);
    if (r == 0)
        nodes = det_postgres_number(rows, 0, 0);
    PQclear(rows);
    if (nodes == 0)
        return r;
    return det_error_set(
        reterr, DET_ERR_LOCKED,
        "%lld program%s at work on the store; stop %s first; nothing was changed", (long long)nodes,
        nodes == 1 ? " is" : "s are", nodes == 1 ? "it" : "them");
}

static int take_position(struct det_sql_session *session, int64_t *ret)
{
    PGresult *rows = NULL;
    int r;

    r = det_postgres_session_ask(session->connection, POSTGRES_RENAME_POSITION, NULL, &rows);
    if (r == 0)
        *ret = det_postgres_number(rows, 0, 0);
    PQclear(rows);
    return r;
}

enum { HEAD_KEY, HEAD_STATE, HEAD_CHECKSUM, HEAD_HISTORY, HEAD_COLUMNS };

static int write_heads(
    struct det_sql_session *session, const struct det_sql_head_change *changes, size_t count,
    bool are_snapshots)
{
    static const uint32_t types[HEAD_COLUMNS] = { POSTGRES_NUMBERS, POSTGRES_TEXTS,
                                                  POSTGRES_NUMBERS, POSTGRES_TEXTS };
    struct postgres_parameters parameters = { 0 };
    struct postgres_arrays arrays;
    size_t columns = are_snapshots ? HEAD_COLUMNS : HEAD_HISTORY;
    int r = 0;

    det_postgres_arrays_init(&arrays, session->store->allocator);
    for (size_t i = 0; i < count; i++) {
        det_postgres_column_number(&arrays.columns[HEAD_KEY], changes[i].key);
        det_postgres_arrays_text(&arrays, HEAD_STATE, changes[i].state);
        det_postgres_column_number(&arrays.columns[HEAD_CHECKSUM], changes[i].checksum);
        if (are_snapshots)
            det_postgres_arrays_text(&arrays, HEAD_HISTORY, changes[i].history);
    }
    for (size_t i = 0; r == 0 && i < columns; i++)
        r = det_postgres_arrays_add(&arrays, i, types[i], &parameters);
    if (r == 0)
        r = det_postgres_session_ask(
            session->connection,
            are_snapshots ? POSTGRES_RENAME_SNAPSHOTS_SET : POSTGRES_RENAME_HEADS_SET, &parameters,
            NULL);
    det_postgres_arrays_deinit(&arrays);
    return r;
}

static int measure(struct det_store *base, uint64_t *ret)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters name = { 0 };
    PGresult *rows;
    int r;

    det_postgres_add_text(&name, store->url.schema);
    r = det_postgres_query(store, POSTGRES_SIZE, &name, &rows, NULL);
    if (r == 0)
        *ret = (uint64_t)det_postgres_number(rows, 0, 0);
    PQclear(rows);
    return r;
}

static int64_t key_of(
    const struct det_store_instance *instance, const struct det_machine **ret_machine)
{
    const struct postgres_instance *handle =
        (const struct postgres_instance *)(const void *)instance;

    *ret_machine = handle->machine;
    return handle->key;
}

const struct det_sql_ops det_postgres_sql = {
    .ask = ask_all,
    .change = change_alone,
    .transact = transact_session,
    .session_ask = session_ask,
    .session_change = session_change,
    .begin_migration = begin_migration,
    .take_position = take_position,
    .write_heads = write_heads,
    .measure = measure,
    .key_of = key_of,
};
