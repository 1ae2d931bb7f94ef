/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow.c - polls an instance. */
#include "client/follow.h"

#include <poll.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "inspect/event_print.h"
#include "inspect/instance_summary.h"
#include "json/writer.h"

#define CHECK_FIRST (100 * DET_MILLISECOND)
#define CHECK_MAX   (500 * DET_MILLISECOND)

static int show_event(void *context, const struct det_store_event *row)
{
    struct follow *follow = context;
    struct cli *cli = follow->instance->store->cli;

    follow->after = row->sequence;
    if (follow->is_shown && cli->is_json)
        event_print_object(cli, follow->instance, row);
    else if (follow->is_shown)
        event_print_line(cli, follow->instance, row);
    return cli_is_stopped(cli) ? 1 : 0;
}

/* Shows the new events. Returns 0 or an error. */
static int show_news(struct follow *follow)
{
    struct instance *instance = follow->instance;
    const struct cli_store *store = instance->store;
    int r;

    if (instance->loaded.head.sequence <= follow->after)
        return 0;
    r = store->ops->events(
        store->store, instance->loaded.instance, follow->after, show_event, follow);
    /* Deleted events are skipped. */
    if (r == 0)
        follow->after = instance->loaded.head.sequence;
    cli_flush(store->cli);
    return r < 0 ? r : 0;
}

/* Returns the attempts as shown last, or NULL. */
static const struct follow_attempts *find_shown(
    const struct follow *follow, const struct follow_attempts *wanted)
{
    for (size_t i = 0; i < follow->shown_count; i++) {
        const struct follow_attempts *shown = &follow->shown[i];

        if (shown->is_timer == wanted->is_timer && shown->sequence == wanted->sequence &&
            shown->index == wanted->index)
            return shown;
    }
    return NULL;
}

/* Returns the attempts to keep until the next poll. The result of a running attempt is unknown, so
 * the shown one is kept. `ret_is_news`: an attempt has ended since; a new effect had none. */
static struct follow_attempts compare_attempts(
    const struct follow *follow, struct follow_attempts now, int last_error, bool *ret_is_news)
{
    const struct follow_attempts *shown = find_shown(follow, &now);
    bool is_running = now.attempts == 0 || last_error == DET_ERR_UNFINISHED;

    *ret_is_news =
        !is_running && (!shown || shown->attempts != now.attempts || shown->is_dead != now.is_dead);
    if (is_running && shown)
        return *shown;
    if (is_running)
        now.attempts = 0;
    return now;
}

static void begin_attempt(struct det_json_writer *json, const struct instance *instance)
{
    det_json_writer_init(json, instance->store->cli->allocator);
    instance_item_begin(json, "attempt", instance->machine->name, instance->id);
}

static void print_effect(const struct instance *instance, const struct det_store_effect *row)
{
    struct det_json_writer json;

    if (!instance->store->cli->is_json) {
        facts_effect(instance->store->cli, instance, row);
        return;
    }
    begin_attempt(&json, instance);
    instance_effect_line(&json, instance->store->store, instance->machine, instance->id, row);
    cli_json_end(instance->store->cli, &json);
}

static void print_timer(const struct instance *instance, const struct det_store_timer *row)
{
    struct det_json_writer json;

    if (!instance->store->cli->is_json) {
        facts_timer(instance->store->cli, instance, row);
        return;
    }
    begin_attempt(&json, instance);
    instance_timer_line(&json, instance->machine, row);
    instance_attempts_line(&json, row);
    cli_json_end(instance->store->cli, &json);
}

/* Shows the attempts of effects and timers that have ended since the last poll. */
static void show_attempts(struct follow *follow)
{
    const struct instance *instance = follow->instance;
    struct follow_attempts now[FOLLOW_ATTEMPTS_MAX];
    size_t count = 0;
    bool is_news;

    for (const struct instance_effect *e = instance->effects; e && count < FOLLOW_ATTEMPTS_MAX;
         e = e->next) {
        now[count++] = compare_attempts(
            follow,
            (struct follow_attempts){ false, e->row.sequence, e->row.index, e->row.attempts,
                                      e->row.is_dead },
            e->row.last_error, &is_news);
        if (is_news)
            print_effect(instance, &e->row);
    }
    for (const struct instance_timer *t = instance->timers; t && count < FOLLOW_ATTEMPTS_MAX;
         t = t->next) {
        now[count++] = compare_attempts(
            follow,
            (struct follow_attempts){ true, t->row.visit, t->row.timer, t->row.attempts,
                                      t->row.is_dead },
            t->row.last_error, &is_news);
        if (is_news)
            print_timer(instance, &t->row);
    }
    det_assert(count <= FOLLOW_ATTEMPTS_MAX);
    memcpy(follow->shown, now, count * sizeof *now);
    follow->shown_count = count;
    cli_flush(instance->store->cli);
}

static bool has_ended(const struct instance *instance)
{
    return instance->loaded.head.is_stopped || instance_is_final(instance);
}

/* Returns false at the timeout, or after Ctrl-C. */
static bool sleep_for(struct cli *cli, det_time span, det_time until)
{
    det_time now = det_world_now(cli->world, DET_CLOCK_MONOTONIC);

    if (cli_is_stopped(cli) || now >= until)
        return false;
    det_assert(span > 0);
    span = span < until - now ? span : until - now;
    (void)poll(NULL, 0, (int)((span + DET_MILLISECOND - 1) / DET_MILLISECOND));
    return !cli_is_stopped(cli);
}

int follow_until_end(struct follow *follow, det_time timeout)
{
    struct instance *instance = follow->instance;
    struct cli *cli = instance->store->cli;
    det_time until = det_add_time(det_world_now(cli->world, DET_CLOCK_MONOTONIC), timeout);
    det_time span = CHECK_FIRST;
    int r;

    for (;;) {
        uint64_t before = follow->after;

        r = show_news(follow);
        if (r == 0 && follow->is_shown)
            show_attempts(follow);
        if (r < 0 || has_ended(instance))
            break;
        span = follow->after != before ? CHECK_FIRST : span < CHECK_MAX ? span * 2 : CHECK_MAX;
        if (!sleep_for(cli, span, until))
            return cli_is_stopped(cli) ? CLI_INTERRUPTED : CLI_TIMEOUT;
        r = instance_refresh(instance);
        if (r < 0)
            break;
    }
    return r < 0 ? cli_report_store_error(instance->store, r, NULL) : CLI_OK;
}
