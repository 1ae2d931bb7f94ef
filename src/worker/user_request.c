/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* user_request.c - requests of users. The calling thread validates and records a request; only its
 * execution happens on the loop. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"

/* The whole spec. */

struct applying {
    struct det_workers *workers;
    struct det_spec spec;
    struct det_list requests;
    int r;
};

static void apply(void *argument)
{
    struct applying *applying = argument;
    struct det_workers *workers = applying->workers;
    struct det_worker *root = workers->root;

    if (!root || workers->stopping.is_wanted) {
        applying->r = DET_ERR_CLOSED;
        return;
    }
    det_user_spec_deinit(&root->spec);
    root->spec = applying->spec.root;
    memset(&applying->spec.root, 0, sizeof applying->spec.root);
    root->attention |= DET_CHECK_DERIVE;
    det_child_requests_take(root, DET_REQUEST_YAML, &applying->requests);
    workers->is_applied = true;
    det_workers_tick_now(workers);
}

/* Takes the parsed spec. */
static int apply_spec(struct applying *applying, struct det_error *reterr)
{
    struct det_workers *workers = applying->workers;
    int r;

    det_list_init(&applying->requests);
    r = det_child_requests_of_spec(workers, &applying->spec, &applying->requests, reterr);
    if (r == 0)
        r = det_workers_call(workers, apply, applying);
    if (r == 0)
        r = applying->r;
    if (r == DET_ERR_CLOSED)
        det_error_set(reterr, r, "the supervisor of workers is shutting down");
    det_child_requests_free(workers, &applying->requests);
    det_spec_deinit(&applying->spec);
    return r;
}

int det_workers_apply(struct det_workers *workers, const char *yaml, struct det_error *reterr)
{
    struct applying applying = { .workers = workers };
    int r;

    r = det_workers_spec_read(&applying.spec, workers->allocator, yaml, strlen(yaml), reterr);
    return r < 0 ? r : apply_spec(&applying, reterr);
}

int det_workers_apply_data(
    struct det_workers *workers, const struct det_datum *root, struct det_error *reterr)
{
    struct applying applying = { .workers = workers };
    int r;

    r = det_workers_spec_read_data(&applying.spec, workers->allocator, root, reterr);
    return r < 0 ? r : apply_spec(&applying, reterr);
}

struct globals {
    struct det_workers *workers;
    struct det_scope_values scope;
};

static void take_globals(void *argument)
{
    struct globals *globals = argument;
    struct det_workers *workers = globals->workers;
    struct det_scope_values old = workers->scope;

    workers->scope = globals->scope;
    globals->scope = old;
    workers->scope_generation = ++workers->generations;
    det_workers_tick_now(workers);
}

/* Frees the old scope. */
static int set_scope(struct globals *globals)
{
    int r = det_workers_call(globals->workers, take_globals, globals);

    det_scope_values_deinit(&globals->scope);
    return r;
}

int det_workers_set_globals(struct det_workers *workers, const char *yaml, struct det_error *reterr)
{
    struct globals globals = { .workers = workers };
    int r;

    r = det_scope_values_init(&globals.scope, workers->allocator, yaml, reterr);
    return r < 0 ? r : set_scope(&globals);
}

int det_workers_set_globals_data(
    struct det_workers *workers, const struct det_datum *map, struct det_error *reterr)
{
    struct globals globals = { .workers = workers };
    int r;

    r = det_scope_values_init_data(&globals.scope, workers->allocator, map, reterr);
    return r < 0 ? r : set_scope(&globals);
}

/* A manual change of one worker. */

struct putting {
    struct det_workers *workers;
    const char *parent;
    const struct det_child_spec *spec;
    struct det_child_request *request;
    bool is_ordered_off; /* the worker exists, and is disabled by an order */
    char parent_id[DET_WORKER_PATH_MAX + 1];
    struct det_error *reterr;
    int r;
};

static struct det_worker *find_worker(struct det_workers *workers, const char *id)
{
    return id ? det_map_get(&workers->map, id) : workers->root;
}

/* True if the parent's own spec has a child of this name. */
static bool is_in_spec(struct det_worker *parent, const char *name)
{
    return det_child_requests_find(parent, name, DET_REQUEST_KIND) ||
           det_child_requests_find(parent, name, DET_REQUEST_YAML);
}

