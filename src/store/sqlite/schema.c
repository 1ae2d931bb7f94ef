/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* schema.c - opens a file only if it is a store: application id, schema version, and the tables
 * of sqlite/tables.c.
 *
 *     an empty page at most ----> create all in one transaction; NOT_FOUND if not permitted
 *     our number, our schema ---> check every table and column
 *     our number, a lower one --> sqlite/upgrade.c, then the same; for reading: VERSION
 *     our number, a higher one -> VERSION
 *     anything else ------------> FOREIGN, and the file is unchanged */
#include <string.h>

#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* Files up to this size, 8 MiB, are checked completely when they are opened, including indexes: an
 * index with missing rows hides them. Of larger files only the small tables are checked. */
#define CHECKED_PAGES 2048

/* The first number of the first row; returns a code of SQLite. */
static int ask_number(sqlite3 *database, const char *text, int64_t *ret)
{
    sqlite3_stmt *statement = NULL;
    int code;

    *ret = 0;
    code = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* SQLite's message without its first line, which names the database: there is only one. */
static const char *without_head(const char *printed)
{
    const char *line = strchr(printed, '\n');

    return strncmp(printed, "***", 3) == 0 && line ? line + 1 : printed;
}

static int report_damage(struct sqlite_store *store, const char *printed, struct det_error *reterr)
{
    int r = printed ? det_sqlite_finding(printed) : DET_ERR_NO_MEMORY;

    if (r < 0)
        return det_error_set(
            reterr, r, "%s: cannot check it: %s; %s", store->path, det_error_text(r),
            det_sqlite_remedy(r));
    return det_error_set(
        reterr, DET_ERR_CORRUPT,
        "%s is damaged: %.120s; take the newest backup; nothing was changed", store->path,
        without_head(printed));
}

/* The first complaint of an integrity check, if any. */
static int check_integrity(
    struct sqlite_store *store, sqlite3 *database, const char *text, struct det_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    const char *printed;
    int code, r = 0;

    code = sqlite3_prepare_v2(database, text, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    printed = code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (code != SQLITE_ROW)
        r = det_sqlite_explain(store, database, code, "check it", reterr);
    else if (!printed || strcmp(printed, "ok") != 0)
        r = report_damage(store, printed, reterr);
    (void)sqlite3_finalize(statement);
    return r;
}

static int check_content(struct sqlite_store *store, sqlite3 *database, struct det_error *reterr)
{
    static const char *const small[] = { "PRAGMA integrity_check(store)",
                                         "PRAGMA integrity_check(definitions)",
                                         "PRAGMA integrity_check(leases)" };
    int64_t pages;
    int code, r = 0;

    code = ask_number(database, "PRAGMA page_count", &pages);
    if (code != SQLITE_OK)
        return det_sqlite_explain(store, database, code, "read it", reterr);
    if (pages <= CHECKED_PAGES)
        return check_integrity(store, database, "PRAGMA integrity_check(1)", reterr);
    for (size_t i = 0; r == 0 && i < sizeof small / sizeof small[0]; i++)
        r = check_integrity(store, database, small[i], reterr);
    return r;
}

/* Reads the identity of the store; it must equal `wanted` (NULL: any). */
static int read_identity(
    struct sqlite_store *store, sqlite3 *database, const char *wanted, struct det_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    const char *identity;
    int code, r = 0;

    code = sqlite3_prepare_v2(
        database, "SELECT identity FROM store WHERE one = 1", -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    identity = code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        r = det_sqlite_explain(store, database, code, "read which store it is", reterr);
    else if (!identity || strlen(identity) != sizeof store->store.identity - 1)
        r = det_error_set(
            reterr, DET_ERR_CORRUPT,
            "%s: the table \"store\" does not say which store it is; take the newest backup",
            store->path);
    else if (wanted && strcmp(wanted, identity) != 0)
        r = det_error_set(
            reterr, DET_ERR_FOREIGN,
            "%s is the store %s, not %s: the file was replaced; put the right file back",
            store->path, identity, wanted);
    else
        memcpy(store->store.identity, identity, sizeof store->store.identity);
    (void)sqlite3_finalize(statement);
    return r;
}

/* Checks the checksum of the store's row. */
static int check_store_row(struct sqlite_store *store, sqlite3 *database, struct det_error *reterr)
{
    int64_t is_complete;
    int code;

    code = ask_number(
        database,
        "SELECT checksum = row_checksum('store', identity, schema, created_at, program, position,"
        " sync) FROM store",
        &is_complete);
    if (code != SQLITE_OK)
        return det_sqlite_explain(store, database, code, "read which store it is", reterr);
    if (is_complete == 1)
        return 0;
    return det_error_set(
        reterr, DET_ERR_CORRUPT,
        "%s: the row of the table \"store\" does not match its checksum; take the newest backup; "
        "nothing was changed",
        store->path);
}

struct gate {
    int64_t application, schema, tables, pages;
};

/* The file was never used: its creator was killed before the tables existed. */
static bool is_unmade(const struct gate *gate)
{
    return gate->tables == 0 && gate->pages <= 1 &&
           (gate->application == 0 ? gate->schema == 0
                                   : gate->application == DET_SQLITE_APPLICATION_ID &&
                                         gate->schema <= DET_SQLITE_SCHEMA);
}

static int read_gate(sqlite3 *database, struct gate *ret)
{
    int code;

    code = ask_number(database, "PRAGMA application_id", &ret->application);
    if (code == SQLITE_OK)
        code = ask_number(database, "PRAGMA user_version", &ret->schema);
    if (code == SQLITE_OK)
        code = ask_number(database, "SELECT count(*) FROM sqlite_schema", &ret->tables);
    if (code == SQLITE_OK)
        code = ask_number(database, "PRAGMA page_count", &ret->pages);
    return code;
}

/* Reports the schema of the file and the known one. */
static int refuse_schema(
    const struct sqlite_store *store, const struct gate *gate, const char *remedy,
    struct det_error *reterr)
{
    (void)det_error_set(
        reterr, DET_ERR_VERSION,
        "%s has schema version %lld, this program supports %d; %s; nothing was changed",
        store->path, (long long)gate->schema, DET_SQLITE_SCHEMA, remedy);
    if (reterr) {
        reterr->expected = DET_SQLITE_SCHEMA;
        reterr->actual = (uint64_t)gate->schema;
    }
    return DET_ERR_VERSION;
}

static int pass_gate(
    const struct sqlite_store *store, const struct gate *gate, bool can_write,
    struct det_error *reterr)
{
    if (gate->application != DET_SQLITE_APPLICATION_ID)
        return det_error_set(
            reterr, DET_ERR_FOREIGN,
            "%s is not a store of detent: %s; give another path, this one was left as it is",
            store->path,
            gate->tables ? "it is the SQLite file of another program" : "it has no tables");
    if (gate->schema > DET_SQLITE_SCHEMA)
        return refuse_schema(store, gate, "use a newer detent", reterr);
    if (gate->schema >= 1 && gate->schema < DET_SQLITE_SCHEMA && !can_write)
        return refuse_schema(
            store, gate, "upgrade it with \"detent store upgrade\" or open it for writing", reterr);
    if (gate->schema < 1)
        return det_error_set(
            reterr, DET_ERR_CORRUPT, "%s has the unknown schema %lld; take the newest backup",
            store->path, (long long)gate->schema);
    return 0;
}

/* The log is enabled only for a known store, since that changes the file. Enabling takes a
 * transaction without a log, which ends with the statement. */
static int use_log(struct sqlite_store *store, sqlite3 *database, struct det_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    const char *mode = NULL;
    bool has_log = false;
    int code;

    code = sqlite3_prepare_v2(database, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        mode = (const char *)sqlite3_column_text(statement, 0);
        has_log = mode && strcmp(mode, "wal") == 0;
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(statement);
    if (code != SQLITE_DONE)
        return det_sqlite_explain(store, database, code, "write to it", reterr);
    if (!has_log)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED,
            "%s: this file system cannot share memory, which the log of SQLite needs; use a local "
            "disk",
            store->path);
    return 0;
}

/* An existing file is upgraded only if it is undamaged and the expected store. */
static int check_file(
    struct sqlite_store *store, struct sqlite_connection *connection, const struct gate *gate,
    const char *identity, struct det_error *reterr)
{
    sqlite3 *database = connection->database;
    bool can_write = connection == &store->writer;
    bool is_older = gate->schema < DET_SQLITE_SCHEMA;
    int code, r;

    r = pass_gate(store, gate, can_write, reterr);
    if (r == 0 && can_write)
        r = use_log(store, database, reterr);
    if (r == 0)
        r = check_content(store, database, reterr);
    if (r == 0 && is_older)
        r = read_identity(store, database, identity, reterr);
    /* Until this is done, closing must not change the file. */
    store->store.identity[0] = '\0';
    if (r == 0 && is_older)
        r = det_sqlite_upgrade(store, connection, gate->schema, reterr);
    if (r == 0)
        r = det_sqlite_tables_check(store, database, reterr);
    if (r < 0 || !is_older)
        return r;
    code = sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : det_sqlite_explain(store, database, code, "upgrade it", reterr);
}

static int create_store(
    struct sqlite_store *store, struct sqlite_connection *connection, bool may_create,
    struct det_error *reterr)
{
    struct sqlite_mark mark;
    int r;

    if (!may_create)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "%s contains no store yet; create it with \"detent start FILE.fsm ID --store "
            "sqlite:%s\"",
            store->path, store->path);
    /* The content of the file was only in its log. */
    if (store->was_there && det_sqlite_mark_find(store, &mark) &&
        (mark.position > 0 || det_sqlite_mark_is_in_log(&mark)))
        return det_sqlite_mark_refuse(store, &mark, mark.position, reterr);
    r = use_log(store, connection->database, reterr);
    return r < 0 ? r : det_sqlite_tables_create(store, connection, reterr);
}

int det_sqlite_schema(
    struct sqlite_store *store, struct sqlite_connection *connection,
    const struct det_store_options *options, struct det_error *reterr)
{
    sqlite3 *database = connection->database;
    bool can_write = connection == &store->writer;
    struct gate gate;
    int code, r;

    code = read_gate(database, &gate);
    if (code != SQLITE_OK)
        return det_sqlite_explain(store, database, code, "read it", reterr);
    if (can_write && sqlite3_db_readonly(database, "main") == 1)
        return det_error_set(
            reterr, DET_ERR_READ_ONLY,
            "%s: this process has no permission to write to it; change that, or open it for "
            "reading "
            "only",
            store->path);
    if (is_unmade(&gate))
        r = create_store(store, connection, can_write && !options->must_exist, reterr);
    else
        r = check_file(store, connection, &gate, options->identity, reterr);
    store->store.schema = DET_SQLITE_SCHEMA;
    if (r == 0)
        r = read_identity(store, database, options->identity, reterr);
    if (r == 0)
        r = check_store_row(store, database, reterr);
    if (r < 0)
        store->store.identity[0] = '\0';
    return r;
}
