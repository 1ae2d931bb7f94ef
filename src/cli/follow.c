/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow.c - looks at an instance again and again. */
#include "cli/follow.h"

#include <poll.h>
#include <string.h>

#include "base/checked.h"
#include "cli/facts.h"
#include "cli/history.h"
#include "cli/line.h"

#define LOOK_FIRST (100 * DET_MILLISECOND)
#define LOOK_MAX   (500 * DET_MILLISECOND)

static int show_event(void *context, const struct det_store_event *row)
{
    struct follow *follow = context;
    struct cli *cli = follow->instance->store->cli;

    follow->after = row->sequence;
    if (follow->is_shown && cli->is_json)
        history_print_object(cli, follow->instance, row);
    else if (follow->is_shown)
        history_print_line(cli, follow->instance, row);
    return cli_is_stopped(cli) ? 1 : 0;
}

/* What has come since the last look. 0 or an error. */
static int show_news(struct follow *follow)
{
    struct instance *instance = follow->instance;
    const struct cli_store *store = instance->store;
    int r;

    if (instance->loaded.head.sequence <= follow->after)
        return 0;
    r = store->ops->events(
        store->store, instance->loaded.instance, follow->after, show_event, follow);
    /* Events that are not kept any more are not waited for. */
    if (r == 0)
        follow->after = instance->loaded.head.sequence;
    cli_flush(store->cli);
    return r < 0 ? r : 0;
}

/* As it was shown last; NULL: it was not. */
static const struct follow_effect *find_shown(
    const struct follow *follow, const struct det_store_effect *row)
{
    for (size_t i = 0; i < follow->effect_count; i++) {
        const struct follow_effect *shown = &follow->effects[i];

        if (shown->sequence == row->sequence && shown->index == row->index)
            return shown;
    }
    return NULL;
}

/* Whether an attempt of it has ended since. One that was never seen had none. */
static bool has_news(const struct follow *follow, const struct det_store_effect *row)
{
    const struct follow_effect *shown = find_shown(follow, row);

    if (row->attempts == 0 || row->last_error == DET_ERR_UNFINISHED)
        return false;
    return !shown || shown->attempts != row->attempts || shown->is_dead != row->is_dead;
}

static void print_attempt(struct follow *follow, const struct det_store_effect *row)
{
    struct instance *instance = follow->instance;
    struct cli *cli = instance->store->cli;
    struct line line;

    if (!cli->is_json) {
        facts_effect(cli, instance, row);
        return;
    }
    line_init(&line, cli->allocator);
    line_open(&line, NULL, '{');
    line_text(&line, "type", "attempt");
    line_text(&line, "machine", instance->machine->name);
    line_text(&line, "id", instance->id);
    instance_effect_line(&line, instance->store->store, instance->machine, instance->id, row);
    line_close(&line, '}');
    line_print(&line, cli);
    line_deinit(&line);
}

/* Attempts of effects that have ended since the last look. Those that are running are not known
 * yet, and keep what was shown of them. */
static void show_attempts(struct follow *follow)
{
    struct follow_effect now[FOLLOW_EFFECTS_MAX];
    size_t count = 0;

    for (const struct instance_effect *e = follow->instance->effects;
         e && count < FOLLOW_EFFECTS_MAX; e = e->next) {
        const struct follow_effect *shown = find_shown(follow, &e->row);

        if (has_news(follow, &e->row))
            print_attempt(follow, &e->row);
        else if (!shown)
            continue;
        now[count++] = e->row.last_error == DET_ERR_UNFINISHED && shown
                           ? *shown
                           : (struct follow_effect){ e->row.sequence, e->row.index, e->row.attempts,
                                                     e->row.is_dead };
    }
    memcpy(follow->effects, now, count * sizeof *now);
    follow->effect_count = count;
    cli_flush(follow->instance->store->cli);
}

static bool has_ended(const struct instance *instance)
{
    return instance->loaded.head.is_stopped || instance_is_final(instance);
}

/* False: the time is over, or somebody has had enough. */
static bool sleep_for(struct cli *cli, det_time span, det_time until)
{
    det_time now = det_world_now(cli->world, DET_CLOCK_MONOTONIC);

    if (cli_is_stopped(cli) || now >= until)
        return false;
    span = span < until - now ? span : until - now;
    (void)poll(NULL, 0, (int)((span + DET_MILLISECOND - 1) / DET_MILLISECOND));
    return !cli_is_stopped(cli);
}

int follow_until_end(struct follow *follow, det_time timeout)
{
    struct instance *instance = follow->instance;
    struct cli *cli = instance->store->cli;
    det_time until = det_add_time(det_world_now(cli->world, DET_CLOCK_MONOTONIC), timeout);
    det_time span = LOOK_FIRST;
    int r;

    for (;;) {
        uint64_t before = follow->after;

        r = show_news(follow);
        if (r == 0 && follow->is_shown)
            show_attempts(follow);
        if (r < 0 || has_ended(instance))
            break;
        span = follow->after != before ? LOOK_FIRST : span < LOOK_MAX ? span * 2 : LOOK_MAX;
        if (!sleep_for(cli, span, until))
            return cli_is_stopped(cli) ? CLI_INTERRUPTED : CLI_TIMEOUT;
        r = instance_refresh(instance);
        if (r < 0)
            break;
    }
    return r < 0 ? cli_store_complain(instance->store, r, NULL) : CLI_OK;
}
