/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - reads an instance: its head and its rows, in one snapshot transaction.
 *
 * The history is the longer of two: that of the kept events, or that of the events after the
 * snapshot followed by the snapshot's. Both are correct. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/contract.h"
#include "store/log.h"
#include "store/postgres/session.h"
#include "store/row.h"
#include "store/sql/instance.h"
#include "store/sql/load.h"

struct loading {
    struct postgres_store *store;
    const struct det_machine *machine;
    const char *id;
    const struct det_store_rows *rows;
    struct det_store_loaded *ret;
    struct postgres_instance *instance;
    PGresult *results[3]; /* head, rows, history; owned once they have arrived */
};

/* Columns of LOAD_HEAD: those of a head between the first and the last ones. */
enum {
    HEAD_KEY,
    HEAD_VERSION = 3,
    HEAD_CHECKSUM = 14,
    HEAD_SNAPSHOT_SEQUENCE,
    HEAD_SNAPSHOT_HISTORY,
};

/* As stored; the checksum covers all of it. */
static int read_head(const PGresult *rows, struct det_chain_head *ret)
{
    const struct det_sql_row row = det_postgres_row(rows, 0);
    int r;

    r = det_sql_head_read(&row, HEAD_VERSION, ret);
    return r == 0 && det_chain_head_checksum(ret) != det_sql_count(&row, HEAD_CHECKSUM)
               ? DET_ERR_CORRUPT
               : r;
}

/* The handle. */
static int keep_head(
    struct loading *loading, const PGresult *row, const struct det_chain_head *head)
{
    struct postgres_instance *instance;
    int r;

    instance = det_postgres_instance_open(loading->store, loading->machine, loading->id);
    loading->instance = instance;
    if (!instance)
        return DET_ERR_NO_MEMORY;
    instance->key = det_postgres_number(row, 0, HEAD_KEY);
    instance->sequence = head->sequence;
    instance->started_at = head->started_at;
    instance->hash = head->hash;
    r = det_postgres_instance_reserve(
        loading->store, instance, head->data.size, head->reason != NULL);
    if (r == 0)
        det_postgres_instance_keep(instance, head->data, head->reason);
    return r;
}

/* An unknown name ends the history. */
static void read_history(struct loading *loading)
{
    const PGresult *head = loading->results[0], *gotos = loading->results[2];
    uint64_t snapshot = (uint64_t)det_postgres_number(head, 0, HEAD_SNAPSHOT_SEQUENCE);
    const char *history = det_postgres_text(head, 0, HEAD_SNAPSHOT_HISTORY);
    struct det_store_loaded joined = { 0 }, *ret = loading->ret;
    int ignored;

    ret->history_count = 0;
    for (int i = 0; i < PQntuples(gotos) && ret->history_count < DET_HISTORY_MAX; i++) {
        if (det_row_state_find(
                loading->machine,
                det_sql_renamed(
                    &loading->store->store, loading->machine->name, DET_NAME_STATE,
                    det_postgres_number(gotos, i, 2), det_postgres_text(gotos, i, 1)),
                &ret->history[ret->history_count]) < 0)
            break;
        ret->history_count++;
        if ((uint64_t)det_postgres_number(gotos, i, 0) > snapshot) {
            joined.history[joined.history_count] = ret->history[i];
            joined.history_count++;
        }
    }
    if (!history)
        return;
    ignored = det_row_history_read(loading->machine, history, &joined);
    (void)ignored;
    if (joined.history_count > ret->history_count) {
        memcpy(ret->history, joined.history, sizeof ret->history);
        ret->history_count = joined.history_count;
    }
}

static int give_rows(struct loading *loading)
{
    const struct det_allocator *allocator = loading->store->store.allocator;
    struct det_sql_loading rows = { &loading->store->store, loading->machine, loading->rows, NULL };
    size_t size = det_sql_load_room(loading->machine);
    int count = PQntuples(loading->results[1]), r = 0;

    if (count == 0)
        return 0;
    rows.room = det_alloc_zero(allocator, size);
    if (!rows.room)
        return DET_ERR_NO_MEMORY;
    for (int i = 0; r == 0 && i < count; i++) {
        const struct det_sql_row row = det_postgres_row(loading->results[1], i);

        r = det_sql_row_load(&rows, &row);
    }
    det_free(allocator, rows.room, size);
    return r;
}

static void send_load(struct postgres_exchange *exchange, void *context)
{
    const struct loading *loading = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, loading->machine->name);
    det_postgres_add_text(&parameters, loading->id);
    det_postgres_ask(exchange, POSTGRES_BEGIN_READING, NULL);
    det_postgres_ask(exchange, POSTGRES_LOAD_HEAD, &parameters);
    det_postgres_ask(exchange, POSTGRES_LOAD_ROWS, &parameters);
    det_postgres_ask(exchange, POSTGRES_LOAD_HISTORY, &parameters);
    det_postgres_ask(exchange, POSTGRES_END_READING, NULL);
}

/* Keeps the results: callers get the rows after the connection is released. */
static int take_load(struct postgres_exchange *exchange, void *context)
{
    struct loading *loading = context;

    for (int i = 0; i < 3; i++) {
        loading->results[i] = exchange->results[i + 1];
        exchange->results[i + 1] = NULL;
    }
    return 0;
}

static int give_instance(struct loading *loading)
{
    struct det_chain_head head;
    int r;

    if (PQntuples(loading->results[0]) == 0)
        return DET_ERR_NOT_FOUND;
    r = read_head(loading->results[0], &head);
    if (r == 0)
        r = det_row_head_read(&loading->store->store, loading->machine, &head, loading->ret);
    if (r < 0)
        return r;
    read_history(loading);
    r = give_rows(loading);
    if (r == 0)
        r = keep_head(loading, loading->results[0], &head);
    return r;
}

int det_postgres_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    struct loading loading = {
        .store = postgres_store_of(store), .machine = machine, .id = id, .rows = rows, .ret = ret
    };
    const struct postgres_job job = { send_load, take_load, &loading, true, 0 };
    int r;

    det_contract_load(machine, id, ret);
    r = det_postgres_run(loading.store, &job, NULL);
    if (r == 0)
        r = give_instance(&loading);
    for (int i = 0; i < 3; i++)
        PQclear(loading.results[i]);
    if (r != 0) {
        det_postgres_instance_close(loading.store, loading.instance);
        return r;
    }
    ret->instance = (struct det_store_instance *)(void *)loading.instance;
    return 0;
}

void det_postgres_release(struct det_store *store, struct det_store_instance *instance)
{
    det_postgres_instance_close(postgres_store_of(store), postgres_instance_of(instance));
}
