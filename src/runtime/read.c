/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* read.c - reads instances, their events, timers and effects, and the counts.
 *
 * A copy of an instance needs no claim. A walk that calls a visitor holds a claim, so that the
 * objects stay, and no lock while the visitor runs. */
#include <detent/tool/machine.h>
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "base/unset.h"
#include "runtime/walk.h"
#include "store/row.h"

/* The reason is in `error`, if the caller requests one; a wait that fails writes it more than
 * once. */
static int begin(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance, struct det_error *error)
{
    struct det_served *served;
    int r;

    det_assert(runtime && machine && instance);
    if (error)
        error->code = 0;
    r = det_served_get(runtime, machine, error, &served);
    if (r < 0)
        return r;
    det_turn_init(turn, runtime, served, det_served_hash(runtime, instance));
    turn->is_reading = true;
    turn->error = error;
    return 0;
}

/* Returns `r`. A failure without a specific reason has the sentence of its code. */
static int explain(
    int r, const struct det_machine *machine, const char *instance, const struct det_error *error,
    struct det_error *reterr)
{
    if (r >= 0 || !reterr)
        return r;
    if (error->code == r) {
        *reterr = *error;
        return r;
    }
    if (r == DET_ERR_NOT_FOUND)
        return det_error_set(
            reterr, r, "%s %s does not exist; start it first", machine->name, instance);
    return det_error_set(reterr, r, "%s %s: %s", machine->name, instance, det_error_text(r));
}

static void copy(const struct det_turn *turn, struct det_instance *ret, void *ret_data)
{
    const struct det_resident *resident = turn->resident;
    const struct det_store_head *head = &resident->head;
    const struct det_resident_more *more = resident->more;
    uint32_t kept = turn->runtime->options.history_kept;

    *ret = (struct det_instance){
        .state = head->state,
        .previous = UINT_MAX,
        .sequence = head->sequence,
        .visit = head->visit,
        .transition_count = head->transition_count,
        .started_at = head->started_at,
        .last_transition_at = head->last_transition_at,
        .is_stopped = head->is_stopped,
        .history_count = head->transition_count < kept ? (size_t)head->transition_count : kept,
        .deferred_count = more ? more->kept_count : 0,
        .effects_pending = more ? more->open_count : 0,
    };
    for (size_t i = 0; i < ret->history_count; i++)
        ret->history[i] = resident->history[(head->transition_count - 1 - i) % kept];
    if (ret->history_count)
        ret->previous = ret->history[0];
    if (more)
        memcpy(ret->reason, more->reason, sizeof ret->reason);
    if (ret_data)
        memcpy(ret_data, resident->data, turn->served->data_size);
}

int det_runtime_get(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_instance *ret, void *ret_data, struct det_error *reterr)
{
    DET_UNSET struct det_error error;
    struct det_turn turn;
    int r;

    r = begin(&turn, runtime, machine, instance, reterr ? &error : NULL);
    if (r < 0)
        return explain(r, machine, instance, &error, reterr);
    det_shard_lock(runtime, turn.shard);
    r = det_turn_peek(&turn, instance);
    if (r == 0)
        copy(&turn, ret, ret_data);
    det_shard_unlock(runtime, turn.shard);
    return explain(r, machine, instance, &error, reterr);
}

static void glance_at(
    const struct det_machine *machine, const struct det_armed *armed, struct det_glance *ret)
{
    if (!armed || !det_armed_is_set(armed))
        return;
    if (ret->timer_count < DET_GLANCE_TIMERS)
        ret->timers[ret->timer_count] = (struct det_glance_timer){
            .name = det_row_timer_name(machine, armed->timer),
            .event = armed->event,
            .visit = armed->visit,
            .due = armed->deadline,
            .next = armed->next,
            .is_dead = armed->is_dead,
        };
    ret->timer_count++;
}

