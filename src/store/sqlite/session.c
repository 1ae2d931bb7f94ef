/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.c - statements of sql/statements.def on SQLite: questions on a connection of the pool, in
 * one transaction; changes on the writer. */
#include "store/sqlite/session.h"

#include "store/sqlite/jobs.h"

static const enum sqlite_statement statements[] = {
#define DET_SQL_STATEMENT(name) [DET_SQL_##name] = STATEMENT_##name,
#include "store/sql/statements.def"
#undef DET_SQL_STATEMENT
};

static int64_t row_number(const struct det_sql_row *row, int column)
{
    return det_sqlite_get_number(row->answer, column);
}

static bool row_flag(const struct det_sql_row *row, int column)
{
    return det_sqlite_get_number(row->answer, column) == 1;
}

static const char *row_text(const struct det_sql_row *row, int column)
{
    return det_sqlite_get_text(row->answer, column, true);
}

static struct det_chain_bytes row_bytes(const struct det_sql_row *row, int column)
{
    return det_sqlite_get_bytes(row->answer, column);
}

static int row_status(const struct det_sql_row *row)
{
    return det_sqlite_error(((const struct sqlite_call *)row->answer)->code);
}

struct det_sql_row det_sqlite_row(struct sqlite_call *call)
{
    static const struct det_sql_row_ops ops = { .number = row_number,
                                                .flag = row_flag,
                                                .text = row_text,
                                                .bytes = row_bytes,
                                                .status = row_status };

    return (struct det_sql_row){ .ops = &ops, .answer = call };
}

static void bind_value(struct sqlite_call *call, const struct det_sql_value *value)
{
    switch (value->kind) {
    case DET_SQL_NUMBER:
        det_sqlite_number(call, value->number);
        break;
    case DET_SQL_TEXT:
        det_sqlite_text_n(call, value->bytes.data, value->bytes.size);
        break;
    case DET_SQL_BYTES:
        det_sqlite_bytes(call, value->bytes);
        break;
    }
}

/* The numbers of SQLITE_NOW, SQLITE_OWNER and SQLITE_STEADY. */
enum { NOW_NUMBER = DET_SQL_VALUES_MAX + 1, OWNER_NUMBER, STEADY_NUMBER };

/* Whether the statement has this parameter; SQLite has no word for some that PostgreSQL has. */
static bool has_parameter(const struct sqlite_call *call, int number)
{
    return call->statement && sqlite3_bind_parameter_name(call->statement, number);
}

/* What a statement of PostgreSQL asks the server for. */
static void bind_clock(struct sqlite_store *store, struct sqlite_call *call)
{
    if (has_parameter(call, NOW_NUMBER)) {
        call->bound = NOW_NUMBER - 1;
        det_sqlite_number(call, sqlite_now(store));
    }
    if (has_parameter(call, OWNER_NUMBER)) {
        call->bound = OWNER_NUMBER - 1;
        det_sqlite_text(call, det_sqlite_jobs_owner(store));
    }
    if (has_parameter(call, STEADY_NUMBER)) {
        call->bound = STEADY_NUMBER - 1;
        det_sqlite_number(call, det_sqlite_jobs_steady(store));
    }
}

static void begin_call(
    struct sqlite_connection *connection, enum det_sql_statement statement,
    const struct det_sql_values *values, struct sqlite_call *call)
{
    det_sqlite_call(connection, statements[statement], call);
    for (int i = 0; values && i < values->count; i++) {
        if (has_parameter(call, i + 1)) {
            call->bound = i;
            bind_value(call, &values->list[i]);
        }
    }
}

static int ask_one(struct sqlite_connection *reader, const struct det_sql_question *question)
{
    struct det_sql_row row;
    struct sqlite_call call;
    int rows = 0, r;

    begin_call(reader, question->statement, question->values, &call);
    row = det_sqlite_row(&call);
    while ((r = det_sqlite_step(&call)) > 0) {
        rows++;
        r = question->read(question->context, &row);
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    return r == 0 && question->has_row && rows != 1 ? DET_ERR_CORRUPT : r;
}

static int ask_all(struct det_store *base, const struct det_sql_question *questions, size_t count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_connection *reader;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = ask_one(reader, &questions[i]);
    det_sqlite_reader_end(store, reader);
    return r;
}

static int run_change(struct sqlite_store *store, void *context)
{
    struct det_sql_change *change = context;
    struct sqlite_call call;
    int r;

    begin_call(&store->writer, change->statement, change->values, &call);
    bind_clock(store, &call);
    r = det_sqlite_run(&call);
    change->rows = r == 0 ? (uint64_t)sqlite3_changes64(store->writer.database) : 0;
    return r;
}

static int change_alone(struct det_store *base, struct det_sql_change *change)
{
    return det_sqlite_alone(sqlite_store_of(base), run_change, change);
}

const struct det_sql_ops det_sqlite_sql = {
    .ask = ask_all,
    .change = change_alone,
};
