/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* raw_postgres.c - the rows of a store in PostgreSQL, hand-written.
 *
 *     arrays (binary) --> one statement: UPDATE ... FROM unnest(...) RETURNING --> INSERT
 *
 * Everything that ours has to look up first is known here: hashes and checksums are any bytes of
 * that size, payload and data those of an event that ours wrote. */
#include "raw_postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define OID_BYTES  17
#define OID_NUMBER 20
#define OID_TEXT   25

static const char statement_text[] =
    "WITH u AS (UPDATE instances i SET version = 1, state = b.state, sequence = b.sequence,"
    " visit = b.sequence + 1, transitions = b.sequence, moved_at = b.at, stopped = false,"
    " reason = NULL, data = b.data, hash = b.hash, checksum = b.checksum"
    " FROM unnest($1::int8[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::bytea[],"
    " $7::bytea[], $8::bytea[], $9::int8[])"
    " AS b (key, sequence, from_state, state, at, data, hash, payload, checksum)"
    " WHERE i.key = b.key AND i.sequence = b.sequence - 1"
    " AND (i.lock_until IS NULL OR i.lock_until <= b.at) RETURNING b.*),"
    " e AS (INSERT INTO events (instance, sequence, version, visit, from_state, to_state, event,"
    " outcome, choice, timeout, at, event_id, cause, payload, hash) SELECT key, sequence, 1,"
    " sequence + 1, from_state, state, 'enter', 'goto', 0, false, at, NULL, NULL, payload, hash"
    " FROM u) SELECT count(*) FROM u";

static const uint32_t types[RAW_POSTGRES_COLUMNS] = { OID_NUMBER, OID_NUMBER, OID_TEXT,
                                                      OID_TEXT,   OID_NUMBER, OID_BYTES,
                                                      OID_BYTES,  OID_BYTES,  OID_NUMBER };

static const unsigned char hash[32] = "thirty-two bytes that are random";

/* Arrays in the server's format: big endian. */

static void put_word(struct det_buffer *buffer, uint32_t word)
{
    const unsigned char bytes[] = { (unsigned char)(word >> 24), (unsigned char)(word >> 16),
                                    (unsigned char)(word >> 8), (unsigned char)word };

    det_buffer_append(buffer, bytes, sizeof bytes);
}

static void begin_array(struct det_buffer *buffer, uint32_t type, uint32_t count)
{
    det_buffer_clear(buffer);
    put_word(buffer, 1); /* dimension */
    put_word(buffer, 0); /* no NULL in it */
    put_word(buffer, type);
    put_word(buffer, count);
    put_word(buffer, 1); /* the first index */
}

static void put_bytes(struct det_buffer *buffer, const void *data, size_t size)
{
    put_word(buffer, (uint32_t)size);
    det_buffer_append(buffer, data, size);
}

static void put_text(struct det_buffer *buffer, const char *text)
{
    put_bytes(buffer, text, strlen(text));
}

static void put_number(struct det_buffer *buffer, int64_t number)
{
    put_word(buffer, 8);
    put_word(buffer, (uint32_t)((uint64_t)number >> 32));
    put_word(buffer, (uint32_t)number);
}

static int fail(const struct raw_postgres *raw, PGresult *result, char *note)
{
    PQclear(result);
    (void)snprintf(note, BENCH_NOTE_MAX, "%.150s", PQerrorMessage(raw->connection));
    return DET_ERR_IO;
}

static int run(const struct raw_postgres *raw, const char *text, char *note)
{
    PGresult *result = PQexec(raw->connection, text);

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        return fail(raw, result, note);
    PQclear(result);
    return 0;
}

/* Copies the first value as bytes; returns their number, or 0. */
static size_t read_bytes(const struct raw_postgres *raw, const char *text, unsigned char *target)
{
    PGresult *result = PQexecParams(raw->connection, text, 0, NULL, NULL, NULL, NULL, 1);
    size_t size = 0;

    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
        PQgetlength(result, 0, 0) <= RAW_POSTGRES_BYTES) {
        size = (size_t)PQgetlength(result, 0, 0);
        memcpy(target, PQgetvalue(result, 0, 0), size);
    }
    PQclear(result);
    return size;
}