/* Published state is readable under the lock, also during the writer's next turn. */
int det_runtime_glance(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_glance *ret, void *ret_data, struct det_error *reterr)
{
    const struct det_index_slot *slot = NULL;
    DET_UNSET struct det_error error;
    struct det_turn turn;
    int r;

    r = begin(&turn, runtime, machine, instance, reterr ? &error : NULL);
    if (r < 0)
        return explain(r, machine, instance, &error, reterr);
    det_shard_lock(runtime, turn.shard);
    if (!runtime->ops->is_shared)
        slot =
            det_index_find(det_served_index(runtime, turn.served, turn.shard), turn.hash, instance);
    if (slot && !slot->resident->is_loading && !slot->resident->is_stale) {
        turn.resident = slot->resident;
        turn.resident->is_used = true;
        copy(&turn, &ret->instance, ret_data);
        ret->timer_count = 0;
        ret->effects_dead = turn.resident->more ? turn.resident->more->dead_count : 0;
        for (size_t i = 0; i < det_timer_slots(machine); i++)
            glance_at(
                machine, det_resident_timer(turn.resident, det_timer_number(machine, i)), ret);
    } else {
        r = det_error_set(
            reterr, DET_ERR_BUSY,
            "%s %s is not in memory as it is now; get it on a thread "
            "that may wait",
            machine->name, instance);
    }
    det_shard_unlock(runtime, turn.shard);
    return r;
}

/* Operations under the claim set their own reasons. */
static int claim(struct det_turn *turn, const char *instance)
{
    int r;

    det_shard_lock(turn->runtime, turn->shard);
    r = det_turn_take(turn, instance, NULL);
    if (r == 0)
        det_resident_claim(turn->runtime, turn->shard, turn->resident);
    det_shard_unlock(turn->runtime, turn->shard);
    turn->error = NULL;
    return r;
}

int det_walk_begin(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance, struct det_error *reterr)
{
    DET_UNSET struct det_error error;
    int r;

    r = begin(turn, runtime, machine, instance, reterr ? &error : NULL);
    if (r == 0)
        r = claim(turn, instance);
    return explain(r, machine, instance, &error, reterr);
}

int det_walk_begin_last(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance)
{
    int r;

    r = begin(turn, runtime, machine, instance, NULL);
    if (r < 0)
        return r;
    turn->is_internal = true;
    return claim(turn, instance);
}

void det_walk_end(struct det_turn *turn)
{
    det_shard_lock(turn->runtime, turn->shard);
    det_turn_release(turn);
    det_shard_unlock(turn->runtime, turn->shard);
}

struct event_walk {
    int (*visit)(void *context, const struct det_event_record *row);
    void *context;
};

static int visit_event(void *context, const struct det_store_event *row)
{
    const struct event_walk *walk = context;

    return walk->visit(
        walk->context, &(struct det_event_record){
                           .sequence = row->sequence,
                           .visit = row->visit,
                           .from = row->from,
                           .to = row->to,
                           .event = row->event,
                           .outcome = row->outcome,
                           .is_timeout = row->is_timeout,
                           .choice = row->choice,
                           .event_id = row->event_id,
                           .cause = row->cause,
                           .at = row->at,
                           .event_value = row->value,
                           .trace = row->trace,
                       });
}

/* Concurrently with the writer of the instance. */
static int walk_freely(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t after, struct event_walk *walk)
{
    static const struct det_store_rows none = { 0 };
    const struct det_allocator *allocator = runtime->store->allocator;
    size_t size = det_machine_data(machine)->size;
    struct det_store_loaded loaded = { .data = det_alloc_zero(allocator, size ? size : 1) };
    int r;

    if (!loaded.data)
        return DET_ERR_NO_MEMORY;
    r = runtime->ops->load(runtime->store, machine, instance, &none, &loaded);
    if (r == 0) {
        r = runtime->ops->events(runtime->store, loaded.instance, after, visit_event, walk);
        runtime->ops->release(runtime->store, loaded.instance);
    }
    det_free(allocator, loaded.data, size ? size : 1);
    return r;
}

