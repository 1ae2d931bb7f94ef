/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_store.c - the memory store as a server with several nodes. */
#include "lib/shared_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "os/os.h"

/* Who owns a timer or an effect. */
struct row {
    struct det_list link;
    const char *machine;
    char id[DET_ID_MAX + 1];
    bool is_timer, is_dead;
    uint64_t sequence; /* of an effect */
    uint16_t number;   /* of an effect, or of a timer */
    uint64_t visit;    /* of a timer */
    det_time due;
    char owner[33];
};

/* A lease by name, or an instance with its lock. */
struct held {
    struct det_list link;
    const char *machine; /* NULL: a lease */
    char name[DET_ID_MAX + 1];
    struct det_store_lease lease;
};

struct det_shared {
    struct det_sim *sim;
    struct det_world *world;
    struct det_store *inner;
    struct det_mutex *mutex;
    struct det_condition *changed;
    struct det_list rows, held, nodes;
    det_time offset; /* of its clock from BOOT */
    unsigned opened;
    struct det_shared_faults faults;
    struct det_shared_counts counts;
};

struct node {
    struct det_store store;
    struct det_shared *shared;
    struct det_list link;
    bool is_paused, is_dead;
    unsigned failing;
    bool fails_before;
    void (*wake)(void *context);
    void *context;
    unsigned waking; /* calls of `wake` under way */
};

static struct node *node_of(struct det_store *store)
{
    return DET_CONTAINER(store, struct node, store);
}

static void lock(struct det_shared *shared)
{
    det_mutex_lock(shared->world, shared->mutex);
}

static void unlock(struct det_shared *shared)
{
    det_mutex_unlock(shared->world, shared->mutex);
}

