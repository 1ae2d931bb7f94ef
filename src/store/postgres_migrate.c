/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_migrate.c - names that changed: what is stored gets the new ones, in one transaction on
 * one connection; and the renames that are remembered, for what was recorded before.
 *
 *     BEGIN, LOCK -> renames -> columns -> heads and snapshots, page by page -> everything fits? ->
 *     the definition -> COMMIT
 *
 * Whatever goes wrong before the COMMIT ends the connection, and with it the transaction. */
#include <limits.h>
#include <string.h>

#include "os/os.h"
#include "store/postgres.h"
#include "store/row.h"

/* Heads read at a time, and statements in one pipeline. */
#define PAGE_ROWS      512
#define PIPELINE       32
#define STATEMENT_SPAN (10 * DET_MINUTE)

/* The renames that are remembered. */

static void send_renames(struct postgres_exchange *exchange, void *context)
{
    (void)context;
    det_postgres_ask(exchange, POSTGRES_RENAMES, NULL);
}

static int read_renames(
    const struct det_allocator *allocator, const PGresult *rows, struct det_renames **ret)
{
    int count = PQntuples(rows), r = 0;
    struct det_renames *renames = det_renames_open(allocator, (size_t)count);

    if (!renames)
        return DET_ERR_NO_MEMORY;
    for (int i = 0; r == 0 && i < count; i++) {
        const struct det_rename_row row = {
            .machine = det_postgres_text(rows, i, 0),
            .kind = det_postgres_text(rows, i, 1),
            .from = det_postgres_text(rows, i, 2),
            .to = det_postgres_text(rows, i, 3),
            .batch = det_postgres_number(rows, i, 4),
            .position = det_postgres_number(rows, i, 5),
        };

        r = det_renames_add(renames, &row);
    }
    if (r < 0)
        det_renames_close(renames);
    else
        *ret = renames;
    return r;
}

/* A list that says nothing new is not kept. */
static void publish(struct postgres_store *store, struct det_renames *renames)
{
    struct det_renames *old = store->renames;

    if (det_renames_count(renames) == (old ? det_renames_count(old) : 0)) {
        det_renames_close(renames);
        return;
    }
    det_renames_replace(renames, old);
    store->renames = renames;
}

static int take_renames(struct postgres_exchange *exchange, void *context)
{
    struct postgres_store *store = context;
    struct det_renames *renames;
    int r;

    r = read_renames(store->store.allocator, exchange->results[0], &renames);
    if (r == 0)
        publish(store, renames);
    return r;
}

int det_postgres_renames_read(struct postgres_store *store, struct postgres_failure *retfail)
{
    const struct postgres_job job = { send_renames, take_renames, store, true, 0 };

    return det_postgres_run(store, &job, retfail);
}

/* Migrating. */

struct migration {
    struct postgres_store *store;
    struct postgres_connection *connection;
    const struct det_machine *machine;
    const struct det_rename *renames;
    size_t count;
    struct postgres_definition definition;
    int64_t batch, position;
    uint64_t changed;
    struct postgres_failure failure;
    struct det_error *reterr;
};

static int finish(struct migration *migration, struct postgres_exchange *exchange, PGresult **ret)
{
    struct det_world *world = migration->store->store.world;
    int r;

    det_postgres_exchange_finish(
        exchange, det_world_now(world, DET_CLOCK_MONOTONIC) + STATEMENT_SPAN);
    migration->failure = exchange->failure;
    r = exchange->failure.action == POSTGRES_DONE ? 0 : exchange->failure.result;
    if (r == 0 && ret) {
        *ret = exchange->results[0];
        exchange->results[0] = NULL;
    }
    det_postgres_exchange_deinit(exchange);
    return r;
}

