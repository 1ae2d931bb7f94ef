/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tables.c - the tables of docs/formats/sql_schema.md in a file: one list creates and checks
 * them. */
#include <string.h>

#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* Limit of listed missing parts. */
#define MISSING_MAX 8

struct column {
    const char *table, *name;
    const char *declaration; /* its first word is the type */
};

#define OF_EFFECT(table)                                                                       \
    { table, "instance", "INTEGER NOT NULL" }, { table, "sequence", "INTEGER NOT NULL" },      \
        { table, "number", "INTEGER NOT NULL" }, { table, "effect", "TEXT NOT NULL" },         \
        { table, "from_state", "TEXT NOT NULL" }, { table, "to_state", "TEXT NOT NULL" },      \
        { table, "visit", "INTEGER NOT NULL" }, { table, "asked", "INTEGER NOT NULL" },        \
        { table, "at", "INTEGER NOT NULL" }, { table, "attempts", "INTEGER NOT NULL" },        \
        { table, "last_error", "INTEGER NOT NULL" }, { table, "next_at", "INTEGER NOT NULL" }, \
        { table, "data", "BLOB" }, { table, "event", "TEXT" }, { table, "payload", "BLOB" },   \
    {                                                                                          \
        table, "owner", "TEXT NOT NULL"                                                        \
    }

#define OF_HEAD(table)                                                                             \
    { table, "version", "INTEGER NOT NULL" }, { table, "state", "TEXT NOT NULL" },                 \
        { table, "sequence", "INTEGER NOT NULL" }, { table, "visit", "INTEGER NOT NULL" },         \
        { table, "transitions", "INTEGER NOT NULL" }, { table, "started_at", "INTEGER NOT NULL" }, \
        { table, "moved_at", "INTEGER NOT NULL" }, { table, "stopped", "INTEGER NOT NULL" },       \
        { table, "reason", "TEXT" }, { table, "data", "BLOB NOT NULL" },                           \
    {                                                                                              \
        table, "hash", "BLOB NOT NULL"                                                             \
    }

