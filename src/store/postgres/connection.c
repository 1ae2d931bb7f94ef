/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connection.c - one connection: connecting, checking the server, waiting; and the estimate of the
 * server's clock. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "os/os.h"
#include "store/postgres/postgres.h"

/* The first version whose clock is exact in our reading. */
#define SERVER_MIN 140000

int det_postgres_wait(struct postgres_connection *connection, bool is_writing, det_time deadline)
{
    struct det_world *world = connection->store->store.world;
    unsigned wanted = DET_POLL_READ | (is_writing ? DET_POLL_WRITE : 0u);
    det_time limit = atomic_load(&connection->store->wait_limit);
    struct det_poll_event event;
    int r;

    if (connection->watched != wanted) {
        r = world->ops->poller_watch(
            world, connection->poller, PQsocket(connection->pq), wanted, connection);
        if (r < 0)
            return r;
        connection->watched = wanted;
    }
    r = world->ops->poller_wait(
        world, connection->poller, &event, 1, deadline < limit ? deadline : limit);
    if (connection->stop_wanted && atomic_load(connection->stop_wanted))
        return DET_ERR_CANCELLED;
    if (r == 0 && deadline > 0 && det_postgres_is_cancelled(connection->store))
        return DET_ERR_CANCELLED;
    if (r == 0 && det_world_now(world, DET_CLOCK_MONOTONIC) >= deadline)
        return DET_ERR_TIMEOUT;
    return r < 0 ? r : 0;
}

bool det_postgres_is_cancelled(const struct postgres_store *store)
{
    det_time limit = atomic_load(&store->wait_limit);

    return limit != DET_NEVER && det_world_now(store->store.world, DET_CLOCK_MONOTONIC) >= limit;
}

/* Every waiting thread checks the limit again. */
void det_postgres_cancel(struct det_store *base, det_time at)
{
    struct postgres_store *store = postgres_store_of(base);

    det_mutex_lock(base->world, store->sql.mutex);
    atomic_store(&store->wait_limit, at);
    for (unsigned i = 0; i < store->connection_count; i++) {
        if (store->connections[i].poller)
            base->world->ops->poller_wake(base->world, store->connections[i].poller);
    }
    det_condition_broadcast(base->world, store->limited);
    det_mutex_unlock(base->world, store->sql.mutex);
}

void det_postgres_disconnect(struct postgres_connection *connection)
{
    PQfinish(connection->pq);
    connection->pq = NULL;
    connection->watched = 0;
    memset(connection->prepared, 0, sizeof connection->prepared);
}

/* libpq may change the socket at each step, so it is watched again each time. */
static int shake_hands(struct postgres_connection *connection, det_time deadline)
{
    for (;;) {
        PostgresPollingStatusType status = PQconnectPoll(connection->pq);
        int r;

        if (status == PGRES_POLLING_OK)
            return 0;
        if (status == PGRES_POLLING_FAILED || PQsocket(connection->pq) < 0)
            return DET_ERR_IO;
        connection->watched = 0;
        r = det_postgres_wait(connection, status == PGRES_POLLING_WRITING, deadline);
        if (r < 0)
            return r;
    }
}

static int explain_connection(
    const struct postgres_connection *connection, int code, const char *text,
    struct det_error *reterr)
{
    char message[POSTGRES_TEXT_MAX];

    det_postgres_url_scrub(&connection->store->url, text, message, sizeof message);
    return det_error_set(
        reterr, code, "PostgreSQL: %s%s", message,
        strstr(message, "does not support SSL")
            ? "; add sslmode=disable to the URL if that is intended"
            : "");
}

/* libpq would write them to stderr. */
static void ignore_notice(void *argument, const PGresult *result)
{
    (void)argument;
    (void)result;
}

static bool is_safe(const char *synchronous_commit)
{
    return strcmp(synchronous_commit, "on") == 0 || strcmp(synchronous_commit, "remote_apply") == 0;
}

/* Checks that an acknowledged commit is on the disk. */
static int check_settings(const PGresult *row, struct det_error *reterr)
{
    static const char *const names[] = { "fsync", "full_page_writes", "synchronous_commit" };

    for (int i = 0; i < 3; i++) {
        const char *value = det_postgres_text(row, 0, i);

        if (i < 2 ? strcmp(value, "on") != 0 : !is_safe(value))
            return det_error_set(
                reterr, DET_ERR_UNSUPPORTED,
                "PostgreSQL: %s is %s, so a commit could be lost; set it on in postgresql.conf, or "
                "for this database with ALTER DATABASE",
                names[i], value);
    }
    if (det_postgres_number(row, 0, 3) < SERVER_MIN)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED,
            "PostgreSQL: the server is older than version 14; use a newer one");
    return 0;
}

/* Not refused: the server loses no commit without these settings, and they cannot be changed while
 * it runs. */
static const char *advice_of(const PGresult *row)
{
    if (strcmp(det_postgres_text(row, 0, 5), "on") == 0)
        return NULL;
    return "the PostgreSQL server has no data checksums, so that damage on its disk to leases, "
           "locks, the state of jobs or a missing row is not found; stop it and run 'pg_checksums "
           "--enable', or make the cluster with 'initdb --data-checksums'";
}

