/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract.c - assertions on commits, and on the arguments of other operations of a driver.
 *
 * Invariants of a commit
 *   1. The machine has the state of the head.
 *   2. Its events have consecutive sequences.
 *   3. Effects are never cleared; deferred events are set or taken out.
 *   4. A new instance has data. An event id has an answer with a state of the machine.
 *   5. Timers and effects are of the machine. */
#include "store/contract.h"

#include <detent/tool/machine.h>

#include "base/assert.h"

static void assert_timer(const struct det_machine *machine, const struct det_store_timer *row)
{
    det_assert(
        row->timer < machine->timer_count || row->timer == DET_STATE_TIMER ||
        row->timer == DET_DEFERRED_TIMER);
}

static void assert_effect(
    const struct det_machine *machine, const struct det_store_effect_change *change)
{
    det_assert(change->kind != DET_STORE_CLEAR);
    if (change->kind != DET_STORE_SET)
        return;
    det_assert(change->effect.effect < machine->effect_count);
    det_assert(change->effect.data && change->effect.event);
}

static void assert_changes(const struct det_store_commit *commit)
{
    for (size_t i = 0; DET_CHECKS && i < commit->timer_count; i++)
        assert_timer(commit->machine, &commit->timers[i].timer);
    for (size_t i = 0; i < commit->effect_count; i++)
        assert_effect(commit->machine, &commit->effects[i]);
    for (size_t i = 0; i < commit->deferred_count; i++)
        det_assert(
            commit->deferred[i].kind == DET_STORE_SET ||
            commit->deferred[i].kind == DET_STORE_TAKE);
}

static void assert_event(const struct det_machine *machine, const struct det_store_event *event)
{
    det_assert(event->from < machine->state_count && event->to < machine->state_count);
    det_assert(event->event < machine->event_count || event->event == UINT16_MAX);
    det_assert(event->event == UINT16_MAX || event->value);
}

/* In checked builds: the cost is that of the events. */
static void assert_events(const struct det_store_commit *commit)
{
    for (size_t i = 0; i < commit->event_count; i++) {
        assert_event(commit->machine, &commit->events[i]);
        det_assert(commit->events[i].sequence == commit->events[0].sequence + i);
    }
}

void det_contract_commits(struct det_store_commit *const *commits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct det_store_commit *commit = commits[i];

        det_assert(commit->head->state < commit->machine->state_count);
        det_assert(!commit->is_new || commit->data);
        det_assert(!commit->event_id || commit->answer.state < commit->machine->state_count);
        det_assert(
            !commit->event_count ||
            commit->events[commit->event_count - 1].sequence - commit->events[0].sequence ==
                commit->event_count - 1);
        det_check(commit->id && (commit->is_new || commit->instance));
        det_check(commit->history || !commit->history_count);
        assert_changes(commit);
        if (DET_CHECKS)
            assert_events(commit);
    }
}

void det_contract_load(
    const struct det_machine *machine, const char *id, const struct det_store_loaded *ret)
{
    det_assert(machine && id);
    det_assert(ret);
    det_assert(ret->data || det_machine_data(machine)->size == 0);
}

void det_contract_events(
    const struct det_store_instance *instance,
    int (*visit)(void *context, const struct det_store_event *row))
{
    det_assert(instance);
    det_assert(visit);
}

void det_contract_list(
    const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row))
{
    det_assert(machine);
    det_assert(!query || !query->has_state || query->state < machine->state_count);
    det_assert(!query || (unsigned)query->stopped <= DET_STORE_STOPPED);
    det_assert(visit);
}

void det_contract_due(
    const struct det_machine *machine, const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), const det_time *ret_next)
{
    det_assert(machine && query);
    det_assert((unsigned)query->kind <= DET_DUE_EFFECTS);
    det_assert(visit && ret_next);
}

void det_contract_lease(
    const struct det_store_lease_change *change, const struct det_store_lease *ret)
{
    det_assert(change && ret);
    det_assert(change->name && (change->owner || change->verb != DET_LEASE_ACQUIRE));
}

void det_contract_prune(const struct det_store_instance *instance, const uint64_t *ret)
{
    det_assert(instance);
    det_assert(ret);
}
