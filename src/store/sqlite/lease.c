/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.c - leases by name and the locks of instances: the same rules, kept in two places. One
 * process writes to a file, but several of its threads may use leases, and a token must outlive the
 * process. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/lease.h"
#include "store/sqlite/sqlite.h"

struct leasing {
    const struct det_machine *machine; /* NULL: a lease by name */
    const struct det_store_lease_change *change;
    struct det_store_lease *ret;
    det_time now;
    int refusal; /* LOCKED, LOCK_LOST: nothing is changed */
};

/* Reads the existing lease: 1, 0: none, or an error. */
static int read_lease(struct sqlite_connection *connection, struct leasing *leasing)
{
    struct det_store_lease *ret = leasing->ret;
    struct sqlite_call call;
    int r;

    det_sqlite_call(
        connection, leasing->machine ? STATEMENT_LOCK_READ : STATEMENT_LEASE_READ, &call);
    if (leasing->machine)
        det_sqlite_text(&call, leasing->machine->name);
    det_sqlite_text(&call, leasing->change->name);
    r = det_sqlite_step(&call);
    if (r > 0) {
        ret->token = (uint64_t)det_sqlite_get_number(&call, 0);
        (void)det_text_copy(ret->owner, sizeof ret->owner, det_sqlite_get_text(&call, 1, false));
        ret->expires_at = det_sqlite_get_number(&call, 2);
        if (leasing->machine)
            ret->sequence = (uint64_t)det_sqlite_get_number(&call, 4);
        if (call.code != SQLITE_OK)
            r = det_sqlite_error(call.code);
        else if (det_sqlite_get_complete(&call, 3) < 0)
            r = DET_ERR_CORRUPT;
    }
    det_sqlite_end(&call);
    return r;
}

static int write_lease(struct sqlite_store *store, const struct leasing *leasing)
{
    const struct det_store_lease *lease = leasing->ret;
    struct sqlite_call call;

    sqlite_assert_writing(store);
    det_assert(leasing->refusal == 0 && lease->token > 0);
    det_sqlite_call(
        &store->writer, leasing->machine ? STATEMENT_LOCK_SET : STATEMENT_LEASE_SET, &call);
    if (leasing->machine)
        det_sqlite_text(&call, leasing->machine->name);
    det_sqlite_text(&call, leasing->change->name);
    det_sqlite_number(&call, (int64_t)lease->token);
    det_sqlite_text(&call, leasing->machine && !lease->expires_at ? NULL : lease->owner);
    if (leasing->machine && !lease->expires_at)
        det_sqlite_null(&call);
    else
        det_sqlite_number(&call, lease->expires_at);
    return det_sqlite_run(&call);
}

static int run_change(struct sqlite_store *store, void *context)
{
    struct leasing *leasing = context;
    int r;

    leasing->now = det_world_now(store->store.world, DET_CLOCK_WALL);
    r = read_lease(&store->writer, leasing);
    if (r == 0 && leasing->machine)
        r = DET_ERR_NOT_FOUND;
    if (r < 0)
        return r;
    leasing->refusal = det_lease_change(leasing->ret, leasing->change, leasing->now);
    return leasing->refusal < 0 ? 0 : write_lease(store, leasing);
}

static int inspect_lease(struct sqlite_store *store, struct leasing *leasing)
{
    struct sqlite_connection *reader;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    leasing->now = det_world_now(store->store.world, DET_CLOCK_WALL);
    r = read_lease(reader, leasing);
    det_sqlite_reader_end(store, reader);
    if (r < 0)
        return r;
    return r == 0 && leasing->machine ? DET_ERR_NOT_FOUND : 0;
}

static int change_lease(struct sqlite_store *store, struct leasing *leasing)
{
    int r;

    if (!det_lease_is_valid(leasing->change))
        return DET_ERR_INVALID;
    *leasing->ret = (struct det_store_lease){ 0 };
    r = leasing->change->verb == DET_LEASE_READ ? inspect_lease(store, leasing)
                                                : det_sqlite_alone(store, run_change, leasing);
    if (r < 0)
        return r;
    if (leasing->ret->expires_at <= leasing->now)
        leasing->ret->owner[0] = 0;
    return leasing->refusal;
}

/* Reading needs no write lock, which another program may hold. */
int det_sqlite_lease_free_all(struct sqlite_store *store)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_LEASE_HELD, &call);
    r = det_sqlite_step(&call);
    det_sqlite_end(&call);
    if (r <= 0)
        return r;
    det_sqlite_call(&store->writer, STATEMENT_LEASE_FREE_ALL, &call);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    det_sqlite_call(&store->writer, STATEMENT_LOCK_FREE_ALL, &call);
    return det_sqlite_run(&call);
}

int det_sqlite_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret)
{
    det_contract_lease(change, ret);
    return change_lease(sqlite_store_of(store), &(struct leasing){ .change = change, .ret = ret });
}

int det_sqlite_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    det_contract_lease(change, ret);
    return change_lease(
        sqlite_store_of(store),
        &(struct leasing){ .machine = machine, .change = change, .ret = ret });
}
