/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_lists.c - many at once: instances, timers, effects, jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/api_parts.h"
#include "cli/job_line.h"
#include "cli/pending.h"
#include "cli/up.h"
#include "store/jobs.h"

static void begin_items(struct api_call *call)
{
    line_open(&call->line, NULL, '{');
    line_open(&call->line, "items", '[');
}

static void end_items(struct api_call *call)
{
    line_close(&call->line, ']');
    line_close(&call->line, '}');
}

/* Instances. */

struct listing {
    struct api_call *call;
    const struct det_machine *machine;
    size_t count, limit;
    bool is_cut;
    char last[DET_ID_MAX + 1];
};

/* One more than the limit is asked for, to know whether there is more. */
static int take_instance(void *context, const struct det_store_listed *row)
{
    struct listing *listing = context;
    struct line *line = &listing->call->line;

    if (listing->count == listing->limit || api_page_is_full(listing->call)) {
        listing->is_cut = true;
        return 1;
    }
    listing->count++;
    (void)det_text_copy(listing->last, sizeof listing->last, row->id);
    instance_row_line(line, listing->machine, row);
    return det_buffer_status(&line->text);
}

static bool read_state(
    struct api_call *call, const struct det_machine *machine, struct det_store_query *query)
{
    const char *state = api_query(call, "state");
    int found = state ? det_machine_find_state(machine, state) : 0;

    query->has_state = state != NULL;
    query->state = (uint16_t)found;
    if (found < 0)
        api_fail(call, DET_ERR_INVALID, "%s has no state '%.60s'", machine->name, state);
    return found >= 0;
}

