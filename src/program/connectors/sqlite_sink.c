/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_sink.c - the sink `sqlite`: rows into a table, exactly once.
 *
 *     deliver: BEGIN IMMEDIATE, INSERT ... | flush: positions into detent_flow_delivered, COMMIT
 *
 * Invariants
 *   1. A transaction has rows and their positions, or nothing.
 *   2. A row at or before the saved position of its stage is skipped: it is in the table.
 *   3. A row that the table refuses is rejected alone; the others of its batch are written. */
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "connectors/delivered.h"
#include "connectors/row_key.h"
#include "connectors/sql_sink.h"
#include "os/os.h"
#include "record/field_value.h"

#define REC_SPEC "connectors/sqlite_sink.rec"
#include <detent/rec/declare.h>

/* The longest wait for another process that writes the database, and the pause between tries. */
#define BUSY_MAX   (30 * DET_SECOND)
#define BUSY_PAUSE (5 * DET_MILLISECOND)

#define POSITIONS                                                                       \
    "CREATE TABLE IF NOT EXISTS detent_flow_delivered (flow TEXT NOT NULL, stage TEXT " \
    "NOT NULL, run TEXT NOT NULL, stream INTEGER NOT NULL, position INTEGER NOT NULL, " \
    "PRIMARY KEY (flow, stage, run, stream)) WITHOUT ROWID"

enum statement { BEGIN, COMMIT, ROLLBACK, INSERT, POSITION, STATEMENTS };

struct sqlite_sink {
    struct det_stage_call *call; /* of the function that runs now */
    sqlite3 *database;
    sqlite3_stmt *statements[STATEMENTS];
    struct sqlite_sink_settings settings;
    struct sql_mapping mapping;
    struct det_buffer scratch;
    det_time busy_since; /* 0: not busy */
    bool is_in_transaction;
    struct delivered delivered;
    char run[ROW_RUN_TEXT];
    char path[DET_PATH_MAX];
};

static int error_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return DET_ERR_NO_MEMORY;
    case SQLITE_FULL:
        return DET_ERR_NO_SPACE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return DET_ERR_READ_ONLY;
    case SQLITE_CORRUPT:
        return DET_ERR_CORRUPT;
    case SQLITE_NOTADB:
        return DET_ERR_FOREIGN;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return DET_ERR_BUSY;
    case SQLITE_ERROR:
        return DET_ERR_INVALID;
    default:
        return DET_ERR_IO;
    }
}

static const char *remedy_of(int r)
{
    switch (r) {
    case DET_ERR_NO_SPACE:
        return "make space on the disk, then resume the flow";
    case DET_ERR_READ_ONLY:
        return "check the path, its folder and their permissions; a symbolic link is not followed";
    case DET_ERR_FOREIGN:
        return "use another path; this file was left as it is";
    case DET_ERR_BUSY:
        return "end the transaction of the other program, then resume the flow";
    case DET_ERR_INVALID:
        return "make the table fit, add 'create: true', or map its columns with 'columns'";
    case DET_ERR_CORRUPT:
        return "restore the newest backup";
    default:
        return "check the disk and its messages";
    }
}

/* Fails the stage. */
static int fail_stage(struct sqlite_sink *sink, int code, const char *what)
{
    int r = error_of(code);

    if (r == DET_ERR_BUSY && det_stage_is_cancelled(sink->call))
        return DET_ERR_CANCELLED;
    return det_stage_fail(
        sink->call, r, "%s: cannot %s: %s; %s", sink->path, what,
        sink->database ? sqlite3_errmsg(sink->database) : sqlite3_errstr(code), remedy_of(r));
}

/* Called by SQLite while another process has the lock; 0 gives up. */
static int wait_busy(void *user, int count)
{
    struct sqlite_sink *sink = user;
    struct det_world *world = det_world_or_real(sink->call->world);
    det_time now = det_world_now(world, DET_CLOCK_MONOTONIC);

    if (count == 0)
        sink->busy_since = now;
    if (now - sink->busy_since > BUSY_MAX || det_stage_is_cancelled(sink->call))
        return 0;
    return det_stage_wait(sink->call, now + BUSY_PAUSE) != DET_ERR_CANCELLED;
}

static int execute(struct sqlite_sink *sink, const char *text, const char *what)
{
    int code = sqlite3_exec(sink->database, text, NULL, NULL, NULL);

    return code == SQLITE_OK ? 0 : fail_stage(sink, code, what);
}

