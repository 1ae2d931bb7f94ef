/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* counts.c - counts: machines with their instances by state, the store, metrics. */
#include <detent/tool/machine.h>
#include <detent/tool/store.h>

#include "api/counts.h"

#include <string.h>

#include "api/api_internal.h"
#include "base/memory.h"
#include "daemon/telemetry.h"
#include "observe/store_gauges.h"
#include "os/os.h"

/* A count is valid for COUNT_SPAN, and COUNT_FACTOR times as long as it took. */
#define COUNT_SPAN   (DET_SECOND / 2)
#define COUNT_FACTOR 20

struct counted {
    const char *machine, *state; /* state NULL: totals of the machine */
    uint64_t running, stopped, timers, effects, dead;
};

/* Guarded by the lock. */
struct api_counts {
    struct det_mutex *lock;
    struct det_arena arena;
    struct det_buffer rows; /* struct counted */
    uint64_t bytes;
    det_time next; /* monotonic: valid until then; 0: never counted */
};

int api_counts_open(struct api *api, struct det_error *reterr)
{
    struct api_counts *counts = DET_NEW(api->allocator, struct api_counts);
    int r = DET_ERR_NO_MEMORY;

    if (counts) {
        api->counts = counts;
        det_arena_init(&counts->arena, api->allocator);
        det_buffer_init(&counts->rows, api->allocator);
        r = det_mutex_open(api->world, &counts->lock);
    }
    return r < 0 ? det_error_set(reterr, r, "%s", det_error_text(r)) : 0;
}

void api_counts_close(struct api *api)
{
    struct api_counts *counts = api->counts;

    if (!counts)
        return;
    det_mutex_close(api->world, counts->lock);
    det_buffer_deinit(&counts->rows);
    det_arena_deinit(&counts->arena);
    DET_DELETE(api->allocator, counts);
    api->counts = NULL;
}

static int take_count(void *context, const struct det_store_counted *row)
{
    struct api_counts *counts = context;
    struct counted counted = {
        .machine = det_arena_copy(&counts->arena, row->machine),
        .state = row->state ? det_arena_copy(&counts->arena, row->state) : NULL,
        .running = row->running,
        .stopped = row->stopped,
        .timers = row->timers,
        .effects = row->effects,
        .dead = row->dead,
    };

    if (!counted.machine || (row->state && !counted.state))
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&counts->rows, &counted, sizeof counted);
    return det_buffer_status(&counts->rows);
}

static int refresh_counts(struct api *api, struct det_store *store)
{
    struct api_counts *counts = api->counts;
    det_time began = det_world_now(api->world, DET_CLOCK_MONOTONIC), took;
    int r;

    if (began < counts->next)
        return 0;
    det_arena_deinit(&counts->arena);
    det_arena_init(&counts->arena, api->allocator);
    det_buffer_clear(&counts->rows);
    r = det_store_count(store, take_count, counts, &counts->bytes);
    took = det_world_now(api->world, DET_CLOCK_MONOTONIC) - began;
    counts->next = r < 0 ? 0 : began + took + COUNT_SPAN + COUNT_FACTOR * took;
    return r;
}

/* Returns the row of a state; NULL: it has no instances. */
static const struct counted *find_state(
    const struct counted *rows, size_t count, const char *machine, const char *state)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].state && strcmp(rows[i].machine, machine) == 0 &&
            strcmp(rows[i].state, state) == 0)
            return &rows[i];
    }
    return NULL;
}

static void write_state(
    struct det_json_writer *json, const char *name, unsigned flags, const struct counted *row)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "name", name);
    det_json_bool(json, "initial", flags & DET_STATE_INITIAL);
    det_json_bool(json, "final", flags & DET_STATE_FINAL);
    det_json_text(json, "health", det_state_health_name(flags));
    det_json_number(json, "instances", row ? row->running : 0);
    det_json_number(json, "stopped", row ? row->stopped : 0);
    det_json_close(json, '}');
}

/* Writes all states of the definition in its order; if it cannot be read, the states that have
 * instances. */
static void write_states(
    struct det_json_writer *json, const struct det_machine *machine, const struct counted *rows,
    size_t count, const char *name)
{
    det_json_open(json, "states", '[');
    for (unsigned i = 0; machine && i < machine->state_count; i++)
        write_state(
            json, machine->states[i].name, machine->states[i].flags,
            find_state(rows, count, name, machine->states[i].name));
    for (size_t i = 0; !machine && i < count; i++) {
        if (rows[i].state && strcmp(rows[i].machine, name) == 0)
            write_state(json, rows[i].state, 0, &rows[i]);
    }
    det_json_close(json, ']');
}

/* Counts instances that are in a final state and not stopped. */
static uint64_t count_final(
    const struct det_machine *machine, const struct counted *rows, size_t count, const char *name)
{
    uint64_t final = 0;

    for (unsigned i = 0; machine && i < machine->state_count; i++) {
        const struct counted *row = find_state(rows, count, name, machine->states[i].name);

        if (row && machine->states[i].flags & DET_STATE_FINAL)
            final += row->running;
    }
    return final;
}

static void write_machine(
    struct api_call *call, const char *name, const struct counted *rows, size_t count)
{
    const struct det_machine *machine = api_reader_find(call->reader, name);
    const struct counted none = { .machine = name }, *own = &none;
    struct det_json_writer *json = &call->json;
    uint64_t final;

