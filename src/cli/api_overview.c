/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_overview.c - all at one sight: what runs, how fast, and what does not go on by itself.
 *
 *     loop of `up`: status --> tree --> slots --> workers
 *     pool:                                           \--> counts, dead letters --> answer */
#include <stdlib.h>
#include <string.h>

#include "cli/api_counts.h"
#include "cli/api_parts.h"
#include "cli/up_machines.h"

#define RATE_STEP  (5 * DET_SECOND)
#define STUCK_MAX  50
#define DEAD_SHOWN 20

/* Rates: what happened in each step of the last minute, oldest first. */

static const char *const rate_names[UP_RATES] = { "events", "unhandled", "effects_failed",
                                                  "restarts" };

static void read_totals(const struct api *api, uint64_t totals[UP_RATES])
{
    struct det_runtime_counts counts = { 0 };

    if (api->up->machines)
        det_runtime_counts(api_runtime(api), &counts);
    totals[0] = counts.transitions;
    totals[1] = counts.unhandled;
    totals[2] = counts.effects_failed;
    totals[3] = atomic_load(&api->up->restarts);
}

static void on_sample(void *argument)
{
    struct api *api = argument;
    struct up_rates *rates = &api->up->rates;
    uint64_t totals[UP_RATES];

    read_totals(api, totals);
    for (size_t i = 0; i < UP_RATES; i++) {
        memmove(
            rates->steps[i], rates->steps[i] + 1, sizeof rates->steps[i] - sizeof *rates->steps[i]);
        /* Machines that were opened anew count from the beginning. */
        rates->steps[i][UP_RATE_STEPS - 1] =
            totals[i] - (totals[i] < rates->last[i] ? 0 : rates->last[i]);
        rates->last[i] = totals[i];
    }
    (void)!det_loop_timer_set(api->loop, &api->rates_timer, det_loop_now(api->loop) + RATE_STEP);
}

int api_rates_open(struct api *api)
{
    api->rates_timer = (struct det_timer){ .run = on_sample, .argument = api };
    return det_loop_timer_set(api->loop, &api->rates_timer, det_loop_now(api->loop) + RATE_STEP);
}

static void write_rates(struct api_call *call)
{
    const struct up_rates *rates = &call->api->up->rates;
    struct line *line = &call->line;
    char text[32];
    int size;

    line_open(line, "rates", '{');
    line_signed(line, "step_ns", RATE_STEP);
    for (size_t i = 0; i < UP_RATES; i++) {
        line_open(line, rate_names[i], '[');
        for (size_t k = 0; k < UP_RATE_STEPS; k++) {
            size = snprintf(
                text, sizeof text, "%.1f",
                (double)rates->steps[i][k] * (double)DET_SECOND / (double)RATE_STEP);
            line_raw(line, NULL, text, (size_t)size);
        }
        line_close(line, ']');
    }
    line_close(line, '}');
}

/* What is collected on the way. */
struct overview {
    struct line *stuck; /* elements of an array */
    size_t stuck_count, dead_left;
};

static void add_stuck(
    struct overview *overview, const char *about, const char *name, const char *machine,
    const char *id, const char *why)
{
    struct line *line = overview->stuck;

    if (overview->stuck_count++ >= STUCK_MAX)
        return;
    line_open(line, NULL, '{');
    line_text(line, "about", about);
    line_text(line, "name", name);
    line_text(line, "machine", machine);
    line_text(line, "id", id);
    line_text(line, "why", why);
    line_close(line, '}');
}

