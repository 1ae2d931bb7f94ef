/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* children.c - turns requests into workers: creates missing children, stops unrequested ones, and
 * replaces one whose kind has changed. A problem of a request is reported once and affects no other
 * request. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"

/* Calling children() of the kind. */

struct asking {
    struct det_children children;
    struct det_worker *worker;
    struct det_list requests;
    struct det_buffer refused; /* reasons, one text after the other */
};

static void refuse(struct det_worker *worker, int code, const char *text)
{
    det_worker_publish(
        worker, (struct det_worker_event){
                    .kind = DET_WORKER_EVENT_CHILD_REFUSED, .code = code, .reason = text });
}

static int add(struct det_children *children, const struct det_child_spec *spec)
{
    struct asking *asking = DET_CONTAINER(children, struct asking, children);
    struct det_error error;
    struct det_child_request *request;
    int r;

    r = det_child_request_new(asking->worker->workers, spec, DET_REQUEST_KIND, &request, &error);
    if (r == DET_ERR_NO_MEMORY)
        return r;
    if (r == 0 && !det_child_request_can_run(request, asking->worker->kind, &error)) {
        det_child_request_free(asking->worker->workers, request);
        r = DET_ERR_INVALID;
    }
    if (r < 0) {
        det_buffer_append(&asking->refused, error.text, strlen(error.text) + 1);
        return 0;
    }
    det_list_append(&asking->requests, &request->node);
    return 0;
}

/* children() is called repeatedly: the same refusals are reported once. */
static void report_refused(struct asking *asking, int code)
{
    struct det_worker *worker = asking->worker;
    const struct det_buffer *texts = &asking->refused;
    uint64_t hash = texts->size || code ? det_hash64(texts->data, texts->size, (uint64_t)code) : 0;

    if (hash == worker->requests.refused_hash)
        return;
    worker->requests.refused_hash = hash;
    for (size_t at = 0; at < texts->size; at += strlen(texts->data + at) + 1)
        refuse(worker, DET_ERR_INVALID, texts->data + at);
    if (code < 0)
        refuse(worker, code, "children() failed; the previous requests stay");
}

/* Compares order and content with the previous requests. */
static void take_requests(struct asking *asking)
{
    struct det_worker *worker = asking->worker;
    uint64_t hash = det_child_requests_hash(&asking->requests);

    if (hash == worker->requests.hash)
        return;
    worker->requests.hash = hash;
    det_child_requests_take(worker, DET_REQUEST_KIND, &asking->requests);
}

void det_children_ask(struct det_worker *worker)
{
    struct asking asking = { .children = { add }, .worker = worker };
    struct det_worker_view view;
    int r;

    if (worker->kind->children && (!worker->desire.is_there || !det_life_is_live(worker)))
        return;
    worker->attention &= ~(uint32_t)DET_CHECK_CHILDREN;
    if (!worker->kind->children || worker->shutdown_wanted)
        return;
    det_list_init(&asking.requests);
    det_buffer_init(&asking.refused, worker->workers->allocator);
    det_worker_view(worker, det_worker_stop_reason(worker) != NULL, &view);
    r = worker->kind->children(&view, &asking.children);
    report_refused(&asking, r);
    if (r == 0)
        take_requests(&asking);
    if (r == DET_ERR_NO_MEMORY)
        worker->attention |= DET_CHECK_CHILDREN;
    det_child_requests_free(worker->workers, &asking.requests);
    det_buffer_deinit(&asking.refused);
}

/* Reconciling. */

struct det_worker *det_worker_child(const struct det_worker *worker, const char *name)
{
    size_t parent_size = strlen(worker->identity.id), name_size = strlen(name) + 1;
    char id[DET_WORKER_PATH_MAX + 1];

    if (parent_size + 1 + name_size > sizeof id)
        return NULL;
    memcpy(id, worker->identity.id, parent_size);
    id[parent_size] = '/';
    memcpy(id + parent_size + 1, name, name_size);
    return det_map_get(&worker->workers->map, id);
}

static void go(struct det_worker *child, const char *reason)
{
    child->leaving.is_forgotten = true;
    if (child->leaving.is_unwanted)
        return;
    child->leaving.is_unwanted = true;
    child->leaving.is_restart_wanted = false;
    det_worker_publish(
        child,
        (struct det_worker_event){ .kind = DET_WORKER_EVENT_CHILD_REMOVING, .reason = reason });
    det_stop_shutdown(child, child->workers->limits.stop_grace, reason);
}