static int read_rows(struct raw_postgres *raw, char *note)
{
    PGresult *result = PQexec(raw->connection, "SELECT key, sequence FROM instances ORDER BY key");

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return fail(raw, result, note);
    raw->count = (uint32_t)PQntuples(result);
    raw->rows = calloc(raw->count + 1, sizeof *raw->rows);
    for (uint32_t i = 0; raw->rows && i < raw->count; i++) {
        raw->rows[i].key = strtoll(PQgetvalue(result, (int)i, 0), NULL, 10);
        raw->rows[i].sequence = strtoll(PQgetvalue(result, (int)i, 1), NULL, 10);
    }
    PQclear(result);
    return raw->rows ? 0 : DET_ERR_NO_MEMORY;
}

int raw_postgres_open(
    struct raw_postgres *raw, const char *conninfo, const char *schema, char *note)
{
    PGresult *result;
    char text[256];
    int r;

    memset(raw, 0, sizeof *raw);
    for (size_t i = 0; i < RAW_POSTGRES_COLUMNS; i++)
        det_buffer_init(&raw->arrays[i], NULL);
    raw->connection = PQconnectdb(conninfo);
    if (PQstatus(raw->connection) != CONNECTION_OK)
        return fail(raw, NULL, note);
    /* Forces the plans that ours has: the server does not choose them for tables that it has not
     * analysed. */
    (void)snprintf(
        text, sizeof text,
        "SET search_path = %s; SET enable_hashjoin = off; SET enable_mergejoin = off;"
        " SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan",
        schema);
    r = run(raw, text, note);
    if (r == 0)
        r = read_rows(raw, note);
    if (r < 0)
        return r;
    result = PQprepare(raw->connection, "write", statement_text, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        return fail(raw, result, note);
    PQclear(result);
    raw->payload_size = read_bytes(raw, "SELECT payload FROM events LIMIT 1", raw->payload);
    raw->data_size =
        read_bytes(raw, "SELECT data FROM instances ORDER BY sequence DESC LIMIT 1", raw->data);
    return raw->payload_size && raw->data_size ? 0 : fail(raw, NULL, note);
}

void raw_postgres_close(struct raw_postgres *raw)
{
    PQfinish(raw->connection);
    for (size_t i = 0; i < RAW_POSTGRES_COLUMNS; i++)
        det_buffer_deinit(&raw->arrays[i]);
    free(raw->rows);
    memset(raw, 0, sizeof *raw);
}

static void add_row(struct raw_postgres *raw, const struct raw_postgres_row *row, int64_t now)
{
    struct det_buffer *arrays = raw->arrays;

    put_number(&arrays[0], row->key);
    put_number(&arrays[1], row->sequence + 1);
    put_text(&arrays[2], row->sequence % 2 ? "changed" : "open");
    put_text(&arrays[3], row->sequence % 2 ? "open" : "changed");
    put_number(&arrays[4], now);
    put_bytes(&arrays[5], raw->data, raw->data_size);
    put_bytes(&arrays[6], hash, sizeof hash);
    put_bytes(&arrays[7], raw->payload, raw->payload_size);
    put_number(&arrays[8], UINT32_MAX - 1);
}

static int execute(const struct raw_postgres *raw, unsigned batch)
{
    const char *values[RAW_POSTGRES_COLUMNS];
    int lengths[RAW_POSTGRES_COLUMNS], formats[RAW_POSTGRES_COLUMNS];
    PGresult *result;
    int r;

    for (size_t i = 0; i < RAW_POSTGRES_COLUMNS; i++) {
        if (det_buffer_status(&raw->arrays[i]) < 0)
            return DET_ERR_NO_MEMORY;
        values[i] = raw->arrays[i].data;
        lengths[i] = (int)raw->arrays[i].size;
        formats[i] = 1;
    }
    result =
        PQexecPrepared(raw->connection, "write", RAW_POSTGRES_COLUMNS, values, lengths, formats, 0);
    r = PQresultStatus(result) == PGRES_TUPLES_OK &&
                strtoul(PQgetvalue(result, 0, 0), NULL, 10) == batch
            ? 0
            : DET_ERR_IO;
    PQclear(result);
    return r;
}

int raw_postgres_write(struct raw_postgres *raw, unsigned batch)
{
    int64_t now = bench_now_ns() + (INT64_C(1) << 60);

    for (size_t i = 0; i < RAW_POSTGRES_COLUMNS; i++)
        begin_array(&raw->arrays[i], types[i], batch);
    for (uint32_t i = 0; i < batch; i++) {
        uint32_t number = i + batch * (uint32_t)(bench_random(&raw->seed) % (raw->count / batch));

        add_row(raw, &raw->rows[number], now);
        raw->rows[number].sequence++;
    }
    return execute(raw, batch);
}
