/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_server.c - what the server knows: rows and their owners, locks, leases, commits. */
#include "lib/shared_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

det_time det_shared_now(const struct det_shared *shared)
{
    return det_world_now(shared->world, DET_CLOCK_BOOT) + shared->offset;
}

/* Rows. */

static bool row_is(
    const struct row *row, const char *machine, const char *id, bool is_timer, uint64_t sequence,
    uint16_t number)
{
    return row->is_timer == is_timer && row->sequence == sequence && row->number == number &&
           strcmp(row->machine, machine) == 0 && strcmp(row->id, id) == 0;
}

struct row *det_shared_find_row(
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
    return det_shared_find_row(shared, commit->machine->name, commit->id, true, 0, timer->timer);
}

static struct row *effect_row(
    const struct det_shared *shared, const struct det_store_commit *commit,
    const struct det_store_effect *effect)
{
    return det_shared_find_row(
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

void det_shared_own(struct row *row, const struct node *node)
{
    memcpy(row->owner, node->store.owner, sizeof row->owner);
}

static void apply_timer(
    struct node *node, const struct det_store_commit *commit,
    const struct det_store_timer_change *change)
{
    struct row *row = timer_row(node->shared, commit, &change->timer);

    if (change->kind != DET_STORE_SET && change->kind != DET_STORE_UPDATE) {
        remove_row(row);
        return;
    }
    if (!row)
        row = add_row(node->shared, commit);
    row->is_timer = true;
    row->number = change->timer.timer;
    row->armed = change->timer.due;
    row->due = change->timer.next ? change->timer.next : change->timer.due;
    row->is_dead = change->timer.is_dead;
    row->visit = change->timer.visit;
    det_shared_own(row, node);
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
    det_shared_own(row, node);
}

/* Held things. */

struct held *det_shared_find_held(struct det_shared *shared, const char *machine, const char *name)
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

struct held *det_shared_add_held(struct det_shared *shared, const char *machine, const char *name)
{
    struct held *held = calloc(1, sizeof *held);

    det_assert(held);
    held->machine = machine;
    snprintf(held->name, sizeof held->name, "%s", name);
    det_list_append(&shared->held, &held->link);
    return held;
}

bool det_shared_is_free(const struct det_shared *shared, const struct held *held)
{
    return !*held->lease.owner || held->lease.expires_at <= det_shared_now(shared);
}

int det_shared_change_held(
    struct det_shared *shared, struct held *held, const struct det_store_lease_change *change)
{
    struct det_store_lease *lease = &held->lease;
    bool is_last = change->token == lease->token && !det_shared_is_free(shared, held);

    switch (change->verb) {
    case DET_LEASE_ACQUIRE:
        if (!det_shared_is_free(shared, held))
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
        if (change->token != lease->token || !lease->expires_at)
            return DET_ERR_LOCK_LOST;
        lease->owner[0] = 0;
        lease->expires_at = 0;
        return 0;
    case DET_LEASE_READ:
        return 0;
    }
    det_assert_failed("no such verb", __FILE__, __LINE__);
}

/* Commits. */

static int check_taken(const struct node *node, const struct det_store_commit *commit)
{
    const struct det_shared *shared = node->shared;

    for (size_t i = 0; i < commit->timer_count; i++) {
        const struct row *row = timer_row(shared, commit, &commit->timers[i].timer);

        bool is_update = commit->timers[i].kind == DET_STORE_UPDATE;

        if (commit->timers[i].kind != DET_STORE_TAKE && !is_update)
            continue;
        if (!row || (row->is_dead && !is_update) ||
            (!row->is_dead && strcmp(row->owner, node->store.owner) != 0) ||
            row->armed != commit->timers[i].timer.due ||
            row->visit != commit->timers[i].timer.visit)
            return DET_ERR_NOT_FOUND;
        if (!is_update && row->due > det_shared_now(shared))
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
    const struct held *held = det_shared_find_held(shared, commit->machine->name, commit->id);

    if (held && commit->fence &&
        (commit->fence != held->lease.token || det_shared_is_free(shared, held))) {
        shared->counts.fenced++;
        return DET_ERR_LOCK_LOST;
    }
    if (held && !commit->fence && !det_shared_is_free(shared, held)) {
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

void det_shared_commit_one(struct node *node, struct det_store_commit *commit)
{
    struct det_shared *shared = node->shared;
    struct held *held;

    commit->result = check(node, commit);
    if (commit->result == 0)
        commit->result = commit_inner(shared, commit);
    if (commit->result < 0)
        return;
    held = commit->is_new ? det_shared_add_held(shared, commit->machine->name, commit->id)
                          : det_shared_find_held(shared, commit->machine->name, commit->id);
    if (commit->event_count)
        held->lease.sequence = commit->head->sequence;
    for (size_t i = 0; i < commit->timer_count; i++)
        apply_timer(node, commit, &commit->timers[i]);
    for (size_t i = 0; i < commit->effect_count; i++)
        apply_effect(node, commit, &commit->effects[i]);
}

/* What is due. */

static bool is_of(const struct row *row, const struct det_machine *machine, const char *owner)
{
    return !row->is_dead && strcmp(row->machine, machine->name) == 0 &&
           (!owner || strcmp(row->owner, owner) == 0);
}

/* Rows of equal time are in the order of the list. */
struct row *det_shared_next_due(
    struct node *node, const struct det_machine *machine, const struct row *after)
{
    struct row *found = NULL;
    bool is_behind = !after;

    DET_LIST_EACH(link, &node->shared->rows)
    {
        struct row *row = DET_CONTAINER(link, struct row, link);

        if (after && row == after) {
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

static bool has_lapsed(struct det_shared *shared, const struct row *row)
{
    char name[40];
    const struct held *held;

    snprintf(name, sizeof name, "node/%s", row->owner);
    held = det_shared_find_held(shared, NULL, name);
    return !held || det_shared_is_free(shared, held);
}

struct row *det_shared_first_left(struct det_shared *shared, const struct det_machine *machine)
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

/* Opening. */

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

/* Rows, or what is held: both begin with their link. */
static void free_all(struct det_list *list)
{
    struct det_list *next;

    for (struct det_list *link = list->next; link != list; link = next) {
        next = link->next;
        free(link);
    }
}

void det_shared_close(struct det_shared *shared)
{
    det_assert(det_list_is_empty(&shared->nodes));
    free_all(&shared->rows);
    free_all(&shared->held);
    det_condition_close(shared->world, shared->changed);
    det_mutex_close(shared->world, shared->mutex);
    det_store_close(shared->inner);
    free(shared);
}

void det_shared_set_faults(struct det_shared *shared, struct det_shared_faults faults)
{
    det_shared_lock(shared);
    shared->faults = faults;
    det_shared_unlock(shared);
}

/* Looking. */

size_t det_shared_rows(struct det_shared *shared, const struct det_store *node)
{
    size_t count = 0;

    det_shared_lock(shared);
    DET_LIST_EACH(link, &shared->rows)
    {
        const struct row *row = DET_CONTAINER(link, struct row, link);

        count += !row->is_dead && (!node || strcmp(row->owner, node->owner) == 0);
    }
    det_shared_unlock(shared);
    return count;
}

bool det_shared_lease(struct det_shared *shared, const char *name, struct det_store_lease *ret)
{
    const struct held *held;

    det_shared_lock(shared);
    held = det_shared_find_held(shared, NULL, name);
    if (held) {
        *ret = held->lease;
        if (det_shared_is_free(shared, held))
            ret->owner[0] = 0;
    }
    det_shared_unlock(shared);
    return held;
}

struct det_shared_counts det_shared_counts(struct det_shared *shared)
{
    struct det_shared_counts counts;

    det_shared_lock(shared);
    counts = shared->counts;
    det_shared_unlock(shared);
    return counts;
}
