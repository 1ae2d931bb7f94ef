/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_overview.c - all at one sight: what runs, how fast, and what does not go on by itself.
 *
 *     loop of `up`: status --> tree --> slots --> workers
 *     pool:                                           \--> counts, dead letters --> answer */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/api_counts.h"
#include "cli/api_parts.h"
#include "cli/up_machines.h"

#define STUCK_MAX  50
#define DEAD_SHOWN 20

/* What is collected on the way. */
struct overview {
    struct line *stuck; /* elements of an array, the first STUCK_MAX */
    size_t shown, dead_left;
    uint64_t total, dead; /* how many do not go on by themselves, dead effects apart */
};

/* `count` of them, with one line for all. */
static void add_stuck(
    struct overview *overview, const char *about, const char *name, const char *machine,
    const char *id, uint64_t count, const char *why)
{
    struct line *line = overview->stuck;

    if (overview->shown++ >= STUCK_MAX)
        return;
    line_open(line, NULL, '{');
    line_text(line, "about", about);
    line_text(line, "name", name);
    line_text(line, "machine", machine);
    line_text(line, "id", id);
    line_number(line, "count", count);
    line_text(line, "why", why);
    line_close(line, '}');
}

static void add_one(struct overview *overview, const char *about, const char *name, const char *why)
{
    overview->total++;
    add_stuck(overview, about, name, NULL, NULL, 1, why);
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
        add_one(overview, "task", text_of(task, "name"), reason ? reason : state);
        return true;
    }
    if (strcmp(state, "held") == 0 && waits && strstr(waits, "failed")) {
        add_one(overview, "task", text_of(task, "name"), waits);
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
            add_one(overview, "group", text_of(part, "name"), reason ? reason : "it has failed");
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
            add_one(overview, "slot", text_of(slot, "name"), "its queue is full: more is rejected");
    }
    api_put_json(call, "slots", parts);
}

static void write_workers(struct api_call *call, json_t *summary)
{
    struct overview *overview = call->own;
    size_t i;
    json_t *worker;

    json_array_foreach(json_object_get(summary, "unwell"), i, worker)
        add_stuck(overview, "worker", text_of(worker, "id"), NULL, NULL, 1, text_of(worker, "why"));
    overview->total += (uint64_t)json_integer_value(json_object_get(summary, "unwell_total"));
    api_put_json(call, "workers", json_object_get(summary, "workers"));
}

/* An effect or a timer that was given up. */
struct letter {
    const char *name;
    uint32_t attempts;
    int last_error;
    const char *reason;
};

/* How many there are; `ret` is one of them, an effect if there is one. */
static size_t find_last(const struct instance *instance, struct letter *ret)
{
    const struct det_machine *machine = instance->machine;

    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        const char *name = instance_timer_name(machine, t->row.timer);

        if (t->row.is_dead)
            *ret = (struct letter){ *name ? name : machine->events[t->row.event].name,
                                    t->row.attempts, t->row.last_error, t->row.reason };
    }
    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        if (e->row.is_dead)
            *ret = (struct letter){ machine->effects[e->row.effect].name, e->row.attempts,
                                    e->row.last_error, e->row.reason };
    }
    return instance_effect_count(instance, true) + instance_timer_count(instance, true);
}

/* On the pool. */
static int take_dead(void *context, struct det_machine *machine, const char *id)
{
    struct api_call *call = context;
    struct overview *overview = call->own;
    struct letter last = { .name = NULL };
    char why[INSTANCE_WHY_TEXT + 96], text[INSTANCE_WHY_TEXT], more[32] = "";
    struct instance instance;
    size_t count;

    if (overview->dead_left == 0)
        return CLI_INTERRUPTED;
    if (instance_load(&call->reader->store, machine, id, &instance) < 0)
        return CLI_OK;
    count = find_last(&instance, &last);
    if (count > 1)
        snprintf(more, sizeof more, " (%zu of them)", count);
    if (last.name) {
        overview->dead_left--;
        overview->dead += count;
        snprintf(
            why, sizeof why, "given up after %u attempt%s%s: %s", last.attempts,
            det_plural(last.attempts), more, instance_why(last.last_error, last.reason, text));
        add_stuck(overview, "effect", last.name, machine->name, id, count, why);
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
    uint64_t counted;
    int code;

    line_open(line, "machines", '[');
    if (call->api->address) {
        if (!api_reader_take(call) || !api_counts_write(call, NULL))
            return;
        overview->dead_left = DEAD_SHOWN;
        code = cli_store_each(&call->reader->store, take_dead_of, call);
        if (code != CLI_OK)
            add_one(overview, "store", "store", "it cannot be read");
        /* A count may be half a second older than what was just seen. */
        counted = api_counts_dead(call->api);
        overview->total += counted > overview->dead ? counted : overview->dead;
    }
    line_close(line, ']');
    line_open(line, "stuck", '[');
    if (overview->shown)
        line_raw(line, NULL, det_buffer_text(&overview->stuck->text), overview->stuck->text.size);
    line_close(line, ']');
    line_number(line, "stuck_total", overview->total);
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
    api_write_rates(call);
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