det_time det_shared_now(const struct det_shared *shared)
{
    return det_world_now(shared->world, DET_CLOCK_BOOT) + shared->offset;
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
static int enter(struct node *node)
{
    lock(node->shared);
    wait_while_paused(node);
    node->shared->counts.calls++;
    if (!node->is_dead && !draw(node, true))
        return 0;
    unlock(node->shared);
    return DET_ERR_IO;
}

static int leave(struct node *node, int r)
{
    wait_while_paused(node);
    if (node->is_dead || draw(node, false))
        r = DET_ERR_IO;
    unlock(node->shared);
    return r;
}

/* The mutex is held before and after, but not meanwhile. */
static void wake_one(struct node *node)
{
    struct det_shared *shared = node->shared;

    if (!node->wake || node->is_dead)
        return;
    node->waking++;
    unlock(shared);
    node->wake(node->context);
    lock(shared);
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

/* Rows. */

static bool row_is(
    const struct row *row, const char *machine, const char *id, bool is_timer, uint64_t sequence,
    uint16_t number)
{
    return row->is_timer == is_timer && row->sequence == sequence && row->number == number &&
           strcmp(row->machine, machine) == 0 && strcmp(row->id, id) == 0;
}

static struct row *find_row(
    const struct det_shared *shared, const char *machine, const char *id, bool is_timer,
    uint64_t sequence, uint16_t number)
{
    DET_LIST_EACH(link, &shared->rows)
    {
        struct row *row = DET_CONTAINER(link, struct row, link);

        if (row_is(row, machine, id, is_timer, sequence, number))
            return row;
    }
    return NULL;
}

static struct row *timer_row(
    const struct det_shared *shared, const struct det_store_commit *commit,
    const struct det_store_timer *timer)
{
    return find_row(shared, commit->machine->name, commit->id, true, 0, timer->timer);
}

static struct row *effect_row(
    const struct det_shared *shared, const struct det_store_commit *commit,
    const struct det_store_effect *effect)
{
    return find_row(
        shared, commit->machine->name, commit->id, false, effect->sequence, effect->index);
}

static struct row *add_row(struct det_shared *shared, const struct det_store_commit *commit)
{
    struct row *row = calloc(1, sizeof *row);

    det_assert(row);
    row->machine = commit->machine->name;
    snprintf(row->id, sizeof row->id, "%s", commit->id);
    det_list_append(&shared->rows, &row->link);
    return row;
}

static void remove_row(struct row *row)
{
    if (!row)
        return;
    det_list_remove(&row->link);
    free(row);
}

static void own(struct row *row, const struct node *node)
{
    memcpy(row->owner, node->store.owner, sizeof row->owner);
}

static void apply_timer(
    struct node *node, const struct det_store_commit *commit,
    const struct det_store_timer_change *change)
{
    struct row *row = timer_row(node->shared, commit, &change->timer);

    if (change->kind != DET_STORE_SET) {
        remove_row(row);
        return;
    }
    if (!row)
        row = add_row(node->shared, commit);
    row->is_timer = true;
    row->number = change->timer.timer;
    row->due = change->timer.due;
    row->visit = change->timer.visit;
    own(row, node);
}

static void apply_effect(
    struct node *node, const struct det_store_commit *commit,
    const struct det_store_effect_change *change)
{
    struct row *row = effect_row(node->shared, commit, &change->effect);

    if (change->kind == DET_STORE_TAKE) {
        remove_row(row);
        return;
    }
    if (!row)
        row = add_row(node->shared, commit);
    row->sequence = change->effect.sequence;
    row->number = change->effect.index;
    row->due = change->effect.next;
    row->is_dead = change->effect.is_dead;
    own(row, node);
}

/* Held things. */

static struct held *find_held(struct det_shared *shared, const char *machine, const char *name)
{
    DET_LIST_EACH(link, &shared->held)
    {
        struct held *held = DET_CONTAINER(link, struct held, link);

        if (!held->machine == !machine && strcmp(held->name, name) == 0 &&
            (!machine || strcmp(held->machine, machine) == 0))
            return held;
    }
    return NULL;
}

static struct held *add_held(struct det_shared *shared, const char *machine, const char *name)
{
    struct held *held = calloc(1, sizeof *held);

    det_assert(held);
    held->machine = machine;
    snprintf(held->name, sizeof held->name, "%s", name);
    det_list_append(&shared->held, &held->link);
    return held;
}

/* When it has lapsed nobody holds it. */
static bool is_free(const struct det_shared *shared, const struct held *held)
{
    return !*held->lease.owner || held->lease.expires_at <= det_shared_now(shared);
}

static int change_held(
    struct det_shared *shared, struct held *held, const struct det_store_lease_change *change)
{
    struct det_store_lease *lease = &held->lease;
    bool is_last = change->token == lease->token && !is_free(shared, held);

    switch (change->verb) {
    case DET_LEASE_ACQUIRE:
        if (!is_free(shared, held))
            return DET_ERR_LOCKED;
        lease->token++;
        snprintf(lease->owner, sizeof lease->owner, "%s", change->owner);
        lease->expires_at = det_shared_now(shared) + change->span;
        return 0;
    case DET_LEASE_RENEW:
        if (!is_last)
            return DET_ERR_LOCK_LOST;
        shared->counts.renewals++;
        lease->expires_at = det_shared_now(shared) + change->span;
        return 0;
    case DET_LEASE_RELEASE:
        if (!is_last)
            return DET_ERR_LOCK_LOST;
        lease->owner[0] = 0;
        lease->expires_at = 0;
        return 0;
    case DET_LEASE_LOOK:
        return 0;
    }
    det_assert_failed("no such verb", __FILE__, __LINE__);
}

static int lease_or_lock(
    struct node *node, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    struct det_shared *shared = node->shared;
    struct held *held;
    int r;

    r = enter(node);
    if (r < 0)
        return r;
    held = find_held(shared, machine ? machine->name : NULL, change->name);
    if (!held && machine)
        return leave(node, DET_ERR_NOT_FOUND);
    if (!held)
        held = add_held(shared, NULL, change->name);
    r = change_held(shared, held, change);
    *ret = held->lease;
    if (is_free(shared, held))
        ret->owner[0] = 0;
    if (r == 0 && change->verb == DET_LEASE_RELEASE)
        wake_others(node);
    return leave(node, r);
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

/* Commits. */

static int check_taken(const struct node *node, const struct det_store_commit *commit)
{
    const struct det_shared *shared = node->shared;

    for (size_t i = 0; i < commit->timer_count; i++) {
        const struct row *row = timer_row(shared, commit, &commit->timers[i].timer);

        if (commit->timers[i].kind != DET_STORE_TAKE)
            continue;
        if (!row || strcmp(row->owner, node->store.owner) != 0 ||
            row->due != commit->timers[i].timer.due || row->visit != commit->timers[i].timer.visit)
            return DET_ERR_NOT_FOUND;
        if (row->due > det_shared_now(shared))
            return DET_ERR_EARLY;
    }
    for (size_t i = 0; i < commit->effect_count; i++) {
        const struct row *row = effect_row(shared, commit, &commit->effects[i].effect);

        if (commit->effects[i].kind == DET_STORE_SET)
            continue;
        if (!row || (!row->is_dead && strcmp(row->owner, node->store.owner) != 0))
            return DET_ERR_NOT_FOUND;
    }
    return 0;
}

static int check(struct node *node, const struct det_store_commit *commit)
{
    struct det_shared *shared = node->shared;
    const struct held *held = find_held(shared, commit->machine->name, commit->id);

    if (held && commit->fence && (commit->fence != held->lease.token || is_free(shared, held))) {
        shared->counts.fenced++;
        return DET_ERR_LOCK_LOST;
    }
    if (held && !commit->fence && !is_free(shared, held)) {
        shared->counts.locked++;
        return DET_ERR_LOCKED;
    }
    return check_taken(node, commit);
}

/* The inner store has no locks, and another clock: what it would ask was asked already. */
static int commit_inner(struct det_shared *shared, struct det_store_commit *commit)
{
    struct det_store_commit copy = *commit, *const one = &copy;
    struct det_store_timer_change *timers = calloc(commit->timer_count + 1, sizeof *timers);
    int r;

    det_assert(timers);
    for (size_t i = 0; i < commit->timer_count; i++) {
        timers[i] = commit->timers[i];
        if (timers[i].kind == DET_STORE_TAKE)
            timers[i].kind = DET_STORE_CLEAR;
    }
    copy.timers = timers;
    copy.fence = 0;
    r = shared->inner->ops->commit(shared->inner, &one, 1);
    commit->instance = copy.instance;
    commit->actual = copy.actual;
    commit->next = copy.next;
    free(timers);
    return r < 0 ? r : copy.result;
}

static void commit_one(struct node *node, struct det_store_commit *commit)
{
    struct det_shared *shared = node->shared;
    struct held *held;

    commit->result = check(node, commit);
    if (commit->result == 0)
        commit->result = commit_inner(shared, commit);
    if (commit->result < 0)
        return;
    held = commit->is_new ? add_held(shared, commit->machine->name, commit->id)
                          : find_held(shared, commit->machine->name, commit->id);
    if (commit->event_count)
        held->lease.sequence = commit->head->sequence;
    for (size_t i = 0; i < commit->timer_count; i++)
        apply_timer(node, commit, &commit->timers[i]);
    for (size_t i = 0; i < commit->effect_count; i++)
        apply_effect(node, commit, &commit->effects[i]);
}

static int shared_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    struct node *node = node_of(store);
    int r;

    r = enter(node);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        commit_one(node, commits[i]);
    return leave(node, 0);
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

    copy.is_foreign = is_foreign(
        walk, find_row(walk->node->shared, walk->machine, walk->id, true, 0, timer->timer));
    return walk->rows->timer(walk->rows->context, &copy);
}

static int load_effect(void *context, const struct det_store_effect *effect)
{
    const struct load_walk *walk = context;
    struct det_store_effect copy = *effect;

    copy.is_foreign = !effect->is_dead && is_foreign(
                                              walk, find_row(
                                                        walk->node->shared, walk->machine, walk->id,
                                                        false, effect->sequence, effect->index));
    return walk->rows->effect(walk->rows->context, &copy);
}

static int load_deferred(void *context, const struct det_store_deferred *deferred)
{
    const struct load_walk *walk = context;

    return walk->rows->deferred(walk->rows->context, deferred);
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

    r = enter(node);
    return r < 0 ? r : leave(node, inner->ops->load(inner, machine, id, &ours, ret));
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

    r = enter(node);
    return r < 0 ? r : leave(node, inner->ops->answer(inner, instance, event_id, ret));
}

static int shared_events(
    struct det_store *store, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = enter(node);
    return r < 0 ? r : leave(node, inner->ops->events(inner, instance, after, visit, context));
}

static int shared_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = enter(node);
    return r < 0 ? r : leave(node, inner->ops->list(inner, machine, query, visit, context));
}

static int shared_serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    struct node *node = node_of(store);
    struct det_store *inner = node->shared->inner;
    int r;

    r = enter(node);
    return r < 0 ? r : leave(node, inner->ops->serve(inner, machine, reterr));
}

