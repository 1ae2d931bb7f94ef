/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session.c - executes sql/statements.def on SQLite: questions on a connection of the pool, in one
 * transaction; changes on the writer. */
#include "store/sqlite/session.h"
#include "base/assert.h"

#include "store/sql/migrate.h"
#include "store/sql/renames.h"
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
    /* The checksum covers the flag: a value other than 0 and 1 is damage that it must detect. */
    return det_sqlite_get_number(row->answer, column) != 0;
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

/* Returns true if the statement has this parameter; some statements need fewer
 * than PostgreSQL's. */
static bool has_parameter(const struct sqlite_call *call, int number)
{
    return call->statement && sqlite3_bind_parameter_name(call->statement, number);
}

/* Binds values that a PostgreSQL statement gets from its server. */
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
    det_assert((size_t)statement < sizeof statements / sizeof *statements);
    det_assert(!values || values->count <= DET_SQL_VALUES_MAX);
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

    det_assert(question->read);
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

/* Adds the file and the remedy to an error. */
static int explain_failure(const struct sqlite_store *store, int r, struct det_error *retreason)
{
    if (r < 0)
        (void)det_error_set(
            retreason, r, "%s: %s; %s", store->path, det_error_text(r), det_sqlite_remedy(r));
    return r;
}

static int ask_all(
    struct det_store *base, const struct det_sql_question *questions, size_t count,
    struct det_error *retreason)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_connection *reader;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return explain_failure(store, r, retreason);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = ask_one(reader, &questions[i]);
    det_sqlite_reader_end(store, reader);
    return explain_failure(store, r, retreason);
}

int det_sqlite_ask(struct sqlite_store *store, const struct sqlite_question *question)
{
    struct sqlite_connection *reader;
    struct sqlite_call call;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    det_sqlite_call(reader, question->statement, &call);
    if (question->bind)
        question->bind(&call, question->context);
    while ((r = det_sqlite_step(&call)) > 0) {
        r = question->read(&call, question->context);
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    det_sqlite_reader_end(store, reader);
    return r;
}

static int run_change(struct sqlite_store *store, void *context)
{
    struct det_sql_change *change = context;
    struct sqlite_call call;
    int r;

    det_check(!sqlite3_get_autocommit(store->writer.database));
    begin_call(&store->writer, change->statement, change->values, &call);
    bind_clock(store, &call);
    r = det_sqlite_run(&call);
    change->rows = r == 0 ? (uint64_t)sqlite3_changes64(store->writer.database) : 0;
    return r;
}

static int change_alone(
    struct det_store *base, struct det_sql_change *change, struct det_error *retreason)
{
    struct sqlite_store *store = sqlite_store_of(base);

    return explain_failure(store, det_sqlite_alone(store, run_change, change), retreason);
}

/* Transactions of several statements, on the writer. */

struct transaction {
    int (*run)(struct det_sql_session *session, void *context);
    void *context;
};

static int run_transaction(struct sqlite_store *store, void *context)
{
    const struct transaction *transaction = context;
    struct det_sql_session session = { .store = &store->store, .ops = &det_sqlite_sql };

    return transaction->run(&session, transaction->context);
}

static int transact_alone(
    struct det_store *base, int (*run)(struct det_sql_session *session, void *context),
    void *context, struct det_error *retreason)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct transaction transaction = { run, context };

    return explain_failure(
        store, det_sqlite_alone(store, run_transaction, &transaction), retreason);
}

static int session_ask(struct det_sql_session *session, const struct det_sql_question *question)
{
    return ask_one(&sqlite_store_of(session->store)->writer, question);
}

static int session_change(struct det_sql_session *session, struct det_sql_change *change)
{
    return run_change(sqlite_store_of(session->store), change);
}

/* Positions up to this one are never assigned again, not even when all events are deleted: see
 * EVENT_LAST. */
static int take_position(struct det_sql_session *session, int64_t *ret)
{
    sqlite_assert_writing(sqlite_store_of(session->store));
    det_assert(sqlite_store_of(session->store)->next_position > 0);
    *ret = sqlite_store_of(session->store)->next_position++;
    return 0;
}

static int write_heads(
    struct det_sql_session *session, const struct det_sql_head_change *changes, size_t count,
    bool are_snapshots)
{
    struct sqlite_connection *writer = &sqlite_store_of(session->store)->writer;
    struct sqlite_call call;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        det_sqlite_call(
            writer, are_snapshots ? STATEMENT_RENAME_SNAPSHOT : STATEMENT_RENAME_HEAD, &call);
        det_sqlite_number(&call, changes[i].key);
        det_sqlite_text(&call, changes[i].state);
        det_sqlite_number(&call, changes[i].checksum);
        if (are_snapshots)
            det_sqlite_text(&call, changes[i].history);
        r = det_sqlite_run(&call);
    }
    return r;
}

/* The size of the file and its log. */
static int measure(struct det_store *base, uint64_t *ret)
{
    static const int which[] = { SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER };
    struct sqlite_connection *reader;
    sqlite3_int64 total = 0;
    int r;

    r = det_sqlite_reader(sqlite_store_of(base), &reader);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        sqlite3_file *file = NULL;
        sqlite3_int64 size = 0;

        if (sqlite3_file_control(reader->database, "main", which[i], (void *)&file) == SQLITE_OK &&
            file && file->pMethods && file->pMethods->xFileSize(file, &size) == SQLITE_OK)
            total += size;
    }
    det_sqlite_reader_end(sqlite_store_of(base), reader);
    *ret = (uint64_t)total;
    return 0;
}

static int64_t key_of(
    const struct det_store_instance *instance, const struct det_machine **ret_machine)
{
    const struct sqlite_instance *handle = (const struct sqlite_instance *)(const void *)instance;

    *ret_machine = handle->machine;
    return handle->key;
}

const struct det_sql_ops det_sqlite_sql = {
    .ask = ask_all,
    .change = change_alone,
    .transact = transact_alone,
    .session_ask = session_ask,
    .session_change = session_change,
    .take_position = take_position,
    .write_heads = write_heads,
    .measure = measure,
    .key_of = key_of,
};

/* Renames. */

int det_sqlite_renames_refresh(struct sqlite_store *store, struct sqlite_connection *connection)
{
    struct det_renames *renames;
    struct det_sql_question list = { .statement = DET_SQL_RENAME_LIST,
                                     .read = det_sql_renames_add };
    int64_t count = 0;
    int r;

    r = det_sqlite_ask_number(connection, STATEMENT_RENAME_COUNT, &count);
    if (r < 0 || (size_t)count == det_sql_renames_count(&store->store))
        return r;
    renames = det_renames_open(store->store.allocator);
    if (!renames)
        return DET_ERR_NO_MEMORY;
    list.context = renames;
    r = ask_one(connection, &list);
    if (r < 0)
        det_renames_close(renames);
    else
        det_sql_renames_publish(&store->store, renames);
    return r;
}

int det_sqlite_migrate(
    struct det_store *base, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr)
{
    int r;

    r = det_sql_migrate(base, machine, renames, count, ret, reterr);
    /* Every handle reads its row again. */
    if (r == 0)
        sqlite_store_of(base)->prunings++;
    return r;
}