static const struct column columns[] = {
    { "store", "one", "INTEGER PRIMARY KEY CHECK (one = 1)" },
    { "store", "identity", "TEXT NOT NULL" },
    { "store", "schema", "INTEGER NOT NULL" },
    { "store", "created_at", "INTEGER NOT NULL" },
    { "store", "program", "TEXT NOT NULL" },
    { "store", "position", "INTEGER NOT NULL DEFAULT 0" },
    { "store", "sync", "INTEGER NOT NULL DEFAULT 0" },
    { "store", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "definitions", "machine", "TEXT NOT NULL" },
    { "definitions", "version", "INTEGER NOT NULL" },
    { "definitions", "fingerprint", "TEXT NOT NULL" },
    { "definitions", "spec", "TEXT NOT NULL" },
    { "definitions", "served_at", "INTEGER NOT NULL" },
    { "definitions", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "instances", "key", "INTEGER PRIMARY KEY" },
    { "instances", "machine", "TEXT NOT NULL" },
    { "instances", "id", "TEXT NOT NULL" },
    OF_HEAD("instances"),
    { "instances", "last_event", "INTEGER NOT NULL" },
    { "instances", "checksum", "INTEGER NOT NULL" },
    { "instances", "fence", "INTEGER NOT NULL" },
    { "instances", "lock_owner", "TEXT" },
    { "instances", "lock_until", "INTEGER" },
    { "instances", "owned", "INTEGER NOT NULL DEFAULT 0" },
    { "instances", "lock_checksum", "INTEGER" },
    { "events", "position", "INTEGER PRIMARY KEY" },
    { "events", "instance", "INTEGER NOT NULL" },
    { "events", "sequence", "INTEGER NOT NULL" },
    { "events", "previous", "INTEGER NOT NULL" },
    { "events", "version", "INTEGER NOT NULL" },
    { "events", "visit", "INTEGER NOT NULL" },
    { "events", "from_state", "TEXT NOT NULL" },
    { "events", "to_state", "TEXT NOT NULL" },
    { "events", "event", "TEXT" },
    { "events", "outcome", "TEXT NOT NULL" },
    { "events", "choice", "INTEGER NOT NULL" },
    { "events", "timeout", "INTEGER NOT NULL" },
    { "events", "at", "INTEGER NOT NULL" },
    { "events", "event_id", "TEXT" },
    { "events", "cause", "TEXT" },
    { "events", "payload", "BLOB" },
    { "events", "hash", "BLOB NOT NULL" },
    { "events", "trace", "BLOB" },
    { "starts", "instance", "INTEGER PRIMARY KEY" },
    { "starts", "position", "INTEGER NOT NULL" },
    { "starts", "version", "INTEGER NOT NULL" },
    { "starts", "state", "TEXT NOT NULL" },
    { "starts", "data", "BLOB NOT NULL" },
    { "starts", "at", "INTEGER NOT NULL" },
    { "starts", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "snapshots", "instance", "INTEGER PRIMARY KEY" },
    OF_HEAD("snapshots"),
    { "snapshots", "history", "TEXT NOT NULL" },
    { "snapshots", "taken_at", "INTEGER NOT NULL" },
    { "snapshots", "checksum", "INTEGER NOT NULL" },
    { "timers", "instance", "INTEGER NOT NULL" },
    { "timers", "name", "TEXT NOT NULL" },
    { "timers", "visit", "INTEGER NOT NULL" },
    { "timers", "due", "INTEGER NOT NULL" },
    { "timers", "event", "TEXT NOT NULL" },
    { "timers", "payload", "BLOB" },
    { "timers", "owner", "TEXT NOT NULL" },
    { "timers", "machine", "TEXT NOT NULL" },
    { "timers", "attempts", "INTEGER NOT NULL DEFAULT 0" },
    { "timers", "last_error", "INTEGER NOT NULL DEFAULT 0" },
    { "timers", "next_at", "INTEGER NOT NULL DEFAULT 0" },
    { "timers", "reason", "TEXT" },
    { "timers", "dead_at", "INTEGER NOT NULL DEFAULT 0" },
    { "timers", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    OF_EFFECT("outbox"),
    { "outbox", "machine", "TEXT NOT NULL" },
    { "outbox", "reason", "TEXT" },
    { "outbox", "trace", "BLOB" },
    { "outbox", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "outbox", "origin", "TEXT" },
    OF_EFFECT("dead_letters"),
    { "dead_letters", "dead_at", "INTEGER NOT NULL" },
    { "dead_letters", "reason", "TEXT" },
    { "dead_letters", "trace", "BLOB" },
    { "dead_letters", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "dead_letters", "origin", "TEXT" },
    { "deferred", "instance", "INTEGER NOT NULL" },
    { "deferred", "sequence", "INTEGER NOT NULL" },
    { "deferred", "event", "TEXT NOT NULL" },
    { "deferred", "payload", "BLOB" },
    { "deferred", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "answers", "instance", "INTEGER NOT NULL" },
    { "answers", "event_id", "TEXT NOT NULL" },
    { "answers", "outcome", "TEXT NOT NULL" },
    { "answers", "state", "TEXT NOT NULL" },
    { "answers", "sequence", "INTEGER NOT NULL" },
    { "answers", "visit", "INTEGER NOT NULL" },
    { "answers", "at", "INTEGER NOT NULL" },
    { "answers", "event", "TEXT" },
    { "answers", "request", "INTEGER NOT NULL DEFAULT 0" },
    { "answers", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "renames", "number", "INTEGER PRIMARY KEY" },
    { "renames", "machine", "TEXT NOT NULL" },
    { "renames", "kind", "TEXT NOT NULL" },
    { "renames", "old_name", "TEXT NOT NULL" },
    { "renames", "new_name", "TEXT NOT NULL" },
    { "renames", "batch", "INTEGER NOT NULL" },
    { "renames", "position", "INTEGER NOT NULL" },
    { "renames", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "leases", "name", "TEXT PRIMARY KEY NOT NULL" },
    { "leases", "token", "INTEGER NOT NULL" },
    { "leases", "owner", "TEXT NOT NULL" },
    { "leases", "expires_at", "INTEGER NOT NULL" },
    { "leases", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "jobs", "key", "INTEGER PRIMARY KEY AUTOINCREMENT" },
    { "jobs", "queue", "TEXT NOT NULL" },
    { "jobs", "id", "TEXT NOT NULL" },
    { "jobs", "task", "TEXT NOT NULL" },
    { "jobs", "body", "BLOB NOT NULL" },
    { "jobs", "state", "TEXT NOT NULL" },
    { "jobs", "due_at", "INTEGER NOT NULL" },
    { "jobs", "attempts", "INTEGER NOT NULL" },
    { "jobs", "owner", "TEXT NOT NULL" },
    { "jobs", "submitted_at", "INTEGER NOT NULL" },
    { "jobs", "ended_at", "INTEGER NOT NULL" },
    { "jobs", "reason", "TEXT NOT NULL" },
    { "jobs", "lost", "INTEGER NOT NULL DEFAULT 0" },
    { "jobs", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "schedules", "name", "TEXT PRIMARY KEY NOT NULL" },
    { "schedules", "next_at", "INTEGER NOT NULL" },
    { "schedules", "last_at", "INTEGER NOT NULL" },
    { "schedules", "token", "INTEGER NOT NULL" },
    { "schedules", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "documents", "id", "TEXT NOT NULL" },
    { "documents", "kind", "TEXT NOT NULL" },
    { "documents", "role", "TEXT NOT NULL" },
    { "documents", "sync", "INTEGER NOT NULL" },
    { "documents", "version", "INTEGER NOT NULL" },
    { "documents", "created_at", "INTEGER NOT NULL" },
    { "documents", "updated_at", "INTEGER NOT NULL" },
    { "documents", "text", "TEXT NOT NULL" },
    { "documents", "checksum", "INTEGER NOT NULL DEFAULT 0" },
    { "deltas", "sync", "INTEGER PRIMARY KEY" },
    { "deltas", "at", "INTEGER NOT NULL" },
    { "deltas", "kind", "TEXT NOT NULL" },
    { "deltas", "id", "TEXT NOT NULL" },
    { "deltas", "role", "TEXT NOT NULL" },
    { "deltas", "change", "TEXT NOT NULL" },
    { "deltas", "version", "INTEGER NOT NULL" },
    { "deltas", "size", "INTEGER NOT NULL" },
    { "deltas", "text", "TEXT NOT NULL" },
    { "deltas", "checksum", "INTEGER NOT NULL DEFAULT 0" },
};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])