/* Checks that this is the same store, and not an older copy. */
static int check_store(struct postgres_store *store, const PGresult *row, struct det_error *reterr)
{
    const char *identity = PQntuples(row) ? det_postgres_text(row, 0, 0) : "";

    if (strcmp(identity, store->store.identity) != 0) {
        atomic_store(&store->is_poisoned, true);
        return det_error_set(
            reterr, DET_ERR_FOREIGN, "PostgreSQL: the store %s was replaced by another one",
            store->store.identity);
    }
    if (!det_postgres_bool(row, 0, 1)) {
        atomic_store(&store->is_poisoned, true);
        return det_error_set(
            reterr, DET_ERR_IO,
            "PostgreSQL: an acknowledged commit is missing; the server was restored to an earlier "
            "state, perhaps to a standby without it. Open the store again to continue without that "
            "commit");
    }
    return 0;
}

static void ask_store(struct postgres_store *store, struct postgres_exchange *exchange)
{
    struct postgres_parameters parameters = { 0 };

    det_mutex_lock(store->store.world, store->sql.mutex);
    det_postgres_add_number(&parameters, store->witness_key);
    det_postgres_add_number(&parameters, (int64_t)store->witness_sequence);
    det_mutex_unlock(store->store.world, store->sql.mutex);
    det_postgres_ask(exchange, POSTGRES_WITNESS, &parameters);
}

static int check_server(
    struct postgres_connection *connection, det_time deadline, struct det_error *reterr)
{
    struct postgres_store *store = connection->store;
    bool is_known = store->store.identity[0] != 0;
    struct postgres_exchange exchange;
    int r = 0;

    det_postgres_exchange_init(&exchange, connection);
    det_postgres_ask(&exchange, POSTGRES_SETTINGS, NULL);
    if (is_known)
        ask_store(store, &exchange);
    det_postgres_exchange_finish(&exchange, deadline);
    if (exchange.failure.action != POSTGRES_DONE) {
        r = explain_connection(connection, exchange.failure.result, exchange.failure.text, reterr);
    } else {
        det_postgres_clock(store, det_postgres_number(exchange.results[0], 0, 4));
        if (!store->sql.is_read_only)
            r = check_settings(exchange.results[0], reterr);
        if (!is_known)
            store->store.advice = advice_of(exchange.results[0]);
        if (r == 0 && is_known)
            r = check_store(store, exchange.results[1], reterr);
    }
    det_postgres_exchange_deinit(&exchange);
    return r;
}

/* Another thread may read the poller, to wake this one. */
static int open_poller(struct postgres_connection *connection)
{
    struct postgres_store *store = connection->store;
    struct det_poller *poller;
    int r;

    if (connection->poller)
        return 0;
    r = store->store.world->ops->poller_open(store->store.world, &poller);
    if (r < 0)
        return r;
    det_mutex_lock(store->store.world, store->sql.mutex);
    connection->poller = poller;
    det_mutex_unlock(store->store.world, store->sql.mutex);
    return 0;
}

int det_postgres_connect(
    struct postgres_connection *connection, det_time deadline, struct det_error *reterr)
{
    struct postgres_store *store = connection->store;
    int r;

    det_assert(!connection->pq);
    r = open_poller(connection);
    if (r < 0)
        return det_error_set(reterr, r, "PostgreSQL: %s", det_error_text(r));
    connection->pq = PQconnectStartParams(store->url.keywords, store->url.values, 0);
    if (!connection->pq)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "PostgreSQL: out of memory: cannot connect");
    (void)PQsetNoticeReceiver(connection->pq, ignore_notice, NULL);
    r = PQstatus(connection->pq) == CONNECTION_BAD ? DET_ERR_IO : shake_hands(connection, deadline);
    if (r < 0) {
        (void)explain_connection(
            connection, r,
            r == DET_ERR_TIMEOUT ? "the server does not answer" : PQerrorMessage(connection->pq),
            reterr);
    } else {
        connection->watched = 0;
        r = PQsetnonblocking(connection->pq, 1) == 0 && PQenterPipelineMode(connection->pq)
                ? check_server(connection, deadline, reterr)
                : explain_connection(
                      connection, DET_ERR_IO, PQerrorMessage(connection->pq), reterr);
    }
    if (r < 0)
        det_postgres_disconnect(connection);
    return r;
}

/* The server read its clock before this sample arrived, so a new clock value is never ahead of it.
 * A later sample is used at once; an earlier one (a slow answer, or clock drift) is approached
 * gradually. */
void det_postgres_clock(struct postgres_store *store, det_time server)
{
    det_time sample = server - det_world_now(store->store.world, DET_CLOCK_BOOT);
    det_time known = atomic_load(&store->offset), next = sample;

    if (known != 0 && sample < known && known - sample < DET_SECOND)
        next = known - (known - sample) / 4;
    /* If another thread was first, its sample is as good. */
    (void)atomic_compare_exchange_strong(&store->offset, &known, next);
}

det_time det_postgres_now(struct det_store *base)
{
    struct postgres_store *store = postgres_store_of(base);
    det_time now = det_world_now(base->world, DET_CLOCK_BOOT) + atomic_load(&store->offset);
    det_time last_now = atomic_load(&store->last_now);

    while (now > last_now) {
        if (atomic_compare_exchange_weak(&store->last_now, &last_now, now))
            return now;
    }
    return last_now;
}
