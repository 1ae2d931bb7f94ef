/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_store.c - the nodes of a shared store: the way to the server and back. */
#include "lib/shared_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static struct node *node_of(struct det_store *store)
{
    return DET_CONTAINER(store, struct node, store);
}

/* The way to the server and back. */

static void wait_while_paused(struct node *node)
{
    while (node->is_paused && !node->is_dead)
        (void)det_condition_wait(
            node->shared->world, node->shared->changed, node->shared->mutex, DET_NEVER);
}

static bool draw(struct node *node, bool is_before)
{
    struct det_shared *shared = node->shared;
    uint32_t chance = is_before ? shared->faults.before : shared->faults.after;

    if (node->failing && node->fails_before == is_before) {
        node->failing--;
        return true;
    }
    return shared->sim && chance && det_sim_chance(shared->sim, chance);
}

/* With 0 the mutex is held afterwards. */
int det_shared_enter(struct node *node)
{
    det_shared_lock(node->shared);
    wait_while_paused(node);
    node->shared->counts.calls++;
    if (!node->is_dead && !draw(node, true))
        return 0;
    det_shared_unlock(node->shared);
    return DET_ERR_IO;
}

int det_shared_leave(struct node *node, int r)
{
    wait_while_paused(node);
    if (node->is_dead || draw(node, false))
        r = DET_ERR_IO;
    det_shared_unlock(node->shared);
    return r;
}

/* The mutex is held before and after, but not meanwhile. */
static void wake_one(struct node *node)
{
    struct det_shared *shared = node->shared;
    void (*wake)(void *context) = node->wake;
    void *context = node->context;

    if (!wake || node->is_dead)
        return;
    node->waking++;
    det_shared_unlock(shared);
    wake(context);
    det_shared_lock(shared);
    node->waking--;
    det_condition_broadcast(shared->world, shared->changed);
}

static void wake_others(struct node *self)
{
    struct det_list *link = self->shared->nodes.next;

    while (link != &self->shared->nodes) {
        struct node *node = DET_CONTAINER(link, struct node, link);

        if (node != self)
            wake_one(node);
        link = link->next;
    }
}

static int lease_or_lock(
    struct node *node, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    struct det_shared *shared = node->shared;
    struct held *held;
    int r;

    r = det_shared_enter(node);
    if (r < 0)
        return r;
    held = det_shared_find_held(shared, machine ? machine->name : NULL, change->name);
    if (!held && machine)
        return det_shared_leave(node, DET_ERR_NOT_FOUND);
    if (!held)
        held = det_shared_add_held(shared, NULL, change->name);
    r = det_shared_change_held(shared, held, change);
    *ret = held->lease;
    if (det_shared_is_free(shared, held))
        ret->owner[0] = 0;
    if (r == 0 && change->verb == DET_LEASE_RELEASE)
        wake_others(node);
    return det_shared_leave(node, r);
}

static int shared_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret)
{
    return lease_or_lock(node_of(store), NULL, change, ret);
}

static int shared_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    return lease_or_lock(node_of(store), machine, change, ret);
}

static int shared_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    struct node *node = node_of(store);
    int r;

    r = det_shared_enter(node);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        det_shared_commit_one(node, commits[i]);
    return det_shared_leave(node, 0);
}

/* Reading. */

struct load_walk {
    const struct node *node;
    const char *machine, *id;
    const struct det_store_rows *rows;
};

static bool is_foreign(const struct load_walk *walk, const struct row *row)
{
    return row && strcmp(row->owner, walk->node->store.owner) != 0;
}

static int load_timer(void *context, const struct det_store_timer *timer)
{
    const struct load_walk *walk = context;
    struct det_store_timer copy = *timer;

    copy.is_foreign = !timer->is_dead && is_foreign(
                                             walk, det_shared_find_row(
                                                       walk->node->shared, walk->machine, walk->id,
                                                       true, 0, timer->timer));
    return walk->rows->timer ? walk->rows->timer(walk->rows->context, &copy) : 0;
}

