/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list_routes.c - many at once: instances, timers, effects, locks, jobs. */
#include <detent/tool/machine.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "inspect/explain.h"
#include "inspect/job_print.h"
#include "inspect/pending.h"
#include "store/jobs.h"

static void begin_items(struct api_call *call)
{
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
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
    struct det_json_writer *json = &listing->call->json;

    if (listing->count == listing->limit || api_page_is_full(listing->call)) {
        listing->is_cut = true;
        return 1;
    }
    listing->count++;
    (void)det_text_copy(listing->last, sizeof listing->last, row->id);
    instance_row_line(json, listing->machine, row);
    return det_buffer_status(&json->text);
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
    det_json_close(&call->json, ']');
    det_json_text(&call->json, "next", listing.is_cut ? listing.last : NULL);
    det_json_close(&call->json, '}');
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

/* Pages of what is pending: timers, or effects. Dead letters come first, by machine and id; then
 * what goes on by itself, the first due first (pending.h). */
struct paging {
    struct api_call *call;
    struct pending_list list;
    struct pending_place after, last; /* the page stands behind the one, and ends with the other */
    size_t count, limit;
    bool has_more;
};

/* False: the call has failed. */
static bool begin_paging(struct paging *paging, struct api_call *call, enum det_store_due_kind kind)
{
    const char *after = api_query(call, "after");

    *paging = (struct paging){ .call = call };
    if (!api_query_limit(call, &paging->limit))
        return false;
    if (after && !pending_place_read(after, &call->arena, &paging->after)) {
        api_fail(call, DET_ERR_INVALID, "'after' is the 'next' of the page before");
        return false;
    }
    if (!api_reader_take(call))
        return false;
    pending_init(&paging->list, &call->reader->store, call->api->allocator, kind, paging->limit);
    if (!after)
        paging->after = paging->list.after;
    begin_items(call);
    return true;
}

static void end_paging(struct paging *paging, int code)
{
    struct det_json_writer *json = &paging->call->json;

    det_json_close(json, ']');
    if (paging->has_more)
        pending_place_line(json, "next", &paging->last);
    else
        det_json_text(json, "next", NULL);
    det_json_number(json, "left_out", paging->list.left_out);
    det_json_close(json, '}');
    if (code == CLI_OK && det_buffer_status(&paging->list.found) < 0)
        code = cli_no_memory(&paging->call->reader->cli);
    pending_deinit(&paging->list);
    if (code != CLI_OK)
        api_fail_reader(paging->call, code);
}

static bool is_full(const struct paging *paging)
{
    return paging->count == paging->limit || api_page_is_full(paging->call);
}

static void put_effect(
    struct paging *paging, const struct det_machine *machine, const struct pending_place *place,
    const struct det_store_effect *row)
{
    struct det_json_writer *json = &paging->call->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "type", "effect");
    det_json_text(json, "machine", machine->name);
    det_json_text(json, "id", place->id);
    instance_effect_line(json, paging->call->reader->store.store, machine, place->id, row);
    det_json_close(json, '}');
    paging->count++;
    paging->last = *place;
}

static void put_dead_timer(
    struct paging *paging, const struct det_machine *machine, const struct pending_place *place,
    const struct det_store_timer *row)
{
    struct det_json_writer *json = &paging->call->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "type", "timer");
    det_json_text(json, "machine", machine->name);
    det_json_text(json, "id", place->id);
    instance_dead_timer_line(json, machine, place->id, row);
    det_json_close(json, '}');
    paging->count++;
    paging->last = *place;
}

static void put_timer(struct paging *paging, const struct pending *timer)
{
    pending_timer_line(&paging->call->json, timer);
    paging->count++;
    paging->last = timer->place;
}

/* Where some could not be read the page has fewer than it may, and the next one begins at the time
 * up to which all were looked at. */
static void put_pending(struct paging *paging)
{
    struct pending_list *list = &paging->list;
    size_t count, shown = 0;
    const struct pending *all = pending_sort(list, &count);

    for (; shown < count && !is_full(paging); shown++) {
        if (list->kind == DET_DUE_TIMERS)
            put_timer(paging, &all[shown]);
        else
            put_effect(paging, all[shown].machine, &all[shown].place, &all[shown].effect);
    }
    paging->has_more = shown < count || list->until != DET_NEVER;
    if (shown == count)
        paging->last = (struct pending_place){ list->until, "", "", "", 0, 0 };
}

