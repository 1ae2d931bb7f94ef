/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history_test.h - the history checker: whatever happened to an instance, by whomever, its record
 * must be one that a single writer could have made. */
#ifndef DET_RUNTIME_HISTORY_TEST_H
#define DET_RUNTIME_HISTORY_TEST_H

#include "lib/test.h"

#include <detent/runtime.h>

struct checked {
    const struct det_machine *machine;
    uint64_t sequence, visit, transition_count;
    unsigned state;
    bool is_stopped;
    bool is_first;
    char (*ids)[40]; /* event ids and causes, each once; NULL: not checked */
    size_t id_count, id_capacity;
};

static inline void check_unique(struct checked *all, const char *id)
{
    for (size_t i = 0; i < all->id_count; i++)
        assert_string_not_equal(all->ids[i], id);
    assert_true(all->id_count < all->id_capacity);
    snprintf(all->ids[all->id_count++], sizeof all->ids[0], "%s", id);
}

/* Contiguous sequences; from where the last one led; legal there; the visit it must have. */
static inline int check_row(void *context, const struct det_event_record *row)
{
    struct checked *all = context;
    const struct det_transition *transition;

    if (all->is_first) {
        /* Older ones may have been forgotten. */
        all->is_first = false;
        if (row->sequence > 1) {
            all->sequence = row->sequence - 1;
            all->state = row->from;
        }
    }
    assert_false(all->is_stopped);
    assert_int_equal(row->sequence, all->sequence + 1);
    assert_int_equal(row->from, all->state);
    if (row->event_id)
        check_unique(all, row->event_id);
    if (row->cause)
        check_unique(all, row->cause);
    all->sequence = row->sequence;
    all->state = row->to;
    all->visit = row->visit;
    all->is_stopped = row->outcome == DET_OUTCOME_STOP;
    if (row->event == UINT16_MAX)
        return 0;
    transition = det_machine_step(all->machine, row->from, row->event);
    assert_int_equal(det_event_kind(row->event_value), row->event);
    /* A deferred event may be refused in a state that takes it. */
    if (row->outcome == DET_OUTCOME_DEAD_LETTER &&
        all->machine->events[row->event].unhandled == DET_UNHANDLED_DEFER)
        return 0;
    if (row->outcome == DET_OUTCOME_DEFERRED || row->outcome == DET_OUTCOME_DEAD_LETTER) {
        assert_int_equal(transition->outcome, DET_OUTCOME_UNHANDLED);
        return 0;
    }
    assert_int_equal(transition->outcome, row->outcome);
    if (row->outcome == DET_OUTCOME_GOTO) {
        assert_int_equal(row->to, transition->to);
        assert_int_equal(row->visit, row->sequence + 1);
    } else {
        assert_int_equal(row->to, row->from);
    }
    return 0;
}

struct checked_timers {
    const struct det_machine *machine;
    const struct det_instance *instance;
    unsigned own;
};

/* At most one timer of the state's own, and it is of this visit. */
static inline int check_timer(void *context, const struct det_timer_record *row)
{
    struct checked_timers *all = context;

    assert_false(all->instance->is_stopped);
    if (row->name[0])
        return 0;
    all->own++;
    assert_int_equal(row->visit, all->instance->visit);
    assert_int_equal(row->event, all->machine->states[all->instance->state].timeout.event);
    return 0;
}

struct checked_effects {
    size_t open;
    char keys[64][64];
    size_t count;
};

static inline int check_effect(void *context, const struct det_pending_effect *row)
{
    struct checked_effects *all = context;

    for (size_t i = 0; i < all->count; i++)
        assert_string_not_equal(all->keys[i], row->key);
    if (all->count < 64)
        snprintf(all->keys[all->count++], sizeof all->keys[0], "%s", row->key);
    all->open += row->state != DET_EFFECT_STATE_DEAD;
    return 0;
}

/* Only while no thread sends to it: the parts are read one after the other. */
static inline struct det_instance check_history(
    struct det_runtime *runtime, const struct det_machine *machine, const char *id)
{
    struct checked all = { .machine = machine,
                           .state = machine->initial,
                           .is_first = true,
                           .ids = calloc(1024, 40),
                           .id_capacity = 1024 };
    struct checked_timers timers = { .machine = machine };
    struct checked_effects *effects = calloc(1, sizeof *effects);
    struct det_instance instance;

    assert_non_null(effects);
    assert_non_null(all.ids);
    assert_int_equal(det_runtime_get(runtime, machine, id, &instance, NULL, NULL), 0);
    assert_int_equal(det_runtime_events(runtime, machine, id, 0, check_row, &all, NULL), 0);
    assert_int_equal(instance.sequence, all.sequence);
    assert_int_equal(instance.state, all.state);
    assert_int_equal(instance.is_stopped, all.is_stopped);
    if (all.sequence)
        assert_int_equal(instance.visit, all.visit);
    timers.instance = &instance;
    assert_int_equal(det_runtime_timers(runtime, machine, id, check_timer, &timers, NULL), 0);
    assert_int_equal(
        timers.own, !instance.is_stopped && machine->states[instance.state].timeout.after ? 1 : 0);
    assert_int_equal(det_runtime_effects(runtime, machine, id, check_effect, effects, NULL), 0);
    assert_int_equal(effects->open, instance.effects_pending);
    free(effects);
    free(all.ids);
    return instance;
}

#endif
