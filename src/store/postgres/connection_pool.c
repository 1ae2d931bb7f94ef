/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connection_pool.c - the connections of a store, and jobs on them with retries.
 *
 *     take -> connect? -> send, finish -> done --------------------------> give, return
 *                ^                     -> nothing happened, retryable --> give, wait, again
 *                |                     -> unknown: only if it is repeatable      |
 *                +---------------------------------------------------------------+
 *
 * A job is retried until the time limit of one statement has passed. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/postgres/postgres.h"

#define BACKOFF_FIRST (5 * DET_MILLISECOND)
#define BACKOFF_MAX   (500 * DET_MILLISECOND)

/* Prefers a connected one. */
static struct postgres_connection *find_free(struct postgres_store *store)
{
    struct postgres_connection *found = NULL;

    for (unsigned i = 0; i < store->connection_count; i++) {
        struct postgres_connection *connection = &store->connections[i];

        if (!connection->is_taken && (!found || (connection->pq && !found->pq)))
            found = connection;
    }
    return found;
}

static struct postgres_connection *take_connection(struct postgres_store *store)
{
    struct det_world *world = store->store.world;
    struct postgres_connection *connection = NULL;
    uint64_t ticket;

    det_mutex_lock(world, store->sql.mutex);
    ticket = store->tickets++;
    while (ticket != store->turn || !(connection = find_free(store)))
        (void)det_condition_wait(world, store->freed, store->sql.mutex, DET_NEVER);
    det_assert(connection->store == store && store->turn < store->tickets);
    connection->is_taken = true;
    store->turn++;
    if (store->turn != store->tickets)
        det_condition_broadcast(world, store->freed);
    det_mutex_unlock(world, store->sql.mutex);
    return connection;
}

static void give_connection(struct postgres_connection *connection)
{
    struct postgres_store *store = connection->store;
    struct det_world *world = store->store.world;

    det_mutex_lock(world, store->sql.mutex);
    det_assert(connection->is_taken);
    connection->is_taken = false;
    if (store->turn != store->tickets)
        det_condition_broadcast(world, store->freed);
    det_mutex_unlock(world, store->sql.mutex);
}

/* Detects a connection that the server closed while idle, before anything is sent: it is readable
 * and at its end. */
static void drop_if_lost(struct postgres_connection *connection)
{
    while (connection->pq && det_postgres_wait(connection, false, 0) == 0) {
        if (!PQconsumeInput(connection->pq))
            det_postgres_disconnect(connection);
    }
}

static void note_unreachable(struct postgres_store *store, const char *why)
{
    det_mutex_lock(store->store.world, store->sql.mutex);
    snprintf(store->unreachable, sizeof store->unreachable, "%s", why);
    det_mutex_unlock(store->store.world, store->sql.mutex);
    atomic_store(&store->is_unreachable, true);
}

static int make_ready(
    struct postgres_connection *connection, det_time deadline, struct postgres_failure *ret)
{
    struct det_error error = { 0 };
    int r;

    if (det_postgres_is_cancelled(connection->store)) {
        *ret = (struct postgres_failure){ .action = POSTGRES_FATAL, .result = DET_ERR_CLOSED };
        snprintf(ret->text, sizeof ret->text, "detent is shutting down; retry later");
        return DET_ERR_CLOSED;
    }
    drop_if_lost(connection);
    if (connection->pq)
        return 0;
    r = det_postgres_connect(connection, deadline, &error);
    if (r == DET_ERR_CANCELLED)
        r = DET_ERR_CLOSED;
    if (r < 0) {
        *ret = (struct postgres_failure){ .action = POSTGRES_RECONNECT, .result = r };
        if (r != DET_ERR_IO && r != DET_ERR_TIMEOUT && r != DET_ERR_BUSY)
            ret->action = POSTGRES_FATAL;
        memcpy(ret->text, error.text, sizeof ret->text - 1);
        if (r == DET_ERR_IO || r == DET_ERR_TIMEOUT)
            note_unreachable(connection->store, ret->text);
    }
    return r;
}