static det_time shared_now(struct det_store *store)
{
    return det_shared_now(node_of(store)->shared);
}

/* What is due. */

static bool is_of(const struct row *row, const struct det_machine *machine, const char *owner)
{
    return !row->is_dead && strcmp(row->machine, machine->name) == 0 &&
           (!owner || strcmp(row->owner, owner) == 0);
}

/* The first row behind (due, place) in the order of time; rows of equal time in that of the list. */
static struct row *next_due(
    struct node *node, const struct det_machine *machine, const struct row *after)
{
    struct row *found = NULL;
    bool is_behind = !after;

    DET_LIST_EACH(link, &node->shared->rows)
    {
        struct row *row = DET_CONTAINER(link, struct row, link);

        if (row == after) {
            is_behind = true;
            continue;
        }
        if (!is_of(row, machine, node->store.owner))
            continue;
        if (after && (row->due < after->due || (row->due == after->due && !is_behind)))
            continue;
        if (!found || row->due < found->due)
            found = row;
    }
    return found;
}

static int shared_due(
    struct det_store *store, const struct det_machine *machine, det_time before, size_t limit,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    struct node *node = node_of(store);
    struct row *row;
    int r;

    r = enter(node);
    if (r < 0)
        return r;
    row = next_due(node, machine, NULL);
    for (size_t i = 0; r == 0 && row && row->due <= before && i < limit; i++) {
        r = visit(context, &(struct det_store_due){ row->id, row->due, row->is_timer });
        row = next_due(node, machine, row);
    }
    *ret_next = row ? row->due : DET_NEVER;
    return leave(node, r);
}