/* Passes the contents of a request to its worker. */
static void give(struct det_worker *child, struct det_child_request *request)
{
    bool is_disabled = request->is_disabled || request->is_stateless;

    child->run_in = request->run_in;
    if (child->rest.is_disabled != is_disabled)
        child->attention |= DET_CHECK_DESIRED;
    child->rest.is_disabled = is_disabled;
    child->seen.is_disabled = is_disabled || child->rest.is_ordered_off;
    if (!request->is_changed)
        return;
    request->is_changed = false;
    if (!det_user_spec_equal(&child->spec, &request->spec))
        det_life_wake(child);
    /* Requests below it that came from the YAML last only as long as the YAML contains them. */
    if (request->origin == DET_REQUEST_YAML || child->place.origin == DET_REQUEST_YAML)
        det_child_requests_take(child, DET_REQUEST_YAML, &request->children);
    det_manual_disown(child, request->origin);
    det_user_spec_deinit(&child->spec);
    child->spec = request->spec;
    memset(&request->spec, 0, sizeof request->spec);
    child->attention |= DET_CHECK_DERIVE;
}

static void refuse_once(
    struct det_worker *worker, struct det_child_request *request, int code, const char *why)
{
    char text[DET_WORKER_REASON_MAX + 1];

    if (request->is_refused)
        return;
    request->is_refused = true;
    snprintf(text, sizeof text, "child %.*s: %s", DET_WORKER_NAME_MAX, request->name, why);
    refuse(worker, code, text);
}

static struct det_worker *make(struct det_worker *worker, struct det_child_request *request)
{
    struct det_workers *workers = worker->workers;
    const struct det_worker_kind *kind = det_workers_kind(workers, request->kind);
    struct det_worker *child;
    int r;

    if (!kind) {
        char text[DET_WORKER_REASON_MAX + 1];

        snprintf(text, sizeof text, "there is no kind of worker '%.64s'", request->kind);
        refuse_once(worker, request, DET_ERR_NOT_FOUND, text);
        return NULL;
    }
    r = det_worker_make(workers, worker, request->name, kind, request->origin, &child);
    if (r < 0) {
        refuse_once(worker, request, r, det_error_text(r));
        if (r == DET_ERR_NO_MEMORY)
            worker->attention |= DET_CHECK_REQUESTS;
        return NULL;
    }
    if (!worker->requests.first_new)
        worker->requests.first_new = child;
    det_worker_publish(child, (struct det_worker_event){ .kind = DET_WORKER_EVENT_CHILD_ADDING });
    return child;
}

/* True if a stopping child matches the request and stays. A manually deleted worker is created
 * again, as its state must not return. */
static bool comes_back(const struct det_worker *child, const struct det_child_request *request)
{
    return child->leaving.is_unwanted && !child->leaving.is_deleted &&
           !strcmp(child->kind->name, request->kind);
}

static void keep_one(struct det_worker *child, struct det_child_request *request)
{
    child->leaving.is_unwanted = child->leaving.is_forgotten = false;
    det_stop_revoke(child);
    det_worker_publish(child, (struct det_worker_event){ .kind = DET_WORKER_EVENT_CHILD_KEPT });
    give(child, request);
}

/* Keeps a stopping child with all requested workers of its subtree. */
static void keep(struct det_worker *top, struct det_child_request *request)
{
    keep_one(top, request);
    for (struct det_worker *worker = top; worker; worker = det_worker_after(worker, top)) {
        if (worker->leaving.is_unwanted)
            continue;
        DET_LIST_EACH(node, &worker->requests.all)
        {
            struct det_child_request *below = DET_CONTAINER(node, struct det_child_request, node);
            struct det_worker *child = det_worker_child(worker, below->name);

            if (child && comes_back(child, below))
                keep_one(child, below);
        }
        worker->attention |= DET_CHECK_REQUESTS;
    }
}

/* Notes whether the child is next in the list, so that the list need not be sorted. */
static void note_order(struct det_worker *worker, struct det_worker *child)
{
    struct det_worker *next =
        worker->requests.round_last ? worker->requests.round_last->next : worker->children.first;

    worker->requests.is_round_sorted = worker->requests.is_round_sorted && next == child;
    worker->requests.round_last = child;
}