int det_runtime_events(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t after, int (*visit)(void *context, const struct det_event_record *row), void *context,
    struct det_error *reterr)
{
    struct event_walk walk = { visit, context };
    DET_UNSET struct det_error error;
    struct det_turn turn;
    int r;

    r = begin(&turn, runtime, machine, instance, reterr ? &error : NULL);
    if (r == 0 && runtime->ops->has_free_events)
        r = walk_freely(runtime, machine, instance, after, &walk);
    else if (r == 0 && (r = claim(&turn, instance)) == 0) {
        r = runtime->ops->events(runtime->store, turn.resident->handle, after, visit_event, &walk);
        det_walk_end(&turn);
    }
    return explain(r, machine, instance, &error, reterr);
}

static int visit_timer(
    const struct det_machine *machine, const struct det_armed *armed,
    int (*visit)(void *context, const struct det_timer_record *row), void *context)
{
    if (!armed || !det_armed_is_set(armed))
        return 0;
    return visit(
        context, &(struct det_timer_record){
                     .name = det_row_timer_name(machine, armed->timer),
                     .event = armed->event,
                     .visit = armed->visit,
                     .due = armed->deadline,
                     .next = armed->next,
                     .attempts = armed->attempts,
                     .last_error = armed->last_error,
                     .reason = armed->reason,
                     .is_dead = armed->is_dead,
                 });
}

int det_runtime_timers(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_timer_record *row), void *context,
    struct det_error *reterr)
{
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < det_timer_slots(machine); i++)
        r = visit_timer(
            machine, det_resident_timer(turn.resident, det_timer_number(machine, i)), visit,
            context);
    det_walk_end(&turn);
    return r;
}

/* The state and the attempts of an effect change under the lock alone. */
static struct det_pending_effect effect_run_row(
    const struct det_turn *turn, const struct det_effect_run *effect_run)
{
    static const enum det_effect_state states[] = {
        [DET_EFFECT_RUN_WAITING] = DET_EFFECT_STATE_WAITING,
        [DET_EFFECT_RUN_RUNNING] = DET_EFFECT_STATE_RUNNING,
        [DET_EFFECT_RUN_ENDING] = DET_EFFECT_STATE_RUNNING,
        [DET_EFFECT_RUN_DEAD] = DET_EFFECT_STATE_DEAD,
    };
    struct det_pending_effect row;
    det_time began;

    det_shard_lock(turn->runtime, turn->shard);
    began = atomic_load(&effect_run->began);
    row = (struct det_pending_effect){
        .name = effect_run->call.effect,
        .key = effect_run->key,
        .state = states[effect_run->state],
        .attempts = effect_run->row.attempts,
        .next = effect_run->row.next,
        .last_error = effect_run->row.last_error,
        .reason = effect_run->row.reason,
    };
    if (row.state == DET_EFFECT_STATE_RUNNING && began)
        row.began = began;
    else if (row.state == DET_EFFECT_STATE_RUNNING)
        row.state = DET_EFFECT_STATE_QUEUED;
    det_shard_unlock(turn->runtime, turn->shard);
    return row;
}

int det_runtime_effects(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_pending_effect *row), void *context,
    struct det_error *reterr)
{
    struct det_resident_more *more;
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    more = turn.resident->more;
    for (struct det_list *node = more ? more->effect_runs.next : NULL;
         r == 0 && node && node != &more->effect_runs; node = node->next) {
        struct det_pending_effect row =
            effect_run_row(&turn, DET_CONTAINER(node, struct det_effect_run, node));

        r = visit(context, &row);
    }
    det_walk_end(&turn);
    return r;
}

struct list_walk {
    int (*visit)(void *context, const struct det_listed_instance *row);
    void *context;
};

