/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres.c - the driver of "postgres:" and "postgresql:": opens, closes, lists operations. */
#include "store/postgres/postgres.h"
#include "store/postgres/session.h"
#include "store/sql/count.h"
#include "store/sql/definitions.h"
#include "store/sql/instance.h"
#include "store/sql/migrate.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/checksum.h"
#include "store/store.h"

#define CONNECTIONS_MAX 64
#define TIMEOUT_MAX     DET_DAY

static const char *const texts[POSTGRES_STATEMENT_COUNT] = {
#define DET_POSTGRES_STATEMENT(name, text) text,
#include "store/postgres/statements.def"
#undef DET_POSTGRES_STATEMENT
};

void det_postgres_random(struct postgres_store *store, char target[33])
{
    uint64_t numbers[2];

    det_world_random(store->store.world, numbers, sizeof numbers);
    snprintf(
        target, 33, "%016llx%016llx", (unsigned long long)numbers[0],
        (unsigned long long)numbers[1]);
}

static void close_store(struct det_store *base)
{
    struct postgres_store *store = postgres_store_of(base);
    const struct det_allocator *allocator = base->allocator;

    det_assert(!store->is_queueing && store->turn == store->tickets);
    det_postgres_listen_close(store);
    det_group_close(store->job_group);
    det_postgres_batches_close(store);
    det_sql_renames_close(base);
    det_postgres_log_close(store);
    for (unsigned i = 0; store->connections && i < store->connection_count; i++) {
        struct postgres_connection *connection = &store->connections[i];

        det_assert(!connection->is_taken);
        if (connection->pq)
            det_postgres_disconnect(connection);
        if (connection->poller)
            base->world->ops->poller_close(base->world, connection->poller);
    }
    if (store->connections)
        DET_DELETE_ARRAY(allocator, store->connections, store->connection_count);
    for (size_t i = 0; i < POSTGRES_STATEMENT_COUNT; i++)
        det_free_string(allocator, store->statements[i].text);
    det_condition_close(base->world, store->place_freed);
    det_condition_close(base->world, store->limited);
    det_condition_close(base->world, store->freed);
    det_mutex_close(base->world, store->sql.mutex);
    det_postgres_url_deinit(&store->url);
    DET_DELETE(allocator, store);
}

static bool is_lost(struct det_store *store)
{
    return atomic_load(&postgres_store_of(store)->is_poisoned);
}

static bool is_unreachable(struct det_store *base, char *ret_text, size_t size)
{
    struct postgres_store *store = postgres_store_of(base);

    if (!atomic_load(&store->is_unreachable))
        return false;
    det_mutex_lock(base->world, store->sql.mutex);
    snprintf(ret_text, size, "%s", store->unreachable);
    det_mutex_unlock(base->world, store->sql.mutex);
    return true;
}

static const struct det_store_ops ops = {
    .has_free_events = true,
    .is_shared = true,
    .close = close_store,
    .now = det_postgres_now,
    .serve = det_sql_serve,
    .commit = det_postgres_commit,
    .load = det_postgres_load,
    .release = det_postgres_release,
    .answer = det_sql_answer,
    .events = det_postgres_events,
    .list = det_postgres_list,
    .due = det_postgres_due,
    .adopt = det_postgres_adopt,
    .nodes = det_postgres_nodes,
    .lease = det_postgres_lease,
    .lock = det_postgres_lock,
    .snapshot = det_sql_snapshot,
    .start = det_sql_start,
    .prune = det_postgres_prune,
    .queue = det_postgres_queue,
    .leave_queue = det_postgres_leave_queue,
    .listen = det_postgres_listen,
    .check = det_postgres_check,
    .is_lost = is_lost,
    .is_unreachable = is_unreachable,
    .cancel = det_postgres_cancel,
    .machines = det_sql_machines,
    .log = det_postgres_log,
    .count = det_sql_count_all,
    .migrate = det_sql_migrate,
    .jobs = &det_postgres_jobs,
    .documents = &det_postgres_documents,
};