static int shared_pending(
    struct det_store *store, const struct det_machine *machine, det_time before,
    int (*visit)(void *context, const char *id), void *context)
{
    struct node *node = node_of(store);
    int r;

    r = enter(node);
    if (r < 0)
        return r;
    for (struct row *row = next_due(node, machine, NULL); r == 0 && row && row->due < before;
         row = next_due(node, machine, row))
        r = visit(context, row->id);
    return leave(node, r);
}

static bool has_lapsed(struct det_shared *shared, const struct row *row)
{
    char name[40];
    const struct held *held;

    snprintf(name, sizeof name, "node/%s", row->owner);
    held = find_held(shared, NULL, name);
    return !held || is_free(shared, held);
}

static struct row *first_left(struct det_shared *shared, const struct det_machine *machine)
{
    struct row *found = NULL;

    DET_LIST_EACH(link, &shared->rows)
    {
        struct row *row = DET_CONTAINER(link, struct row, link);

        if (is_of(row, machine, NULL) && has_lapsed(shared, row) &&
            (!found || row->due < found->due))
            found = row;
    }
    return found;
}

static int shared_adopt(
    struct det_store *store, const struct det_machine *machine, size_t limit, size_t *ret)
{
    struct node *node = node_of(store);
    struct row *row;
    int r;

    r = enter(node);
    if (r < 0)
        return r;
    for (*ret = 0; *ret < limit && (row = first_left(node->shared, machine)); ++*ret) {
        /* One that has no lease itself would adopt its own rows without end. */
        if (strcmp(row->owner, store->owner) == 0)
            break;
        own(row, node);
    }
    node->shared->counts.adoptions += *ret;
    return leave(node, 0);
}

static void shared_listen(struct det_store *store, void (*wake)(void *context), void *context)
{
    struct node *node = node_of(store);

    lock(node->shared);
    node->wake = wake;
    node->context = context;
    while (!wake && node->waking)
        (void)det_condition_wait(
            node->shared->world, node->shared->changed, node->shared->mutex, DET_NEVER);
    unlock(node->shared);
}