static int load_effect(void *context, const struct det_store_effect *effect)
{
    const struct load_walk *walk = context;
    struct det_store_effect copy = *effect;

    copy.is_foreign = !effect->is_dead && is_foreign(
                                              walk, det_shared_find_row(
                                                        walk->node->shared, walk->machine, walk->id,
                                                        false, effect->sequence, effect->index));
    return walk->rows->effect ? walk->rows->effect(walk->rows->context, &copy) : 0;
}

static int load_deferred(void *context, const struct det_store_deferred *deferred)
{
    const struct load_walk *walk = context;

    return walk->rows->deferred ? walk->rows->deferred(walk->rows->context, deferred) : 0;
}

static int shared_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    struct load_walk walk = { node, machine->name, id, rows };
    const struct det_store_rows ours = { &walk, load_timer, load_effect, load_deferred };
    int r;

    r = det_shared_enter(node);
    return r < 0 ? r : det_shared_leave(node, inner->ops->load(inner, machine, id, &ours, ret));
}

static void shared_release(struct det_store *store, struct det_store_instance *instance)
{
    struct det_store *inner = node_of(store)->shared->inner;

    inner->ops->release(inner, instance);
}

static int shared_answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    return r < 0 ? r : det_shared_leave(node, inner->ops->answer(inner, instance, event_id, ret));
}

static int shared_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    return r < 0
               ? r
               : det_shared_leave(node, inner->ops->events(inner, instance, after, visit, context));
}

static int shared_start(
    struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    return r < 0 ? r : det_shared_leave(node, inner->ops->start(inner, instance, ret));
}

static int shared_snapshot(
    struct det_store *store, struct det_store_instance *instance, struct det_store_snapshot *ret)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    return r < 0 ? r : det_shared_leave(node, inner->ops->snapshot(inner, instance, ret));
}

static int shared_prune(
    struct det_store *store, struct det_store_instance *instance, uint64_t sequence,
    det_time answers_before, uint64_t *ret)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    if (r < 0)
        return r;
    return det_shared_leave(
        node, inner->ops->prune(inner, instance, sequence, answers_before, ret));
}

static int shared_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    return r < 0 ? r : det_shared_leave(node, inner->ops->machines(inner, visit, context));
}

/* The locks are not those of the store within: which instances have one cannot be told. */
static int shared_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    struct det_store_query all = *query;
    int r;

    all.is_locked = false;
    r = det_shared_enter(node);
    return r < 0 ? r
                 : det_shared_leave(node, inner->ops->list(inner, machine, &all, visit, context));
}

static int shared_serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = det_shared_enter(node);
    return r < 0 ? r : det_shared_leave(node, inner->ops->serve(inner, machine, reterr));
}

static det_time shared_now(struct det_store *store)
{
    return det_shared_now(node_of(store)->shared);
}

/* The next row that the query wants. */
static struct row *next_wanted(
    struct node *node, const struct det_machine *machine, const struct det_store_due_query *query,
    const struct row *after)
{
    struct row *row = det_shared_next_due(node, machine, after);

    while (row && ((query->from && row->due < query->from) ||
                   query->kind == (row->is_timer ? DET_DUE_EFFECTS : DET_DUE_TIMERS)))
        row = det_shared_next_due(node, machine, row);
    return row;
}

static int shared_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct node *node = node_of(store);
    struct row *row;
    int r;

    r = det_shared_enter(node);
    if (r < 0)
        return r;
    row = next_wanted(node, machine, query, NULL);
    for (size_t i = 0; r == 0 && row && row->due <= query->before && i < query->limit; i++) {
        r = visit(context, &(struct det_store_due){ row->id, row->due, row->is_timer });
        row = next_wanted(node, machine, query, row);
    }
    *ret_next = row ? row->due : DET_NEVER;
    return det_shared_leave(node, r);
}

static int shared_adopt(
    struct det_store *store, const struct det_machine *machine, size_t limit, size_t *ret)
{
    struct node *node = node_of(store);
    struct row *row;
    int r;