/* True if a child was created. */
static bool fulfil(struct det_worker *worker, struct det_child_request *request)
{
    struct det_worker *child = det_worker_child(worker, request->name);
    bool is_new = !child;

    /* An upsert may have fulfilled the request during a round. */
    if (child && child->mark == worker->requests.round &&
        request->round != worker->requests.round) {
        refuse_once(worker, request, DET_ERR_EXISTS, "a sibling has this name already");
        return false;
    }
    if (child && strcmp(child->kind->name, request->kind) != 0)
        go(child, "the kind has changed");
    if (!child)
        child = make(worker, request);
    if (!child)
        return false;
    det_assert(child->parent == worker);
    child->mark = request->round = worker->requests.round;
    note_order(worker, child);
    /* A child of another kind, or a deleted one, is created again when it is gone. */
    if (comes_back(child, request))
        keep(child, request);
    else if (!child->leaving.is_unwanted)
        give(child, request);
    return is_new;
}

static void append(struct det_worker *worker, struct det_worker **last, struct det_worker *child)
{
    child->previous = *last;
    *(*last ? &(*last)->next : &worker->children.first) = child;
    *last = child;
}

/* Puts children into the order of the requests, and unrequested ones at the end. */
static void sort(struct det_worker *worker)
{
    struct det_worker *leftover = NULL, **end = &leftover, *last = NULL;
    uint32_t count = 0;

    for (struct det_worker *child = worker->children.first; child; child = child->next)
        if (child->mark != worker->requests.round) {
            *end = child;
            end = &child->after;
        }
    *end = NULL;
    worker->children.first = NULL;
    for (struct det_list *node = worker->requests.all.next; node != &worker->requests.all;
         node = node->next) {
        struct det_worker *child =
            det_worker_child(worker, DET_CONTAINER(node, struct det_child_request, node)->name);

        if (!child || child->mark != worker->requests.round)
            continue;
        child->mark = 0;
        append(worker, &last, child);
        count++;
    }
    for (struct det_worker *child = leftover; child; child = child->after, count++)
        append(worker, &last, child);
    det_assert(count == worker->children.count);
    if (last)
        last->next = NULL;
    worker->children.last = last;
    /* New children may be anywhere now. */
    if (worker->requests.first_new)
        worker->requests.first_new = worker->children.first;
}

static void begin_round(struct det_worker *worker)
{
    worker->requests.round = ++worker->workers->generations;
    worker->requests.round_at = worker->requests.all.next;
    worker->requests.round_last = NULL;
    worker->requests.is_round_sorted = true;
}

/* In a sorted list the unrequested ones follow the last requested one. */
static void finish_round(struct det_worker *worker)
{
    bool is_sorted = worker->requests.is_round_sorted;
    struct det_worker *last = is_sorted ? worker->requests.round_last : NULL;

    det_assert(worker->requests.round_at == &worker->requests.all);
    det_assert(!last || last->parent == worker);
    for (struct det_worker *child = last ? last->next : worker->children.first; child;
         child = child->next)
        if (child->mark != worker->requests.round)
            go(child, "no longer in the spec of its parent");
    if (!is_sorted)
        sort(worker);
    worker->requests.round_at = NULL;
    worker->requests.round_last = NULL;
    worker->attention |= DET_CHECK_VIEW;
}

/* Limits the work of a tick: 500 new children, or 10,000 checked ones. */
#define PORTION   10000
#define MAKE_COST 20

static void put_off_rest(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    det_assert(worker->requests.round_at);
    worker->attention |= DET_CHECK_MORE | DET_CHECK_VIEW;
    det_list_remove(&worker->requests.maker);
    det_list_append(&workers->making.workers, &worker->requests.maker);
    /* Without memory for the timer the work continues with the next tick. */
    (void)!det_loop_timer_set(workers->loop, &workers->making.timer, workers->now);
}

static bool may_reconcile(const struct det_worker *worker)
{
    return !worker->shutdown_wanted && det_life_may_have_children(worker);
}

void det_children_reconcile(struct det_worker *worker)
{
    uint32_t cost = 0;

    if (!may_reconcile(worker))
        return;
    if (worker->attention & DET_CHECK_REQUESTS)
        begin_round(worker);
    worker->attention &= ~(uint32_t)(DET_CHECK_REQUESTS | DET_CHECK_MORE);
    if (!worker->requests.round_at)
        return;
    while (worker->requests.round_at != &worker->requests.all && cost < PORTION) {
        struct det_child_request *request =
            DET_CONTAINER(worker->requests.round_at, struct det_child_request, node);

        worker->requests.round_at = request->node.next;
        cost += fulfil(worker, request) ? MAKE_COST : 1;
    }
    if (worker->requests.round_at == &worker->requests.all)
        finish_round(worker);
    else
        put_off_rest(worker);
}

