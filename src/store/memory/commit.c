/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit.c - the commit of the memory store: check, reserve, apply. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "machine/data_copy.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/memory/memory.h"

/* Objects created while reserving; they are attached to the instance or freed. */
struct staged {
    struct det_list effects, deferred;
    struct memory_answer *answer;
};

static bool timer_matches(struct memory_instance *instance, const struct det_store_timer *row)
{
    const struct memory_timer *timer;

    if (row->timer != DET_STATE_TIMER && (!instance->more || !instance->more->timers))
        return false;
    timer = memory_timer_of(instance, row->timer);
    return timer->is_armed && timer->due == row->due && timer->visit == row->visit;
}

/* DET_NEVER: the timer is dead. */
static det_time next_of(struct memory_instance *instance, const struct det_store_timer *row)
{
    return atomic_load_explicit(&memory_timer_of(instance, row->timer)->next, memory_order_relaxed);
}

static int check_timers(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit)
{
    bool is_early = false;

    for (size_t i = 0; i < commit->timer_count; i++) {
        const struct det_store_timer *row = &commit->timers[i].timer;

        if (commit->timers[i].kind != DET_STORE_TAKE && commit->timers[i].kind != DET_STORE_UPDATE)
            continue;
        if (!timer_matches(instance, row))
            return DET_ERR_NOT_FOUND;
        if (commit->timers[i].kind == DET_STORE_UPDATE)
            continue;
        if (next_of(instance, row) == DET_NEVER)
            return DET_ERR_NOT_FOUND;
        is_early = is_early || next_of(instance, row) > det_memory_now(&store->store);
    }
    return is_early ? DET_ERR_EARLY : 0;
}

static int check_lists(struct memory_instance *instance, const struct det_store_commit *commit)
{
    for (size_t i = 0; i < commit->effect_count; i++) {
        const struct det_store_effect *row = &commit->effects[i].effect;

        if (commit->effects[i].kind != DET_STORE_SET &&
            !det_memory_effect_find(instance, row->sequence, row->index))
            return DET_ERR_NOT_FOUND;
    }
    for (size_t i = 0; i < commit->deferred_count; i++) {
        if (commit->deferred[i].kind == DET_STORE_TAKE &&
            !det_memory_deferred_find(instance, commit->deferred[i].deferred.sequence))
            return DET_ERR_NOT_FOUND;
    }
    return 0;
}

static int check_commit(
    struct memory_store *store, struct memory_instance *instance, struct det_store_commit *commit)
{
    int r = 0;

    if ((commit->event_count || commit->is_snapshot) &&
        instance->head.sequence != commit->expected) {
        commit->actual = instance->head.sequence;
        return DET_ERR_CONFLICT;
    }
    if (commit->event_id && det_memory_answer_find(instance, commit->event_id))
        return DET_ERR_EXISTS;
    if (commit->timer_count)
        r = check_timers(store, instance, commit);
    if (r == 0 && (commit->effect_count || commit->deferred_count))
        r = check_lists(instance, commit);
    return r;
}

static int reserve_timers(struct memory_store *store, struct memory_instance *instance)
{
    size_t count = (size_t)instance->machine->timer_count + 1;
    struct memory_timer *timers = DET_NEW_ARRAY(store->store.allocator, count, struct memory_timer);

    det_assert(!instance->more->timers);
    if (!timers)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        timers[i].next = DET_NEVER;
    det_mutex_lock(store->store.world, store->mutex);
    instance->more->timers = timers;
    det_mutex_unlock(store->store.world, store->mutex);
    return 0;
}

static int reserve_timer(
    struct memory_store *store, struct memory_instance *instance, const struct det_store_timer *row)
{
    const struct memory_machine *machine = instance->machine;
    struct memory_timer *timer;
    int r = 0;

    if (row->timer != DET_STATE_TIMER && !instance->more->timers)
        r = reserve_timers(store, instance);
    if (r < 0)
        return r;
    timer = memory_timer_of(instance, row->timer);
    if (row->value && !timer->value)
        timer->value = det_alloc_zero(store->store.allocator, machine->event_size);
    return row->value && !timer->value ? DET_ERR_NO_MEMORY : 0;
}

static bool needs_more(
    const struct memory_instance *instance, const struct det_store_commit *commit)
{
    if (instance->more)
        return false;
    for (size_t i = 0; i < commit->timer_count; i++) {
        if (commit->timers[i].timer.timer != DET_STATE_TIMER)
            return true;
    }
    return commit->effect_count || commit->deferred_count || commit->event_id || commit->reason ||
           commit->is_snapshot;
}

