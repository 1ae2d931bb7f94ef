/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_queries.c - reading workers on the loop, answered at once. */
#include "daemon/worker_queries.h"

#include <detent/tool/workers.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/task_json.h"
#include "daemon/workers_internal.h"
#include "json/reader.h"

/* Finding a worker. */

struct up_workers *up_workers_asked(struct up *up, struct up_request *request)
{
    if (!up_has_workers(up))
        up_request_fail(
            request, DET_ERR_UNSUPPORTED,
            "this detent up has no workers; add a section 'workers' to " CONFIG_FILE_NAME);
    else if (up_is_stopping(up))
        up_request_fail(request, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else
        return up_workers(up);
    return NULL;
}

bool up_workers_resolve(
    const struct up_workers *workers, const char *id, char target[DET_WORKER_PATH_MAX + 1])
{
    const size_t size = DET_WORKER_PATH_MAX + 1;
    size_t root = strlen(workers->name);
    struct det_worker_status status;

    if (det_text_copy(target, size, id) &&
        det_workers_get(workers->supervisor, target, NULL, &status, NULL, NULL) == 0)
        return true;
    if (strncmp(id, workers->name, root) == 0 && (id[root] == '/' || !id[root]))
        return false;
    return (size_t)snprintf(target, size, "%s/%s", workers->name, id) < size &&
           det_workers_get(workers->supervisor, target, NULL, &status, NULL, NULL) == 0;
}

struct near {
    struct det_arena *arena;
    size_t skip; /* bytes of each id: the root, if the client left it out */
    const char **ids;
    size_t count, room;
};

static int add_id(void *user, const struct det_worker_status *status)
{
    struct near *near = user;

    if (strlen(status->id) <= near->skip)
        return 0;
    if (near->count < near->room)
        near->ids[near->count] = det_arena_copy(near->arena, status->id + near->skip);
    near->count += near->count < near->room && near->ids[near->count];
    return 0;
}

#define NEAR_MAX 1000
static void fail_unknown(
    const struct up_workers *workers, struct up_request *request, const char *id)
{
    const char *ids[NEAR_MAX];
    struct det_arena arena;
    struct near near = { .arena = &arena, .ids = ids, .room = NEAR_MAX };
    size_t root = strlen(workers->name);
    int nearest;

    if (strncmp(id, workers->name, root) != 0)
        near.skip = root + 1;
    det_arena_init(&arena, up_allocator(workers->up));
    (void)!det_workers_each(workers->supervisor, add_id, &near);
    nearest = det_text_nearest(id, ids, near.count);
    if (nearest >= 0)
        up_request_fail(
            request, DET_ERR_NOT_FOUND, "there is no worker '%.200s'; did you mean '%s'?", id,
            ids[nearest]);
    else
        up_request_fail(
            request, DET_ERR_NOT_FOUND, "there is no worker '%.200s'; 'detent workers' lists them",
            id);
    det_arena_deinit(&arena);
}

bool up_workers_find(
    const struct up_workers *workers, struct up_request *request, const char *id,
    char target[DET_WORKER_PATH_MAX + 1])
{
    bool is_there = up_workers_resolve(workers, id, target);

    if (!is_there)
        fail_unknown(workers, request, id);
    return is_there;
}

/* Members of the object of a worker. */

static const char *freshness_name(enum det_freshness freshness)
{
    switch (freshness) {
    case DET_FRESHNESS_UNKNOWN:
        return "unknown";
    case DET_FRESHNESS_NEVER:
        return "never";
    case DET_FRESHNESS_STALE:
        return "stale";
    case DET_FRESHNESS_FRESH:
        return "fresh";
    }
    return "unknown";
}

static void write_counts(struct det_json_writer *json, const struct det_worker_counts *counts)
{
    det_json_open(json, "counts", '{');
    det_json_number(json, "transitions", counts->transitions);
    det_json_number(json, "observations", counts->observations);
    det_json_number(json, "startups", counts->startups);
    det_json_number(json, "collector_restarts", counts->collector_restarts);
    det_json_number(json, "restarts", counts->restarts);
    det_json_number(json, "actions_done", counts->actions_done);
    det_json_number(json, "actions_failed", counts->actions_failed);
    det_json_number(json, "failures", counts->failures);
    det_json_close(json, '}');
}

/* Null for the root. */
static void write_parent(struct det_json_writer *json, const char *id)
{
    const char *slash = strrchr(id, '/');

    if (slash)
        det_json_bytes(json, "parent", id, (size_t)(slash - id));
    else
        det_json_null(json, "parent");
}

static void write_status(struct det_json_writer *json, const struct det_worker_status *status)
{
    det_json_text(json, "kind", "worker");
    det_json_text(json, "id", status->id);
    write_parent(json, status->id);
    det_json_text(json, "path", status->path);
    det_json_text(json, "name", status->name);
    det_json_text(json, "worker_kind", status->kind);
    det_json_text(json, "state", status->state);
    det_json_text(json, "phase", det_phase_name(status->phase));
    det_json_text(json, "life", status->life);
    det_json_text(json, "reason", status->reason);
    det_json_text(json, "degraded_by", *status->degraded_by ? status->degraded_by : NULL);
    det_json_text(json, "freshness", freshness_name(status->freshness));
    up_write_time(json, "since", status->since);
    up_write_time(json, "observed_at", status->observed);
    det_json_number(json, "depth", status->depth);
    det_json_number(json, "children", status->child_count);
    det_json_bool(json, "stop_wanted", status->stop_wanted);
    det_json_bool(json, "shutdown_wanted", status->shutdown_wanted);
    det_json_bool(json, "disabled", status->is_disabled);
    det_json_bool(json, "circuit_open", status->is_circuit_open);
    det_json_bool(json, "action_pending", status->is_action_pending);
    det_json_bool(json, "by_hand", status->is_dynamic);
    write_counts(json, &status->counts);
}

/* Copies the members of an object that the supervisor has written, which has at least one. */
static void write_members(struct det_json_writer *json, const char *object, size_t size)
{
    det_json_raw(json, NULL, object + 1, size - 2);
}

/* A page of workers. */

struct listing {
    struct up_worker_page *page;
    struct det_json_writer *json;
    const char *below, *after; /* as in the page, but complete and existing ids */
    size_t count;              /* workers in the page */
    bool has_begun;            /* `after` was found, or nothing is skipped */
};

static bool is_below(const char *id, const char *top)
{
    size_t size = strlen(top);

    return strncmp(id, top, size) == 0 && (!id[size] || id[size] == '/');
}

static bool matches_page(const struct listing *listing, const struct det_worker_status *status)
{
    const struct up_worker_page *page = listing->page;

    return (!listing->below || is_below(status->id, listing->below)) &&
           (!page->has_phase || page->phase == status->phase) &&
           (!page->kind || strcmp(page->kind, status->kind) == 0) &&
           (!page->has_unwell || page->is_unwell == up_workers_is_unwell(status));
}

static bool is_full(const struct listing *listing)
{
    return listing->count >= listing->page->limit ||
           listing->json->text.size >= listing->page->size_max;
}

static int add_to_page(void *user, const struct det_worker_status *status)
{
    struct listing *listing = user;
    struct up_worker_page *page = listing->page;
    bool had_begun = listing->has_begun;

    if (!had_begun && listing->after && strcmp(status->id, listing->after) == 0)
        listing->has_begun = true;
    if (!matches_page(listing, status))
        return 0;
    if (!had_begun && (listing->after || page->passed < page->skip)) {
        page->passed++;
        return 0;
    }
    listing->has_begun = true;
    page->has_more = is_full(listing);
    if (page->has_more)
        return 1;
    listing->count++;
    page->passed++;
    (void)det_text_copy(page->last, sizeof page->last, status->id);
    det_json_open(listing->json, NULL, '{');
    write_status(listing->json, status);
    det_json_close(listing->json, '}');
    return det_buffer_status(&listing->json->text);
}

static bool worker_exists(const struct up_workers *workers, const char *id)
{
    struct det_worker_status status;

    return det_workers_get(workers->supervisor, id, NULL, &status, NULL, NULL) == 0;
}

static void end_request(struct up_request *request, int r)
{
    if (r < 0)
        up_request_fail(request, r, "%s", det_error_text(r));
    else
        up_request_end(request);
}

void up_list_workers(struct up *up, struct up_request *request, struct up_worker_page *page)
{
    struct listing listing = { .page = page, .json = request->json };
    const struct up_workers *workers = up_workers_asked(up, request);
    char below[DET_WORKER_PATH_MAX + 1];

    if (!workers || (page->below && !up_workers_find(workers, request, page->below, below)))
        return;
    listing.below = page->below ? below : NULL;
    listing.after = page->after && worker_exists(workers, page->after) ? page->after : NULL;
    listing.has_begun = !listing.after && !page->skip;
    end_request(request, det_workers_each(workers->supervisor, add_to_page, &listing));
}

/* One worker. */

void up_show_worker(struct up *up, struct up_request *request, const char *id)
{
    const struct up_workers *workers = up_workers_asked(up, request);
    char found[DET_WORKER_PATH_MAX + 1], *text = NULL;
    struct det_worker_status status;
    size_t size = 0;
    int r;

    if (!workers || !up_workers_find(workers, request, id, found))
        return;
    r = det_workers_get(workers->supervisor, found, NULL, &status, NULL, NULL);
    if (r == 0)
        r = det_workers_show(workers->supervisor, found, &text, &size);
    if (r < 0) {
        up_request_fail(request, r, "%s: %s", found, det_error_text(r));
        return;
    }
    det_json_open(request->json, NULL, '{');
    write_status(request->json, &status);
    write_members(request->json, text, size);
    det_json_close(request->json, '}');
    det_free(up_allocator(up), text, size + 1);
    up_request_end(request);
}

/* The history of a worker. */

struct rows {
    struct det_view first, last; /* lines of JSON; no data: no row */
};

/* Writes an element for each line. */
static struct rows write_rows(struct det_json_writer *json, const char *text, size_t size)
{
    struct rows rows = { 0 };

