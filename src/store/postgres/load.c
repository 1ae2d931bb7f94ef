/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* load.c - reads an instance: its head and its rows, in one snapshot transaction.
 *
 * The history is the longer of two: that of the kept events, or that of the events after the
 * snapshot followed by the snapshot's. Both are correct. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/contract.h"
#include "store/log.h"
#include "store/postgres/postgres.h"
#include "store/row.h"

struct loading {
    struct postgres_store *store;
    const struct det_machine *machine;
    const char *id;
    const struct det_store_rows *rows;
    struct det_store_loaded *ret;
    struct postgres_instance *instance;
    PGresult *results[3]; /* head, rows, history; owned once they have arrived */
};

/* Columns of LOAD_HEAD. */
enum {
    HEAD_KEY,
    HEAD_VERSION,
    HEAD_STATE,
    HEAD_SEQUENCE,
    HEAD_VISIT,
    HEAD_TRANSITIONS,
    HEAD_STARTED_AT,
    HEAD_MOVED_AT,
    HEAD_STOPPED,
    HEAD_REASON,
    HEAD_DATA,
    HEAD_HASH,
    HEAD_CHECKSUM,
    HEAD_SNAPSHOT_SEQUENCE,
    HEAD_SNAPSHOT_HISTORY,
};

/* Columns of LOAD_ROWS. */
enum {
    ROW_KIND,
    ROW_SEQUENCE,
    ROW_NUMBER,
    ROW_NAME,
    ROW_EVENT,
    ROW_PAYLOAD,
    ROW_VISIT,
    ROW_DUE,
    ROW_FROM,
    ROW_TO,
    ROW_ASKED,
    ROW_AT,
    ROW_ATTEMPTS,
    ROW_LAST_ERROR,
    ROW_DATA,
    ROW_DEAD,
    ROW_OWNER,
    ROW_REASON,
    ROW_TRACE,
    ROW_ORIGIN,
    ROW_COMPLETE,
};

static bool read_hash(struct det_chain_bytes bytes, struct det_chain_hash *ret)
{
    if (!bytes.data || bytes.size != sizeof ret->bytes)
        return false;
    memcpy(ret->bytes, bytes.data, sizeof ret->bytes);
    return true;
}

