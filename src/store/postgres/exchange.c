/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exchange.c - a pipeline: statements, one Sync, and their answers.
 *
 *     Parse? Bind Execute  Parse? Bind Execute ... Sync          --> all at once
 *     <-- ParseComplete? rows CommandComplete ... ReadyForQuery      the commit precedes this one
 *
 * All statements up to the Sync are one transaction, which the Sync commits. classify_outcome()
 * decides what is known when the answers stop: no other code of this driver handles lost
 * connections. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "os/os.h"
#include "store/postgres/postgres.h"

/* Every parameter is binary. */
#define ONES_8  1, 1, 1, 1, 1, 1, 1, 1
#define ONES_64 ONES_8, ONES_8, ONES_8, ONES_8, ONES_8, ONES_8, ONES_8, ONES_8
static const int binary[] = { ONES_64, ONES_64, ONES_64, ONES_64 };

void det_postgres_exchange_init(
    struct postgres_exchange *exchange, struct postgres_connection *connection)
{
    memset(exchange, 0, sizeof *exchange);
    exchange->connection = connection;
}

void det_postgres_exchange_deinit(struct postgres_exchange *exchange)
{
    for (unsigned i = 0; i < exchange->result_count; i++)
        PQclear(exchange->results[i]);
    exchange->result_count = 0;
}

static bool is_prepared(const struct postgres_connection *connection, unsigned slot)
{
    return connection->prepared[slot / 8] >> (slot % 8) & 1;
}

static void keep_prepared(struct postgres_connection *connection, unsigned slot)
{
    connection->prepared[slot / 8] |= (uint8_t)(1u << (slot % 8));
}

static bool prepare_statement(
    struct postgres_exchange *exchange, const struct postgres_statement *statement,
    const char *name)
{
    det_assert(statement->slot < POSTGRES_SLOT_COUNT);
    if (is_prepared(exchange->connection, statement->slot))
        return true;
    for (unsigned i = 0; i < exchange->slot_count; i++) {
        if (exchange->slots[i] == statement->slot)
            return true;
    }
    if (!PQsendPrepare(exchange->connection->pq, name, statement->text, 0, NULL))
        return false;
    exchange->slots[exchange->slot_count++] = statement->slot;
    exchange->silent |= (uint64_t)1 << exchange->expected++;
    return true;
}

static void send_one(
    struct postgres_exchange *exchange, const struct postgres_statement *statement,
    const struct postgres_values *values)
{
    PGconn *pq = exchange->connection->pq;
    bool ok;

    det_assert(exchange->expected + 2 <= POSTGRES_RESULTS_MAX);
    det_assert(values->count <= (int)(sizeof binary / sizeof binary[0]));
    if (exchange->is_broken)
        return;
    if (exchange->connection->store->url.is_pooled || statement->slot == UINT_MAX) {
        ok = PQsendQueryParams(
            pq, statement->text, values->count, NULL, values->values, values->lengths, binary, 1);
    } else {
        char name[16];

        snprintf(name, sizeof name, "d%u", statement->slot);
        ok = prepare_statement(exchange, statement, name) &&
             PQsendQueryPrepared(
                 pq, name, values->count, values->values, values->lengths, binary, 1);
    }
    exchange->expected++;
    exchange->is_broken = !ok;
}

/* With a connection pooler, each transaction sends the settings of the session. */
static void send_prologue(struct postgres_exchange *exchange)
{
    const struct postgres_store *store = exchange->connection->store;
    const char *const value = store->url.timeout_ms;
    const int length = (int)strlen(value);
    const struct postgres_values values = { 1, &value, &length };

    exchange->silent |= (uint64_t)1 << exchange->expected;
    send_one(exchange, &store->statements[POSTGRES_PROLOGUE], &values);
}

void det_postgres_exchange_send(
    struct postgres_exchange *exchange, const struct postgres_statement *statement,
    const struct postgres_values *values)
{
    static const struct postgres_values none;
    const struct postgres_store *store = exchange->connection->store;
    bool is_first = exchange->expected == 0 && store->url.is_pooled &&
                    PQtransactionStatus(exchange->connection->pq) == PQTRANS_IDLE;
    /* The kind of transaction must be set first. */
    bool is_begin = statement == &store->statements[POSTGRES_BEGIN_READING] ||
                    statement == &store->statements[POSTGRES_BEGIN_WRITING];

    if (is_first && !is_begin)
        send_prologue(exchange);
    send_one(exchange, statement, values ? values : &none);
    if (is_first && is_begin)
        send_prologue(exchange);
}

/* Waits until libpq can return an answer without blocking. `is_flushed` is true also if unknown;
 * false means that the Sync was not sent. */
static int await_answer(struct postgres_connection *connection, bool *is_flushed, det_time deadline)
{
    PGconn *pq = connection->pq;
    int r;

    for (;;) {
        if (!*is_flushed) {
            r = PQflush(pq);
            if (r < 0)
                return DET_ERR_IO;
            *is_flushed = r == 0;
        }
        if (!PQisBusy(pq))
            return 0;
        r = det_postgres_wait(connection, !*is_flushed, deadline);
        if (r < 0)
            return r;
        if (!PQconsumeInput(pq)) {
            /* libpq sends its buffer before it reads, and does not say which of the two failed: the
             * Sync may have been sent. */
            *is_flushed = true;
            return DET_ERR_IO;
        }
    }
}

/* Adds the user: "permission denied for schema detent" does not name it. */
static void name_user(struct postgres_exchange *exchange)
{
    struct postgres_failure *failure = &exchange->failure;
    size_t used = strlen(failure->text);

    if (strcmp(failure->sqlstate, "42501") == 0)
        snprintf(
            failure->text + used, sizeof failure->text - used, "; user %s lacks the privilege",
            PQuser(exchange->connection->pq));
}

