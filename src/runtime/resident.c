/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* resident.c - residents (instances in memory): created, claimed, released, destroyed. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "runtime/runtime.h"

#define FSM_LOCAL
#define FSM_SPEC "runtime/armed.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "runtime/armed.fsm"
#include <detent/fsm/define.h>

_Static_assert((int)DET_ARMED_OFF == (int)ARMED_OFF, "the states of the spec");
_Static_assert((int)DET_ARMED_WAITING == (int)ARMED_WAITING, "the states of the spec");
_Static_assert((int)DET_ARMED_FIRING == (int)ARMED_FIRING, "the states of the spec");
_Static_assert((int)DET_ARMED_FIRED == (int)ARMED_FIRED, "the states of the spec");

static size_t resident_size(const struct det_served *served, const char *id)
{
    return served->id_offset + strlen(id) + 1;
}

static void armed_init(struct det_armed *armed, struct det_resident *resident, uint16_t timer)
{
    det_heap_node_init(&armed->due.node);
    armed->due.kind = DET_DUE_TIMER;
    armed->due.resident = resident;
    armed->timer = timer;
}

static struct det_resident *open_resident(
    struct det_runtime *runtime, struct det_served *served, const char *id)
{
    struct det_resident *resident;
    char *base;

    resident = det_alloc_zero(runtime->allocator, resident_size(served, id));
    if (!resident)
        return NULL;
    base = (char *)resident;
    memcpy(base + served->id_offset, id, strlen(id) + 1);
    resident->id = base + served->id_offset;
    resident->data = base + served->data_offset;
    resident->history = (uint16_t *)(void *)(base + served->history_offset);
    resident->served = served;
    det_list_init(&resident->ring);
    if (served->own_offset) {
        resident->own = (struct det_armed *)(void *)(base + served->own_offset);
        armed_init(resident->own, resident, DET_STATE_TIMER);
    }
    return resident;
}

static void close_armed(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_armed *armed)
{
    if (armed && armed->value)
        det_free(runtime->allocator, armed->value, machine->event_size);
    if (armed)
        det_free_string(runtime->allocator, armed->reason);
}

static void close_more(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_resident_more *more)
{
    struct det_list *node;

    while ((node = det_list_take(&more->effect_runs)))
        det_effect_run_close(runtime, DET_CONTAINER(node, struct det_effect_run, node));
    while ((node = det_list_take(&more->kept)))
        det_kept_close(runtime, machine, DET_CONTAINER(node, struct det_kept, node));
    for (unsigned i = 0; more->timers && i <= machine->timer_count; i++)
        close_armed(runtime, machine, &more->timers[i]);
    if (more->timers)
        DET_DELETE_ARRAY(runtime->allocator, more->timers, (size_t)machine->timer_count + 1);
    DET_DELETE(runtime->allocator, more);
}

void det_resident_close(struct det_runtime *runtime, struct det_resident *resident)
{
    const struct det_machine *machine = resident->served->machine;

    det_assert(!resident->is_claimed && !resident->held);
    close_armed(runtime, machine, resident->own);
    if (resident->more)
        close_more(runtime, machine, resident->more);
    if (resident->handle)
        runtime->ops->release(runtime->store, resident->handle);
    det_free(runtime->allocator, resident, resident_size(resident->served, resident->id));
}

int det_resident_add(
    struct det_runtime *runtime, struct det_served *served, uint64_t hash, const char *id,
    struct det_resident **ret)
{
    struct det_resident *resident = open_resident(runtime, served, id);
    struct det_shard *shard = det_served_shard(runtime, hash);
    int r;

    if (!resident)
        return DET_ERR_NO_MEMORY;
    resident->hash = hash;
    r = det_index_put(det_served_index(runtime, served, shard), hash, resident);
    if (r < 0) {
        det_resident_close(runtime, resident);
        return r;
    }
    if (!runtime->ops->is_quick)
        det_list_append(&shard->ring, &resident->ring);
    resident->is_loading = true;
    det_resident_claim(runtime, shard, resident);
    shard->counts.instances++;
    *ret = resident;
    return 0;
}

void det_resident_remove(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident)
{
    struct det_index *index = det_served_index(runtime, resident->served, shard);

    det_resident_release(runtime, shard, resident);
    det_assert(!resident->handle && !resident->held);
    det_index_remove(index, resident->hash, resident->id);
    det_list_remove(&resident->ring);
    det_assert(resident->pins == 0 && shard->counts.instances > 0);
    det_assert(shard->stale >= resident->is_stale);
    if (resident->is_stale)
        shard->stale--;
    shard->counts.instances--;
    det_resident_close(runtime, resident);
}

static struct det_resident_more *open_more(struct det_runtime *runtime)
{
    struct det_resident_more *more = DET_NEW(runtime->allocator, struct det_resident_more);

    if (!more)
        return NULL;
    det_list_init(&more->effect_runs);
    det_list_init(&more->kept);
    return more;
}

int det_resident_need_more(
    struct det_runtime *runtime, struct det_resident *resident, bool with_timers)
{
    uint16_t count = resident->served->machine->timer_count;

    if (!resident->more)
        resident->more = open_more(runtime);
    if (!resident->more)
        return DET_ERR_NO_MEMORY;
    if (!with_timers || resident->more->timers)
        return 0;
    resident->more->timers = DET_NEW_ARRAY(runtime->allocator, (size_t)count + 1, struct det_armed);
    if (!resident->more->timers)
        return DET_ERR_NO_MEMORY;
    for (uint16_t i = 0; i < count; i++)
        armed_init(&resident->more->timers[i], resident, i);
    armed_init(&resident->more->timers[count], resident, DET_DEFERRED_TIMER);
    return 0;
}