static int put_alive(struct paging *paging)
{
    int code;

    paging->list.limit = paging->limit - paging->count;
    if (paging->after.due)
        paging->list.after = paging->after;
    code = each_machine(paging->call, pending_of_machine, &paging->list);
    if (code == CLI_OK)
        put_pending(paging);
    return code;
}

void api_list_timers(struct api_call *call)
{
    struct paging paging;

    if (begin_paging(&paging, call, DET_DUE_TIMERS))
        end_paging(&paging, put_alive(&paging));
}

/* False: no memory. */
static bool put_dead_letters(struct paging *paging, struct instance *instance, const char *id)
{
    const struct det_machine *machine = instance->machine;
    size_t count = 0;
    const struct pending_dead *all = pending_dead_of(instance, id, &paging->after, &count);

    for (size_t i = 0; i < count && !paging->has_more; i++) {
        paging->has_more = is_full(paging);
        if (paging->has_more)
            break;
        if (all[i].timer)
            put_dead_timer(paging, machine, &all[i].place, all[i].timer);
        else
            put_effect(paging, machine, &all[i].place, all[i].effect);
    }
    return all != NULL;
}

/* Those of an instance. One that has gone has none; one that is damaged is told of where it is
 * asked for. */
static int put_dead(void *context, struct det_machine *machine, const char *id)
{
    struct paging *paging = context;
    struct cli_store *store = &paging->call->reader->store;
    const char *copy = det_arena_copy(&paging->call->arena, id);
    struct instance instance;
    bool is_put;
    int r;

    r = copy ? instance_load(store, machine, id, &instance) : DET_ERR_NO_MEMORY;
    paging->list.left_out += r == DET_ERR_CORRUPT || r == DET_ERR_VERSION;
    if (r == DET_ERR_NOT_FOUND || r == DET_ERR_CORRUPT || r == DET_ERR_VERSION)
        return CLI_OK;
    if (r < 0)
        return instance_complain(store, machine->name, id, r);
    is_put = put_dead_letters(paging, &instance, copy);
    instance_close(&instance);
    if (!is_put)
        return cli_no_memory(store->cli);
    /* Any other code ends the walk; this one is not complained about. */
    return paging->has_more ? CLI_INTERRUPTED : CLI_OK;
}

/* The instance in which the page before has ended may have more of them. */
static int put_dead_of(void *context, struct det_machine *machine)
{
    struct paging *paging = context;
    struct det_store_query query = { .has_dead = true };
    int order = strcmp(machine->name, paging->after.machine), code = CLI_OK;

    if (order < 0 || paging->has_more)
        return CLI_OK;
    if (order == 0) {
        query.after = paging->after.id;
        code = put_dead(paging, machine, query.after);
    }
    if (code == CLI_OK)
        code = cli_store_instances(&paging->call->reader->store, machine, &query, put_dead, paging);
    return code == CLI_INTERRUPTED ? CLI_OK : code;
}

void api_list_effects(struct api_call *call)
{
    struct paging paging;
    bool is_dead = false;
    int code = CLI_OK;

    if (!api_query_bool(call, "dead", &is_dead) || !begin_paging(&paging, call, DET_DUE_EFFECTS))
        return;
    if ((is_dead || !api_query(call, "dead")) && paging.after.due == 0)
        code = each_machine(call, put_dead_of, &paging);
    if (code == CLI_OK && !is_dead && !paging.has_more)
        code = put_alive(&paging);
    end_paging(&paging, code);
}

/* Locks that are held, by machine and id. */

static int put_lock(void *context, struct det_machine *machine, const char *id)
{
    struct paging *paging = context;
    struct cli_store *store = &paging->call->reader->store;
    struct det_json_writer *json = &paging->call->json;
    struct det_store_lease lease = { .token = 0 };
    int r = explain_lock_of(store, machine, id, &lease);

    if (r == DET_ERR_NOT_FOUND || (r == 0 && !lease.owner[0]))
        return CLI_OK; /* It has gone, or was given up. */
    if (r < 0)
        return instance_complain(store, machine->name, id, r);
    paging->has_more = is_full(paging);
    if (paging->has_more)
        return CLI_INTERRUPTED;
    paging->count++;
    paging->last = (struct pending_place){ .machine = machine->name,
                                           .id = det_arena_copy(&paging->call->arena, id),
                                           .timer = "" };
    det_json_open(json, NULL, '{');
    det_json_text(json, "machine", machine->name);
    det_json_text(json, "id", id);
    explain_lock_line(json, &lease);
    det_json_close(json, '}');
    return paging->last.id ? CLI_OK : cli_no_memory(store->cli);
}

