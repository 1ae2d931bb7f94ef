/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* raw_sqlite.h - the least code that writes the same rows into the tables of a store: prepared
 * statements, one connection, one transaction for each batch. */
#ifndef BENCH_RAW_SQLITE_H
#define BENCH_RAW_SQLITE_H

#include <detent/base.h>

#include <sqlite3.h>

#define RAW_BYTES_MAX 256

/* Its data of an instance. */
struct raw_row {
    int64_t key, sequence, last_event, started_at;
};

struct raw_sqlite {
    sqlite3 *database;
    sqlite3_stmt *begin, *commit, *update, *insert;
    struct raw_row *rows;
    uint32_t count;
    int64_t next_position;
    int wal_pages;
    uint64_t seed;
    unsigned char payload[RAW_BYTES_MAX], data[RAW_BYTES_MAX];
    int payload_size, data_size;
};

/* Opens a store that detent has created and that is not open; at least one event in it is the
 * pattern of payload and data. `path` is that of the file. */
DET_MUST_CHECK int raw_sqlite_open(struct raw_sqlite *raw, const char *path, char *note);
void raw_sqlite_close(struct raw_sqlite *raw);
/* Executes one transaction: an event for each of `batch` senders, which have separate instances. */
DET_MUST_CHECK int raw_sqlite_write(struct raw_sqlite *raw, unsigned batch);

#endif
