/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* raw_sqlite.c - the rows of a store, hand-written.
 *
 * Everything that ours has to look up first is known here: hashes and checksums are any bytes of
 * that size, payload and data those of an event that ours wrote. The connection has the settings of
 * ours, and checkpoints as ours does. */
#include "raw_sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define CHECKPOINT_PAGES 10000

static const char settings[] =
    "PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0; PRAGMA synchronous = FULL;"
    "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;"
    "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = 8192";
static const char update_text[] =
    "UPDATE instances SET version = ?3, state = ?4, sequence = ?5, visit = ?6, transitions = ?7,"
    " started_at = ?8, moved_at = ?9, stopped = ?10, reason = ?11, data = ?12, hash = ?13,"
    " last_event = ?14, checksum = ?15 WHERE key = ?1 AND sequence = ?2";
static const char insert_text[] =
    "INSERT INTO events (position, instance, sequence, previous, version, visit, from_state,"
    " to_state, event, outcome, choice, timeout, at, event_id, cause, payload, hash)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

static const unsigned char hash[32] = "thirty-two bytes that are random";

static int fail(const struct raw_sqlite *raw, char *note)
{
    (void)snprintf(
        note, BENCH_NOTE_MAX, "%.150s",
        raw->database ? sqlite3_errmsg(raw->database) : "no memory");
    return DET_ERR_IO;
}

static int count_pages(void *argument, sqlite3 *database, const char *name, int pages)
{
    struct raw_sqlite *raw = argument;

    (void)database;
    (void)name;
    raw->wal_pages = pages;
    return SQLITE_OK;
}

