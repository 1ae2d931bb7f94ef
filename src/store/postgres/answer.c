/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* answer.c - what is remembered of an instance beside its head: the answers to events that
 * had an id, and what it began with. */
#include "store/postgres/postgres.h"
#include "store/row.h"

struct asking {
    const struct postgres_instance *instance;
    const char *event_id;
    struct det_store_answer *ret;
};

static void send_answer(struct postgres_exchange *exchange, void *context)
{
    const struct asking *asking = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_number(&parameters, asking->instance->key);
    det_postgres_add_text(&parameters, asking->event_id);
    det_postgres_ask(exchange, POSTGRES_ANSWER, &parameters);
}

static int take_answer(struct postgres_exchange *exchange, void *context)
{
    const struct asking *asking = context;
    const PGresult *row = exchange->results[0];
    uint16_t state, event;
    int r, outcome;

    if (PQntuples(row) == 0)
        return DET_ERR_NOT_FOUND;
    if (!det_postgres_bool(row, 0, 6))
        return DET_ERR_CORRUPT;
    outcome = det_row_outcome_find(det_postgres_text(row, 0, 0));
    if (outcome < 0)
        return DET_ERR_VERSION;
    r = det_row_state_find(asking->instance->machine, det_postgres_text(row, 0, 1), &state);
    if (r < 0)
        return r;
    /* A name that is gone is only not told. */
    if (det_row_event_find(asking->instance->machine, det_postgres_text(row, 0, 4), &event) < 0)
        event = UINT16_MAX;
    *asking->ret = (struct det_store_answer){
        .outcome = (uint16_t)outcome,
        .state = state,
        .event = event,
        .request = (uint64_t)det_postgres_number(row, 0, 5),
        .sequence = (uint64_t)det_postgres_number(row, 0, 2),
        .visit = (uint64_t)det_postgres_number(row, 0, 3),
    };
    return 0;
}

int det_postgres_answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret)
{
    struct asking asking = { postgres_instance_of(instance), event_id, ret };
    const struct postgres_job job = { send_answer, take_answer, &asking, true, 0 };

    return det_postgres_run(postgres_store_of(store), &job, NULL);
}

struct starting {
    const struct postgres_instance *instance;
    struct det_store_start *ret;
};

static void send_start(struct postgres_exchange *exchange, void *context)
{
    const struct starting *starting = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_number(&parameters, starting->instance->key);
    det_postgres_ask(exchange, POSTGRES_START, &parameters);
}

static int take_start(struct postgres_exchange *exchange, void *context)
{
    const struct starting *starting = context;
    const struct det_machine *machine = starting->instance->machine;
    const PGresult *row = exchange->results[0];
    const char *state;
    int r;

    if (PQntuples(row) == 0)
        return DET_ERR_NOT_FOUND;
    if (!det_postgres_bool(row, 0, 5))
        return DET_ERR_CORRUPT;
    starting->ret->version = (uint32_t)det_postgres_number(row, 0, 1);
    starting->ret->at = det_postgres_number(row, 0, 4);
    r = det_row_data_decode(
        &exchange->connection->store->store, machine, det_postgres_bytes(row, 0, 3),
        starting->ret->data);
    if (r < 0)
        return r;
    state = det_postgres_renamed(
        exchange->connection->store, machine->name, DET_NAME_STATE, det_postgres_number(row, 0, 0),
        det_postgres_text(row, 0, 2));
    return det_row_state_find(machine, state, &starting->ret->state);
}

int det_postgres_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret)
{
    struct starting starting = { postgres_instance_of(instance), ret };
    const struct postgres_job job = { send_start, take_start, &starting, true, 0 };

    return det_postgres_run(postgres_store_of(store), &job, NULL);
}