    r = det_shared_enter(node);
    if (r < 0)
        return r;
    for (*ret = 0; *ret < limit && (row = det_shared_first_left(node->shared, machine)); ++*ret) {
        /* One that has no lease itself would adopt its own rows without end. */
        if (strcmp(row->owner, store->owner) == 0)
            break;
        det_shared_own(row, node);
    }
    node->shared->counts.adoptions += *ret;
    return det_shared_leave(node, 0);
}

static int shared_nodes(struct det_store *store, uint64_t *ret)
{
    struct node *node = node_of(store);
    char own[40];
    int r;

    r = det_shared_enter(node);
    if (r < 0)
        return r;
    snprintf(own, sizeof own, "node/%s", store->owner);
    *ret = 0;
    DET_LIST_EACH(link, &node->shared->held)
    {
        const struct held *held = DET_CONTAINER(link, struct held, link);

        *ret += !held->machine && strncmp(held->name, "node/", 5) == 0 &&
                strcmp(held->name, own) != 0 && !det_shared_is_free(node->shared, held);
    }
    return det_shared_leave(node, 0);
}

static void shared_listen(struct det_store *store, void (*wake)(void *context), void *context)
{
    struct node *node = node_of(store);

    det_shared_lock(node->shared);
    node->wake = wake;
    node->context = context;
    while (!wake && node->waking)
        (void)det_condition_wait(
            node->shared->world, node->shared->changed, node->shared->mutex, DET_NEVER);
    det_shared_unlock(node->shared);
}

static void shared_close(struct det_store *store)
{
    struct node *node = node_of(store);

    det_shared_lock(node->shared);
    det_list_remove(&node->link);
    det_shared_unlock(node->shared);
    free(node);
}

static const struct det_store_ops operations = {
    .is_shared = true,
    .close = shared_close,
    .now = shared_now,
    .serve = shared_serve,
    .commit = shared_commit,
    .load = shared_load,
    .release = shared_release,
    .answer = shared_answer,
    .events = shared_events,
    .list = shared_list,
    .due = shared_due,
    .adopt = shared_adopt,
    .nodes = shared_nodes,
    .lease = shared_lease,
    .lock = shared_lock,
    .snapshot = shared_snapshot,
    .start = shared_start,
    .prune = shared_prune,
    .listen = shared_listen,
    .machines = shared_machines,
    .jobs = &det_shared_jobs,
};

struct det_store *det_shared_node(struct det_shared *shared)
{
    struct node *node = calloc(1, sizeof *node);

    det_assert(node);
    node->store = (struct det_store){ .ops = &operations, .world = shared->world };
    node->shared = shared;
    det_shared_lock(shared);
    snprintf(node->store.owner, sizeof node->store.owner, "%032x", ++shared->opened);
    det_list_append(&shared->nodes, &node->link);
    det_shared_unlock(shared);
    return &node->store;
}

/* Faults. */

void det_shared_fail(struct det_store *store, unsigned count, bool is_before)
{
    struct node *node = node_of(store);

    det_shared_lock(node->shared);
    node->failing = count;
    node->fails_before = is_before;
    det_shared_unlock(node->shared);
}

void det_shared_pause(struct det_store *store, bool is_paused)
{
    struct node *node = node_of(store);

    det_shared_lock(node->shared);
    node->is_paused = is_paused;
    det_condition_broadcast(node->shared->world, node->shared->changed);
    det_shared_unlock(node->shared);
}

void det_shared_kill(struct det_store *store)
{
    struct node *node = node_of(store);

    det_shared_lock(node->shared);
    node->is_dead = true;
    det_condition_broadcast(node->shared->world, node->shared->changed);
    det_shared_unlock(node->shared);
}

void det_shared_report(struct det_store *store)
{
    struct node *node = node_of(store);

    det_shared_lock(node->shared);
    wake_one(node);
    det_shared_unlock(node->shared);
}
