/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* raw_postgres.h - the least code that writes the same rows into the tables of a store in
 * PostgreSQL: one prepared statement that takes a batch as arrays, one connection. */
#ifndef BENCH_RAW_POSTGRES_H
#define BENCH_RAW_POSTGRES_H

#include <detent/base.h>

#include <libpq-fe.h>

#include "base/buffer.h"

#define RAW_POSTGRES_COLUMNS 9
#define RAW_POSTGRES_BYTES   256

/* Its data of an instance. */
struct raw_postgres_row {
    int64_t key, sequence;
};

struct raw_postgres {
    PGconn *connection;
    struct raw_postgres_row *rows;
    uint32_t count;
    uint64_t seed;
    struct det_buffer arrays[RAW_POSTGRES_COLUMNS];
    unsigned char payload[RAW_POSTGRES_BYTES], data[RAW_POSTGRES_BYTES];
    size_t payload_size, data_size;
};

/* Opens a store that detent has created in that schema; at least one event in it is the pattern of
 * payload and data. */
DET_MUST_CHECK int raw_postgres_open(
    struct raw_postgres *raw, const char *conninfo, const char *schema, char *note);
void raw_postgres_close(struct raw_postgres *raw);
/* Executes one statement: an event for each of `batch` senders, which have separate instances. */
DET_MUST_CHECK int raw_postgres_write(struct raw_postgres *raw, unsigned batch);

#endif
