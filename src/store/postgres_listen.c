/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_listen.c - a thread with a connection of its own that waits for notifications, and wakes
 * the runtime. Nothing depends on it: it only makes a poll come sooner.
 *
 *     connect, LISTEN --> wait --> notified: wake --> wait ...
 *          ^                |
 *          +-- lost: pause -+      after a reconnect: wake, since something may have been missed
 *
 * Those who notify: who gives up a lease or a lock. Commits do not, since what they leave to do is
 * their own node's; and notifying costs a lock that all of the database shares. */
#include <limits.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres.h"

#define PAUSE_FIRST (50 * DET_MILLISECOND)
#define PAUSE_MAX   (5 * DET_SECOND)
#define WAIT_SPAN   DET_MINUTE

struct postgres_listener {
    struct postgres_store *store;
    struct postgres_connection connection;
    struct det_thread *thread;
    atomic_bool stop_wanted;
    void (*wake)(void *context);
    void *context;
};

static det_time after(const struct postgres_listener *listener, det_time span)
{
    return det_world_now(listener->store->store.world, DET_CLOCK_MONOTONIC) + span;
}

static int begin(struct postgres_listener *listener)
{
    struct postgres_connection *connection = &listener->connection;
    struct postgres_statement statement = { .slot = UINT_MAX };
    struct postgres_exchange exchange;
    char text[80];
    int r;

    r = det_postgres_connect(connection, after(listener, listener->store->timeout), NULL);
    if (r < 0)
        return r;
    snprintf(text, sizeof text, "LISTEN %s", listener->store->channel);
    statement.text = text;
    det_postgres_exchange_init(&exchange, connection);
    det_postgres_exchange_send(&exchange, &statement, NULL);
    det_postgres_exchange_finish(&exchange, after(listener, listener->store->timeout));
    r = exchange.failure.action == POSTGRES_DONE ? 0 : exchange.failure.result;
    det_postgres_exchange_deinit(&exchange);
    return r;
}

/* Until the connection is lost, or it is over. */
static void attend(struct postgres_listener *listener)
{
    struct postgres_connection *connection = &listener->connection;
    int r;

    while (!atomic_load(&listener->stop_wanted)) {
        PGnotify *notify;
        bool is_notified = false;

        while ((notify = PQnotifies(connection->pq))) {
            is_notified = true;
            PQfreemem(notify);
        }
        if (is_notified)
            listener->wake(listener->context);
        r = det_postgres_wait(connection, false, after(listener, WAIT_SPAN));
        if ((r < 0 && r != DET_ERR_TIMEOUT) || !PQconsumeInput(connection->pq))
            return;
    }
}

/* The poller is woken to stop; nothing else is watched meanwhile. */
static void rest(struct postgres_listener *listener, det_time span)
{
    struct det_world *world = listener->store->store.world;
    struct det_poll_event event;

    if (!atomic_load(&listener->stop_wanted))
        (void)world->ops->poller_wait(
            world, listener->connection.poller, &event, 1, after(listener, span));
}

static void run(void *argument)
{
    struct postgres_listener *listener = argument;
    det_time pause = PAUSE_FIRST;

    while (!atomic_load(&listener->stop_wanted)) {
        if (begin(listener) == 0) {
            pause = PAUSE_FIRST;
            listener->wake(listener->context);
            attend(listener);
        }
        if (listener->connection.pq)
            det_postgres_disconnect(&listener->connection);
        rest(listener, pause);
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
}

static void stop(struct postgres_store *store)
{
    struct det_world *world = store->store.world;
    struct postgres_listener *listener = store->listener;

    if (!listener)
        return;
    atomic_store(&listener->stop_wanted, true);
    world->ops->poller_wake(world, listener->connection.poller);
    det_thread_join(world, listener->thread);
    world->ops->poller_close(world, listener->connection.poller);
    DET_DELETE(store->store.allocator, listener);
    store->listener = NULL;
}

/* Without memory or a thread there are no wake-ups, and that is all. */
void det_postgres_listen(struct det_store *base, void (*wake)(void *context), void *context)
{
    struct postgres_store *store = postgres_store_of(base);
    struct det_world *world = base->world;
    struct postgres_listener *listener;

    stop(store);
    if (!wake || store->url.is_pooled || store->is_read_only)
        return;
    listener = DET_NEW(base->allocator, struct postgres_listener);
    if (!listener)
        return;
    listener->store = store;
    listener->wake = wake;
    listener->context = context;
    listener->connection.store = store;
    listener->connection.stop_wanted = &listener->stop_wanted;
    if (world->ops->poller_open(world, &listener->connection.poller) == 0) {
        if (det_thread_start(world, "postgres", run, listener, &listener->thread) == 0) {
            store->listener = listener;
            return;
        }
        world->ops->poller_close(world, listener->connection.poller);
    }
    DET_DELETE(base->allocator, listener);
}