/* Tests the derivation with a desired state that is discarded. */
static int try_derive(
    struct putting *putting, struct det_worker *parent, const struct det_worker_kind *kind)
{
    struct det_workers *workers = putting->workers;
    const struct det_record *record = det_record_of(kind->desired);
    size_t size = record ? record->size : sizeof(struct det_empty);
    char id[DET_WORKER_PATH_MAX + 1];
    struct det_worker_identity identity = { id, putting->spec->name, kind->name, id };
    struct det_derivation what = {
        .kind = kind,
        .identity = &identity,
        .spec = &putting->request->spec,
        .scope = det_desire_scope(parent),
        .parent_id = parent->identity.id,
        .created_at = workers->now + workers->wall_ahead,
    };
    void *desired = det_alloc_zero(workers->allocator, size);
    int r;

    if (!desired || det_desire_refresh(parent) < 0) {
        det_free(workers->allocator, desired, desired ? size : 0);
        return det_error_set(putting->reterr, DET_ERR_NO_MEMORY, "out of memory");
    }
    what.scope = det_desire_scope(parent);
    snprintf(id, sizeof id, "%s/%s", parent->identity.id, putting->spec->name);
    r = det_derive_desired(workers->allocator, &what, desired, NULL, putting->reterr);
    det_free(workers->allocator, desired, size);
    return r == DET_ERR_NO_MEMORY || r == 0 ? r : DET_ERR_INVALID;
}

static bool is_one_too_many(
    struct det_workers *workers, struct det_worker *parent, const char *name)
{
    return workers->count >= workers->limits.workers_max &&
           !det_child_requests_find(parent, name, DET_REQUEST_MANUAL);
}

/* An order to disable belongs to the worker: it survives changes of the spec. */
static bool is_resting(const struct putting *putting, const struct det_worker_kind *kind)
{
    char id[2 * DET_WORKER_PATH_MAX];
    const struct det_worker *worker;

    snprintf(id, sizeof id, "%s/%s", putting->parent_id, putting->spec->name);
    worker = det_map_get(&putting->workers->map, id);
    return worker && worker->kind == kind && worker->rest.is_ordered_off;
}

static void check_request(void *argument)
{
    struct putting *putting = argument;
    struct det_workers *workers = putting->workers;
    struct det_worker *parent = find_worker(workers, putting->parent);
    const struct det_worker_kind *kind = det_workers_kind(workers, putting->spec->kind);

    if (workers->stopping.is_wanted)
        putting->r =
            det_error_set(putting->reterr, DET_ERR_CLOSED, "the supervisor is shutting down");
    else if (!parent || parent->leaving.is_deleted)
        putting->r = det_error_set(
            putting->reterr, DET_ERR_NOT_FOUND, "there is no worker %.200s, the requested parent",
            putting->parent ? putting->parent : "");
    else if (!kind)
        putting->r = det_error_set(
            putting->reterr, DET_ERR_NOT_FOUND, "there is no kind of worker '%.64s'",
            putting->spec->kind);
    else if (is_in_spec(parent, putting->spec->name))
        putting->r = det_error_set(
            putting->reterr, DET_ERR_EXISTS,
            "%.200s has a child %s in its own spec; change it there, or choose another name",
            parent->identity.id, putting->spec->name);
    else if (!det_worker_fits(parent, putting->spec->name, kind))
        putting->r = det_error_set(
            putting->reterr, DET_ERR_LIMIT,
            "workers are at most %d deep, and their paths have at most %d bytes; choose shorter "
            "names, or another parent",
            DET_WORKER_DEPTH_MAX, DET_WORKER_PATH_MAX);
    else if (is_one_too_many(workers, parent, putting->spec->name))
        putting->r = det_error_set(
            putting->reterr, DET_ERR_LIMIT, "the limit workers_max (%u) is reached",
            workers->count);
    else if (!det_child_request_can_run(putting->request, parent->kind, putting->reterr))
        putting->r = DET_ERR_INVALID;
    else if (det_child_request_name_states(workers, putting->request, parent->kind) < 0)
        putting->r = det_error_set(putting->reterr, DET_ERR_NO_MEMORY, "out of memory");
    else {
        det_text_copy(putting->parent_id, sizeof putting->parent_id, parent->identity.id);
        putting->is_ordered_off = is_resting(putting, kind);
        putting->r = try_derive(putting, parent, kind);
    }
}

