/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.c - statements of sql/statements.def on PostgreSQL: questions in one pipeline, whose rows
 * are read when the connection is free again; changes as transactions of their own. */
#include "store/postgres/session.h"

#include <stdlib.h>

/* For some lists SQLite needs a statement of its own to go by an index. */
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

/* One statement sees one moment by itself. */
static void send_questions(struct postgres_exchange *exchange, void *context)
{
    const struct asking *asking = context;

    if (asking->count > 1)
        det_postgres_ask(exchange, POSTGRES_BEGIN_READING, NULL);
    for (size_t i = 0; i < asking->count; i++)
        send_statement(exchange, asking->questions[i].statement, asking->questions[i].values);
    if (asking->count > 1)
        det_postgres_ask(exchange, POSTGRES_END_READING, NULL);
}

static int take_answers(struct postgres_exchange *exchange, void *context)
{
    struct asking *asking = context;
    PGresult **results = &exchange->results[asking->count > 1];

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

static int ask_all(struct det_store *base, const struct det_sql_question *questions, size_t count)
{
    struct asking asking = { .questions = questions, .count = count };
    const struct postgres_job job = { send_questions, take_answers, &asking, true, 0 };
    int r;

    r = det_postgres_run(postgres_store_of(base), &job, NULL);
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

static int change_alone(struct det_store *base, struct det_sql_change *change)
{
    struct postgres_store *store = postgres_store_of(base);
    const struct postgres_job job = { send_change, take_change, change, change->is_repeatable, 0 };

    return store->sql.is_read_only ? DET_ERR_READ_ONLY : det_postgres_run(store, &job, NULL);
}

const struct det_sql_ops det_postgres_sql = {
    .ask = ask_all,
    .change = change_alone,
};
