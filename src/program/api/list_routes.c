/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* list_routes.c - lists: definitions, instances, due work, timers, effects, locks, jobs. */
#include <detent/tool/machine.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/text.h"
#include "daemon/slots.h"
#include "inspect/explain.h"
#include "inspect/job_print.h"
#include "inspect/pending.h"
#include "store/jobs.h"

/* Definitions as stored, which readers use. */

static int write_definition(void *context, const char *name, uint32_t version, const char *spec)
{
    struct det_json_writer *json = context;

    det_json_open(json, NULL, '{');
    det_json_text(json, "name", name);
    det_json_number(json, "version", version);
    det_json_text(json, "spec", spec && *spec ? spec : NULL);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

static void begin_items(struct api_call *call)
{
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
}

void api_list_definitions(struct api_call *call)
{
    struct det_store *store;
    int r = 0;

    if (!api_reader_take(call))
        return;
    store = call->reader->store.store;
    begin_items(call);
    if (store->ops->machines)
        r = store->ops->machines(store, write_definition, &call->json);
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Instances. */

struct listing {
    struct api_call *call;
    const struct det_machine *machine;
    bool ids_only;
    size_t count, limit;
    bool is_cut;
    char last[DET_ID_MAX + 1];
};

static void write_id(const struct listing *listing, const char *id)
{
    struct det_json_writer *json = &listing->call->json;

    instance_item_begin(json, "instance", listing->machine->name, id);
    det_json_close(json, '}');
}

/* The query asks for one row more than the limit, to find out whether there are more. */
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
    if (listing->ids_only)
        write_id(listing, row->id);
    else
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
        !api_query_bool(call, "dead", &query.has_dead) ||
        !api_query_bool(call, "locked", &query.is_locked) ||
        !api_query_bool(call, "ids", &query.ids_only) ||
        !api_query_time(call, "moved_before", &query.moved_before) || !api_reader_take(call) ||
        !api_reader_machine(call, call->parameters[0], &machine) ||
        !read_state(call, machine, &query))
        return;
    if (stopped)
        query.stopped = is_stopped ? DET_STORE_STOPPED : DET_STORE_RUNNING;
    query.limit = listing.limit + 1;
    listing.machine = machine;
    listing.ids_only = query.ids_only;
    begin_items(call);
    r = call->reader->store.ops->list(
        call->reader->store.store, machine, &query, take_instance, &listing);
    det_json_close(&call->json, ']');
    det_json_text(&call->json, "next", listing.is_cut ? listing.last : NULL);
    det_json_close(&call->json, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Due work: instances by due time, without reading them. It is one list without pages, since no
 * cursor separates instances with the same time. */

static int write_due(void *context, const struct det_store_due *row)
{
    struct det_json_writer *json = context;

    det_json_open(json, NULL, '{');
    det_json_text(json, "id", row->id);
    det_json_time(json, "due", row->due);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

static bool read_due_query(struct api_call *call, struct det_store_due_query *ret)
{
    const char *kind = api_query(call, "kind");
    uint64_t limit = API_LIMIT;

    *ret = (struct det_store_due_query){ .before = DET_NEVER - 1 };
    if (!api_query_number(call, "limit", 1, PENDING_DUE_MAX, &limit) ||
        !api_query_time(call, "from", &ret->from))
        return false;
    ret->limit = (size_t)limit;
    ret->kind = kind && strcmp(kind, "effects") == 0 ? DET_DUE_EFFECTS : DET_DUE_TIMERS;
    if (!kind || ret->kind == DET_DUE_EFFECTS || strcmp(kind, "timers") == 0)
        return true;
    api_fail(call, DET_ERR_INVALID, "'kind' must be timers or effects");
    return false;
}

void api_list_due(struct api_call *call)
{
    struct det_store_due_query query;
    struct det_machine *machine;
    det_time next = DET_NEVER;
    struct cli_store *store;
    int r;

    if (!read_due_query(call, &query) || !api_reader_take(call) ||
        !api_reader_machine(call, call->parameters[0], &machine))
        return;
    store = &call->reader->store;
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "kind", "due");
    det_json_open(&call->json, "items", '[');
    r = store->ops->due(store->store, machine, &query, write_due, &call->json, &next);
    det_json_close(&call->json, ']');
    if (next == DET_NEVER)
        det_json_text(&call->json, "next", NULL);
    else
        det_json_time(&call->json, "next", next);
    det_json_close(&call->json, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Calls `each` for the machine of the query, or for all. */
static int each_machine(struct api_call *call, cli_store_each_fn *each, void *context)
{
    struct cli_store *store = &call->reader->store;
    int code;

    store->wanted = api_query(call, "machine");
    code = cli_store_each(store, each, context);
    store->wanted = NULL;
    return code;
}

/* Pages of pending timers or effects. Dead letters come first, by machine and id; then the others
 * by due time (pending.h). */
struct paging {
    struct api_call *call;
    struct pending_list list;
    struct pending_place after, last; /* bounds of the page: rows after `after`, up to `last` */
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
        api_fail(call, DET_ERR_INVALID, "'after' must be the 'next' of the previous page");
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

static void write_effect(
    struct paging *paging, const struct det_machine *machine, const struct pending_place *place,
    const struct det_store_effect *row)
{
    struct det_json_writer *json = &paging->call->json;

    instance_item_begin(json, "effect", machine->name, place->id);
    instance_effect_line(json, paging->call->reader->store.store, machine, place->id, row);
    det_json_close(json, '}');
    paging->count++;
    paging->last = *place;
}

static void write_dead_timer(
    struct paging *paging, const struct det_machine *machine, const struct pending_place *place,
    const struct det_store_timer *row)
{
    struct det_json_writer *json = &paging->call->json;

    instance_item_begin(json, "timer", machine->name, place->id);
    instance_dead_timer_line(json, machine, place->id, row);
    det_json_close(json, '}');
    paging->count++;
    paging->last = *place;
}

static void write_timer(struct paging *paging, const struct pending *timer)
{
    pending_timer_line(&paging->call->json, timer);
    paging->count++;
    paging->last = timer->place;
}

/* If rows could not be read, the page is short, and the next one begins at the time up to which all
 * were read. */
static void write_items(struct paging *paging)
{
    struct pending_list *list = &paging->list;
    size_t count, shown = 0;
    const struct pending *all = pending_sort(list, &count);

    for (; shown < count && !is_full(paging); shown++) {
        if (list->kind == DET_DUE_TIMERS)
            write_timer(paging, &all[shown]);
        else
            write_effect(paging, all[shown].machine, &all[shown].place, &all[shown].effect);
    }
    paging->has_more = shown < count || list->until != DET_NEVER;
    if (shown == count)
        paging->last = (struct pending_place){ list->until, "", "", "", 0, 0 };
}

static int write_pending(struct paging *paging)
{
    int code;

    paging->list.limit = paging->limit - paging->count;
    if (paging->after.due)
        paging->list.after = paging->after;
    code = each_machine(paging->call, pending_of_machine, &paging->list);
    if (code == CLI_OK)
        write_items(paging);
    return code;
}

void api_list_timers(struct api_call *call)
{
    struct paging paging;

    if (begin_paging(&paging, call, DET_DUE_TIMERS))
        end_paging(&paging, write_pending(&paging));
}

/* False: no memory. */
static bool write_dead_letters(struct paging *paging, struct instance *instance, const char *id)
{
    const struct det_machine *machine = instance->machine;
    size_t count = 0;
    const struct pending_dead *all = pending_dead_of(instance, id, &paging->after, &count);

    for (size_t i = 0; i < count && !paging->has_more; i++) {
        paging->has_more = is_full(paging);
        if (paging->has_more)
            break;
        if (all[i].timer)
            write_dead_timer(paging, machine, &all[i].place, all[i].timer);
        else
            write_effect(paging, machine, &all[i].place, all[i].effect);
    }
    return all != NULL;
}

/* Writes the dead letters of an instance. Skips one that no longer exists, and counts one that
 * cannot be read in `left_out`. */
static int write_dead(void *context, struct det_machine *machine, const char *id)
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
        return instance_report_error(store, machine->name, id, r);
    is_put = write_dead_letters(paging, &instance, copy);
    instance_close(&instance);
    if (!is_put)
        return cli_no_memory(store->cli);
    /* Ends the iteration without an error message. */
    return paging->has_more ? CLI_INTERRUPTED : CLI_OK;
}

/* Visits the instances of a machine that the previous pages did not list. */
static int visit_instances(
    struct paging *paging, struct det_machine *machine, struct det_store_query query,
    cli_store_id_fn *visit)
{
    int order = strcmp(machine->name, paging->after.machine), code = CLI_OK;

    if (order < 0 || paging->has_more)
        return CLI_OK;
    if (order == 0)
        query.after = paging->after.id;
    /* The previous page may have ended between two dead letters of an instance. */
    if (order == 0 && query.has_dead)
        code = visit(paging, machine, query.after);
    if (code == CLI_OK)
        code = cli_store_instances(&paging->call->reader->store, machine, &query, visit, paging);
    return code == CLI_INTERRUPTED ? CLI_OK : code;
}

static int write_dead_of(void *context, struct det_machine *machine)
{
    const struct det_store_query query = { .has_dead = true };

    return visit_instances(context, machine, query, write_dead);
}

void api_list_effects(struct api_call *call)
{
    struct paging paging;
    bool is_dead = false;
    int code = CLI_OK;

    if (!api_query_bool(call, "dead", &is_dead) || !begin_paging(&paging, call, DET_DUE_EFFECTS))
        return;
    if ((is_dead || !api_query(call, "dead")) && paging.after.due == 0)
        code = each_machine(call, write_dead_of, &paging);
    if (code == CLI_OK && !is_dead && !paging.has_more)
        code = write_pending(&paging);
    end_paging(&paging, code);
}

/* Held locks, by machine and id. */

static int write_lock(void *context, struct det_machine *machine, const char *id)
{
    struct paging *paging = context;
    struct cli_store *store = &paging->call->reader->store;
    struct det_json_writer *json = &paging->call->json;
    struct det_store_lease lease = { .token = 0 };
    int r = explain_lock_of(store, machine, id, &lease);

    if (r == DET_ERR_NOT_FOUND || (r == 0 && !lease.owner[0]))
        return CLI_OK; /* No longer there, or released. */
    if (r < 0)
        return instance_report_error(store, machine->name, id, r);
    paging->has_more = is_full(paging);
    if (paging->has_more)
        return CLI_INTERRUPTED;
    paging->count++;
    paging->last = (struct pending_place){ .machine = machine->name,
                                           .id = det_arena_copy(&paging->call->arena, id),
                                           .timer = "" };
    instance_item_begin(json, NULL, machine->name, id);
    explain_lock_line(json, &lease);
    det_json_close(json, '}');
    return paging->last.id ? CLI_OK : cli_no_memory(store->cli);
}

static int write_locks_of(void *context, struct det_machine *machine)
{
    const struct det_store_query query = { .is_locked = true };

    return visit_instances(context, machine, query, write_lock);
}

void api_list_locks(struct api_call *call)
{
    struct paging paging;

    if (begin_paging(&paging, call, DET_DUE_ANY))
        end_paging(&paging, each_machine(call, write_locks_of, &paging));
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
        !api_query_number(call, "after", 0, INT64_MAX, &ret->after) ||
        !api_query_id(call, "id", &ret->id))
        return false;
    ret->limit = *ret_limit + 1;
    ret->has_state = state != NULL;
    if (state && det_jobs_state_find(state, &ret->state) < 0) {
        api_fail(call, DET_ERR_INVALID, "'state' must be queued, delayed, running, done or failed");
        return false;
    }
    ret->is_newest_first = !order || strcmp(order, "newest") == 0;
    if (!ret->is_newest_first && strcmp(order, "oldest") != 0) {
        api_fail(call, DET_ERR_INVALID, "'order' must be newest or oldest");
        return false;
    }
    return true;
}

static void list_jobs_of(struct api_call *call, const char *queue)
{
    struct jobs jobs = { .call = call };
    struct det_job_query query = { .queue = queue };
    struct cli_store *store;
    int r;

    if (!read_jobs_query(call, &jobs.limit, &query) || !api_reader_take(call))
        return;
    store = &call->reader->store;
    if (!store->ops->jobs) {
        api_fail(call, DET_ERR_UNSUPPORTED, "this kind of store does not support jobs");
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

static void list_jobs(struct api_call *call)
{
    list_jobs_of(call, call->parameters[0]);
}

/* Includes queues that are no longer configured as slots. */
void api_list_all_jobs(struct api_call *call)
{
    list_jobs_of(call, api_query(call, "queue"));
}

/* A reload adds and removes slots, so their names are looked up on the daemon's loop. */
static void refuse_slot(struct up *up, struct api_call *call)
{
    const char *name = call->parameters[0];
    int r = up_slot_exists(up, name);

    if (r == 0) {
        api_fail(call, DET_ERR_NOT_FOUND, "there is no slot '%.60s'", name);
    } else if (r < 0) {
        api_fail(call, r, "%s", det_error_text(r));
    } else {
        api_fail(
            call, DET_ERR_UNSUPPORTED, "the slot '%s' is not durable, so it has no stored jobs",
            name);
        /* The slot lacks the feature, not the server. */
        call->status = 422;
    }
}

/* Durable slots do not change while the daemon runs. */
void api_list_jobs(struct api_call *call)
{
    if (up_durable_find(call->api->up, call->parameters[0]))
        api_defer(call, list_jobs);
    else
        api_on_daemon(call, refuse_slot, NULL);
}
