/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_watch.c - polls whether the store is reachable, and reports changes.
 *
 *     reachable --- no connection: reports why ---> away --- reports for how long ---> reachable */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/machines.h"
#include "daemon/run.h"
#include "daemon/slots.h"

#define CHECK_EVERY  DET_SECOND
#define REPORT_EVERY (10 * DET_SECOND)

struct up_store_watch {
    struct det_timer check_timer;
    det_time unreachable_since; /* monotonic: when it became unreachable; 0: it is reachable */
    struct det_post post;
    _Atomic(det_time) report_at; /* monotonic: no report before; DET_NEVER: one is posted */
    char text[DET_ERROR_TEXT_MAX];
};

static struct det_store *store_of(const struct up *up)
{
    struct det_store *store = up_common_store(up);

    return store ? store : up_slots_store(up);
}

bool up_store_is_lost(struct up *up)
{
    struct det_store *store = store_of(up);

    return store && store->ops->is_lost && store->ops->is_lost(store);
}

bool up_store_is_unreachable(struct up *up, char text[UP_UNREACHABLE_TEXT])
{
    struct det_store *store = store_of(up);

    return store && store->ops->is_unreachable &&
           store->ops->is_unreachable(store, text, UP_UNREACHABLE_TEXT);
}

bool up_store_is_remote(const struct up *up)
{
    const struct det_store *store = store_of(up);

    return store && store->ops->is_unreachable;
}

int up_store_ask(struct up *up)
{
    struct det_store *store = store_of(up);
    uint64_t count;

    return store && store->ops->nodes ? store->ops->nodes(store, &count) : 0;
}

void up_store_limit(struct up *up, det_time span)
{
    struct det_store *const stores[] = { up_shared_store(up), up_slots_store(up),
                                         up->machines ? up->machines->store : NULL };

    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (stores[i])
            det_store_cancel(stores[i], span);
}

static void check_store(void *argument)
{
    struct up *up = argument;
    det_time now = det_loop_now(up->loop);
    char text[UP_UNREACHABLE_TEXT], span[UP_SPAN_TEXT];
    bool is_unreachable = up_store_is_unreachable(up, text);
    int r;

    det_assert(now >= up->watch->unreachable_since);
    if (is_unreachable && !up->watch->unreachable_since) {
        up_note_failure(up, UP_NAME, "store: no connection: %s; retrying", text);
        up->watch->unreachable_since = now;
    } else if (!is_unreachable && up->watch->unreachable_since) {
        up_note_failure(
            up, UP_NAME, "store: back after %s", up_span(now - up->watch->unreachable_since, span));
        up->watch->unreachable_since = 0;
    }
    r = det_loop_timer_set(up->loop, &up->watch->check_timer, now + CHECK_EVERY);
    /* Out of memory, polling ends; parts that need the store still report errors. */
    (void)r;
}

int up_store_watch(struct up *up)
{
    struct det_store *store = store_of(up);

    /* After a reload the timer may be set already. */
    det_loop_timer_cancel(up->loop, &up->watch->check_timer);
    up->watch->check_timer = (struct det_timer){ .run = check_store, .argument = up };
    if (!store || !store->ops->is_unreachable)
        return 0;
    return det_loop_timer_set(
        up->loop, &up->watch->check_timer, det_loop_now(up->loop) + CHECK_EVERY);
}

int up_store_watch_open(struct up *up)
{
    det_assert(!up->watch);
    up->watch = DET_NEW(up->cli->allocator, struct up_store_watch);
    return up->watch ? 0 : DET_ERR_NO_MEMORY;
}

void up_store_watch_close(struct up *up)
{
    if (up->watch)
        det_loop_timer_cancel(up->loop, &up->watch->check_timer);
}

void up_store_watch_free(struct up *up)
{
    if (up->watch)
        DET_DELETE(up->cli->allocator, up->watch);
    up->watch = NULL;
}

static void print_report(void *argument)
{
    struct up *up = argument;

    det_assert(atomic_load(&up->watch->report_at) == DET_NEVER);
    up_note_failure(up, UP_NAME, "store: %s", up->watch->text);
    atomic_store(
        &up->watch->report_at,
        det_add_time(det_world_now(up->cli->world, DET_CLOCK_MONOTONIC), REPORT_EVERY));
}

void up_store_report(struct up *up, const char *text)
{
    struct up_store_watch *watch = up->watch;
    det_time next = atomic_load(&watch->report_at);

    if (det_world_now(up->cli->world, DET_CLOCK_MONOTONIC) < next ||
        !atomic_compare_exchange_strong(&watch->report_at, &next, DET_NEVER))
        return;
    (void)det_text_copy(watch->text, sizeof watch->text, text);
    watch->post = (struct det_post){ .run = print_report, .argument = up };
    det_loop_post(up->loop, &watch->post);
}