    for (size_t i = 0; i < count; i++) {
        if (!rows[i].state && strcmp(rows[i].machine, name) == 0)
            own = &rows[i];
    }
    det_json_open(json, NULL, '{');
    det_json_text(json, "name", name);
    det_json_number(json, "version", machine ? machine->version : 0);
    det_json_bool(json, "served", api_find_served(call->api, name) != NULL);
    write_states(json, machine, rows, count, name);
    final = count_final(machine, rows, count, name);
    det_json_number(json, "active", own->running - (final < own->running ? final : own->running));
    det_json_number(json, "final", final);
    det_json_number(json, "stopped", own->stopped);
    det_json_number(json, "timers", own->timers);
    det_json_number(json, "effects", own->effects);
    det_json_number(json, "dead", own->dead);
    det_json_close(json, '}');
}

/* Writes under the lock, which takes a few microseconds, since a refresh frees the rows. */
bool api_counts_write(struct api_call *call, uint64_t *ret_bytes)
{
    struct api *api = call->api;
    struct cli_store *store = &call->reader->store;
    const struct counted *rows;
    size_t count_of_rows;
    int r;

    det_mutex_lock(api->world, api->counts->lock);
    r = refresh_counts(api, store->store);
    rows = (const struct counted *)(const void *)api->counts->rows.data;
    count_of_rows = api->counts->rows.size / sizeof *rows;
    for (const struct store_machine *m = store->machines; r == 0 && m; m = m->next)
        write_machine(call, m->name, rows, count_of_rows);
    if (ret_bytes)
        *ret_bytes = api->counts->bytes;
    det_mutex_unlock(api->world, api->counts->lock);
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
    return r == 0;
}

uint64_t api_counts_dead(struct api *api)
{
    const struct counted *rows;
    uint64_t dead = 0;

    det_mutex_lock(api->world, api->counts->lock);
    rows = (const struct counted *)(const void *)api->counts->rows.data;
    for (size_t i = 0; i < api->counts->rows.size / sizeof *rows; i++)
        dead += rows[i].state ? 0 : rows[i].dead;
    det_mutex_unlock(api->world, api->counts->lock);
    return dead;
}

void api_get_machines(struct api_call *call)
{
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    /* Without a store there are no machines. */
    if (call->api->source.address && (!api_reader_take(call) || !api_counts_write(call, NULL)))
        return;
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
}

void api_get_store(struct api_call *call)
{
    struct api *api = call->api;
    struct det_json_writer *json = &call->json;
    char unreachable[256];
    uint64_t bytes = 0;
    const struct det_store *store;
    bool is_unreachable;

    if (!api_reader_take(call))
        return;
    store = call->reader->store.store;
    det_json_open(json, NULL, '{');
    det_json_text(json, "url", api->source.url);
    det_json_text(json, "identity", store->identity);
    det_json_number(json, "schema", store->schema);
    det_json_bool(json, "shared", store->ops->is_shared);
    is_unreachable =
        store->ops->is_unreachable &&
        store->ops->is_unreachable(call->reader->store.store, unreachable, sizeof unreachable);
    det_json_text(json, "away", is_unreachable ? unreachable : NULL);
    det_json_open(json, "machines", '[');
    if (!api_counts_write(call, &bytes))
        return;
    det_json_close(json, ']');
    det_json_number(json, "bytes", bytes);
    det_json_close(json, '}');
}

/* Metrics. The store is counted for them at the same limited rate. */

static void set_effects(const struct api *api)
{
    struct det_metrics *metrics = up_observe(api->up)->metrics;
    struct det_runtime_counts counts = { 0 };

    if (up_machines(api->up))
        det_runtime_counts(api_runtime(api), &counts);
    det_series_set(
        det_metrics_only(metrics, DET_METRIC_EFFECTS_RUNNING), (int64_t)counts.effects_running);
    det_series_set(
        det_metrics_only(metrics, DET_METRIC_EFFECTS_QUEUED), (int64_t)counts.effects_queued);
}

static void write_metrics(struct api_call *call)
{
    struct api *api = call->api;
    struct det_metrics *metrics = up_observe(api->up)->metrics;
    enum det_metrics_format format = call->own_number ? DET_METRICS_OPEN : DET_METRICS_TEXT;
    det_time now;

    if (api->source.address && api_reader_take(call)) {
        det_mutex_lock(api->world, api->counts->lock);
        now = det_world_now(api->world, DET_CLOCK_MONOTONIC);
        if (now >= api->counts_due) {
            (void)!det_store_gauges_update(metrics, call->reader->store.store, api->allocator);
            api->counts_due = now + COUNT_SPAN +
                              COUNT_FACTOR * (det_world_now(api->world, DET_CLOCK_MONOTONIC) - now);
        }
        det_mutex_unlock(api->world, api->counts->lock);
    }
    det_buffer_clear(&call->json.text);
    call->status = 0;
    det_metrics_write(metrics, format, &call->json.text);
    call->type = det_metrics_content_type(format);
}

void api_metrics(struct api_call *call)
{
    struct det_metrics *metrics = up_observe(call->api->up)->metrics;
    const char *accept = http_header(http_request(call->exchange), "accept");

    call->own_number = det_metrics_format_wanted(accept) == DET_METRICS_OPEN;
    det_series_set(
        det_metrics_only(metrics, DET_METRIC_HTTP_CONNECTIONS),
        (int64_t)http_server_connections(call->api->server));
    det_series_set(
        det_metrics_only(metrics, DET_METRIC_SSE_SUBSCRIBERS), (int64_t)call->api->feeds.count);
    set_effects(call->api);
    api_defer(call, write_metrics);
}
