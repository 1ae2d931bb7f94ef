/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_upgrade.c - files of an older schema: what each version has brought, as it was then, one
 * after the other in one transaction. A file is of one schema, never between two. */
#include "store/sqlite.h"

/* By the version they are for. What is here stays as it is, whatever the tables become. */
static const char *const upgrades[DET_SQLITE_SCHEMA] = {
    /* Some files of schema 1 have tables for jobs: they were made before these had a number. */
    [1] = "CREATE TABLE starts (instance INTEGER PRIMARY KEY, position INTEGER NOT NULL,"
          " version INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL,"
          " at INTEGER NOT NULL);"
          "CREATE TABLE IF NOT EXISTS jobs (key INTEGER PRIMARY KEY AUTOINCREMENT,"
          " queue TEXT NOT NULL, id TEXT NOT NULL, task TEXT NOT NULL, body BLOB NOT NULL,"
          " state TEXT NOT NULL, due_at INTEGER NOT NULL, attempts INTEGER NOT NULL,"
          " owner TEXT NOT NULL, submitted_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,"
          " reason TEXT NOT NULL, UNIQUE (queue, id));"
          "ALTER TABLE jobs ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;"
          "CREATE INDEX IF NOT EXISTS jobs_due ON jobs (queue, state, due_at);"
          "CREATE INDEX IF NOT EXISTS jobs_ended ON jobs (ended_at) WHERE ended_at > 0;"
          "CREATE TABLE IF NOT EXISTS schedules (name TEXT PRIMARY KEY NOT NULL,"
          " next_at INTEGER NOT NULL, last_at INTEGER NOT NULL, token INTEGER NOT NULL)"
          " WITHOUT ROWID;",
    [2] = "ALTER TABLE outbox ADD COLUMN reason TEXT;"
          "ALTER TABLE dead_letters ADD COLUMN reason TEXT;"
          "CREATE INDEX instances_locked ON instances (lock_until) WHERE lock_until IS NOT NULL;",
    [3] = "ALTER TABLE store ADD COLUMN position INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE events ADD COLUMN trace BLOB;"
          "ALTER TABLE outbox ADD COLUMN trace BLOB;"
          "ALTER TABLE dead_letters ADD COLUMN trace BLOB;"
          "CREATE INDEX starts_position ON starts (position);",
    [4] = "ALTER TABLE store ADD COLUMN sync INTEGER NOT NULL DEFAULT 0;"
          "CREATE TABLE documents (id TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,"
          " sync INTEGER NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL,"
          " updated_at INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, kind, role))"
          " WITHOUT ROWID;"
          "CREATE TABLE deltas (sync INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,"
          " id TEXT NOT NULL, role TEXT NOT NULL, change TEXT NOT NULL, version INTEGER NOT NULL,"
          " size INTEGER NOT NULL, text TEXT NOT NULL);",
};

int det_sqlite_upgrade(
    struct sqlite_store *store, struct sqlite_connection *connection, int64_t schema,
    struct det_error *reterr)
{
    struct det_buffer text;
    int code, r;

    det_buffer_init(&text, store->store.allocator);
    det_buffer_append_text(&text, "BEGIN IMMEDIATE;");
    for (int64_t i = schema; i < DET_SQLITE_SCHEMA; i++)
        det_buffer_append_text(&text, upgrades[i]);
    det_buffer_format(
        &text, "UPDATE store SET schema = %d; PRAGMA user_version = %d", DET_SQLITE_SCHEMA,
        DET_SQLITE_SCHEMA);
    r = det_buffer_status(&text);
    if (r == 0) {
        code = sqlite3_exec(connection->database, det_buffer_text(&text), NULL, NULL, NULL);
        if (code != SQLITE_OK)
            r = det_sqlite_explain(store, connection->database, code, "upgrade it", reterr);
    } else {
        (void)det_error_set(reterr, r, "no memory for the tables");
    }
    det_buffer_deinit(&text);
    return r;
}