/* A new file gets the mode 0600; SQLite would give it that of the umask. */
static int create_file(struct sqlite_sink *sink, bool *ret_is_new)
{
    struct det_world *world = det_world_or_real(sink->call->world);
    struct det_file *file = NULL;
    int r;

    r = det_file_open(
        world, sink->path, DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_NO_LINK, &file);
    if (r < 0)
        return det_stage_fail(
            sink->call, r, "%s: cannot open it: %s; %s", sink->path, det_error_text(r),
            remedy_of(DET_ERR_READ_ONLY));
    *ret_is_new = det_file_size(world, file) == 0;
    det_file_close(world, file);
    return 0;
}

static int open_database(struct sqlite_sink *sink)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    bool is_new = false;
    int r, code;

    r = create_file(sink, &is_new);
    if (r < 0)
        return r;
    code = sqlite3_open_v2(sink->path, &sink->database, flags, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_busy_handler(sink->database, wait_busy, sink);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(sink->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(sink->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (code != SQLITE_OK)
        return fail_stage(sink, code, "open it");
    r = execute(
        sink, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON",
        "open it");
    /* One sync for each commit instead of four; a file of others keeps its mode. */
    if (r == 0 && is_new)
        r = execute(sink, "PRAGMA journal_mode = WAL", "open it");
    return r < 0 ? r : execute(sink, POSITIONS, "create the table detent_flow_delivered");
}

static int compose(
    struct sqlite_sink *sink,
    void (*write)(const struct sql_table *table, struct det_buffer *buffer))
{
    int r;

    det_buffer_clear(&sink->scratch);
    write(&sink->mapping.table, &sink->scratch);
    r = det_buffer_status(&sink->scratch);
    return r < 0 ? det_stage_fail(sink->call, r, "%s: %s", sink->path, det_error_text(r)) : 0;
}

static int prepare(struct sqlite_sink *sink, enum statement statement, const char *text)
{
    int code = sqlite3_prepare_v3(
        sink->database, text, -1, SQLITE_PREPARE_PERSISTENT, &sink->statements[statement], NULL);

    return code == SQLITE_OK ? 0 : fail_stage(sink, code, "write to the table");
}

static int prepare_all(struct sqlite_sink *sink)
{
    int r = 0;

    if (sink->settings.create) {
        r = compose(sink, sql_write_create);
        if (r == 0)
            r = execute(sink, det_buffer_text(&sink->scratch), "create the table");
    }
    if (r == 0)
        r = compose(sink, sql_write_insert);
    if (r == 0)
        r = prepare(sink, INSERT, det_buffer_text(&sink->scratch));
    if (r == 0)
        r = prepare(sink, BEGIN, "BEGIN IMMEDIATE");
    if (r == 0)
        r = prepare(sink, COMMIT, "COMMIT");
    if (r == 0)
        r = prepare(sink, ROLLBACK, "ROLLBACK");
    if (r == 0)
        r = prepare(
            sink, POSITION,
            "INSERT INTO detent_flow_delivered (flow, stage, run, stream, position) VALUES (?1, "
            "?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET position = excluded.position");
    return r;
}

static int bind_names(struct sqlite_sink *sink, sqlite3_stmt *statement)
{
    const char *const names[] = { sink->call->flow, sink->call->stage->name, sink->run };

    for (int i = 0; i < 3; i++) {
        int code = sqlite3_bind_text(statement, i + 1, names[i], -1, SQLITE_STATIC);

        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

static int load_positions(struct sqlite_sink *sink)
{
    sqlite3_stmt *statement = NULL;
    int code;

    code = sqlite3_prepare_v2(
        sink->database,
        "SELECT stream, position FROM detent_flow_delivered WHERE flow = ?1 AND stage = ?2 AND run "
        "= ?3",
        -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = bind_names(sink, statement);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW && !delivered_load(
                                      &sink->delivered, sqlite3_column_int64(statement, 0),
                                      sqlite3_column_int64(statement, 1)))
            code = SQLITE_CORRUPT;
    }
    (void)sqlite3_finalize(statement);
    return code == SQLITE_DONE ? 0 : fail_stage(sink, code, "read detent_flow_delivered");
}

static int read_settings(
    const struct det_stage *stage, const struct det_allocator *allocator, const char *folder,
    struct sqlite_sink *sink, struct det_error *reterr)
{
    struct sql_mapping_settings wanted = { .dialect = SQL_SQLITE };
    struct sqlite_sink_settings *value = &sink->settings;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, sqlite_sink_settings_record(), value, sql_mapping_trees,
        reterr);
    if (r < 0)
        return r;
    wanted.table = value->table;
    wanted.keys = value->key[0];
    wanted.key_size = sizeof value->key[0];
    wanted.key_count = value->key_count;
    r = settings_need(&settings, "path", value->path, "path: readings.db", reterr);
    if (r == 0)
        r = settings_path(&settings, "path", value->path, folder, sink->path, reterr);
    if (r == 0)
        r = sql_mapping_init(&sink->mapping, allocator, &settings, &wanted, reterr);
    settings_close(&settings);
    return r;
}

static int sqlite_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct sqlite_sink *sink = DET_NEW(NULL, struct sqlite_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(stage, NULL, folder, sink, reterr);
    if (r == 0)
        sql_mapping_deinit(&sink->mapping);
    DET_DELETE(NULL, sink);
    return r;
}

static void free_sink(struct det_stage_call *call, struct sqlite_sink *sink)
{
    sink->call = call;
    for (int i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(sink->statements[i]);
    /* Rolls back what is open. */
    (void)sqlite3_close_v2(sink->database);
    sql_mapping_deinit(&sink->mapping);
    det_buffer_deinit(&sink->scratch);
    DET_DELETE(call->allocator, sink);
}

static int sqlite_open(struct det_stage_call *call)
{
    struct sqlite_sink *sink = DET_NEW(call->allocator, struct sqlite_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    sink->call = call;
    (void)row_run(call, sink->run);
    det_buffer_init(&sink->scratch, call->allocator);
    r = read_settings(call->stage, call->allocator, call->folder, sink, &error);
    if (r < 0)
        r = settings_refuse(call, &error);
    if (r == 0)
        r = open_database(sink);
    if (r == 0)
        r = prepare_all(sink);
    if (r == 0)
        r = load_positions(sink);
    if (r < 0)
        free_sink(call, sink);
    else
        call->self = sink;
    return r;
}

static void sqlite_close(struct det_stage_call *call)
{
    free_sink(call, call->self);
    call->self = NULL;
}

static int step(struct sqlite_sink *sink, enum statement statement)
{
    int code = sqlite3_step(sink->statements[statement]);

    (void)sqlite3_reset(sink->statements[statement]);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* A value that is not a plain column of the row: its text is copied by SQLite. */
static int bind_text(
    struct sqlite_sink *sink, int index, const struct column *column, const void *in)
{
    det_buffer_clear(&sink->scratch);
    column_write(column, in, &sink->scratch);
    if (det_buffer_status(&sink->scratch) < 0)
        return SQLITE_NOMEM;
    return sqlite3_bind_text64(
        sink->statements[INSERT], index, det_buffer_text(&sink->scratch), sink->scratch.size,
        SQLITE_TRANSIENT, SQLITE_UTF8);
}

static int bind_value(
    struct sqlite_sink *sink, int index, const struct column *column, const void *in)
{
    sqlite3_stmt *statement = sink->statements[INSERT];
    const uint8_t *place = (const uint8_t *)in + column->offset;
    uint64_t number;
    double real;
    struct det_view view;

    if (!column_is_present(column, in))
        return sqlite3_bind_null(statement, index);
    if (column->is_composed)
        return bind_text(sink, index, column, in);
    switch (column->field->kind) {
    case DET_KIND_UNSIGNED:
        number = det_value_unsigned(column->field, place);
        return number > INT64_MAX ? SQLITE_RANGE
                                  : sqlite3_bind_int64(statement, index, (int64_t)number);
    case DET_KIND_SIGNED:
        return sqlite3_bind_int64(statement, index, det_value_signed(column->field, place));
    case DET_KIND_BOOL:
        return sqlite3_bind_int64(statement, index, *place != 0);
    case DET_KIND_FLOAT:
        memcpy(&real, place, sizeof real);
        return sqlite3_bind_double(statement, index, real);
    case DET_KIND_TEXT:
        view = det_value_view(column->field, place);
        return sqlite3_bind_text64(
            statement, index, view.data, view.size, SQLITE_STATIC, SQLITE_UTF8);
    case DET_KIND_BYTES:
        view = det_value_view(column->field, place);
        return sqlite3_bind_blob64(
            statement, index, view.size ? view.data : "", view.size, SQLITE_STATIC);
    case DET_KIND_TIME:
    case DET_KIND_ENUM:
    case DET_KIND_RECORD:
        break;
    }
    return bind_text(sink, index, column, in);
}

/* SQLITE_RANGE: `ret_column` has no value that SQLite can keep. */
static int bind_row(struct sqlite_sink *sink, const void *in, const char **ret_column)
{
    const struct sql_table *table = &sink->mapping.table;

    for (size_t i = 0; i < table->target_count; i++) {
        int code = bind_value(sink, (int)i + 1, table->targets[i].column, in);

        if (code != SQLITE_OK) {
            *ret_column = table->targets[i].name;
            return code;
        }
    }
    return SQLITE_OK;
}

static int insert_row(struct sqlite_sink *sink, const void *in)
{
    const char *column = "";
    int code;

    code = bind_row(sink, in, &column);
    if (code == SQLITE_RANGE)
        return det_stage_reject(
            sink->call, DET_REJECT_PERMANENT,
            "%s: the value of the column %s is larger than 9223372036854775807, the largest "
            "INTEGER of SQLite; emit it as text",
            sink->settings.table, column);
    if (code == SQLITE_OK)
        code = step(sink, INSERT);
    if (code == SQLITE_OK)
        return 0;
    if ((code & 0xff) == SQLITE_CONSTRAINT || (code & 0xff) == SQLITE_MISMATCH ||
        (code & 0xff) == SQLITE_TOOBIG)
        return det_stage_reject(
            sink->call, DET_REJECT_PERMANENT, "%s: %s", sink->settings.table,
            sqlite3_errmsg(sink->database));
    return fail_stage(sink, code, "write a row");
}

static int roll_back(struct sqlite_sink *sink, int r)
{
    /* SQLite may have done it already. */
    if (!sqlite3_get_autocommit(sink->database))
        (void)step(sink, ROLLBACK);
    sink->is_in_transaction = false;
    delivered_roll_back(&sink->delivered);
    return r;
}

static int sqlite_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct sqlite_sink *sink = call->self;
    int code, r;

    (void)cursor;
    sink->call = call;
    if (delivered_has(&sink->delivered, &call->row))
        return 0;
    if (!sink->is_in_transaction) {
        code = step(sink, BEGIN);
        if (code != SQLITE_OK)
            return fail_stage(sink, code, "begin a transaction");
        sink->is_in_transaction = true;
    }
    r = insert_row(sink, in);
    /* An error such as a full disk ends the transaction with the rows before. */
    if (sqlite3_get_autocommit(sink->database))
        return roll_back(sink, r < 0 ? r : DET_ERR_IO);
    delivered_add(&sink->delivered, &call->row);
    return r;
}

static int save_positions(struct sqlite_sink *sink)
{
    sqlite3_stmt *statement = sink->statements[POSITION];
    int code = bind_names(sink, statement);

    for (int stream = delivered_next(&sink->delivered, 0); stream >= 0 && code == SQLITE_OK;
         stream = delivered_next(&sink->delivered, stream + 1)) {
        code = sqlite3_bind_int64(statement, 4, stream);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int64(statement, 5, (int64_t)sink->delivered.pending[stream]);
        if (code == SQLITE_OK)
            code = step(sink, POSITION);
    }
    return code;
}

static int sqlite_flush(struct det_stage_call *call, void *cursor)
{
    struct sqlite_sink *sink = call->self;
    int code;

    (void)cursor;
    sink->call = call;
    if (!sink->is_in_transaction)
        return 0;
    code = save_positions(sink);
    if (code == SQLITE_OK)
        code = step(sink, COMMIT);
    if (code != SQLITE_OK)
        return roll_back(sink, fail_stage(sink, code, "commit"));
    sink->is_in_transaction = false;
    delivered_commit(&sink->delivered);
    return 0;
}

const struct det_connector sqlite_sink = {
    .name = "sqlite",
    .about = "rows into a table of SQLite, exactly once",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = sqlite_open,
                   .close = sqlite_close,
                   .deliver = sqlite_deliver,
                   .flush = sqlite_flush },
    .check = sqlite_check,
};