    while (size) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;

        rows.last = det_view_of(text, length);
        if (!rows.first.data)
            rows.first = rows.last;
        det_json_open(json, NULL, '{');
        det_json_text(json, "kind", "worker_history");
        write_members(json, text, length);
        det_json_close(json, '}');
        length += end != NULL;
        text += length;
        size -= length;
    }
    return rows;
}

static int read_sequence(struct up *up, struct det_view row, uint64_t *ret)
{
    const struct det_json_value *value = NULL;
    struct det_arena arena;
    int r;

    det_arena_init(&arena, up_allocator(up));
    r = det_json_read(&arena, row, &value, NULL);
    if (r == 0)
        *ret = det_json_get_number(value, "sequence");
    det_arena_deinit(&arena);
    return r;
}

/* `next` is the sequence of the newest row, with which the next request continues; `lost` counts
 * the rows after the given sequence that are no longer remembered. */
static int write_history(
    struct up_request *request, struct up *up, const struct up_worker_history *wanted,
    struct det_view text, uint64_t lost)
{
    struct det_json_writer *json = request->json;
    uint64_t next = wanted->has_after ? wanted->after : 0;
    struct det_view newest;
    struct rows rows;
    int r = 0;

    det_json_open(json, NULL, '{');
    det_json_open(json, "items", '[');
    rows = write_rows(json, text.data, text.size);
    det_json_close(json, ']');
    newest = wanted->has_after ? rows.last : rows.first;
    if (newest.data)
        r = read_sequence(up, newest, &next);
    det_json_number(json, "next", next);
    det_json_number(json, "lost", lost);
    det_json_close(json, '}');
    return r;
}

void up_show_worker_history(
    struct up *up, struct up_request *request, const struct up_worker_history *wanted)
{
    const struct up_workers *workers = up_workers_asked(up, request);
    char id[DET_WORKER_PATH_MAX + 1], *text = NULL;
    uint64_t lost = 0;
    size_t size = 0;
    int r;

    if (!workers || !up_workers_find(workers, request, wanted->id, id))
        return;
    r = wanted->has_after
            ? det_workers_history_after(workers->supervisor, id, wanted->after, &text, &size, &lost)
            : det_workers_history(workers->supervisor, id, &text, &size);
    if (r == 0) {
        r = write_history(request, up, wanted, det_view_of(text, size), lost);
        det_free(up_allocator(up), text, size + 1);
    }
    end_request(request, r);
}
