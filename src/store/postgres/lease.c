/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.c - leases by name and locks of instances: one statement for each verb, which returns the
 * state afterwards, changed or not. The server's clock decides.
 *
 * An acquisition of unknown outcome is not repeated: it would be refused because of itself. It
 * lapses like that of a holder that died. */
#include <string.h>

#include "base/text.h"
#include "store/contract.h"
#include "store/lease.h"
#include "store/postgres/postgres.h"

/* Number of attempts after another process was first. */
#define ATTEMPTS_MAX 5

struct leasing {
    const struct det_machine *machine; /* NULL: a lease by name */
    const struct det_store_lease_change *change;
    struct det_store_lease *ret;
};

static enum postgres_statement_id statement_of(const struct leasing *leasing)
{
    bool is_lock = leasing->machine != NULL;

    switch (leasing->change->verb) {
    case DET_LEASE_ACQUIRE:
        return is_lock ? POSTGRES_LOCK_ACQUIRE : POSTGRES_LEASE_ACQUIRE;
    case DET_LEASE_RENEW:
        return is_lock ? POSTGRES_LOCK_RENEW : POSTGRES_LEASE_RENEW;
    case DET_LEASE_RELEASE:
        return is_lock ? POSTGRES_LOCK_RELEASE : POSTGRES_LEASE_RELEASE;
    case DET_LEASE_READ:
        break;
    }
    return is_lock ? POSTGRES_LOCK_LOOK : POSTGRES_LEASE_READ;
}

static void send_leasing(struct postgres_exchange *exchange, void *context)
{
    const struct leasing *leasing = context;
    const struct det_store_lease_change *change = leasing->change;
    struct postgres_parameters parameters = { 0 };

    if (leasing->machine)
        det_postgres_add_text(&parameters, leasing->machine->name);
    det_postgres_add_text(&parameters, change->name);
    switch (change->verb) {
    case DET_LEASE_ACQUIRE:
        det_postgres_add_text(&parameters, change->owner);
        det_postgres_add_number(&parameters, change->span);
        break;
    case DET_LEASE_RENEW:
        det_postgres_add_number(&parameters, (int64_t)change->token);
        det_postgres_add_number(&parameters, change->span);
        break;
    case DET_LEASE_RELEASE:
        det_postgres_add_number(&parameters, (int64_t)change->token);
        det_postgres_add_text(&parameters, exchange->connection->store->channel);
        break;
    case DET_LEASE_READ:
        break;
    }
    det_postgres_ask(exchange, statement_of(leasing), &parameters);
    /* A new node keeps the number of rows close to the number of live nodes. */
    if (!leasing->machine && change->verb == DET_LEASE_ACQUIRE &&
        strncmp(change->name, "node/", strlen("node/")) == 0)
        det_postgres_ask(exchange, POSTGRES_LEASE_FORGET_NODES, NULL);
}

static int lease_result(const struct leasing *leasing, bool is_changed)
{
    if (is_changed)
        return 0;
    return leasing->change->verb == DET_LEASE_ACQUIRE ? DET_ERR_LOCKED : DET_ERR_LOCK_LOST;
}

static int take_leasing(struct postgres_exchange *exchange, void *context)
{
    const struct leasing *leasing = context;
    const PGresult *row = exchange->results[0];
    det_time now;

    *leasing->ret = (struct det_store_lease){ 0 };
    if (PQntuples(row) == 0) {
        if (leasing->machine)
            return DET_ERR_NOT_FOUND;
        /* The lease never existed, or another process was first and this statement did not see its
         * row. */
        return leasing->change->verb == DET_LEASE_ACQUIRE
                   ? DET_ERR_BUSY
                   : lease_result(leasing, leasing->change->verb == DET_LEASE_READ);
    }
    now = det_postgres_number(row, 0, 5);
    det_postgres_clock(exchange->connection->store, now);
    leasing->ret->token = (uint64_t)det_postgres_number(row, 0, 1);
    leasing->ret->expires_at = det_postgres_number(row, 0, 3);
    leasing->ret->sequence = leasing->machine ? (uint64_t)det_postgres_number(row, 0, 4) : 0;
    if (leasing->ret->expires_at > now && det_postgres_text(row, 0, 2))
        (void)det_text_copy(
            leasing->ret->owner, sizeof leasing->ret->owner, det_postgres_text(row, 0, 2));
    return lease_result(leasing, det_postgres_bool(row, 0, 0));
}

/* A statement that waited for a lock finds the lease taken, but still sees the old row; this query
 * returns the holder. DET_ERR_BUSY: the lease is free again. */
static int find_holder(struct postgres_store *store, const struct leasing *leasing)
{
    const struct det_store_lease_change look = { .verb = DET_LEASE_READ,
                                                 .name = leasing->change->name };
    struct leasing looking = { leasing->machine, &look, leasing->ret };
    const struct postgres_job job = { send_leasing, take_leasing, &looking, true, 0 };
    int r;

    r = det_postgres_run(store, &job, NULL);
    if (r < 0)
        return r;
    return leasing->ret->owner[0] ? DET_ERR_LOCKED : DET_ERR_BUSY;
}

static int run_leasing(struct postgres_store *store, struct leasing *leasing)
{
    const struct det_store_lease_change *change = leasing->change;
    const struct postgres_job job = { send_leasing, take_leasing, leasing,
                                      change->verb != DET_LEASE_ACQUIRE, 0 };
    int r = DET_ERR_BUSY;

    if (!det_lease_is_valid(change))
        return DET_ERR_INVALID;
    if (store->sql.is_read_only && change->verb != DET_LEASE_READ)
        return DET_ERR_READ_ONLY;
    /* The next attempt sees the first holder. */
    for (int i = 0; r == DET_ERR_BUSY && i < ATTEMPTS_MAX; i++) {
        r = det_postgres_run(store, &job, NULL);
        if (r == DET_ERR_LOCKED && !leasing->ret->owner[0])
            r = find_holder(store, leasing);
    }
    return r;
}

int det_postgres_nodes(struct det_store *store, uint64_t *ret)
{
    struct postgres_parameters parameters = { 0 };
    PGresult *rows;
    int r;

    det_postgres_add_text(&parameters, store->owner);
    r = det_postgres_query(
        postgres_store_of(store), POSTGRES_RENAME_NODES, &parameters, &rows, NULL);
    if (r == 0)
        *ret = (uint64_t)det_postgres_number(rows, 0, 0);
    PQclear(rows);
    return r;
}

int det_postgres_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret)
{
    struct leasing leasing = { NULL, change, ret };

    det_contract_lease(change, ret);
    return run_leasing(postgres_store_of(store), &leasing);
}

int det_postgres_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    struct leasing leasing = { machine, change, ret };

    det_contract_lease(change, ret);
    return run_leasing(postgres_store_of(store), &leasing);
}