static int64_t read_number(const struct raw_sqlite *raw, const char *text)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;

    if (sqlite3_prepare_v2(raw->database, text, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return number;
}

/* Returns its size, or 0 if none fits. */
static int read_bytes(const struct raw_sqlite *raw, const char *text, unsigned char *target)
{
    sqlite3_stmt *statement = NULL;
    int size = 0;

    if (sqlite3_prepare_v2(raw->database, text, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        size = sqlite3_column_bytes(statement, 0);
        size = size <= RAW_BYTES_MAX ? size : 0;
        if (size > 0)
            memcpy(target, sqlite3_column_blob(statement, 0), (size_t)size);
    }
    (void)sqlite3_finalize(statement);
    return size;
}

static int read_rows(struct raw_sqlite *raw)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(
        raw->database, "SELECT key, sequence, last_event, started_at FROM instances ORDER BY key",
        -1, &statement, NULL);

    for (uint32_t i = 0; code == SQLITE_OK && i < raw->count; i++) {
        struct raw_row *row = &raw->rows[i];

        if (sqlite3_step(statement) != SQLITE_ROW)
            code = SQLITE_ERROR;
        row->key = sqlite3_column_int64(statement, 0);
        row->sequence = sqlite3_column_int64(statement, 1);
        row->last_event = sqlite3_column_int64(statement, 2);
        row->started_at = sqlite3_column_int64(statement, 3);
    }
    (void)sqlite3_finalize(statement);
    return code;
}

static int prepare(const struct raw_sqlite *raw, const char *text, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v3(raw->database, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
}

static int prepare_all(struct raw_sqlite *raw)
{
    int code = prepare(raw, "BEGIN IMMEDIATE", &raw->begin);

    if (code == SQLITE_OK)
        code = prepare(raw, "COMMIT", &raw->commit);
    if (code == SQLITE_OK)
        code = prepare(raw, update_text, &raw->update);
    if (code == SQLITE_OK)
        code = prepare(raw, insert_text, &raw->insert);
    return code;
}

int raw_sqlite_open(struct raw_sqlite *raw, const char *path, char *note)
{
    int code;

    memset(raw, 0, sizeof *raw);
    raw->seed = 1;
    code = sqlite3_open_v2(path, &raw->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(raw->database, settings, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = prepare_all(raw);
    if (code != SQLITE_OK)
        return fail(raw, note);
    (void)sqlite3_wal_hook(raw->database, count_pages, raw);
    raw->count = (uint32_t)read_number(raw, "SELECT count(*) FROM instances");
    raw->next_position = read_number(raw, "SELECT max(position) FROM events") + 1;
    raw->payload_size = read_bytes(raw, "SELECT payload FROM events LIMIT 1", raw->payload);
    raw->data_size =
        read_bytes(raw, "SELECT data FROM instances ORDER BY sequence DESC LIMIT 1", raw->data);
    raw->rows = calloc(raw->count ? raw->count : 1, sizeof *raw->rows);
    if (!raw->rows || !raw->payload_size || !raw->data_size || read_rows(raw) != SQLITE_OK)
        return fail(raw, note);
    return 0;
}

void raw_sqlite_close(struct raw_sqlite *raw)
{
    (void)sqlite3_finalize(raw->begin);
    (void)sqlite3_finalize(raw->commit);
    (void)sqlite3_finalize(raw->update);
    (void)sqlite3_finalize(raw->insert);
    (void)sqlite3_close(raw->database);
    free(raw->rows);
    memset(raw, 0, sizeof *raw);
}

static bool step(sqlite3_stmt *statement)
{
    bool is_done = sqlite3_step(statement) == SQLITE_DONE;

    return sqlite3_reset(statement) == SQLITE_OK && is_done;
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    (void)sqlite3_bind_text(statement, index, text, (int)strlen(text), SQLITE_STATIC);
}

static bool update_row(const struct raw_sqlite *raw, const struct raw_row *row, int64_t now)
{
    sqlite3_stmt *update = raw->update;

    (void)sqlite3_bind_int64(update, 1, row->key);
    (void)sqlite3_bind_int64(update, 2, row->sequence);
    (void)sqlite3_bind_int64(update, 3, 1);
    bind_text(update, 4, row->sequence % 2 ? "open" : "changed");
    (void)sqlite3_bind_int64(update, 5, row->sequence + 1);
    (void)sqlite3_bind_int64(update, 6, row->sequence + 2);
    (void)sqlite3_bind_int64(update, 7, row->sequence + 1);
    (void)sqlite3_bind_int64(update, 8, row->started_at);
    (void)sqlite3_bind_int64(update, 9, now);
    (void)sqlite3_bind_int64(update, 10, 0);
    (void)sqlite3_bind_null(update, 11);
    (void)sqlite3_bind_blob(update, 12, raw->data, raw->data_size, SQLITE_STATIC);
    (void)sqlite3_bind_blob(update, 13, hash, sizeof hash, SQLITE_STATIC);
    (void)sqlite3_bind_int64(update, 14, raw->next_position);
    (void)sqlite3_bind_int64(update, 15, UINT32_MAX - 1);
    return step(update) && sqlite3_changes(raw->database) == 1;
}

static bool insert_row(const struct raw_sqlite *raw, const struct raw_row *row, int64_t now)
{
    sqlite3_stmt *insert = raw->insert;

    (void)sqlite3_bind_int64(insert, 1, raw->next_position);
    (void)sqlite3_bind_int64(insert, 2, row->key);
    (void)sqlite3_bind_int64(insert, 3, row->sequence + 1);
    (void)sqlite3_bind_int64(insert, 4, row->last_event);
    (void)sqlite3_bind_int64(insert, 5, 1);
    (void)sqlite3_bind_int64(insert, 6, row->sequence + 2);
    bind_text(insert, 7, row->sequence % 2 ? "changed" : "open");
    bind_text(insert, 8, row->sequence % 2 ? "open" : "changed");
    bind_text(insert, 9, "enter");
    bind_text(insert, 10, "goto");
    (void)sqlite3_bind_int64(insert, 11, 0);
    (void)sqlite3_bind_int64(insert, 12, 0);
    (void)sqlite3_bind_int64(insert, 13, now);
    (void)sqlite3_bind_null(insert, 14);
    (void)sqlite3_bind_null(insert, 15);
    (void)sqlite3_bind_blob(insert, 16, raw->payload, raw->payload_size, SQLITE_STATIC);
    (void)sqlite3_bind_blob(insert, 17, hash, sizeof hash, SQLITE_STATIC);
    return step(insert);
}

static bool write_event(struct raw_sqlite *raw, struct raw_row *row, int64_t now)
{
    if (!update_row(raw, row, now) || !insert_row(raw, row, now))
        return false;
    row->sequence++;
    row->last_event = raw->next_position++;
    return true;
}

static bool checkpoint(const struct raw_sqlite *raw)
{
    return raw->wal_pages < CHECKPOINT_PAGES ||
           sqlite3_wal_checkpoint_v2(raw->database, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
               SQLITE_OK;
}

int raw_sqlite_write(struct raw_sqlite *raw, unsigned batch)
{
    int64_t now = bench_now_ns() + (INT64_C(1) << 60);
    bool is_good = step(raw->begin);

    for (uint32_t i = 0; is_good && i < batch; i++) {
        uint32_t number = i + batch * (uint32_t)(bench_random(&raw->seed) % (raw->count / batch));

        is_good = write_event(raw, &raw->rows[number], now);
    }
    return is_good && step(raw->commit) && checkpoint(raw) ? 0 : DET_ERR_IO;
}