/* One statement; `ret` is to be cleared. */
static int ask(
    struct migration *migration, enum postgres_statement_id id,
    const struct postgres_parameters *parameters, PGresult **ret)
{
    struct postgres_exchange exchange;

    det_postgres_exchange_init(&exchange, migration->connection);
    det_postgres_ask(&exchange, id, parameters);
    return finish(migration, &exchange, ret);
}

/* Nodes that live may serve the machine, and would go on by the old names. */
static int check_alone(struct migration *migration)
{
    struct postgres_parameters parameters = { 0 };
    PGresult *count = NULL;
    int64_t nodes = 0;
    int r;

    det_postgres_add_text(&parameters, migration->store->store.owner);
    r = ask(migration, POSTGRES_MIGRATE_NODES, &parameters, &count);
    if (r == 0)
        nodes = det_postgres_number(count, 0, 0);
    PQclear(count);
    if (r < 0 || nodes == 0)
        return r;
    return det_error_set(
        migration->reterr, DET_ERR_LOCKED,
        "%lld program%s at work on the store; stop %s first, nothing was changed", (long long)nodes,
        nodes == 1 ? " is" : "s are", nodes == 1 ? "it" : "them");
}

static int add_renames(struct migration *migration)
{
    PGresult *numbers = NULL;
    int r;

    r = ask(migration, POSTGRES_MIGRATE_BATCH, NULL, &numbers);
    if (r < 0)
        return r;
    migration->batch = det_postgres_number(numbers, 0, 0);
    migration->position = det_postgres_number(numbers, 0, 1);
    PQclear(numbers);
    for (size_t i = 0; r == 0 && i < migration->count; i++) {
        const struct det_rename *rename = &migration->renames[i];
        struct postgres_parameters parameters = { 0 };

        det_postgres_add_text(&parameters, migration->machine->name);
        det_postgres_add_text(&parameters, det_rename_kind_name(rename->kind));
        det_postgres_add_text(&parameters, rename->from);
        det_postgres_add_text(&parameters, rename->to);
        det_postgres_add_number(&parameters, migration->batch);
        det_postgres_add_number(&parameters, migration->position);
        r = ask(migration, POSTGRES_MIGRATE_ADD, &parameters, NULL);
    }
    return r;
}

/* Columns that are under no checksum. */
static int rename_columns(struct migration *migration)
{
    struct postgres_parameters parameters = { 0 };
    int r = 0;

    det_postgres_add_text(&parameters, migration->machine->name);
    det_postgres_add_number(&parameters, migration->batch);
    for (int id = POSTGRES_MIGRATE_TIMERS; r == 0 && id <= POSTGRES_MIGRATE_ANSWERS; id++) {
        PGresult *count = NULL;

        r = ask(migration, (enum postgres_statement_id)id, &parameters, &count);
        if (r == 0)
            migration->changed += (uint64_t)det_postgres_number(count, 0, 0);
        PQclear(count);
    }
    return r;
}

static struct det_chain_head read_head(const PGresult *rows, int row)
{
    struct det_chain_head head = {
        .machine = det_postgres_text(rows, row, 1),
        .id = det_postgres_text(rows, row, 2),
        .version = (uint64_t)det_postgres_number(rows, row, 3),
        .state = det_postgres_text(rows, row, 4),
        .sequence = (uint64_t)det_postgres_number(rows, row, 5),
        .visit = (uint64_t)det_postgres_number(rows, row, 6),
        .transitions = (uint64_t)det_postgres_number(rows, row, 7),
        .started_at = det_postgres_number(rows, row, 8),
        .moved_at = det_postgres_number(rows, row, 9),
        .is_stopped = det_postgres_bool(rows, row, 10),
        .reason = det_postgres_text(rows, row, 11),
        .data = det_postgres_bytes(rows, row, 12),
    };
    struct det_chain_bytes hash = det_postgres_bytes(rows, row, 13);

    if (hash.data && hash.size == sizeof head.hash.bytes)
        memcpy(head.hash.bytes, hash.data, sizeof head.hash.bytes);
    return head;
}