/* A worker and its subtree with changes. */
static void visit_family(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    workers->tick.walking++;
    det_worker_visit(worker);
    for (struct det_worker *child = worker->children.first, *next; child; child = next) {
        next = child->next;
        if (child->attention || !det_life_is_live(child))
            det_worker_visit(child);
    }
    workers->tick.walking--;
    det_workers_free_gone(workers);
}

/* Its siblings have no changes. */
static void visit_child(struct det_worker *parent, const char *name)
{
    struct det_worker *child = det_worker_child(parent, name);

    if (child)
        visit_family(child);
}

static void put_request(void *argument)
{
    struct putting *putting = argument;
    struct det_worker *parent = find_worker(putting->workers, putting->parent_id);
    struct det_child_request *old;

    if (!parent || parent->leaving.is_deleted) {
        putting->r = det_error_set(
            putting->reterr, DET_ERR_NOT_FOUND,
            "worker %.200s was removed meanwhile; the new worker is created when it is back",
            putting->parent_id);
        det_manual_wait(putting->workers, putting->parent_id, putting->request);
        putting->request = NULL;
        return;
    }
    det_child_request_find_states(parent, putting->request);
    old = det_child_requests_find(parent, putting->request->name, DET_REQUEST_MANUAL);
    det_child_requests_insert(parent, old ? &old->node : &parent->requests.all, putting->request);
    if (old) {
        det_child_requests_remove(parent, old);
        det_child_request_free(putting->workers, old);
    }
    det_children_fulfil(parent, putting->request);
    putting->request = NULL;
    if (parent->attention & DET_CHECK_REQUESTS)
        visit_family(parent);
    else
        visit_child(parent, putting->spec->name);
}

int det_workers_upsert(
    struct det_workers *workers, const char *parent, const struct det_child_spec *spec,
    struct det_error *reterr)
{
    struct putting putting = {
        .workers = workers, .parent = parent, .spec = spec, .reterr = reterr
    };
    int r;

    r = det_child_request_new(workers, spec, DET_REQUEST_MANUAL, &putting.request, reterr);
    if (r < 0)
        return r;
    r = det_workers_call(workers, check_request, &putting);
    r = r ? r : putting.r;
    if (r == 0)
        r = det_manual_save(
            workers, putting.parent_id, spec, putting.request->states, putting.is_ordered_off,
            reterr);
    if (r == 0) {
        r = det_workers_call(workers, put_request, &putting);
        r = r ? r : putting.r;
    }
    if (putting.request)
        det_child_request_free(workers, putting.request);
    return r;
}

struct taking {
    struct det_workers *workers;
    const char *id;
    enum det_worker_order order;
    bool is_shared; /* the spec of its parent also has it */
    bool is_off;    /* and it is disabled by an order */
    const struct det_worker_kind *kind;
    struct det_error *reterr;
    int r;
};

/* The manual request, and its parent. */
static struct det_child_request *put_by_hand(
    struct det_workers *workers, const char *id, struct det_worker **ret_parent)
{
    const char *name = strrchr(id, '/');
    char parent[DET_WORKER_PATH_MAX + 1];

    if (!name || (size_t)(name - id) >= sizeof parent)
        return NULL;
    snprintf(parent, sizeof parent, "%.*s", (int)(name - id), id);
    *ret_parent = det_map_get(&workers->map, parent);
    return *ret_parent ? det_child_requests_find(*ret_parent, name + 1, DET_REQUEST_MANUAL) : NULL;
}

static void validate_delete(void *argument)
{
    struct taking *taking = argument;
    struct det_worker *worker = det_map_get(&taking->workers->map, taking->id), *parent;

    if (put_by_hand(taking->workers, taking->id, &parent)) {
        taking->is_shared = is_in_spec(parent, strrchr(taking->id, '/') + 1);
        taking->is_off = worker && taking->is_shared && worker->rest.is_ordered_off;
        taking->kind = worker ? worker->kind : NULL;
        return;
    }
    if (!worker || worker->leaving.is_forgotten)
        taking->r = det_error_set(
            taking->reterr, DET_ERR_NOT_FOUND, "there is no worker %.200s", taking->id);
    else
        taking->r = det_error_set(
            taking->reterr, DET_ERR_INVALID,
            "%.200s is in the spec of its parent; remove it there, or disable it", taking->id);
}