/* Keeps the first error; later ones are consequences. */
static void note_error(struct postgres_exchange *exchange, const PGresult *result)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (exchange->failure.action != POSTGRES_DONE || !sqlstate)
        return;
    det_postgres_failure_of(sqlstate, &exchange->failure);
    if (message)
        det_postgres_url_scrub(
            &exchange->connection->store->url, message, exchange->failure.text,
            sizeof exchange->failure.text);
    name_user(exchange);
}

/* Checks that all values are binary, and that the row count equals the server's. */
static bool is_complete(PGresult *result)
{
    char count[16];
    int i = 0;

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return true;
    snprintf(count, sizeof count, "%d", PQntuples(result));
    while (i < PQnfields(result) && PQfformat(result, i) == 1)
        i++;
    return i == PQnfields(result) && strcmp(PQcmdTuples(result), count) == 0;
}

static void note_result(struct postgres_exchange *exchange, PGresult *result)
{
    bool is_silent;

    if (exchange->completed == exchange->expected || !is_complete(result)) {
        exchange->is_rubbish = true;
        PQclear(result);
        return;
    }
    is_silent = exchange->silent >> exchange->completed & 1;
    exchange->completed++;
    /* A prepared statement stays prepared, whatever the result of the transaction. */
    if (is_silent && exchange->prepared_count < exchange->slot_count)
        keep_prepared(exchange->connection, exchange->slots[exchange->prepared_count++]);
    if (is_silent)
        PQclear(result);
    else
        exchange->results[exchange->result_count++] = result;
    det_assert(exchange->result_count <= exchange->completed);
}

/* Collects answers up to that of the Sync: 1; 0: the connection ended; or an error of waiting, such
 * as a stop. A NULL ends the answers to one statement; two of them end all. */
static int collect_answers(struct postgres_exchange *exchange, bool *is_flushed, det_time deadline)
{
    PGconn *pq = exchange->connection->pq;
    bool was_null = false;
    int r;

    for (;;) {
        PGresult *result;
        ExecStatusType status;

        r = await_answer(exchange->connection, is_flushed, deadline);
        /* On a live connection libpq would wait for more answers, without a limit. */
        if (r < 0 && PQstatus(pq) != CONNECTION_BAD)
            return r;
        result = PQgetResult(pq);
        if (!result) {
            if (PQstatus(pq) == CONNECTION_BAD || was_null)
                return 0;
            was_null = true;
            continue;
        }
        was_null = false;
        status = PQresultStatus(result);
        if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
            note_result(exchange, result);
            continue;
        }
        if (status != PGRES_PIPELINE_ABORTED && status != PGRES_PIPELINE_SYNC)
            note_error(exchange, result);
        PQclear(result);
        if (status == PGRES_PIPELINE_SYNC)
            return 1;
    }
}

static void set_failure(
    struct postgres_exchange *exchange, enum postgres_action action, int result, const char *text)
{
    exchange->failure = (struct postgres_failure){ .action = action, .result = result };
    (void)det_text_copy(exchange->failure.text, sizeof exchange->failure.text, text);
}

/* The connection is lost, or the wait has ended. If the buffer was not fully sent, neither was the
 * Sync, and the server rolled back. If the server reported the reason before the last statement was
 * complete, it did not reach the Sync either. Otherwise the outcome is unknown. */
static void classify_outcome(struct postgres_exchange *exchange, int r, bool is_flushed)
{
    bool is_over = exchange->failure.action != POSTGRES_DONE &&
                   exchange->failure.action != POSTGRES_UNKNOWN &&
                   exchange->completed < exchange->expected;
    const char *why = PQerrorMessage(exchange->connection->pq);
    char server_text[POSTGRES_TEXT_MAX];
    int result = r == DET_ERR_TIMEOUT || r == DET_ERR_CANCELLED ? r : DET_ERR_IO;

    if (is_over) {
        exchange->failure.action = POSTGRES_RECONNECT;
        return;
    }
    if (r < 0 && r != DET_ERR_IO)
        why = r == DET_ERR_TIMEOUT ? "the server did not answer in time" : det_error_text(r);
    det_postgres_url_scrub(&exchange->connection->store->url, why, server_text, sizeof server_text);
    set_failure(exchange, is_flushed ? POSTGRES_UNKNOWN : POSTGRES_RECONNECT, result, server_text);
}

int det_postgres_exchange_doubt(struct postgres_exchange *exchange)
{
    set_failure(
        exchange, POSTGRES_UNKNOWN, DET_ERR_IO,
        "the answer of the server does not fit the statements");
    det_postgres_disconnect(exchange->connection);
    return DET_ERR_IO;
}

void det_postgres_exchange_finish(struct postgres_exchange *exchange, det_time deadline)
{
    bool is_flushed = false;
    int r;

    if (exchange->is_broken || !PQpipelineSync(exchange->connection->pq)) {
        set_failure(exchange, POSTGRES_RECONNECT, DET_ERR_IO, "libpq accepts no more statements");
        det_postgres_disconnect(exchange->connection);
        return;
    }
    r = collect_answers(exchange, &is_flushed, deadline);
    if (r == 1) {
        bool is_done = exchange->failure.action == POSTGRES_DONE;

        if (exchange->is_rubbish || (is_done && exchange->completed != exchange->expected))
            (void)det_postgres_exchange_doubt(exchange);
        else if (exchange->failure.action == POSTGRES_RECONNECT)
            det_postgres_disconnect(exchange->connection);
        det_assert(
            exchange->failure.action != POSTGRES_DONE || exchange->completed == exchange->expected);
        return;
    }
    classify_outcome(exchange, r, is_flushed);
    det_postgres_disconnect(exchange->connection);
}