static bool is_whole(const PGresult *rows, int row, uint32_t checksum)
{
    return checksum == (uint64_t)det_postgres_number(rows, row, 14);
}

/* An instance whose row is damaged stops it: its name would prove nothing any more. */
static int send_head(
    struct migration *migration, struct postgres_exchange *exchange, const PGresult *rows, int row)
{
    struct det_chain_head head = read_head(rows, row);
    struct postgres_parameters parameters = { 0 };

    if (!is_whole(rows, row, det_chain_head_checksum(&head)))
        return det_error_set(
            migration->reterr, DET_ERR_CORRUPT,
            "the row of %s %s is damaged; look with \"detent store verify\", nothing was changed",
            head.machine, head.id);
    head.state = det_rename_find(migration->renames, migration->count, DET_NAME_STATE, head.state);
    det_postgres_add_number(&parameters, det_postgres_number(rows, row, 0));
    det_postgres_add_text(&parameters, head.state);
    det_postgres_add_number(&parameters, det_chain_head_checksum(&head));
    det_postgres_ask(exchange, POSTGRES_MIGRATE_HEAD, &parameters);
    migration->changed++;
    return 0;
}

/* A damaged snapshot is ignored by those who read it, and stays as it is. */
static int send_snapshot(
    struct migration *migration, struct postgres_exchange *exchange, const PGresult *rows, int row)
{
    struct det_chain_head head = read_head(rows, row);
    const char *old = det_postgres_text(rows, row, 15);
    det_time taken_at = det_postgres_number(rows, row, 16);
    struct postgres_parameters parameters = { 0 };
    struct det_buffer history;
    int r;

    if (!is_whole(rows, row, det_chain_snapshot_checksum(&head, old, taken_at)))
        return 0;
    det_buffer_init(&history, migration->store->store.allocator);
    r = det_rename_history(migration->renames, migration->count, old, &history);
    if (r == 0) {
        const char *text = det_buffer_text(&history);

        head.state =
            det_rename_find(migration->renames, migration->count, DET_NAME_STATE, head.state);
        det_postgres_add_number(&parameters, det_postgres_number(rows, row, 0));
        det_postgres_add_text(&parameters, head.state);
        det_postgres_add_number(&parameters, det_chain_snapshot_checksum(&head, text, taken_at));
        det_postgres_add_text(&parameters, text);
        det_postgres_ask(exchange, POSTGRES_MIGRATE_SNAPSHOT, &parameters);
        migration->changed++;
    }
    det_buffer_deinit(&history);
    return r;
}

typedef int send_fn(
    struct migration *migration, struct postgres_exchange *exchange, const PGresult *rows, int row);

/* Rows from `first` on, as many as go into one pipeline. */
static int send_some(struct migration *migration, const PGresult *rows, int first, send_fn *send)
{
    struct postgres_exchange exchange;
    int r = 0;

    det_postgres_exchange_init(&exchange, migration->connection);
    for (int i = first; r == 0 && i < PQntuples(rows) && i < first + PIPELINE; i++)
        r = send(migration, &exchange, rows, i);
    if (r == 0)
        return finish(migration, &exchange, NULL);
    det_postgres_exchange_deinit(&exchange);
    return r;
}

static int rename_rows(struct migration *migration, enum postgres_statement_id list, send_fn *send)
{
    int64_t last = INT64_MIN;
    int count, r;

    do {
        struct postgres_parameters parameters = { 0 };
        PGresult *rows = NULL;

        det_postgres_add_text(&parameters, migration->machine->name);
        det_postgres_add_number(&parameters, migration->batch);
        det_postgres_add_number(&parameters, last);
        det_postgres_add_number(&parameters, PAGE_ROWS);
        r = ask(migration, list, &parameters, &rows);
        count = r == 0 ? PQntuples(rows) : 0;
        if (count > 0)
            last = det_postgres_number(rows, count - 1, 0);
        for (int i = 0; r == 0 && i < count; i += PIPELINE)
            r = send_some(migration, rows, i, send);
        PQclear(rows);
    } while (r == 0 && count == PAGE_ROWS);
    return r;
}