static int try_job(
    struct postgres_store *store, const struct postgres_job *job, det_time span,
    struct postgres_failure *ret)
{
    struct det_world *world = store->store.world;
    struct postgres_connection *connection = take_connection(store);
    det_time deadline = det_world_now(world, DET_CLOCK_MONOTONIC) + store->timeout;
    struct postgres_exchange exchange;
    int r;

    r = make_ready(connection, deadline, ret);
    if (r == 0) {
        det_postgres_exchange_init(&exchange, connection);
        job->send(&exchange, job->context);
        /* A little longer than the server's own limit, so that its error arrives first. */
        det_postgres_exchange_finish(
            &exchange, span ? deadline + span : deadline + store->timeout / 4);
        if (exchange.failure.action == POSTGRES_DONE && job->take)
            r = job->take(&exchange, job->context);
        if (exchange.failure.action == POSTGRES_DONE)
            atomic_store(&store->is_unreachable, false);
        *ret = exchange.failure;
        det_postgres_exchange_deinit(&exchange);
    }
    give_connection(connection);
    return r;
}

/* Half of the delay plus full jitter, so that many clients do not reconnect at once. */
static det_time retry_delay(struct postgres_store *store, unsigned attempt)
{
    det_time delay = BACKOFF_FIRST << (attempt < 7 ? attempt : 7);

    if (delay > BACKOFF_MAX)
        delay = BACKOFF_MAX;
    return delay / 2 +
           (det_time)(det_world_random_u64(store->store.world) % (uint64_t)(delay / 2 + 1));
}

static bool is_worth_it(const struct postgres_job *job, const struct postgres_failure *failure)
{
    switch (failure->action) {
    case POSTGRES_RETRY:
    case POSTGRES_RECONNECT:
        return true;
    case POSTGRES_UNKNOWN:
        return job->is_repeatable;
    case POSTGRES_DONE:
    case POSTGRES_FATAL:
        return false;
    }
    return false;
}

/* Makes the next attempt later, unless the call is cancelled. */
static void wait_for_next(struct postgres_store *store, unsigned attempt)
{
    struct det_world *world = store->store.world;
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + retry_delay(store, attempt);
    int r = 0;

    det_mutex_lock(world, store->sql.mutex);
    while (r == 0 && !det_postgres_is_cancelled(store)) {
        det_time limit = atomic_load(&store->wait_limit);

        r = det_condition_wait(
            world, store->limited, store->sql.mutex, until < limit ? until : limit);
    }
    det_mutex_unlock(world, store->sql.mutex);
}

/* The result of a failure after an attempt of unknown outcome: never one that says that nothing
 * happened. */
static int result_in_doubt(int result)
{
    if (result == DET_ERR_CLOSED)
        return DET_ERR_CANCELLED;
    return result == DET_ERR_NO_SPACE || result == DET_ERR_READ_ONLY || result == DET_ERR_LIMIT ||
                   result == DET_ERR_NO_MEMORY
               ? DET_ERR_IO
               : result;
}

int det_postgres_run_for(
    struct postgres_store *store, const struct postgres_job *job, det_time span,
    struct postgres_failure *retfail)
{
    struct det_world *world = store->store.world;
    det_time deadline = det_world_now(world, DET_CLOCK_MONOTONIC) + store->timeout;
    struct postgres_failure failure = { 0 };
    bool is_in_doubt = false;
    int r;

    for (unsigned attempt = 0;; attempt++) {
        r = try_job(store, job, span, &failure);
        is_in_doubt = is_in_doubt || failure.action == POSTGRES_UNKNOWN;
        if (failure.action == POSTGRES_DONE || !is_worth_it(job, &failure))
            break;
        if (det_world_now(world, DET_CLOCK_MONOTONIC) >= deadline ||
            attempt + 1 == job->attempts_max)
            break;
        wait_for_next(store, attempt);
    }
    if (is_in_doubt && failure.action != POSTGRES_DONE)
        failure.result = result_in_doubt(failure.result);
    det_assert(failure.action == POSTGRES_DONE || failure.result < 0);
    if (retfail)
        *retfail = failure;
    return failure.action == POSTGRES_DONE ? r : failure.result;
}

