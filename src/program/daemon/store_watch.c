/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_watch.c - looks whether the store can be reached, and tells when that changes.
 *
 *     there --- no connection: told, with why ---> away --- told, with how long ---> there */
#include <detent/driver/loop.h>

#include "base/checked.h"
#include "base/text.h"
#include "daemon/machines.h"

#define LOOK_EVERY   DET_SECOND
#define REPORT_EVERY (10 * DET_SECOND)

static struct det_store *store_of(const struct up *up)
{
    return up->shared ? up->shared : up->machines ? up->machines->store : up->store;
}

bool up_store_is_lost(struct up *up)
{
    struct det_store *store = store_of(up);

    return store && store->ops->is_lost && store->ops->is_lost(store);
}

bool up_store_is_away(struct up *up, char text[UP_AWAY_TEXT])
{
    struct det_store *store = store_of(up);

    return store && store->ops->is_away && store->ops->is_away(store, text, UP_AWAY_TEXT);
}

bool up_store_is_remote(const struct up *up)
{
    const struct det_store *store = store_of(up);

    return store && store->ops->is_away;
}

int up_store_ask(struct up *up)
{
    struct det_store *store = store_of(up);
    uint64_t count;

    return store && store->ops->nodes ? store->ops->nodes(store, &count) : 0;
}

void up_store_limit(struct up *up, det_time span)
{
    struct det_store *const stores[] = { up->shared, up->store,
                                         up->machines ? up->machines->store : NULL };

    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (stores[i])
            det_store_cancel(stores[i], span);
}

static void look(void *argument)
{
    struct up *up = argument;
    det_time now = det_loop_now(up->loop);
    char text[UP_AWAY_TEXT], span[UP_SPAN_TEXT];
    bool is_away = up_store_is_away(up, text);
    int r;

    if (is_away && !up->away_since) {
        up_note_failure(up, UP_NAME, "store: no connection: %s; it is tried again", text);
        up->away_since = now;
    } else if (!is_away && up->away_since) {
        up_note_failure(up, UP_NAME, "store: back after %s", up_span(now - up->away_since, span));
        up->away_since = 0;
    }
    r = det_loop_timer_set(up->loop, &up->store_look, now + LOOK_EVERY);
    /* Without memory nobody looks any more; what needs the store says so itself. */
    (void)r;
}

int up_store_watch(struct up *up)
{
    struct det_store *store = store_of(up);

    /* A reload comes here again, and the one that is set must not be forgotten. */
    det_loop_timer_cancel(up->loop, &up->store_look);
    up->store_look = (struct det_timer){ .run = look, .argument = up };
    if (!store || !store->ops->is_away)
        return 0;
    return det_loop_timer_set(up->loop, &up->store_look, det_loop_now(up->loop) + LOOK_EVERY);
}

static void tell_report(void *argument)
{
    struct up *up = argument;

    up_note_failure(up, UP_NAME, "store: %s", up->store_report.text);
    atomic_store(
        &up->store_report.next,
        det_add_time(det_world_now(up->cli->world, DET_CLOCK_MONOTONIC), REPORT_EVERY));
}

void up_store_report(struct up *up, const char *text)
{
    struct up_store_report *report = &up->store_report;
    det_time next = atomic_load(&report->next);

    if (det_world_now(up->cli->world, DET_CLOCK_MONOTONIC) < next ||
        !atomic_compare_exchange_strong(&report->next, &next, DET_NEVER))
        return;
    (void)det_text_copy(report->text, sizeof report->text, text);
    report->post = (struct det_post){ .run = tell_report, .argument = up };
    det_loop_post(up->loop, &report->post);
}