void api_list_instances(struct api_call *call)
{
    struct listing listing = { .call = call };
    struct det_store_query query = { .limit = 0 };
    const char *stopped = api_query(call, "stopped");
    struct det_machine *machine;
    bool is_stopped = false;
    int r;

    if (!api_query_limit(call, &listing.limit) || !api_query_id(call, "after", &query.after) ||
        !api_query_bool(call, "stopped", &is_stopped) ||
        !api_query_time(call, "moved_before", &query.moved_before) || !api_reader_take(call) ||
        !api_reader_machine(call, call->parameters[0], &machine) ||
        !read_state(call, machine, &query))
        return;
    if (stopped)
        query.stopped = is_stopped ? DET_STORE_STOPPED : DET_STORE_RUNNING;
    query.limit = listing.limit + 1;
    listing.machine = machine;
    begin_items(call);
    r = call->reader->store.ops->list(
        call->reader->store.store, machine, &query, take_instance, &listing);
    line_close(&call->line, ']');
    line_text(&call->line, "next", listing.is_cut ? listing.last : NULL);
    line_close(&call->line, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Of one machine or of all. */
static int each_machine(struct api_call *call, cli_store_each_fn *each, void *context)
{
    struct cli_store *store = &call->reader->store;
    int code;

    store->wanted = api_query(call, "machine");
    code = cli_store_each(store, each, context);
    store->wanted = NULL;
    return code;
}

void api_list_timers(struct api_call *call)
{
    struct pending_timers timers;
    const struct pending_timer *all;
    size_t limit;
    int code;

    if (!api_query_limit(call, &limit) || !api_reader_take(call))
        return;
    pending_timers_init(&timers, &call->reader->store, call->api->allocator, limit);
    code = each_machine(call, pending_timers_of_machine, &timers);
    if (code == CLI_OK && det_buffer_status(&timers.found) < 0)
        code = cli_no_memory(&call->reader->cli);
    begin_items(call);
    all = code == CLI_OK ? pending_timers_sort(&timers) : NULL;
    for (size_t i = 0; all && i < pending_timers_count(&timers) && i < limit; i++)
        pending_timer_line(&call->line, &all[i]);
    end_items(call);
    pending_timers_deinit(&timers);
    if (code != CLI_OK)
        api_fail_reader(call, code);
}

/* Effects: those of the instances that have dead ones, or ones to be tried. */

struct effects {
    struct api_call *call;
    bool wants_dead, wants_alive;
    size_t count, limit;
    struct det_arena arena;
    struct det_buffer ids; /* const char * of instances with effects to be tried */
};

static int show_effects(
    struct effects *found, struct det_machine *machine, const char *id, bool is_dead)
{
    struct line *line = &found->call->line;
    struct instance instance;
    int r = instance_load(&found->call->reader->store, machine, id, &instance);

    /* One that has gone has nothing to show; one that is damaged is told where it is asked for. */
    if (r == DET_ERR_NOT_FOUND || r == DET_ERR_CORRUPT || r == DET_ERR_VERSION)
        return CLI_OK;
    if (r < 0)
        return instance_complain(&found->call->reader->store, machine->name, id, r);
    for (struct instance_effect *e = instance.effects; e && found->count < found->limit;
         e = e->next) {
        if (e->row.is_dead != is_dead)
            continue;
        found->count++;
        line_open(line, NULL, '{');
        line_text(line, "type", "effect");
        line_text(line, "machine", machine->name);
        line_text(line, "id", id);
        instance_effect_line(line, machine, id, &e->row);
        line_close(line, '}');
    }
    instance_close(&instance);
    return CLI_OK;
}

static int show_dead(void *context, struct det_machine *machine, const char *id)
{
    struct effects *found = context;

    /* Any other code ends the walk; this one is not complained about. */
    if (found->count >= found->limit)
        return CLI_INTERRUPTED;
    return show_effects(found, machine, id, true);
}

static int take_due(void *context, const struct det_store_due *row)
{
    struct effects *found = context;
    const char *id = row->is_timer ? "" : det_arena_copy(&found->arena, row->id);

    if (row->is_timer)
        return 0;
    if (!id)
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&found->ids, &id, sizeof id);
    return det_buffer_status(&found->ids);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int show_alive(struct effects *found, struct det_machine *machine)
{
    struct cli_store *store = &found->call->reader->store;
    const struct det_store_due_query query = { DET_NEVER - 1, PENDING_MAX };
    const char **ids;
    det_time next;
    int code = CLI_OK, r;

    det_buffer_clear(&found->ids);
    r = store->ops->due(store->store, machine, &query, take_due, found, &next);
    if (r < 0)
        return cli_store_complain(store, r, NULL);
    ids = (const char **)(void *)found->ids.data;
    /* One that has several is listed for each. */
    if (found->ids.size)
        qsort(ids, found->ids.size / sizeof *ids, sizeof *ids, by_text);
    for (size_t i = 0; i < found->ids.size / sizeof *ids && code == CLI_OK; i++) {
        if (found->count < found->limit && (i == 0 || strcmp(ids[i - 1], ids[i]) != 0))
            code = show_effects(found, machine, ids[i], false);
    }
    return code;
}

static int show_machine(void *context, struct det_machine *machine)
{
    static const struct det_store_query query = { .has_dead = true };
    struct effects *found = context;
    int code = CLI_OK;

    if (found->wants_dead)
        code = cli_store_instances(&found->call->reader->store, machine, &query, show_dead, found);
    if (code == CLI_INTERRUPTED)
        code = CLI_OK;
    if (code == CLI_OK && found->wants_alive)
        code = show_alive(found, machine);
    return code;
}

void api_list_effects(struct api_call *call)
{
    struct effects found = { .call = call };
    bool is_dead = false;
    int code;

    if (!api_query_limit(call, &found.limit) || !api_query_bool(call, "dead", &is_dead) ||
        !api_reader_take(call))
        return;
    found.wants_dead = is_dead || !api_query(call, "dead");
    found.wants_alive = !is_dead;
    det_arena_init(&found.arena, call->api->allocator);
    det_buffer_init(&found.ids, call->api->allocator);
    begin_items(call);
    code = each_machine(call, show_machine, &found);
    end_items(call);
    det_buffer_deinit(&found.ids);
    det_arena_deinit(&found.arena);
    if (code != CLI_OK)
        api_fail_reader(call, code);
}

/* Jobs of durable slots. */

struct jobs {
    struct api_call *call;
    size_t count, limit;
    uint64_t last;
    bool is_cut;
};

static int take_job(void *context, const struct det_job_row *row)
{
    struct jobs *jobs = context;
    struct line *line = &jobs->call->line;

    if (jobs->count == jobs->limit || api_page_is_full(jobs->call)) {
        jobs->is_cut = true;
        return 1;
    }
    jobs->count++;
    jobs->last = row->key;
    job_line(line, row);
    return det_buffer_status(&line->text);
}

static bool is_durable(struct api_call *call, const char *name)
{
    const struct config *config = &call->api->up->file.config;

    for (size_t i = 0; i < config->slot_count; i++) {
        if (strcmp(config->slots[i].name, name) != 0)
            continue;
        if (!config->slots[i].is_durable)
            api_fail(call, DET_ERR_UNSUPPORTED, "the slot '%s' keeps no jobs: see 'durable'", name);
        return config->slots[i].is_durable;
    }
    api_fail(call, DET_ERR_NOT_FOUND, "there is no slot '%.60s'", name);
    return false;
}

void api_list_jobs(struct api_call *call)
{
    struct jobs jobs = { .call = call };
    struct det_job_query query = { .queue = call->parameters[0] };
    const char *state = api_query(call, "state");
    struct cli_store *store;
    int r;

    if (!is_durable(call, call->parameters[0]) || !api_query_limit(call, &jobs.limit) ||
        !api_query_number(call, "after", 0, INT64_MAX, &query.after) || !api_reader_take(call))
        return;
    query.has_state = state != NULL;
    if (state && det_jobs_state_find(state, &query.state) < 0) {
        api_fail(call, DET_ERR_INVALID, "'state' is queued, delayed, running, done or failed");
        return;
    }
    store = &call->reader->store;
    if (!store->ops->jobs) {
        api_fail(call, DET_ERR_UNSUPPORTED, "this kind of store keeps no jobs");
        return;
    }
    query.limit = jobs.limit + 1;
    begin_items(call);
    r = store->ops->jobs->list(store->store, &query, take_job, &jobs);
    line_close(&call->line, ']');
    if (jobs.is_cut)
        line_number(&call->line, "next", jobs.last);
    else
        line_text(&call->line, "next", NULL);
    line_close(&call->line, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}