static int stage_commit(
    struct memory_store *store, const struct memory_machine *machine,
    const struct det_store_commit *commit, struct staged *staged)
{
    for (size_t i = 0; i < commit->effect_count; i++) {
        struct memory_effect *effect;

        if (commit->effects[i].kind != DET_STORE_SET)
            continue;
        effect = det_memory_effect_open(store, machine, &commit->effects[i].effect);
        if (!effect)
            return DET_ERR_NO_MEMORY;
        det_list_append(&staged->effects, &effect->node);
    }
    for (size_t i = 0; i < commit->deferred_count; i++) {
        struct memory_deferred *deferred;

        if (commit->deferred[i].kind != DET_STORE_SET)
            continue;
        deferred = det_memory_deferred_open(store, machine, &commit->deferred[i].deferred);
        if (!deferred)
            return DET_ERR_NO_MEMORY;
        det_list_append(&staged->deferred, &deferred->node);
    }
    return 0;
}

static void discard_stage(
    struct memory_store *store, const struct memory_machine *machine, struct staged *staged)
{
    struct det_list *node;

    det_memory_answer_close(store, staged->answer);
    while ((node = det_list_take(&staged->effects)))
        det_memory_effect_close(store, machine, DET_CONTAINER(node, struct memory_effect, node));
    while ((node = det_list_take(&staged->deferred)))
        det_memory_deferred_close(
            store, machine, DET_CONTAINER(node, struct memory_deferred, node));
}

static int reserve_commit(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit, struct staged *staged)
{
    int r = 0;

    if (needs_more(instance, commit))
        r = det_memory_more(store, instance);
    if (r == 0 && commit->event_count)
        r = det_memory_rows_reserve(store, instance, commit);
    for (size_t i = 0; r == 0 && i < commit->timer_count; i++) {
        if (commit->timers[i].kind == DET_STORE_SET)
            r = reserve_timer(store, instance, &commit->timers[i].timer);
    }
    if (r == 0 && commit->event_id)
        r = det_memory_answer_reserve(store, instance->more, &staged->answer);
    if (r == 0 && (commit->effect_count || commit->deferred_count))
        r = stage_commit(store, instance->machine, commit, staged);
    if (r == 0 && commit->is_snapshot)
        r = det_memory_snapshot_reserve(store, instance);
    return r;
}

/* Stores the results of attempts. */
static void set_attempts(
    struct memory_store *store, struct memory_timer *timer, const struct det_store_timer *row)
{
    det_time next = row->next ? row->next : row->due;

    timer->attempts = row->attempts;
    timer->last_error = row->last_error;
    atomic_store_explicit(&timer->is_dead, row->is_dead, memory_order_relaxed);
    atomic_store_explicit(&timer->next, row->is_dead ? DET_NEVER : next, memory_order_relaxed);
    if (!timer->reason && !row->reason)
        return;
    det_free_string(store->store.allocator, timer->reason);
    timer->reason = row->reason ? det_string_copy(store->store.allocator, row->reason) : NULL;
}

static void apply_timer(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_timer_change *change)
{
    const struct det_store_timer *row = &change->timer;
    struct memory_timer *timer;

    if (row->timer != DET_STATE_TIMER && !instance->more->timers)
        return;
    timer = memory_timer_of(instance, row->timer);
    if (change->kind == DET_STORE_UPDATE) {
        set_attempts(store, timer, row);
        return;
    }
    timer->is_armed = change->kind == DET_STORE_SET;
    if (!timer->is_armed) {
        atomic_store_explicit(&timer->next, DET_NEVER, memory_order_relaxed);
        atomic_store_explicit(&timer->is_dead, false, memory_order_relaxed);
        return;
    }
    set_attempts(store, timer, row);
    timer->due = row->due;
    timer->visit = row->visit;
    timer->event = row->event;
    timer->has_value = row->value != NULL;
    det_assert(!row->value || timer->value);
    if (row->value)
        memcpy(timer->value, row->value, instance->machine->event_size);
}

/* Limits the number of dead effects; drops the oldest. */
static void bury_effects(struct memory_store *store, struct memory_instance *instance)
{
    struct memory_effect *oldest = NULL;
    size_t count = 0;

    DET_LIST_EACH(node, &instance->more->effects)
    {
        struct memory_effect *effect = DET_CONTAINER(node, struct memory_effect, node);

        if (!effect->row.is_dead)
            continue;
        if (!oldest)
            oldest = effect;
        count++;
    }
    if (count > DET_DEAD_MAX)
        det_memory_effect_close(store, instance->machine, oldest);
}

