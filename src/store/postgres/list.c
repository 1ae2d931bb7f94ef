/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list.c - lists: events of an instance, instances of a machine, due work; and takeover of
 * abandoned work.
 *
 * Pages are read whole, and visited after the connection is released: no transaction stays open
 * while user code runs. */
#include <string.h>

#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/log.h"
#include "store/postgres/session.h"
#include "store/row.h"
#include "store/sql/load.h"
#include "store/sql/log.h"

#define PAGE_ROWS 1024
/* Interval of deletions of expired event ids. */
#define FORGET_INTERVAL DET_MINUTE

/* Reads a row of EVENTS_AFTER, whose first column is the position. `value` and `trace` are memory
 * for parts of the event. */
static int read_event(
    const struct postgres_instance *instance, const struct det_store *store,
    const struct det_sql_row *row, void *value, struct det_trace_context *trace,
    struct det_store_event *ret)
{
    struct det_chain_bytes hash;
    struct det_chain_event event = det_sql_event_read(row, &hash);
    int r;

    r = det_sql_event_load(store, instance->machine, det_sql_number(row, 0), &event, value, ret);
    if (det_trace_context_read(det_sql_bytes(row, DET_SQL_EVENT_TRACE), trace))
        ret->trace = trace;
    return r;
}

int det_postgres_events(
    struct det_store *base, struct det_store_instance *handle, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct postgres_store *store = postgres_store_of(base);
    const struct postgres_instance *instance = postgres_instance_of(handle);
    size_t value_size = instance->machine->event_size;
    struct det_trace_context trace;
    struct det_store_event event;
    void *value = det_alloc_zero(base->allocator, value_size);
    int r, count = PAGE_ROWS;

    det_contract_events(handle, visit);
    r = value ? 0 : DET_ERR_NO_MEMORY;
    while (r == 0 && count == PAGE_ROWS) {
        struct postgres_parameters parameters = { 0 };
        PGresult *rows;

        det_postgres_add_number(&parameters, instance->key);
        det_postgres_add_number(&parameters, (int64_t)after);
        det_postgres_add_number(&parameters, PAGE_ROWS);
        r = det_postgres_query(store, POSTGRES_EVENTS_AFTER, &parameters, &rows, NULL);
        count = PQntuples(rows);
        for (int i = 0; r == 0 && i < count; i++) {
            const struct det_sql_row row = det_postgres_row(rows, i);

            r = read_event(instance, base, &row, value, &trace, &event);
            if (r == 0)
                r = visit(context, &event);
            after = event.sequence;
        }
        PQclear(rows);
    }
    if (value)
        det_free(base->allocator, value, value_size);
    return r;
}

static int read_list(
    struct postgres_store *store, const struct det_machine *machine,
    const struct det_store_query *query, const char *after, size_t limit, PGresult **ret)
{
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, machine->name);
    det_postgres_add_text(&parameters, after);
    det_postgres_add_text(
        &parameters, query->has_state ? machine->states[query->state].name : NULL);
    det_postgres_add_number(&parameters, query->moved_before);
    det_postgres_add_number(&parameters, query->stopped);
    det_postgres_add_number(&parameters, (int64_t)limit);
    det_postgres_add_number(&parameters, query->is_locked);
    return det_postgres_query(
        store, query->has_dead ? POSTGRES_LIST_DEAD : POSTGRES_LIST, &parameters, ret, NULL);
}

/* `machine` NULL: the state is omitted. */
static int give_listed(
    const struct det_machine *machine, const PGresult *rows, int row,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct det_store_listed listed = {
        .id = det_postgres_text(rows, row, 0),
        .is_stopped = det_postgres_bool(rows, row, 2),
        .sequence = (uint64_t)det_postgres_number(rows, row, 3),
        .started_at = det_postgres_number(rows, row, 4),
        .moved_at = det_postgres_number(rows, row, 5),
    };
    uint16_t state = 0;
    int r = 0;

    if (machine)
        r = det_row_state_find(machine, det_postgres_text(rows, row, 1), &state);
    if (r < 0)
        return r;
    listed.state = state;
    return visit(context, &listed);
}

