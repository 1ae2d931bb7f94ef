/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* queue.c - the queue of an instance with many writing processes: an advisory lock, which the
 * server grants in the order of requests, held by a transaction that does nothing else.
 *
 * A place in the queue occupies a connection. So a process has one place at a time, and none if it
 * has only one connection. A place that is held too long ends with its transaction, by
 * idle_in_transaction_session_timeout; correctness does not depend on it. */
#include <stdlib.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/postgres/postgres.h"

/* A lock number that is specific to this store within its database. */
static int64_t lock_number(const struct postgres_store *store, int64_t key)
{
    char digits[17] = { 0 };

    for (size_t i = 0; i < sizeof digits - 1; i++)
        digits[i] = store->store.identity[i];
    return (int64_t)((uint64_t)strtoull(digits, NULL, 16) ^ (uint64_t)key);
}

static bool take_place(struct postgres_store *store)
{
    struct det_world *world = store->store.world;
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + store->timeout;
    bool is_taken;
    int r = 0;

    det_mutex_lock(world, store->sql.mutex);
    while (r == 0 && store->is_queueing)
        r = det_condition_wait(world, store->place_freed, store->sql.mutex, until);
    is_taken = !store->is_queueing;
    store->is_queueing = true;
    det_mutex_unlock(world, store->sql.mutex);
    return is_taken;
}

static void give_place(struct postgres_store *store)
{
    det_mutex_lock(store->store.world, store->sql.mutex);
    det_assert(store->is_queueing);
    store->is_queueing = false;
    det_condition_signal(store->store.world, store->place_freed);
    det_mutex_unlock(store->store.world, store->sql.mutex);
}

int det_postgres_queue(
    struct det_store *base, struct det_store_instance *handle, struct det_store_place **ret)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = { 0 };
    int r;

    if (store->connection_count < 2)
        return DET_ERR_UNSUPPORTED;
    if (!take_place(store))
        return DET_ERR_BUSY;
    r = det_postgres_session_open(&store->place, store);
    if (r < 0) {
        give_place(store);
        return r;
    }
    store->place.span = store->timeout + store->timeout / 4;
    det_postgres_add_number(&parameters, lock_number(store, postgres_instance_of(handle)->key));
    r = det_postgres_session_ask(&store->place, POSTGRES_BEGIN_WRITING, NULL, NULL);
    if (r == 0)
        r = det_postgres_session_ask(&store->place, POSTGRES_QUEUE, &parameters, NULL);
    if (r < 0) {
        det_postgres_session_close(&store->place);
        give_place(store);
        return r;
    }
    *ret = (struct det_store_place *)(void *)&store->place;
    return 0;
}

void det_postgres_leave_queue(struct det_store *base, struct det_store_place *place)
{
    struct postgres_store *store = postgres_store_of(base);
    int r;

    det_assert((void *)place == (void *)&store->place);
    r = det_postgres_session_ask(&store->place, POSTGRES_END_READING, NULL, NULL);
    /* Without an answer the connection is closed, which ends the transaction, too. */
    (void)r;
    det_postgres_session_close(&store->place);
    give_place(store);
}