/* Replaces the effect with the same name, or appends it. */
static void set_effect(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_effect *row, struct det_list *node)
{
    struct memory_effect *old = det_memory_effect_find(instance, row->sequence, row->index);

    det_assert(node);
    det_list_insert_before(old ? &old->node : &instance->more->effects, node);
    if (old)
        det_memory_effect_close(store, instance->machine, old);
}

static void keep_reason(
    struct memory_store *store, struct memory_effect *effect, const char *reason)
{
    det_free_string(store->store.allocator, effect->reason);
    effect->reason = reason ? det_string_copy(store->store.allocator, reason) : NULL;
    effect->row.reason = effect->reason;
}

static void apply_effect(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_effect_change *change, struct staged *staged)
{
    const struct det_store_effect *row = &change->effect;
    struct memory_effect *effect;

    if (change->kind == DET_STORE_SET) {
        set_effect(store, instance, row, det_list_take(&staged->effects));
        if (row->is_dead)
            bury_effects(store, instance);
        return;
    }
    effect = det_memory_effect_find(instance, row->sequence, row->index);
    det_assert(effect);
    if (change->kind == DET_STORE_TAKE) {
        det_memory_effect_close(store, instance->machine, effect);
        return;
    }
    effect->row.attempts = row->attempts;
    effect->row.last_error = row->last_error;
    keep_reason(store, effect, row->reason);
    effect->row.next = row->next;
    effect->row.is_dead = row->is_dead;
    if (row->is_dead)
        bury_effects(store, instance);
}

static void apply_effects(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit, struct staged *staged)
{
    det_mutex_lock(store->store.world, store->mutex);
    for (size_t i = 0; i < commit->effect_count; i++)
        apply_effect(store, instance, &commit->effects[i], staged);
    det_mutex_unlock(store->store.world, store->mutex);
}

static void apply_deferred(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_deferred_change *change, struct staged *staged)
{
    struct memory_deferred *old = det_memory_deferred_find(instance, change->deferred.sequence);

    if (change->kind == DET_STORE_SET) {
        struct det_list *node = det_list_take(&staged->deferred);

        det_assert(node);
        det_list_insert_before(old ? &old->node : &instance->more->deferred, node);
    }
    if (old)
        det_memory_deferred_close(store, instance->machine, old);
}

/* 3: there is a sequence for each row that is kept. A timer that is not armed has no time. */
static void assert_instance(const struct memory_instance *instance)
{
    const struct memory_timer *timer = &instance->state_timer;

    det_assert(instance->head.state < instance->machine->machine->state_count);
    det_assert(instance->row_count <= instance->head.sequence);
    det_assert(instance->listed_sequence == instance->head.sequence);
    det_assert(timer->is_armed || timer->next == DET_NEVER);
    det_assert(!timer->has_value || timer->value);
}

static void set_head(struct memory_instance *instance, const struct det_store_head *head)
{
    instance->head = *head;
    atomic_store_explicit(
        &instance->listed, head->state | (uint32_t)head->is_stopped << 16, memory_order_relaxed);
    atomic_store_explicit(&instance->listed_sequence, head->sequence, memory_order_relaxed);
    atomic_store_explicit(
        &instance->listed_moved_at, head->last_transition_at, memory_order_relaxed);
}

static void apply_commit(
    struct memory_store *store, struct memory_instance *instance,
    const struct det_store_commit *commit, struct staged *staged)
{
    uint64_t transitions = instance->head.transition_count;

    for (size_t i = 0; i < commit->event_count; i++) {
        det_memory_rows_append(instance, &commit->events[i]);
        if (commit->events[i].outcome == DET_OUTCOME_GOTO)
            instance->history[transitions++ % DET_HISTORY_MAX] = commit->events[i].from;
    }
    for (size_t i = 0; i < commit->timer_count; i++)
        apply_timer(store, instance, &commit->timers[i]);
    if (commit->effect_count)
        apply_effects(store, instance, commit, staged);
    for (size_t i = 0; i < commit->deferred_count; i++)
        apply_deferred(store, instance, &commit->deferred[i], staged);
    if (commit->data)
        det_machine_copy_data(
            commit->machine, instance->machine->data_size, instance->data, commit->data);
    det_assert(!commit->reason || strlen(commit->reason) <= DET_REASON_MAX);
    if (commit->reason)
        memcpy(instance->more->reason, commit->reason, strlen(commit->reason) + 1);
    if (commit->event_id)
        det_memory_answer_put(instance->more, staged->answer, commit);
    if (commit->event_count || commit->is_new)
        set_head(instance, commit->head);
    if (commit->is_snapshot)
        det_memory_snapshot_take(store, instance, commit);
    det_assert(det_list_is_empty(&staged->effects) && det_list_is_empty(&staged->deferred));
}