static void shared_close(struct det_store *store)
{
    struct node *node = node_of(store);

    lock(node->shared);
    det_list_remove(&node->link);
    unlock(node->shared);
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
    .pending = shared_pending,
    .adopt = shared_adopt,
    .lease = shared_lease,
    .lock = shared_lock,
    .listen = shared_listen,
};

struct det_store *det_shared_node(struct det_shared *shared)
{
    struct node *node = calloc(1, sizeof *node);

    det_assert(node);
    node->store = (struct det_store){ .ops = &operations, .world = shared->world };
    node->shared = shared;
    lock(shared);
    snprintf(node->store.owner, sizeof node->store.owner, "%032x", ++shared->opened);
    det_list_append(&shared->nodes, &node->link);
    unlock(shared);
    return &node->store;
}

struct det_shared *det_shared_open(struct det_sim *sim, struct det_world *world)
{
    struct det_shared *shared = calloc(1, sizeof *shared);
    int r;

    det_assert(shared);
    shared->sim = sim;
    shared->world = sim ? det_sim_world(sim) : det_world_or_real(world);
    shared->offset =
        det_world_now(shared->world, DET_CLOCK_WALL) - det_world_now(shared->world, DET_CLOCK_BOOT);
    det_list_init(&shared->rows);
    det_list_init(&shared->held);
    det_list_init(&shared->nodes);
    r = det_store_open_with(
        "memory:",
        &(struct det_store_options){
            .world = shared->world, .events_kept = 65536, .event_ids_kept = 65536 },
        &shared->inner, NULL);
    det_assert(r == 0);
    r = det_mutex_open(shared->world, &shared->mutex);
    det_assert(r == 0);
    r = det_condition_open(shared->world, &shared->changed);
    det_assert(r == 0);
    return shared;
}

void det_shared_close(struct det_shared *shared)
{
    struct det_list *link;

    det_assert(det_list_is_empty(&shared->nodes));
    while ((link = det_list_take(&shared->rows)))
        free(DET_CONTAINER(link, struct row, link));
    while ((link = det_list_take(&shared->held)))
        free(DET_CONTAINER(link, struct held, link));
    det_condition_close(shared->world, shared->changed);
    det_mutex_close(shared->world, shared->mutex);
    det_store_close(shared->inner);
    free(shared);
}

/* Faults. */

void det_shared_set_faults(struct det_shared *shared, struct det_shared_faults faults)
{
    lock(shared);
    shared->faults = faults;
    unlock(shared);
}

void det_shared_fail(struct det_store *store, unsigned count, bool is_before)
{
    struct node *node = node_of(store);

    lock(node->shared);
    node->failing = count;
    node->fails_before = is_before;
    unlock(node->shared);
}

void det_shared_pause(struct det_store *store, bool is_paused)
{
    struct node *node = node_of(store);

    lock(node->shared);
    node->is_paused = is_paused;
    det_condition_broadcast(node->shared->world, node->shared->changed);
    unlock(node->shared);
}

void det_shared_kill(struct det_store *store)
{
    struct node *node = node_of(store);

    lock(node->shared);
    node->is_dead = true;
    det_condition_broadcast(node->shared->world, node->shared->changed);
    unlock(node->shared);
}

void det_shared_tell(struct det_store *store)
{
    struct node *node = node_of(store);

    lock(node->shared);
    wake_one(node);
    unlock(node->shared);
}

/* Looking. */

size_t det_shared_rows(struct det_shared *shared, const struct det_store *node)
{
    size_t count = 0;

    lock(shared);
    DET_LIST_EACH(link, &shared->rows)
    {
        const struct row *row = DET_CONTAINER(link, struct row, link);

        count += !row->is_dead && (!node || strcmp(row->owner, node->owner) == 0);
    }
    unlock(shared);
    return count;
}

bool det_shared_lease(struct det_shared *shared, const char *name, struct det_store_lease *ret)
{
    const struct held *held;

    lock(shared);
    held = find_held(shared, NULL, name);
    if (held) {
        *ret = held->lease;
        if (is_free(shared, held))
            ret->owner[0] = 0;
    }
    unlock(shared);
    return held;
}

struct det_shared_counts det_shared_counts(struct det_shared *shared)
{
    struct det_shared_counts counts;

    lock(shared);
    counts = shared->counts;
    unlock(shared);
    return counts;
}