static const char *text_of(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

/* Tasks that are not well; those that rest or wait for others as they should are. */
static bool judge_task(struct overview *overview, json_t *task)
{
    static const char *const bad[] = { "failed", "backoff", "stuck", "rejected", NULL };
    const char *state = text_of(task, "state"), *reason = text_of(task, "reason");
    const char *waits = text_of(task, "waits_for");

    if (is_one_of(state, bad)) {
        add_stuck(overview, "task", text_of(task, "name"), NULL, NULL, reason ? reason : state);
        return true;
    }
    if (strcmp(state, "held") == 0 && waits && strstr(waits, "failed")) {
        add_stuck(overview, "task", text_of(task, "name"), NULL, NULL, waits);
        return true;
    }
    return json_integer_value(json_object_get(task, "failures")) > 0;
}

static void write_tasks(struct api_call *call, json_t *parts)
{
    struct overview *overview = call->own;
    size_t i;
    json_t *part;

    line_open(&call->line, "tasks", '[');
    json_array_foreach(parts, i, part)
    {
        bool is_group = strcmp(text_of(part, "kind"), "group") == 0;
        const char *reason = text_of(part, "reason");

        if (is_group && strcmp(text_of(part, "state"), "failed") == 0)
            add_stuck(
                overview, "group", text_of(part, "name"), NULL, NULL,
                reason ? reason : "it has failed");
        else if (!is_group && judge_task(overview, part))
            api_put_json(call, NULL, part);
    }
    line_close(&call->line, ']');
}

static void write_slots(struct api_call *call, json_t *parts)
{
    struct overview *overview = call->own;
    size_t i;
    json_t *slot;

    json_array_foreach(parts, i, slot)
    {
        json_t *most = json_object_get(slot, "depth_max");

        if (json_is_integer(most) && json_integer_value(most) > 0 &&
            json_integer_value(json_object_get(slot, "depth")) >= json_integer_value(most))
            add_stuck(
                overview, "slot", text_of(slot, "name"), NULL, NULL,
                "its queue is full: more is rejected");
    }
    api_put_json(call, "slots", parts);
}

static void write_workers(struct api_call *call, json_t *summary)
{
    struct overview *overview = call->own;
    size_t i;
    json_t *worker;

    json_array_foreach(json_object_get(summary, "unwell"), i, worker)
        add_stuck(overview, "worker", text_of(worker, "id"), NULL, NULL, text_of(worker, "why"));
    api_put_json(call, "workers", json_object_get(summary, "workers"));
}

/* On the pool. */
static int take_dead(void *context, struct det_machine *machine, const char *id)
{
    struct api_call *call = context;
    struct overview *overview = call->own;
    const struct det_store_effect *last = NULL;
    char why[INSTANCE_WHY_TEXT + 96], text[INSTANCE_WHY_TEXT], more[32] = "";
    struct instance instance;
    size_t count;

    if (overview->dead_left == 0)
        return CLI_INTERRUPTED;
    if (instance_load(&call->reader->store, machine, id, &instance) < 0)
        return CLI_OK;
    for (const struct instance_effect *e = instance.effects; e; e = e->next)
        last = e->row.is_dead ? &e->row : last;
    count = instance_effect_count(&instance, true);
    if (count > 1)
        snprintf(more, sizeof more, " (%zu of them)", count);
    if (last) {
        overview->dead_left--;
        snprintf(
            why, sizeof why, "given up after %u attempt%s%s: %s", last->attempts,
            last->attempts == 1 ? "" : "s", more, instance_why(last, text));
        add_stuck(overview, "effect", machine->effects[last->effect].name, machine->name, id, why);
    }
    instance_close(&instance);
    return CLI_OK;
}

static int take_dead_of(void *context, struct det_machine *machine)
{
    static const struct det_store_query query = { .has_dead = true };
    struct api_call *call = context;
    int code = cli_store_instances(&call->reader->store, machine, &query, take_dead, call);

    return code == CLI_INTERRUPTED ? CLI_OK : code;
}

static void finish_overview(struct api_call *call)
{
    struct overview *overview = call->own;
    struct line *line = &call->line;
    int code;

    line_open(line, "machines", '[');
    if (call->api->address) {
        if (!api_reader_take(call) || !api_counts_write(call, NULL))
            return;
        overview->dead_left = DEAD_SHOWN;
        code = cli_store_each(&call->reader->store, take_dead_of, call);
        if (code != CLI_OK)
            add_stuck(overview, "store", call->api->url, NULL, NULL, "it cannot be read");
    }
    line_close(line, ']');
    line_open(line, "stuck", '[');
    if (overview->stuck_count)
        line_raw(line, NULL, det_buffer_text(&overview->stuck->text), overview->stuck->text.size);
    line_close(line, ']');
    line_close(line, '}');
}

/* On the http thread: one question behind the other. */

static void take_workers(struct api_call *call, json_t *parts)
{
    write_workers(call, json_array_get(parts, 0));
    api_defer(call, finish_overview);
}

static void take_slots(struct api_call *call, json_t *parts)
{
    write_slots(call, parts);
    api_ask_further(call, "workers-summary", json_object(), take_workers);
}

static void take_tree(struct api_call *call, json_t *parts)
{
    write_tasks(call, parts);
    api_ask_further(call, "slots", json_object(), take_slots);
}

static void take_status(struct api_call *call, json_t *parts)
{
    line_open(&call->line, NULL, '{');
    api_write_status(call, "status", parts);
    write_rates(call);
    api_ask_further(call, "tree", json_object(), take_tree);
}

void api_get_overview(struct api_call *call)
{
    struct overview *overview = det_arena_alloc(&call->arena, sizeof *overview);

    if (!overview) {
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        api_finish(call);
        return;
    }
    overview->stuck = &call->aside;
    call->own = overview;
    api_ask_further(call, "status", json_object(), take_status);
}