/* True for the most frequent commits: one event that fits into its row, and at most the state's own
 * timer set or cleared. They need no reservation and no search. */
static bool is_light(
    const struct memory_store *store, const struct memory_instance *instance,
    const struct det_store_commit *commit)
{
    if (commit->event_count != 1 || commit->timer_count > 1 || commit->effect_count ||
        commit->deferred_count || commit->event_id || commit->reason || commit->is_snapshot)
        return false;
    if (commit->timer_count &&
        ((commit->timers->kind != DET_STORE_SET && commit->timers->kind != DET_STORE_CLEAR) ||
         commit->timers->timer.value || commit->timers->timer.timer != DET_STATE_TIMER))
        return false;
    return instance->head.sequence == commit->expected &&
           (instance->row_count < instance->row_capacity ||
            instance->row_count == store->events_kept) &&
           det_memory_rows_fits(instance, commit->events);
}

static void apply_light(
    struct memory_store *store, struct memory_instance *instance, struct det_store_commit *commit)
{
    det_memory_rows_append(instance, commit->events);
    if (commit->events->outcome == DET_OUTCOME_GOTO)
        instance->history[instance->head.transition_count % DET_HISTORY_MAX] = commit->events->from;
    if (commit->timer_count)
        apply_timer(store, instance, commit->timers);
    if (commit->data)
        det_machine_copy_data(
            commit->machine, instance->machine->data_size, instance->data, commit->data);
    set_head(instance, commit->head);
    commit->next = memory_row_at(instance, instance->row_next);
}

/* One test for both, since nearly every commit has neither. */
static bool concerns_lock(
    const struct memory_instance *instance, const struct det_store_commit *commit)
{
    const struct memory_lease *lock = atomic_load_explicit(&instance->lock, memory_order_acquire);

    return ((uint64_t)(uintptr_t)lock | commit->fence) != 0;
}

static int commit_known(
    struct memory_store *store, struct memory_instance *instance, struct det_store_commit *commit)
{
    struct staged staged;
    int r;

    if (concerns_lock(instance, commit)) {
        r = det_memory_lock_check(store, instance, commit->fence);
        if (r < 0)
            return r;
    }
    if (is_light(store, instance, commit)) {
        apply_light(store, instance, commit);
        det_check((assert_instance(instance), true));
        return 0;
    }
    r = check_commit(store, instance, commit);
    if (r < 0)
        return r;
    det_list_init(&staged.effects);
    det_list_init(&staged.deferred);
    staged.answer = NULL;
    r = reserve_commit(store, instance, commit, &staged);
    if (r < 0) {
        discard_stage(store, instance->machine, &staged);
        return r;
    }
    apply_commit(store, instance, commit, &staged);
    assert_instance(instance);
    commit->next = instance->rows ? memory_row_at(instance, instance->row_next) : NULL;
    return 0;
}

/* The instance must be complete before it is in the map. */
static int commit_new(struct memory_store *store, struct det_store_commit *commit)
{
    struct det_world *world = store->store.world;
    struct memory_machine *machine = det_memory_machine_find(store, commit->machine);
    struct memory_instance *instance;
    int r;

    det_assert(commit->data);
    instance = det_memory_instance_open(store, machine, commit->id);
    if (!instance)
        return DET_ERR_NO_MEMORY;
    instance->started_at = commit->head->started_at;
    det_memory_start_keep(instance, commit);
    r = commit_known(store, instance, commit);
    if (r == 0) {
        det_mutex_lock(world, store->mutex);
        r = det_memory_list_put(store, machine, instance);
        det_mutex_unlock(world, store->mutex);
    }
    if (r < 0) {
        det_memory_instance_close(store, instance);
        return r;
    }
    commit->instance = (struct det_store_instance *)(void *)instance;
    return 0;
}

int det_memory_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    struct memory_store *memory = memory_store_of(store);

    det_contract_commits(commits, count);
    for (size_t i = 0; i < count; i++) {
        struct det_store_commit *commit = commits[i];

        commit->result = commit->is_new
                             ? commit_new(memory, commit)
                             : commit_known(memory, memory_instance_of(commit->instance), commit);
    }
    return 0;
}
