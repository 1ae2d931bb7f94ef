/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* upgrade.c - upgrades files of an older schema: the changes of each version in order, in one
 * transaction. A file always has exactly one schema. */
#include "store/sqlite/sqlite.h"

/* Indexed by the version to upgrade from. Entries never change, whatever the tables become. */
static const char *const upgrades[DET_SQLITE_SCHEMA] = {
    /* Some files of schema 1 have job tables, created before job tables had a version. */
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
    [5] = "ALTER TABLE store ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE definitions ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE instances ADD COLUMN owned INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE instances ADD COLUMN lock_checksum INTEGER;"
          "ALTER TABLE starts ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE timers ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE timers ADD COLUMN last_error INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE timers ADD COLUMN next_at INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE timers ADD COLUMN reason TEXT;"
          "ALTER TABLE timers ADD COLUMN dead_at INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE timers ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE outbox ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE dead_letters ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE deferred ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE answers ADD COLUMN event TEXT;"
          "ALTER TABLE answers ADD COLUMN request INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE answers ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE renames ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE leases ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE schedules ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE documents ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE deltas ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "UPDATE timers SET next_at = due;"
          "DROP INDEX timers_due;"
          "CREATE INDEX timers_due ON timers (machine, next_at) WHERE dead_at = 0;"
          "CREATE INDEX timers_dead ON timers (instance) WHERE dead_at > 0;"
          "UPDATE definitions SET checksum = row_checksum('definitions', machine, version,"
          " fingerprint, spec, served_at);"
          "UPDATE starts SET checksum = row_checksum('starts', instance, position, version, state,"
          " data, at);"
          "UPDATE timers SET checksum = row_checksum('timers', instance, name, machine, visit, due,"
          " event, payload, attempts, last_error, next_at, reason, dead_at);"
          "UPDATE outbox SET checksum = row_checksum('outbox', instance, sequence, number, effect,"
          " from_state, to_state, visit, asked, at, attempts, last_error, next_at, data, event,"
          " payload, reason, trace);"
          "UPDATE dead_letters SET checksum = row_checksum('dead_letters', instance, sequence,"
          " number, effect, from_state, to_state, visit, asked, at, attempts, last_error, next_at,"
          " data, event, payload, reason, trace, dead_at);"
          "UPDATE deferred SET checksum = row_checksum('deferred', instance, sequence, event,"
          " payload);"
          "UPDATE answers SET checksum = row_checksum('answers', instance, event_id, outcome,"
          " state, sequence, visit, at, event, request);"
          "UPDATE renames SET checksum = row_checksum('renames', number, machine, kind, old_name,"
          " new_name, batch, position);"
          "UPDATE leases SET checksum = row_checksum('leases', name, token, owner, expires_at);"
          "UPDATE schedules SET checksum = row_checksum('schedules', name, next_at, last_at,"
          " token);"
          "UPDATE documents SET checksum = row_checksum('documents', id, kind, role, sync, version,"
          " created_at, updated_at, text);"
          "UPDATE deltas SET checksum = row_checksum('deltas', sync, at, kind, id, role, change,"
          " version, size, text);"
          "UPDATE instances SET lock_checksum = row_checksum('lock', key, fence, lock_owner,"
          " lock_until) WHERE fence <> 0 OR lock_owner IS NOT NULL OR lock_until IS NOT NULL;"
          "UPDATE instances SET owned = owned + o.rows FROM (SELECT instance, sum(n) AS rows FROM"
          " (SELECT instance, 1 AS n FROM timers UNION ALL SELECT instance, 1 FROM outbox"
          " UNION ALL SELECT instance, 1 FROM dead_letters UNION ALL SELECT instance, 1 FROM"
          " deferred UNION ALL SELECT instance, 4294967296 FROM answers) GROUP BY instance) AS o"
          " WHERE key = o.instance;"
          "ALTER TABLE jobs ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;"
          "UPDATE jobs SET checksum = row_checksum('jobs', queue, id, task, body, state, due_at,"
          " attempts, owner, submitted_at, ended_at, reason, lost);"
          "DROP INDEX jobs_due;"
          "CREATE INDEX jobs_queued ON jobs (queue) WHERE state = 'queued';"
          "CREATE INDEX jobs_delayed ON jobs (queue, due_at) WHERE state = 'delayed';"
          "CREATE INDEX jobs_running ON jobs (queue, due_at) WHERE state = 'running';",
    /* Damaged rows must not get a valid checksum. */
    [6] = "ALTER TABLE outbox ADD COLUMN origin TEXT;"
          "ALTER TABLE dead_letters ADD COLUMN origin TEXT;"
          "UPDATE outbox SET checksum = row_checksum('outbox', instance, sequence, number, effect,"
          " from_state, to_state, visit, asked, at, attempts, last_error, next_at, data, event,"
          " payload, reason, trace, origin) WHERE checksum = row_checksum('outbox', instance,"
          " sequence, number, effect, from_state, to_state, visit, asked, at, attempts, last_error,"
          " next_at, data, event, payload, reason, trace);"
          "UPDATE dead_letters SET checksum = row_checksum('dead_letters', instance, sequence,"
          " number, effect, from_state, to_state, visit, asked, at, attempts, last_error, next_at,"
          " data, event, payload, reason, trace, origin, dead_at) WHERE checksum ="
          " row_checksum('dead_letters', instance, sequence, number, effect, from_state, to_state,"
          " visit, asked, at, attempts, last_error, next_at, data, event, payload, reason, trace,"
          " dead_at);",
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
        &text,
        "UPDATE store SET schema = %d; PRAGMA user_version = %d; UPDATE store SET checksum ="
        " row_checksum('store', identity, schema, created_at, program, position, sync)",
        DET_SQLITE_SCHEMA, DET_SQLITE_SCHEMA);
    r = det_buffer_status(&text);
    if (r == 0) {
        code = sqlite3_exec(connection->database, det_buffer_text(&text), NULL, NULL, NULL);
        if (code == SQLITE_ERROR)
            r = det_error_set(
                reterr, DET_ERR_CORRUPT,
                "%s: cannot upgrade it: its tables are not those of schema %lld: %s; take the "
                "newest backup; nothing was changed",
                store->path, (long long)schema, sqlite3_errmsg(connection->database));
        else if (code != SQLITE_OK)
            r = det_sqlite_explain(store, connection->database, code, "upgrade it", reterr);
    } else {
        (void)det_error_set(reterr, r, "out of memory for the tables");
    }
    det_buffer_deinit(&text);
    return r;
}
