/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* listen.c - a thread with its own connection that waits for notifications, and wakes the runtime
 * and the listeners of queues. Notifications only shorten the polling delay. The thread runs while
 * there is a listener.
 *
 *     connect, LISTEN --> wait --> notified: wake --> wait ...
 *          ^                |
 *          +-- lost: pause -+      after a reconnect: wake, since notifications may be lost
 *
 * Releases of leases and locks notify, and, with the name of the queue, puts of jobs into an empty
 * queue. Commits do not notify, since their work belongs to their own node, and a notification
 * takes a lock that the whole database shares. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/jobs.h"

#define PAUSE_FIRST (50 * DET_MILLISECOND)
#define PAUSE_MAX   (5 * DET_SECOND)
#define WAIT_SPAN   DET_MINUTE

struct postgres_listener {
    struct postgres_store *store;
    struct postgres_connection connection;
    struct det_thread *thread; /* NULL: no listeners */
    atomic_bool stop_wanted;
    struct det_mutex *control; /* serializes starts and stops of the thread */
    struct det_mutex *mutex;   /* protects the following fields, also during callbacks */
    void (*wake)(void *context);
    void *context;
    struct det_job_listener *queues;
};

static det_time time_after(const struct postgres_listener *listener, det_time span)
{
    return det_world_now(listener->store->store.world, DET_CLOCK_MONOTONIC) + span;
}

/* NULL: all queues, after lost notifications. */
static void wake_listeners(struct postgres_listener *listener, const char *queue)
{
    struct det_world *world = listener->store->store.world;

    det_mutex_lock(world, listener->mutex);
    if (listener->wake && (!queue || !queue[0]))
        listener->wake(listener->context);
    for (struct det_job_listener *job = listener->queues; job; job = job->next) {
        if (!queue || strcmp(job->queue, queue) == 0)
            job->wake(job->context);
    }
    det_mutex_unlock(world, listener->mutex);
}

static int begin_listening(struct postgres_listener *listener)
{
    struct postgres_connection *connection = &listener->connection;
    struct postgres_statement statement = { .slot = UINT_MAX };
    struct postgres_exchange exchange;
    char text[80];
    int r;

    r = det_postgres_connect(connection, time_after(listener, listener->store->timeout), NULL);
    if (r < 0)
        return r;
    snprintf(text, sizeof text, "LISTEN %s", listener->store->channel);
    statement.text = text;
    det_postgres_exchange_init(&exchange, connection);
    det_postgres_exchange_send(&exchange, &statement, NULL);
    det_postgres_exchange_finish(&exchange, time_after(listener, listener->store->timeout));
    r = exchange.failure.action == POSTGRES_DONE ? 0 : exchange.failure.result;
    det_postgres_exchange_deinit(&exchange);
    return r;
}

/* Returns when the connection is lost, or on stop. */
static void await_notice(struct postgres_listener *listener)
{
    struct postgres_connection *connection = &listener->connection;
    int r;

    while (!atomic_load(&listener->stop_wanted)) {
        PGnotify *notify;

        while ((notify = PQnotifies(connection->pq))) {
            wake_listeners(listener, notify->extra);
            PQfreemem(notify);
        }
        r = det_postgres_wait(connection, false, time_after(listener, WAIT_SPAN));
        if ((r < 0 && r != DET_ERR_TIMEOUT) || !PQconsumeInput(connection->pq))
            return;
    }
}

/* The poller is woken to stop; no descriptor is watched meanwhile. */
static void pause_listening(struct postgres_listener *listener, det_time span)
{
    struct det_world *world = listener->store->store.world;
    struct det_poll_event event;

    if (!atomic_load(&listener->stop_wanted))
        (void)world->ops->poller_wait(
            world, listener->connection.poller, &event, 1, time_after(listener, span));
}