/* The text after the columns of a table; "" for none. */
static const struct tail {
    const char *table, *text, *index;
} tails[] = {
    { "store", ")", NULL },
    { "definitions", ", PRIMARY KEY (machine, version, fingerprint)) WITHOUT ROWID", NULL },
    { "instances", ", UNIQUE (machine, id))",
      "CREATE INDEX instances_locked ON instances (lock_until) WHERE lock_until IS NOT NULL" },
    { "events", ")", NULL },
    { "starts", ")", "CREATE INDEX starts_position ON starts (position)" },
    { "snapshots", ")", NULL },
    { "timers", ", PRIMARY KEY (instance, name)) WITHOUT ROWID",
      "CREATE INDEX timers_due ON timers (machine, next_at) WHERE dead_at = 0;"
      "CREATE INDEX timers_dead ON timers (instance) WHERE dead_at > 0" },
    { "outbox", ", PRIMARY KEY (instance, sequence, number)) WITHOUT ROWID",
      "CREATE INDEX outbox_next_at ON outbox (machine, next_at)" },
    { "dead_letters", ", PRIMARY KEY (instance, sequence, number)) WITHOUT ROWID", NULL },
    { "deferred", ", PRIMARY KEY (instance, sequence)) WITHOUT ROWID", NULL },
    { "answers", ", PRIMARY KEY (instance, event_id)) WITHOUT ROWID", NULL },
    { "renames", ")", NULL },
    { "leases", ") WITHOUT ROWID", NULL },
    { "jobs", ", UNIQUE (queue, id))",
      "CREATE INDEX jobs_queued ON jobs (queue) WHERE state = 'queued';"
      "CREATE INDEX jobs_delayed ON jobs (queue, due_at) WHERE state = 'delayed';"
      "CREATE INDEX jobs_running ON jobs (queue, due_at) WHERE state = 'running';"
      "CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at > 0" },
    { "schedules", ") WITHOUT ROWID", NULL },
    { "documents", ", PRIMARY KEY (id, kind, role)) WITHOUT ROWID", NULL },
    { "deltas", ")", NULL },
};
#define TABLE_COUNT (sizeof tails / sizeof tails[0])

static void write_table(const struct tail *tail, struct det_buffer *text)
{
    const char *separator = "";

    det_buffer_format(text, "CREATE TABLE %s (", tail->table);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (strcmp(columns[i].table, tail->table) != 0)
            continue;
        det_buffer_format(text, "%s%s %s", separator, columns[i].name, columns[i].declaration);
        separator = ", ";
    }
    det_buffer_format(text, "%s;", tail->text);
    if (tail->index)
        det_buffer_format(text, "%s;", tail->index);
}