static bool has_states(const struct migration *migration)
{
    for (size_t i = 0; i < migration->count; i++) {
        if (migration->renames[i].kind == DET_NAME_STATE)
            return true;
    }
    return false;
}

static int check_fits(struct migration *migration)
{
    struct postgres_parameters parameters = { 0 };
    PGresult *rows = NULL;
    int r;

    det_postgres_add_text(&parameters, migration->machine->name);
    r = ask(migration, POSTGRES_USED_NAMES, &parameters, &rows);
    if (r == 0)
        r = det_postgres_definition_fits(migration->machine, rows, migration->reterr);
    PQclear(rows);
    return r;
}

static int keep_definition(struct migration *migration)
{
    struct postgres_parameters parameters = { 0 };

    det_postgres_definition_add(&parameters, &migration->definition);
    det_postgres_add_text(&parameters, migration->definition.spec);
    return ask(migration, POSTGRES_DEFINITION_KEEP, &parameters, NULL);
}

static int run_migration(struct migration *migration)
{
    int r;

    r = ask(migration, POSTGRES_MIGRATE_BEGIN, NULL, NULL);
    if (r == 0)
        r = ask(migration, POSTGRES_SCAN, NULL, NULL);
    if (r == 0)
        r = ask(migration, POSTGRES_MIGRATE_LOCK, NULL, NULL);
    if (r == 0)
        r = check_alone(migration);
    if (r == 0)
        r = add_renames(migration);
    if (r == 0)
        r = rename_columns(migration);
    if (r == 0 && has_states(migration))
        r = rename_rows(migration, POSTGRES_MIGRATE_HEADS, send_head);
    if (r == 0 && has_states(migration))
        r = rename_rows(migration, POSTGRES_MIGRATE_SNAPSHOTS, send_snapshot);
    if (r == 0)
        r = check_fits(migration);
    if (r == 0)
        r = keep_definition(migration);
    if (r == 0)
        r = ask(migration, POSTGRES_END_READING, NULL, NULL);
    if (r < 0 && migration->connection->pq)
        det_postgres_disconnect(migration->connection);
    return r;
}

static int connect_and_run(struct migration *migration)
{
    struct postgres_store *store = migration->store;
    det_time deadline = det_world_now(store->store.world, DET_CLOCK_MONOTONIC) + store->timeout;
    int r = 0;

    migration->connection = det_postgres_take(store);
    if (!migration->connection->pq)
        r = det_postgres_connect(migration->connection, deadline, migration->reterr);
    if (r == 0)
        r = run_migration(migration);
    det_postgres_give(migration->connection);
    return r;
}

int det_postgres_migrate(
    struct det_store *base, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr)
{
    struct migration migration = { .store = postgres_store_of(base),
                                   .machine = machine,
                                   .renames = renames,
                                   .count = count,
                                   .reterr = reterr };
    int r;

    if (reterr)
        reterr->code = 0;
    if (migration.store->is_read_only)
        return det_error_set(reterr, DET_ERR_READ_ONLY, "the store was opened for reading");
    r = det_postgres_definition_open(migration.store, machine, &migration.definition);
    if (r == 0) {
        r = connect_and_run(&migration);
        det_postgres_definition_close(migration.store, &migration.definition);
    }
    if (r == 0)
        r = det_postgres_renames_read(migration.store, &migration.failure);
    if (r == 0)
        *ret = migration.changed;
    else if (reterr && reterr->code != r)
        (void)det_error_set(
            reterr, r, "%s cannot be migrated: PostgreSQL: %s", machine->name,
            migration.failure.text[0] ? migration.failure.text : det_error_text(r));
    return r;
}