/* No part of it stays, unless the spec of its parent also has it. */
static void take_back(void *argument)
{
    struct taking *taking = argument;
    struct det_worker *worker = det_map_get(&taking->workers->map, taking->id), *parent;
    struct det_child_request *request = put_by_hand(taking->workers, taking->id, &parent);

    if (!request)
        return;
    det_child_requests_remove(parent, request);
    det_child_request_free(taking->workers, request);
    if (taking->is_shared) {
        parent->attention |= DET_CHECK_REQUESTS;
        visit_family(parent);
        return;
    }
    if (!worker)
        return;
    for (struct det_worker *each = worker; each; each = det_worker_after(each, worker))
        each->leaving.is_deleted = true;
    det_children_release(worker);
    visit_family(worker);
}

int det_workers_delete(struct det_workers *workers, const char *id, struct det_error *reterr)
{
    struct taking taking = { .workers = workers, .id = id, .reterr = reterr };
    int r;

    r = det_workers_call(workers, validate_delete, &taking);
    r = r ? r : taking.r;
    if (r == 0)
        r = det_manual_drop(workers, id, !taking.is_shared, reterr);
    if (r == 0 && taking.is_off)
        r = det_order_save(workers, taking.kind->name, id, true);
    return r ? r : det_workers_call(workers, take_back, &taking);
}

/* Orders. */

static void order(void *argument)
{
    struct taking *taking = argument;
    struct det_worker *worker = det_map_get(&taking->workers->map, taking->id);

    if (!worker || worker->leaving.is_unwanted) {
        taking->r = DET_ERR_NOT_FOUND;
        return;
    }
    switch (taking->order) {
    case DET_WORKER_ORDER_RESTART:
        if (det_life_is_live(worker) && !worker->shutdown_wanted)
            det_stop_restart_by_order(worker, "restarted by an order");
        else
            det_life_wake(worker);
        break;
    case DET_WORKER_ORDER_DISABLE:
    case DET_WORKER_ORDER_ENABLE:
        worker->rest.is_ordered_off = taking->order == DET_WORKER_ORDER_DISABLE;
        worker->seen.is_disabled = worker->rest.is_disabled || worker->rest.is_ordered_off;
        /* Without memory a worker restarted in this run ignores the order, which is recorded. */
        (void)!det_record_set_off(
            taking->workers, worker->kind->name, worker->identity.id, worker->rest.is_ordered_off);
        worker->attention |= DET_CHECK_DESIRED;
        det_worker_notify_parent(worker);
        break;
    }
    det_worker_hasten(worker);
    visit_family(worker);
}

/* Identifies the worker before the order is recorded. */
static void validate_order(void *argument)
{
    struct taking *taking = argument;
    const struct det_worker *worker = det_map_get(&taking->workers->map, taking->id);

    taking->r = worker && !worker->leaving.is_unwanted ? 0 : DET_ERR_NOT_FOUND;
    /* An order does not override the spec. */
    if (taking->r == 0 && taking->order == DET_WORKER_ORDER_ENABLE && worker->rest.is_disabled)
        taking->r = DET_ERR_REFUSED;
    taking->kind = worker ? worker->kind : NULL;
}

static int explain_order(int r, const char *id, struct det_error *reterr)
{
    if (r == DET_ERR_REFUSED)
        return det_error_set(
            reterr, r,
            "%.200s is disabled by its spec; remove `disabled` from it, or put it again without",
            id);
    return r < 0 ? det_error_set(reterr, r, "%.200s: %s", id, det_error_text(r)) : r;
}

int det_workers_order(
    struct det_workers *workers, const char *id, enum det_worker_order wanted,
    struct det_error *reterr)
{
    struct taking taking = { .workers = workers, .id = id, .order = wanted };
    int r = 0;

    if (wanted != DET_WORKER_ORDER_RESTART) {
        r = det_workers_call(workers, validate_order, &taking);
        r = r ? r : taking.r;
        if (r == 0)
            r = det_order_save(workers, taking.kind->name, id, wanted == DET_WORKER_ORDER_DISABLE);
    }
    r = r ? r : det_workers_call(workers, order, &taking);
    return explain_order(r ? r : taking.r, id, reterr);
}