static void write_identity(struct det_world *world, struct det_buffer *text)
{
    det_buffer_format(text, "INSERT INTO store VALUES (1, '");
    for (int i = 0; i < 2; i++)
        det_buffer_format(text, "%016llx", (unsigned long long)det_world_random_u64(world));
    det_buffer_format(
        text, "', %d, %lld, '%s', 0, 0, 0);", DET_SQLITE_SCHEMA,
        (long long)det_world_now(world, DET_CLOCK_WALL), det_version());
    det_buffer_append_text(
        text, "UPDATE store SET checksum = row_checksum('store', identity, schema, created_at,"
              " program, position, sync);");
}

int det_sqlite_tables_create(
    struct sqlite_store *store, struct sqlite_connection *connection, struct det_error *reterr)
{
    struct det_buffer text;
    int code, r;

    det_buffer_init(&text, store->store.allocator);
    det_buffer_format(
        &text, "BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d;",
        DET_SQLITE_APPLICATION_ID, DET_SQLITE_SCHEMA);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        write_table(&tails[i], &text);
    write_identity(store->store.world, &text);
    det_buffer_append_text(&text, "COMMIT");
    r = det_buffer_status(&text);
    if (r == 0) {
        code = sqlite3_exec(connection->database, det_buffer_text(&text), NULL, NULL, NULL);
        if (code != SQLITE_OK)
            r = det_sqlite_explain(store, connection->database, code, "create the tables", reterr);
    } else {
        (void)det_error_set(reterr, r, "out of memory for the tables");
    }
    det_buffer_deinit(&text);
    return r;
}

/* The expected column with that name, or NULL. */
static const struct column *find_column(const char *table, const char *name)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (strcmp(columns[i].table, table) == 0 && strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

/* Notes which columns exist with the right type. Returns a code of SQLite. */
static int find_columns(sqlite3 *database, bool *is_there)
{
    sqlite3_stmt *statement = NULL;
    int code;

    code = sqlite3_prepare_v2(
        database,
        "SELECT m.name, c.name, c.type FROM sqlite_schema AS m, pragma_table_info(m.name) AS c "
        "WHERE m.type = 'table'",
        -1, &statement, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(statement, 0);
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        const char *type = (const char *)sqlite3_column_text(statement, 2);
        const struct column *column = table && name ? find_column(table, name) : NULL;
        size_t length = column ? strcspn(column->declaration, " ") : 0;

        if (column && type && strlen(type) == length &&
            memcmp(type, column->declaration, length) == 0)
            is_there[column - columns] = true;
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Appends missing and mistyped columns to `missing`. Returns a code of SQLite. */
static int check_columns(sqlite3 *database, struct det_buffer *missing)
{
    bool is_there[COLUMN_COUNT] = { false };
    size_t count = 0;
    int code;

    code = find_columns(database, is_there);
    for (size_t i = 0; code == SQLITE_OK && i < COLUMN_COUNT; i++)
        if (!is_there[i] && count++ < MISSING_MAX)
            det_buffer_format(
                missing, "%s%s.%s %.*s", missing->size ? ", " : "", columns[i].table,
                columns[i].name, (int)strcspn(columns[i].declaration, " "), columns[i].declaration);
    if (count > MISSING_MAX)
        det_buffer_format(missing, " and %zu more", count - MISSING_MAX);
    return code;
}

int det_sqlite_tables_check(struct sqlite_store *store, sqlite3 *database, struct det_error *reterr)
{
    struct det_buffer missing;
    int code, r;

    det_buffer_init(&missing, store->store.allocator);
    code = check_columns(database, &missing);
    r = det_buffer_status(&missing);
    if (code != SQLITE_OK)
        r = det_sqlite_explain(store, database, code, "read the tables", reterr);
    else if (r < 0)
        (void)det_error_set(reterr, r, "out of memory: cannot check the tables");
    else if (missing.size)
        r = det_error_set(
            reterr, DET_ERR_CORRUPT,
            "%s: take the newest backup; nothing was changed; missing, or of another type: %s",
            store->path, det_buffer_text(&missing));
    det_buffer_deinit(&missing);
    return r;
}
