/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.c - the object of a worker: its block, its names, its place in the tree. */
#include <detent/driver/policy.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/limits.h"
#include "worker/worker_tree.h"

/* The block: the worker, its desired state (current and next), its observed state, its actions, its
 * names. */
static struct det_worker *lay_out(
    struct det_workers *workers, const struct det_worker_kind *kind, size_t id_size,
    size_t path_size, size_t name_size)
{
    size_t desired = det_aligned(det_record_size(kind->desired));
    size_t observed = det_aligned(det_record_size(kind->observed));
    size_t actions = det_aligned(kind->action_count * sizeof(struct det_action));
    size_t counts = det_aligned(kind->state_count * sizeof(struct det_state_count));
    size_t size = det_aligned(sizeof(struct det_worker)) + 2 * desired + observed + actions +
                  counts + id_size + path_size + name_size;
    struct det_worker *worker = det_alloc_zero(workers->allocator, size);
    char *place;

    if (!worker)
        return NULL;
    place = (char *)worker + det_aligned(sizeof *worker);
    worker->size = size;
    worker->desire.value = place;
    worker->observing.value = place += desired;
    worker->acting.actions = (struct det_action *)(void *)(place += observed);
    worker->acting.state_counts = (struct det_state_count *)(void *)(place += actions);
    worker->desire.next = place += counts;
    worker->place.id_text = place += desired;
    worker->place.path_text = place += id_size;
    worker->place.name_text = place + path_size;
    det_assert(worker->place.name_text + name_size == (char *)worker + size);
    return worker;
}

static void name_it(
    struct det_worker *worker, const struct det_worker *parent, const char *name,
    const struct det_worker_kind *kind, size_t id_size, size_t path_size)
{
    const char *id = parent ? parent->identity.id : "", *slash = parent ? "/" : "";
    int size;

    size = snprintf(worker->place.id_text, id_size, "%s%s%s", id, slash, name);
    det_assert((size_t)size + 1 == id_size);
    size = snprintf(
        worker->place.path_text, path_size, "%s%s%s(%s)", parent ? parent->identity.path : "",
        slash, name, kind->name);
    det_assert((size_t)size + 1 == path_size);
    memcpy(worker->place.name_text, name, strlen(name) + 1);
    worker->place.key = worker->place.id_text;
    worker->identity = (struct det_worker_identity){ worker->place.id_text, worker->place.name_text,
                                                     kind->name, worker->place.path_text };
    worker->seen = (struct det_child_view){ .name = worker->place.name_text,
                                            .kind = kind->name,
                                            .state = kind->states[0].name,
                                            .reason = worker->reason,
                                            .path = worker->place.path_text,
                                            .action_error = worker->acting.last.text,
                                            .observe_error = worker->observing.error };
}

static void link_to(struct det_worker *parent, struct det_worker *worker)
{
    det_assert(!worker->parent && !worker->next && !worker->previous);
    worker->parent = parent;
    if (!parent)
        return;
    det_assert(!parent->children.first == !parent->children.last);
    worker->place.depth = (uint16_t)(parent->place.depth + 1);
    worker->previous = parent->children.last;
    if (parent->children.last)
        parent->children.last->next = worker;
    else
        parent->children.first = worker;
    parent->children.last = worker;
    parent->children.count++;
    parent->attention |= DET_CHECK_VIEW;
}

void det_worker_unlink(struct det_worker *worker)
{
    struct det_worker *parent = worker->parent;

    if (!parent)
        return;
    if (worker->previous)
        worker->previous->next = worker->next;
    else
        parent->children.first = worker->next;
    if (worker->next)
        worker->next->previous = worker->previous;
    else
        parent->children.last = worker->previous;
    if (parent->requests.round_last == worker)
        parent->requests.round_last = worker->previous;
    if (parent->requests.first_new == worker)
        parent->requests.first_new = worker->next;
    det_assert(parent->children.count > 0);
    parent->children.count--;
    det_assert(!parent->children.first == !parent->children.count);
    det_assert(parent->children.active <= parent->children.count);
    parent->attention |= DET_CHECK_VIEW;
    /* A requested worker is created again. */
    if (det_child_requests_have(parent, worker->identity.name))
        parent->attention |= DET_CHECK_REQUESTS;
}