static int visit_instance(void *context, const struct det_store_listed *row)
{
    const struct list_walk *walk = context;

    return walk->visit(
        walk->context, &(struct det_listed_instance){ .instance = row->id,
                                                      .state = row->state,
                                                      .is_stopped = row->is_stopped,
                                                      .sequence = row->sequence,
                                                      .started_at = row->started_at,
                                                      .last_transition_at = row->moved_at });
}

static int check_query(
    const struct det_machine *machine, const struct det_instance_query *query,
    struct det_error *reterr)
{
    if (query->has_state && query->state >= machine->state_count)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s has no state %u; it has %u state%s", machine->name,
            query->state, machine->state_count, det_plural(machine->state_count));
    if (query->only_running && query->only_stopped)
        return det_error_set(
            reterr, DET_ERR_INVALID, "only_running and only_stopped exclude each other");
    return det_reserved_check(query->reserved, "a query of instances", reterr);
}

int det_runtime_query(
    struct det_runtime *runtime, const struct det_machine *machine,
    const struct det_instance_query *query,
    int (*visit)(void *context, const struct det_listed_instance *row), void *context,
    struct det_error *reterr)
{
    static const struct det_instance_query all = { 0 };
    struct list_walk walk = { visit, context };
    int r;

    if (!query)
        query = &all;
    r = check_query(machine, query, reterr);
    if (r < 0)
        return r;
    r = det_runtime_serve(runtime, machine, reterr);
    if (r < 0)
        return r;
    r = runtime->ops->list(
        runtime->store, machine,
        &(struct det_store_query){ .after = query->after,
                                   .limit = query->limit,
                                   .has_state = query->has_state,
                                   .state = (uint16_t)query->state,
                                   .moved_before = query->moved_before,
                                   .stopped = query->only_running   ? DET_STORE_RUNNING
                                              : query->only_stopped ? DET_STORE_STOPPED
                                                                    : DET_STORE_ANY },
        visit_instance, &walk);
    if (r < 0)
        det_error_set(reterr, r, "%s: %s", machine->name, det_error_text(r));
    return r;
}

int det_runtime_instances(
    struct det_runtime *runtime, const struct det_machine *machine, int state,
    int (*visit)(void *context, const struct det_listed_instance *row), void *context,
    struct det_error *reterr)
{
    return det_runtime_query(
        runtime, machine,
        &(struct det_instance_query){ .has_state = state >= 0,
                                      .state = state >= 0 ? (unsigned)state : 0 },
        visit, context, reterr);
}

static void add_counts(struct det_runtime_counts *sum, const struct det_runtime_counts *part)
{
    sum->instances += part->instances;
    sum->transitions += part->transitions;
    sum->unhandled += part->unhandled;
    sum->refused += part->refused;
    sum->timeouts_fired += part->timeouts_fired;
    sum->timeouts_rejected += part->timeouts_rejected;
    sum->effects_done += part->effects_done;
    sum->effects_failed += part->effects_failed;
    sum->effects_dead += part->effects_dead;
    sum->products_rejected += part->products_rejected;
    sum->duplicates += part->duplicates;
    sum->conflicts += part->conflicts;
    sum->loads += part->loads;
    sum->evictions += part->evictions;
    sum->sweeps += part->sweeps;
    sum->adopted += part->adopted;
}

static uint64_t count_running(struct det_runtime *runtime)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        for (const struct det_served *s = atomic_load(&runtime->served[i]); s; s = s->next) {
            for (unsigned k = 0; k < s->machine->effect_count; k++)
                sum += atomic_load(&s->running[k]);
        }
    }
    return sum;
}

void det_runtime_counts(struct det_runtime *runtime, struct det_runtime_counts *ret)
{
    *ret = (struct det_runtime_counts){ .effects_running = count_running(runtime),
                                        .effects_queued = atomic_load(&runtime->effects_queued) };
    for (uint32_t i = 0; i <= runtime->shard_mask; i++) {
        det_shard_lock(runtime, &runtime->shards[i]);
        add_counts(ret, &runtime->shards[i].counts);
        det_shard_unlock(runtime, &runtime->shards[i]);
    }
}