int det_postgres_run(
    struct postgres_store *store, const struct postgres_job *job, struct postgres_failure *retfail)
{
    return det_postgres_run_for(store, job, 0, retfail);
}

struct question {
    const struct postgres_statement *statement;
    const struct postgres_values *values;
    PGresult **ret;
};

static void send_question(struct postgres_exchange *exchange, void *context)
{
    const struct question *question = context;

    det_postgres_exchange_send(exchange, question->statement, question->values);
}

static int take_answer(struct postgres_exchange *exchange, void *context)
{
    const struct question *question = context;

    det_assert(exchange->result_count > 0);
    if (!question->ret)
        return 0;
    PQclear(*question->ret);
    *question->ret = exchange->results[0];
    exchange->results[0] = NULL;
    return 0;
}

int det_postgres_query(
    struct postgres_store *store, enum postgres_statement_id id,
    const struct postgres_parameters *parameters, PGresult **ret, struct postgres_failure *retfail)
{
    struct postgres_values values = { 0 };
    struct question question = { &store->statements[id], &values, ret };
    const struct postgres_job job = { send_question, take_answer, &question, true, 0 };

    *ret = NULL;
    if (parameters)
        values =
            (struct postgres_values){ parameters->count, parameters->values, parameters->lengths };
    return det_postgres_run(store, &job, retfail);
}

int det_postgres_session_open(struct postgres_session *session, struct postgres_store *store)
{
    det_time now = det_world_now(store->store.world, DET_CLOCK_MONOTONIC);
    int r;

    *session = (struct postgres_session){ .store = store, .span = POSTGRES_LONG_SPAN };
    session->connection = take_connection(store);
    r = make_ready(session->connection, now + store->timeout, &session->failure);
    if (r < 0)
        give_connection(session->connection);
    return r;
}

/* Closing the connection rolls back an open transaction. */
void det_postgres_session_close(struct postgres_session *session)
{
    struct postgres_connection *connection = session->connection;

    if (connection->pq && PQtransactionStatus(connection->pq) != PQTRANS_IDLE)
        det_postgres_disconnect(connection);
    give_connection(connection);
}

int det_postgres_session_run(struct postgres_session *session, const struct postgres_job *job)
{
    struct det_world *world = session->store->store.world;
    struct postgres_exchange exchange;
    int r = 0;

    det_assert(session->connection->is_taken);
    if (!session->connection->pq)
        return DET_ERR_IO;
    det_postgres_exchange_init(&exchange, session->connection);
    job->send(&exchange, job->context);
    det_postgres_exchange_finish(
        &exchange, det_world_now(world, DET_CLOCK_MONOTONIC) + session->span);
    session->failure = exchange.failure;
    if (exchange.failure.action != POSTGRES_DONE)
        r = exchange.failure.result;
    else if (job->take)
        r = job->take(&exchange, job->context);
    det_postgres_exchange_deinit(&exchange);
    return r;
}

static int send_on_session(
    struct postgres_session *session, enum postgres_statement_id id,
    const struct postgres_values *values, PGresult **ret)
{
    struct question question = { &session->store->statements[id], values, ret };

    return det_postgres_session_run(
        session, &(struct postgres_job){ send_question, take_answer, &question, false, 1 });
}

int det_postgres_session_ask(
    struct postgres_session *session, enum postgres_statement_id id,
    const struct postgres_parameters *parameters, PGresult **ret)
{
    struct postgres_values values = { 0 };

    if (parameters)
        values =
            (struct postgres_values){ parameters->count, parameters->values, parameters->lengths };
    return send_on_session(session, id, &values, ret);
}