static int put_locks_of(void *context, struct det_machine *machine)
{
    struct paging *paging = context;
    struct det_store_query query = { .is_locked = true };
    int order = strcmp(machine->name, paging->after.machine), code;

    if (order < 0 || paging->has_more)
        return CLI_OK;
    if (order == 0)
        query.after = paging->after.id;
    code = cli_store_instances(&paging->call->reader->store, machine, &query, put_lock, paging);
    return code == CLI_INTERRUPTED ? CLI_OK : code;
}

void api_list_locks(struct api_call *call)
{
    struct paging paging;

    if (begin_paging(&paging, call, DET_DUE_ANY))
        end_paging(&paging, each_machine(call, put_locks_of, &paging));
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
    struct det_json_writer *json = &jobs->call->json;

    if (jobs->count == jobs->limit || api_page_is_full(jobs->call)) {
        jobs->is_cut = true;
        return 1;
    }
    jobs->count++;
    jobs->last = row->key;
    job_line(json, row);
    return det_buffer_status(&json->text);
}

/* False: the call has failed. */
static bool read_jobs_query(struct api_call *call, size_t *ret_limit, struct det_job_query *ret)
{
    const char *state = api_query(call, "state"), *order = api_query(call, "order");

    if (!api_query_limit(call, ret_limit) ||
        !api_query_number(call, "after", 0, INT64_MAX, &ret->after))
        return false;
    ret->limit = *ret_limit + 1;
    ret->has_state = state != NULL;
    if (state && det_jobs_state_find(state, &ret->state) < 0) {
        api_fail(call, DET_ERR_INVALID, "'state' is queued, delayed, running, done or failed");
        return false;
    }
    ret->is_newest_first = !order || strcmp(order, "newest") == 0;
    if (!ret->is_newest_first && strcmp(order, "oldest") != 0) {
        api_fail(call, DET_ERR_INVALID, "'order' is newest or oldest");
        return false;
    }
    return true;
}

static void list_jobs(struct api_call *call)
{
    struct jobs jobs = { .call = call };
    struct det_job_query query = { .queue = call->parameters[0] };
    struct cli_store *store;
    int r;

    if (!read_jobs_query(call, &jobs.limit, &query) || !api_reader_take(call))
        return;
    store = &call->reader->store;
    if (!store->ops->jobs) {
        api_fail(call, DET_ERR_UNSUPPORTED, "this kind of store keeps no jobs");
        return;
    }
    begin_items(call);
    r = store->ops->jobs->list(store->store, &query, take_job, &jobs);
    det_json_close(&call->json, ']');
    if (jobs.is_cut)
        det_json_number(&call->json, "next", jobs.last);
    else
        det_json_text(&call->json, "next", NULL);
    det_json_close(&call->json, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Which slots there are is asked of `up`: a reload changes them. */
static void take_slots(struct api_call *call, json_t *parts)
{
    const char *name = call->parameters[0];
    size_t i;
    json_t *slot;

    json_array_foreach(parts, i, slot)
    {
        if (strcmp(json_string_value(json_object_get(slot, "name")), name) == 0) {
            api_fail(call, DET_ERR_UNSUPPORTED, "the slot '%s' keeps no jobs: see 'durable'", name);
            /* Of this slot, and not of the server. */
            call->status = 422;
            return;
        }
    }
    api_fail(call, DET_ERR_NOT_FOUND, "there is no slot '%.60s'", name);
}

/* Those that are durable stay the same as long as it runs. */
void api_list_jobs(struct api_call *call)
{
    if (up_durable_find(call->api->up, call->parameters[0]))
        api_defer(call, list_jobs);
    else
        api_ask(call, "slots", json_object(), take_slots);
}