void det_children_continue(void *argument)
{
    struct det_workers *workers = argument;
    struct det_list *node = det_list_take(&workers->making.workers);

    det_workers_now(workers);
    if (!node || workers->stopping.is_wanted)
        return;
    det_worker_continue_children(DET_CONTAINER(node, struct det_worker, requests.maker));
    if (!det_list_is_empty(&workers->making.workers))
        (void)!det_loop_timer_set(workers->loop, &workers->making.timer, workers->now);
}

void det_children_fulfil(struct det_worker *worker, struct det_child_request *request)
{
    struct det_worker *child = det_worker_child(worker, request->name);

    if (!may_reconcile(worker) || worker->attention & DET_CHECK_REQUESTS ||
        det_child_requests_find(worker, request->name, DET_REQUEST_KIND) ||
        det_child_requests_find(worker, request->name, DET_REQUEST_YAML)) {
        worker->attention |= DET_CHECK_REQUESTS;
        return;
    }
    if (!worker->requests.round)
        worker->requests.round = ++worker->workers->generations;
    if (child)
        child->mark = 0;
    fulfil(worker, request);
}

void det_children_release(struct det_worker *child)
{
    /* Without a request it is not in the order of a round that has begun: see sort(). */
    child->mark = 0;
    go(child, "no longer in the spec of its parent");
}

/* The parent's view of its children. */

static int make_room(struct det_worker *worker)
{
    const struct det_allocator *allocator = worker->workers->allocator;
    uint32_t room =
        worker->children.count < 4 ? 4 : worker->children.count + worker->children.count / 2;
    const struct det_child_view **views;

    if (worker->children.view_room >= worker->children.count)
        return 0;
    views = DET_NEW_ARRAY(allocator, room, const struct det_child_view *);
    if (!views)
        return DET_ERR_NO_MEMORY;
    DET_DELETE_ARRAY(allocator, worker->children.views, worker->children.view_room);
    worker->children.views = views;
    worker->children.view_room = room;
    return 0;
}

static void count_one(struct det_children_view *view, const struct det_worker *child)
{
    enum det_phase phase = child->seen.phase;
    bool is_ill = child->desire.is_degraded || child->seen.is_down;
    bool is_healthy =
        phase == DET_PHASE_RUNNING && !is_ill && !child->health.below[DET_CONDITION_DOWN];

    view->healthy += is_healthy;
    view->operational += phase == DET_PHASE_RUNNING || phase == DET_PHASE_DEGRADED;
    view->stopped += phase == DET_PHASE_STOPPED && !is_ill;
    view->unhealthy += !is_healthy && (phase != DET_PHASE_STOPPED || is_ill);
}

void det_worker_set_condition(
    struct det_worker *worker, enum det_worker_condition condition, bool has)
{
    uint8_t bit = (uint8_t)(1U << condition);

    if (!!(worker->health.conditions & bit) == has)
        return;
    worker->health.conditions ^= bit;
    for (struct det_worker *above = worker->parent; above; above = above->parent) {
        det_assert(has || above->health.below[condition]);
        above->health.below[condition] += has ? 1 : UINT32_MAX;
        det_assert(above->health.below[condition] < worker->workers->count);
        above->attention |= DET_CHECK_VIEW;
    }
}

void det_children_count(struct det_worker *worker)
{
    struct det_children_view view = {
        .down = worker->health.below[DET_CONDITION_DOWN],
        .stale = worker->health.below[DET_CONDITION_STALE],
        .circuits_open = worker->health.below[DET_CONDITION_CIRCUIT],
    };

    if (make_room(worker) < 0)
        return;
    worker->attention &= ~(uint32_t)DET_CHECK_VIEW;
    view.list = worker->children.views;
    for (struct det_worker *child = worker->children.first; child; child = child->next) {
        child->seen.is_stale = child->observing.is_stale;
        worker->children.views[view.count++] = &child->seen;
        count_one(&view, child);
    }
    det_assert(view.count == worker->children.count);
    det_assert(view.healthy + view.stopped + view.unhealthy == view.count);
    det_assert(view.healthy <= view.operational && view.operational <= view.count);
    worker->children.view = view;
}