static size_t path_size_of(
    const struct det_worker *parent, const char *name, const struct det_worker_kind *kind)
{
    return (parent ? strlen(parent->identity.path) + 1 : 0) + strlen(name) + 1 +
           strlen(kind->name) + 2;
}

bool det_worker_fits(
    const struct det_worker *parent, const char *name, const struct det_worker_kind *kind)
{
    return path_size_of(parent, name, kind) <= DET_WORKER_PATH_MAX + 1 &&
           (!parent || parent->place.depth + 1 < DET_WORKER_DEPTH_MAX);
}

/* Claims its documents of earlier runs. */
static void claim(struct det_worker *worker)
{
    struct det_known *known =
        det_record_known(worker->workers, worker->kind->name, worker->identity.id);

    if (known)
        det_list_remove(&known->node);
    worker->children.has_unclaimed = det_unclaimed_below(worker);
}

int det_worker_make(
    struct det_workers *workers, struct det_worker *parent, const char *name,
    const struct det_worker_kind *kind, enum det_child_request_origin origin,
    struct det_worker **ret)
{
    size_t name_size = strlen(name) + 1;
    size_t id_size = (parent ? strlen(parent->identity.id) + 1 : 0) + name_size;
    size_t path_size = path_size_of(parent, name, kind);
    struct det_worker *worker;
    int r;

    det_assert(!parent == !workers->root);
    det_assert(!parent || parent->workers == workers);
    if (workers->count >= workers->limits.workers_max || !det_worker_fits(parent, name, kind))
        return DET_ERR_LIMIT;
    worker = lay_out(workers, kind, id_size, path_size, name_size);
    if (!worker)
        return DET_ERR_NO_MEMORY;
    worker->workers = workers;
    worker->kind = kind;
    worker->place.origin = origin;
    worker->leaving.stop_at = DET_NEVER;
    worker->place.made_at = worker->since_wall = workers->now + workers->wall_ahead;
    det_worker_limits_of_kind(
        &workers->limits, kind, &worker->observing.stale_after,
        &worker->observing.collector_timeout);
    worker->since = workers->now;
    worker->attention = DET_CHECK_DERIVE | DET_CHECK_CHILDREN | DET_CHECK_VIEW;
    det_list_init(&worker->requests.all);
    det_list_init(&worker->requests.maker);
    name_it(worker, parent, name, kind, id_size, path_size);
    det_worker_set_reason(worker, "initial");
    r = det_map_put(&workers->map, worker);
    if (r < 0) {
        det_free(workers->allocator, worker, worker->size);
        return r;
    }
    link_to(parent, worker);
    det_manual_restore(worker);
    det_order_restore(worker);
    claim(worker);
    workers->count++;
    *ret = worker;
    return 0;
}

struct det_worker_faults *det_worker_faults(struct det_worker *worker)
{
    if (!worker->faults)
        worker->faults = DET_NEW(worker->workers->allocator, struct det_worker_faults);
    return worker->faults;
}

static void free_faults(struct det_worker *worker)
{
    struct det_worker_faults *faults = worker->faults;

    if (!faults)
        return;
    det_intensity_close(faults->restarts);
    det_intensity_close(faults->panics);
    det_intensity_close(faults->failures);
    DET_DELETE(worker->workers->allocator, faults);
}

void det_worker_free(struct det_worker *worker)
{
    const struct det_allocator *allocator = worker->workers->allocator;

    det_assert(
        !worker->observing.collect && !worker->acting.running && !worker->incarnation &&
        !worker->children.first);
    free_faults(worker);
    det_list_remove(&worker->requests.maker);
    det_child_requests_drop_index(worker);
    det_child_requests_free(worker->workers, &worker->requests.all);
    det_user_spec_deinit(&worker->spec);
    det_scope_values_deinit(&worker->desire.scope);
    if (worker->observing.spare)
        det_run_free(worker->observing.spare);
    for (struct det_metric *metric = worker->acting.metrics, *next; metric; metric = next) {
        next = metric->next;
        DET_DELETE(allocator, metric);
    }
    det_history_free(worker);
    DET_DELETE_ARRAY(allocator, worker->children.views, worker->children.view_room);
    det_free(allocator, worker, worker->size);
}