static void run_listener(void *argument)
{
    struct postgres_listener *listener = argument;
    det_time pause = PAUSE_FIRST;

    while (!atomic_load(&listener->stop_wanted)) {
        if (begin_listening(listener) == 0) {
            pause = PAUSE_FIRST;
            wake_listeners(listener, NULL);
            await_notice(listener);
        }
        if (listener->connection.pq)
            det_postgres_disconnect(&listener->connection);
        pause_listening(listener, pause);
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
}

static void listener_close(struct postgres_listener *listener)
{
    struct det_world *world = listener->store->store.world;

    if (listener->connection.poller)
        world->ops->poller_close(world, listener->connection.poller);
    det_mutex_close(world, listener->control);
    det_mutex_close(world, listener->mutex);
    DET_DELETE(listener->store->store.allocator, listener);
}

static struct postgres_listener *listener_open(struct postgres_store *store)
{
    struct det_world *world = store->store.world;
    struct postgres_listener *listener = DET_NEW(store->store.allocator, struct postgres_listener);

    if (!listener)
        return NULL;
    listener->store = store;
    listener->connection.store = store;
    listener->connection.stop_wanted = &listener->stop_wanted;
    if (det_mutex_open(world, &listener->control) == 0 &&
        det_mutex_open(world, &listener->mutex) == 0 &&
        world->ops->poller_open(world, &listener->connection.poller) == 0)
        return listener;
    listener_close(listener);
    return NULL;
}

/* Created by the first listener; lives as long as the store. */
static struct postgres_listener *listener_of(struct postgres_store *store)
{
    struct postgres_listener *listener;

    det_mutex_lock(store->store.world, store->sql.mutex);
    if (!store->listener)
        store->listener = listener_open(store);
    listener = store->listener;
    det_mutex_unlock(store->store.world, store->sql.mutex);
    return listener;
}

static void stop_thread(struct postgres_listener *listener)
{
    struct det_world *world = listener->store->store.world;

    if (!listener->thread)
        return;
    det_assert(!atomic_load(&listener->stop_wanted));
    atomic_store(&listener->stop_wanted, true);
    world->ops->poller_wake(world, listener->connection.poller);
    det_thread_join(world, listener->thread);
    atomic_store(&listener->stop_wanted, false);
    listener->thread = NULL;
}

/* Runs the thread while there are listeners. Without a thread only wake-ups are missing. */
static void start_or_stop(struct postgres_listener *listener)
{
    struct det_world *world = listener->store->store.world;
    bool is_wanted;

    det_mutex_lock(world, listener->control);
    det_mutex_lock(world, listener->mutex);
    is_wanted = listener->wake || listener->queues;
    det_mutex_unlock(world, listener->mutex);
    if (!is_wanted)
        stop_thread(listener);
    else if (!listener->thread)
        (void)!det_thread_start(world, "postgres", run_listener, listener, &listener->thread);
    det_mutex_unlock(world, listener->control);
}

static bool can_listen(const struct postgres_store *store)
{
    return !store->url.is_pooled && !store->sql.is_read_only;
}

void det_postgres_listen(struct det_store *base, void (*wake)(void *context), void *context)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_listener *listener;

    if (!can_listen(store) || (!wake && !store->listener))
        return;
    listener = listener_of(store);
    if (!listener)
        return;
    det_mutex_lock(base->world, listener->mutex);
    listener->wake = wake;
    listener->context = context;
    det_mutex_unlock(base->world, listener->mutex);
    start_or_stop(listener);
}

void det_postgres_jobs_listen(struct det_store *base, struct det_job_listener *job)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_listener *listener;

    if (!can_listen(store))
        return;
    listener = listener_of(store);
    if (!listener)
        return;
    det_mutex_lock(base->world, listener->mutex);
    job->next = listener->queues;
    listener->queues = job;
    det_mutex_unlock(base->world, listener->mutex);
    start_or_stop(listener);
}

void det_postgres_jobs_unlisten(struct det_store *base, struct det_job_listener *job)
{
    struct postgres_listener *listener = postgres_store_of(base)->listener;

    if (!listener)
        return;
    det_mutex_lock(base->world, listener->mutex);
    for (struct det_job_listener **place = &listener->queues; *place; place = &(*place)->next) {
        if (*place != job)
            continue;
        *place = job->next;
        break;
    }
    det_mutex_unlock(base->world, listener->mutex);
    start_or_stop(listener);
}

void det_postgres_listen_close(struct postgres_store *store)
{
    if (!store->listener)
        return;
    stop_thread(store->listener);
    det_assert(!store->listener->thread && !store->listener->queues);
    listener_close(store->listener);
    store->listener = NULL;
}