/* As stored; the checksum covers all of it. */
static int read_head(const PGresult *row, struct loading *loading, struct det_chain_head *ret)
{
    *ret = (struct det_chain_head){
        .machine = loading->machine->name,
        .id = loading->id,
        .version = (uint64_t)det_postgres_number(row, 0, HEAD_VERSION),
        .state = det_postgres_text(row, 0, HEAD_STATE),
        .sequence = (uint64_t)det_postgres_number(row, 0, HEAD_SEQUENCE),
        .visit = (uint64_t)det_postgres_number(row, 0, HEAD_VISIT),
        .transitions = (uint64_t)det_postgres_number(row, 0, HEAD_TRANSITIONS),
        .started_at = det_postgres_number(row, 0, HEAD_STARTED_AT),
        .moved_at = det_postgres_number(row, 0, HEAD_MOVED_AT),
        .is_stopped = det_postgres_bool(row, 0, HEAD_STOPPED),
        .reason = det_postgres_text(row, 0, HEAD_REASON),
        .data = det_postgres_bytes(row, 0, HEAD_DATA),
    };
    if (!read_hash(det_postgres_bytes(row, 0, HEAD_HASH), &ret->hash) ||
        det_chain_head_checksum(ret) != (uint64_t)det_postgres_number(row, 0, HEAD_CHECKSUM))
        return DET_ERR_CORRUPT;
    return 0;
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

/* Decodes the event struct of a row into the caller's memory. */
static int read_event(const struct loading *loading, int row, void *event, uint16_t *ret)
{
    const PGresult *rows = loading->results[1];
    int r;

    r = det_row_event_find(loading->machine, det_postgres_text(rows, row, ROW_EVENT), ret);
    if (r == 0 && *ret != UINT16_MAX)
        r = det_row_payload_decode(
            &loading->store->store, loading->machine, *ret,
            det_postgres_bytes(rows, row, ROW_PAYLOAD), event);
    return r;
}

static bool is_foreign(const struct loading *loading, int row)
{
    const char *owner = det_postgres_text(loading->results[1], row, ROW_OWNER);

    return !owner || strcmp(owner, loading->store->store.owner) != 0;
}

static int give_timer(struct loading *loading, int row, void *event)
{
    const PGresult *rows = loading->results[1];
    struct det_store_timer timer = {
        .visit = (uint64_t)det_postgres_number(rows, row, ROW_VISIT),
        .due = det_postgres_number(rows, row, ROW_DUE),
        .next = det_postgres_number(rows, row, ROW_AT),
        .attempts = (uint32_t)det_postgres_number(rows, row, ROW_ATTEMPTS),
        .last_error = (int)det_postgres_number(rows, row, ROW_LAST_ERROR),
        .reason = det_postgres_text(rows, row, ROW_REASON),
        .is_dead = det_postgres_bool(rows, row, ROW_DEAD),
    };
    int r;

    timer.is_foreign = !timer.is_dead && is_foreign(loading, row);
    r = read_event(loading, row, event, &timer.event);
    if (r == 0)
        r = det_row_timer_find(
            loading->machine, det_postgres_text(rows, row, ROW_NAME), &timer.timer);
    /* A dead row whose name is not in the definition stays in the table only. */
    if (r < 0)
        return r == DET_ERR_VERSION && timer.is_dead ? 0 : r;
    timer.value = PQgetisnull(rows, row, ROW_PAYLOAD) ? NULL : event;
    return loading->rows->timer ? loading->rows->timer(loading->rows->context, &timer) : 0;
}

static int give_effect(struct loading *loading, int row, void *event, void *data)
{
    const struct det_machine *machine = loading->machine;
    const PGresult *rows = loading->results[1];
    struct det_trace_context trace;
    uint16_t kind;
    struct det_store_effect effect = {
        .sequence = (uint64_t)det_postgres_number(rows, row, ROW_SEQUENCE),
        .index = (uint16_t)det_postgres_number(rows, row, ROW_NUMBER),
        .visit = (uint64_t)det_postgres_number(rows, row, ROW_VISIT),
        .asked = (uint64_t)det_postgres_number(rows, row, ROW_ASKED),
        .at = det_postgres_number(rows, row, ROW_AT),
        .attempts = (uint32_t)det_postgres_number(rows, row, ROW_ATTEMPTS),
        .last_error = (int)det_postgres_number(rows, row, ROW_LAST_ERROR),
        .next = det_postgres_number(rows, row, ROW_DUE),
        .is_dead = det_postgres_bool(rows, row, ROW_DEAD),
        .reason = det_postgres_text(rows, row, ROW_REASON),
        .data = data,
    };
    int r;

    effect.is_foreign = !effect.is_dead && is_foreign(loading, row);
    if (det_trace_context_read(det_postgres_bytes(rows, row, ROW_TRACE), &trace))
        effect.trace = &trace;
    det_row_origin(&effect, det_postgres_text(rows, row, ROW_ORIGIN));
    r = det_row_effect_find(machine, det_postgres_text(rows, row, ROW_NAME), &effect.effect);
    if (r == 0)
        r = det_row_state_find(machine, det_postgres_text(rows, row, ROW_FROM), &effect.from);
    if (r == 0)
        r = det_row_state_find(machine, det_postgres_text(rows, row, ROW_TO), &effect.to);
    if (r == 0)
        r = det_row_data_decode(
            &loading->store->store, machine, det_postgres_bytes(rows, row, ROW_DATA), data);
    if (r == 0)
        r = read_event(loading, row, event, &kind);
    /* An effect always has the event that requested it. */
    if (r == 0 && kind == UINT16_MAX)
        r = DET_ERR_CORRUPT;
    if (r < 0)
        return r;
    effect.event = event;
    return loading->rows->effect ? loading->rows->effect(loading->rows->context, &effect) : 0;
}

static int give_deferred(struct loading *loading, int row, void *event)
{
    const PGresult *rows = loading->results[1];
    struct det_store_deferred deferred = {
        .sequence = (uint64_t)det_postgres_number(rows, row, ROW_SEQUENCE),
        .event = event,
    };
    uint16_t kind;
    int r;

    r = read_event(loading, row, event, &kind);
    if (r < 0)
        return r;
    return loading->rows->deferred ? loading->rows->deferred(loading->rows->context, &deferred) : 0;
}

static int give_rows(struct loading *loading)
{
    const struct det_allocator *allocator = loading->store->store.allocator;
    const struct det_machine *machine = loading->machine;
    size_t data_size = det_machine_data(machine)->size;
    int count = PQntuples(loading->results[1]), r = 0;
    char *event, *data;

    if (count == 0)
        return 0;
    event = det_alloc_zero(allocator, machine->event_size);
    data = det_alloc_zero(allocator, data_size);
    if (!event || !data)
        r = DET_ERR_NO_MEMORY;
    for (int i = 0; r == 0 && i < count; i++) {
        int64_t kind = det_postgres_number(loading->results[1], i, ROW_KIND);

        if (!det_postgres_bool(loading->results[1], i, ROW_COMPLETE))
            r = DET_ERR_CORRUPT;
        else if (kind == 0)
            r = give_timer(loading, i, event);
        else if (kind == 1)
            r = give_effect(loading, i, event, data);
        else
            r = give_deferred(loading, i, event);
    }
    if (event)
        det_free(allocator, event, machine->event_size);
    if (data)
        det_free(allocator, data, data_size);
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
    r = read_head(loading->results[0], loading, &head);
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