void det_resident_claim(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident)
{
    det_assert(!resident->is_claimed && !resident->owner && !resident->held);
    resident->is_claimed = true;
    resident->owner = det_thread_self(runtime->world);
    shard->calls++;
}

/* A held timer may have been disarmed, or armed again. It returns to its own time, which keeps the
 * order of due work. An effect may be gone. */
static void take_back(struct det_runtime *runtime, struct det_shard *shard, struct det_due *due)
{
    det_assert(due->is_held);
    due->is_held = false;
    if (det_heap_contains(&due->node))
        return;
    switch (due->kind) {
    case DET_DUE_TIMER:
        if (det_armed_is_ours(det_armed_of(due)))
            det_due_insert(shard, due, det_armed_of(due)->when);
        break;
    case DET_DUE_EFFECT_RUN:
        if (det_effect_run_of(due)->is_gone)
            det_effect_run_drop(runtime, shard, det_effect_run_of(due));
        else
            det_due_insert(shard, due, INT64_MIN);
        break;
    }
}

void det_resident_release(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident)
{
    struct det_due *due = resident->held;

    det_assert(resident->is_claimed && shard->calls > 0);
    resident->is_claimed = false;
    resident->is_loading = false;
    resident->owner = NULL;
    resident->held = NULL;
    det_due_kick(runtime, due ? INT64_MIN : DET_NEVER);
    while (due) {
        struct det_due *next = due->next_held;

        take_back(runtime, shard, due);
        det_due_handled(runtime);
        due = next;
    }
    shard->calls--;
    if (shard->waiters || shard->is_closing)
        det_condition_broadcast(runtime->world, shard->changed);
}

int det_shard_wait(struct det_runtime *runtime, struct det_shard *shard, det_time until)
{
    int r;

    shard->waiters++;
    shard->calls++;
    r = det_condition_wait(runtime->world, shard->changed, shard->mutex, until);
    det_assert(shard->waiters > 0 && shard->calls > 0);
    shard->waiters--;
    shard->calls--;
    if (shard->is_closing)
        det_condition_broadcast(runtime->world, shard->changed);
    return r;
}

/* The only function that changes the state: armed.fsm has the table. */
static void step(struct det_armed *armed, enum armed_event_kind event)
{
    const struct det_transition *transition = det_machine_step(&armed_machine, armed->state, event);

    det_assert(transition->outcome != DET_OUTCOME_UNHANDLED);
    armed->state = (enum det_armed_state)transition->to;
}

void det_armed_fire(struct det_armed *armed)
{
    step(armed, ARMED_FIRE);
}

void det_armed_reported(struct det_armed *armed)
{
    step(armed, ARMED_TELL);
}

void det_armed_disarm(struct det_runtime *runtime, struct det_armed *armed)
{
    step(armed, ARMED_DISARM);
    if (armed->value)
        det_free(
            runtime->allocator, armed->value, armed->due.resident->served->machine->event_size);
    armed->value = NULL;
    det_free_string(runtime->allocator, armed->reason);
    armed->reason = NULL;
}

void det_armed_fail(
    struct det_runtime *runtime, struct det_armed *armed, const struct det_store_timer *row,
    char *reason_take)
{
    det_assert(det_armed_is_set(armed));
    det_free_string(runtime->allocator, armed->reason);
    armed->reason = reason_take;
    armed->attempts = row->attempts;
    armed->tries = 0;
    armed->last_error = row->last_error;
    armed->next = armed->when = row->next;
    armed->is_dead = row->is_dead;
}

void det_armed_arm(
    struct det_shard *shard, struct det_armed *armed, const struct det_store_timer *row)
{
    det_assert(armed->has_place && !armed->value && !armed->reason);
    step(armed, ARMED_ARM);
    armed->attempts = row->attempts;
    armed->tries = 0;
    armed->last_error = row->last_error;
    armed->event = row->event;
    armed->visit = row->visit;
    armed->deadline = row->due;
    armed->next = armed->when = row->next ? row->next : row->due;
    armed->is_foreign = row->is_foreign;
    armed->is_dead = row->is_dead;
    if (!det_armed_is_ours(armed))
        return;
    if (!det_heap_contains(&armed->due.node))
        det_due_insert(shard, &armed->due, armed->when);
    else if (armed->due.node.key > armed->when)
        det_heap_rekey(&shard->due, &armed->due.node, armed->when);
}

static size_t kept_size(const struct det_machine *machine)
{
    return sizeof(struct det_kept) + machine->event_size;
}

_Static_assert(sizeof(struct det_kept) % 16 == 0, "the event after it is aligned");

struct det_kept *det_kept_open(
    struct det_runtime *runtime, const struct det_machine *machine, uint64_t sequence,
    const void *event)
{
    struct det_kept *kept = det_alloc_zero(runtime->allocator, kept_size(machine));

    if (!kept)
        return NULL;
    det_list_init(&kept->node);
    kept->sequence = sequence;
    kept->event = kept + 1;
    memcpy(kept->event, event, machine->event_size);
    return kept;
}

void det_kept_close(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_kept *kept)
{
    det_list_remove(&kept->node);
    det_free(runtime->allocator, kept, kept_size(machine));
}