static int open_statements(struct postgres_store *store)
{
    for (size_t i = 0; i < POSTGRES_STATEMENT_COUNT; i++) {
        store->statements[i].text = det_postgres_qualify(store, texts[i]);
        store->statements[i].slot = (unsigned)i;
        if (!store->statements[i].text)
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

/* One connection is for listening, if there are several. */
static int open_connections(struct postgres_store *store, uint32_t wanted)
{
    unsigned count = wanted ? wanted : 4;

    store->connection_count = store->url.is_pooled || count == 1 ? count : count - 1;
    store->connections =
        DET_NEW_ARRAY(store->store.allocator, store->connection_count, struct postgres_connection);
    if (!store->connections)
        return DET_ERR_NO_MEMORY;
    for (unsigned i = 0; i < store->connection_count; i++)
        store->connections[i].store = store;
    store->writer_count = store->connection_count;
    store->store.writers = store->writer_count;
    return 0;
}

static int open_parts(struct postgres_store *store, const struct det_store_options *options)
{
    struct det_world *world = store->store.world;
    int r;

    r = det_mutex_open(world, &store->sql.mutex);
    if (r == 0)
        r = det_condition_open(world, &store->freed);
    if (r == 0)
        r = det_condition_open(world, &store->limited);
    if (r == 0)
        r = det_condition_open(world, &store->place_freed);
    if (r == 0)
        r = open_statements(store);
    if (r == 0)
        r = open_connections(store, options->connections);
    if (r == 0)
        r = det_postgres_batches_open(store);
    if (r == 0)
        r = det_postgres_jobs_open(store);
    return r;
}

/* The first connection gives the best reason for a failure. */
static int connect_first(struct postgres_store *store, struct det_error *reterr)
{
    struct det_world *world = store->store.world;
    struct postgres_connection *first = &store->connections[0];
    int r;

    r = world->ops->poller_open(world, &first->poller);
    if (r < 0)
        return det_error_set(reterr, r, "%s", det_error_text(r));
    if (world->ops->poller_descriptor(world, first->poller) < 0)
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "PostgreSQL: a simulated world has no network");
    return det_postgres_connect(
        first, det_world_now(world, DET_CLOCK_MONOTONIC) + store->timeout, reterr);
}

static int check_options(const struct det_store_options *options, struct det_error *reterr)
{
    if (options->connections > CONNECTIONS_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "at most %d connections are permitted", CONNECTIONS_MAX);
    if (options->timeout < 0 || options->timeout > TIMEOUT_MAX || options->event_ids_span < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the timeout of a store is at most a day, and no span is negative");
    return 0;
}

static int open_store(
    const char *rest, const struct det_store_options *given, struct det_store **ret,
    struct det_error *reterr)
{
    struct det_store_options options = *given;
    struct postgres_store *store;
    int r;

    r = check_options(&options, reterr);
    if (r < 0)
        return r;
    if (!options.timeout)
        options.timeout = 10 * DET_SECOND;
    store = DET_NEW(options.allocator, struct postgres_store);
    if (!store)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    store->store =
        (struct det_store){ .ops = &ops, .world = options.world, .allocator = options.allocator };
    store->sql.sql = &det_postgres_sql;
    det_chain_prepare();
    store->sql.is_read_only = options.is_read_only;
    store->timeout = options.timeout;
    atomic_init(&store->wait_limit, DET_NEVER);
    store->store.event_ids_span = options.event_ids_span ? options.event_ids_span : 7 * DET_DAY;
    det_postgres_random(store, store->store.owner);
    r = det_postgres_url_init(&store->url, rest, &options, reterr);
    if (r == 0) {
        r = open_parts(store, &options);
        if (r < 0)
            (void)det_error_set(reterr, r, "PostgreSQL: %s", det_error_text(r));
    }
    if (r == 0)
        r = connect_first(store, reterr);
    if (r == 0)
        r = det_postgres_schema_open(store, options.must_exist, options.identity, reterr);
    if (r < 0) {
        close_store(&store->store);
        return r;
    }
    snprintf(store->channel, sizeof store->channel, "detent_%s", store->store.identity);
    *ret = &store->store;
    return 0;
}

static int check_url(const char *rest, struct det_error *reterr)
{
    static const struct det_store_options options = { .timeout = 10 * DET_SECOND };
    struct postgres_url url;
    int r;

    r = det_postgres_url_init(&url, rest, &options, reterr);
    if (r == 0)
        det_postgres_url_deinit(&url);
    return r;
}

const struct det_store_driver det_store_driver_postgres = {
    .version = DET_STORE_DRIVER_VERSION,
    .scheme = "postgres",
    .summary = "a PostgreSQL database, shared by any number of processes",
    .open = open_store,
    .check = check_url,
};

const struct det_store_driver det_store_driver_postgresql = {
    .version = DET_STORE_DRIVER_VERSION,
    .scheme = "postgresql",
    .summary = "the same as postgres",
    .open = open_store,
    .check = check_url,
};