int det_postgres_list(
    struct det_store *base, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct postgres_store *store = postgres_store_of(base);
    size_t left = query->limit ? query->limit : SIZE_MAX, wanted;
    char after[DET_ID_MAX + 1] = "";
    int r = 0, count;

    det_contract_list(machine, query, visit);
    if (query->after)
        strncpy(after, query->after, DET_ID_MAX);
    do {
        PGresult *rows;

        wanted = left < PAGE_ROWS ? left : PAGE_ROWS;
        r = read_list(store, machine, query, after, wanted, &rows);
        count = PQntuples(rows);
        for (int i = 0; r == 0 && i < count; i++)
            r = give_listed(query->ids_only ? NULL : machine, rows, i, visit, context);
        if (count > 0)
            strncpy(after, det_postgres_text(rows, count - 1, 0), DET_ID_MAX);
        left -= (size_t)count;
        PQclear(rows);
    } while (r == 0 && left > 0 && (size_t)count == wanted);
    return r;
}

/* One row more than requested gives the time of the next look. */
int det_postgres_due(
    struct det_store *base, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = { 0 };
    PGresult *rows;
    det_time next = DET_NEVER;
    int r;

    det_contract_due(machine, query, visit, ret_next);
    det_postgres_add_text(&parameters, machine->name);
    det_postgres_add_number(
        &parameters, query->limit < INT64_MAX ? (int64_t)query->limit + 1 : INT64_MAX);
    det_postgres_add_number(&parameters, query->from ? query->from : INT64_MIN);
    det_postgres_add_number(&parameters, (int64_t)query->kind);
    if (!store->sql.is_read_only)
        det_postgres_add_text(&parameters, store->store.owner);
    r = det_postgres_query(
        store, store->sql.is_read_only ? POSTGRES_DUE_OF_ALL : POSTGRES_DUE, &parameters, &rows,
        NULL);
    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        struct det_store_due due = {
            .id = det_postgres_text(rows, i, 0),
            .due = det_postgres_number(rows, i, 1),
            .is_timer = det_postgres_bool(rows, i, 2),
        };

        if (due.due > query->before || (size_t)i >= query->limit) {
            next = due.due;
            break;
        }
        r = visit(context, &due);
    }
    PQclear(rows);
    if (r == 0)
        *ret_next = next;
    return r;
}

struct adoption {
    const struct det_machine *machine;
    enum postgres_statement_id id;
    size_t limit;
    det_time forget_before; /* 0: not now */
    size_t taken;
};

static void send_adoption(struct postgres_exchange *exchange, void *context)
{
    const struct adoption *adoption = context;
    struct postgres_parameters parameters = { 0 }, forget = { 0 };

    det_postgres_add_text(&parameters, adoption->machine->name);
    det_postgres_add_text(&parameters, exchange->connection->store->store.owner);
    det_postgres_add_number(&parameters, (int64_t)adoption->limit);
    det_postgres_ask(exchange, adoption->id, &parameters);
    if (adoption->forget_before) {
        det_postgres_add_number(&forget, adoption->forget_before);
        det_postgres_ask(exchange, POSTGRES_FORGET_ANSWERS, &forget);
    }
}

static int take_adoption(struct postgres_exchange *exchange, void *context)
{
    struct adoption *adoption = context;

    adoption->taken = (size_t)det_postgres_number(exchange->results[0], 0, 0);
    return 0;
}

/* A sweep also deletes expired event ids. */
static det_time forget_before(struct postgres_store *store)
{
    det_time now = det_postgres_now(&store->store), before = 0;

    det_mutex_lock(store->store.world, store->sql.mutex);
    if (now - store->swept_at >= FORGET_INTERVAL) {
        store->swept_at = now;
        before = now - store->store.event_ids_span;
    }
    det_mutex_unlock(store->store.world, store->sql.mutex);
    return before;
}

/* Timers first, since they are late already; effects with the rest of the limit. Work of a takeover
 * with unknown outcome may be ours; `due` then lists it. */
int det_postgres_adopt(
    struct det_store *base, const struct det_machine *machine, size_t limit, size_t *ret)
{
    struct postgres_store *store = postgres_store_of(base);
    struct adoption adoption = { machine, POSTGRES_ADOPT_TIMERS, limit, 0, 0 };
    const struct postgres_job job = { send_adoption, take_adoption, &adoption, true, 0 };
    size_t taken;
    int r;

    if (store->sql.is_read_only)
        return DET_ERR_READ_ONLY;
    adoption.forget_before = forget_before(store);
    r = det_postgres_run(store, &job, NULL);
    taken = adoption.taken;
    if (r == 0 && taken < limit) {
        adoption = (struct adoption){ machine, POSTGRES_ADOPT_EFFECTS, limit - taken, 0, 0 };
        r = det_postgres_run(store, &job, NULL);
        taken += adoption.taken;
    }
    if (r == 0)
        *ret = taken;
    return r;
}
