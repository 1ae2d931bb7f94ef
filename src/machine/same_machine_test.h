/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* same_machine_test.h - asserts that two machines are equal in everything that is stored or
 * decides: names, order, records, transitions. Layouts in memory, row numbers and functions may
 * differ. */
#ifndef DET_MACHINE_SAME_MACHINE_TEST_H
#define DET_MACHINE_SAME_MACHINE_TEST_H

#include "lib/test.h"

#include <detent/machine.h>
#include <detent/tool/machine.h>

static inline void same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL)
        assert_string_equal(a, b);
}

static inline void same_enum(const struct det_enum *a, const struct det_enum *b)
{
    assert_true(a != NULL && b != NULL);
    if (a == NULL || b == NULL)
        return;
    same_text(a->name, b->name);
    assert_int_equal(a->value_count, b->value_count);
    for (size_t i = 0; i < a->value_count; i++) {
        same_text(a->values[i].name, b->values[i].name);
        assert_int_equal(a->values[i].value, b->values[i].value);
    }
}

static inline void same_record(const struct det_record *a, const struct det_record *b);

/* NOLINTNEXTLINE(misc-no-recursion): at most DET_RECORD_DEPTH_MAX deep */
static inline void same_field(const struct det_field *a, const struct det_field *b)
{
    same_text(a->name, b->name);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->since > 0 ? a->since : 1, b->since > 0 ? b->since : 1);
    assert_int_equal(a->capacity, b->capacity);
    assert_int_equal(a->count_max, b->count_max);
    assert_int_equal(a->size, b->size);
    if (a->kind == DET_KIND_RECORD)
        same_record(det_record_of(a->record), det_record_of(b->record));
    if (a->kind == DET_KIND_ENUM)
        same_enum(det_enum_of(a->enumeration), det_enum_of(b->enumeration));
}

/* NOLINTNEXTLINE(misc-no-recursion): at most DET_RECORD_DEPTH_MAX deep */
static inline void same_record(const struct det_record *a, const struct det_record *b)
{
    assert_true(a != NULL && b != NULL);
    if (a == NULL || b == NULL)
        return;
    same_text(a->name, b->name);
    assert_int_equal(a->version > 0 ? a->version : 1, b->version > 0 ? b->version : 1);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->field_count, b->field_count);
    for (size_t i = 0; i < a->field_count; i++)
        same_field(&a->fields[i], &b->fields[i]);
}

static inline void same_timeout(const struct det_timeout *a, const struct det_timeout *b)
{
    assert_int_equal(a->after, b->after);
    if (a->after == 0)
        return;
    assert_int_equal(a->event, b->event);
    same_text(a->fill ? a->fill->name : NULL, b->fill ? b->fill->name : NULL);
}

static inline void same_ids(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count)
{
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++)
        assert_int_equal(a[i], b[i]);
}

/* The kept fields, each once, in order: a template has one range where a reader may have two. */
static inline size_t kept_names(const struct det_transition_more *more, const char **names)
{
    size_t count = 0;

    for (size_t i = 0; i < more->keep_count; i++) {
        if (count == 0 || strcmp(names[count - 1], more->keeps[i].name) != 0)
            names[count++] = more->keeps[i].name;
    }
    return count;
}

static inline void same_keeps(
    const struct det_transition_more *a, const struct det_transition_more *b)
{
    const char *a_names[UINT8_MAX], *b_names[UINT8_MAX];
    size_t count = kept_names(a, a_names);

    assert_int_equal(count, kept_names(b, b_names));
    for (size_t i = 0; i < count; i++)
        assert_string_equal(a_names[i], b_names[i]);
}

static inline void same_more(
    const struct det_transition_more *a, const struct det_transition_more *b)
{
    static const struct det_transition_more nothing = { 0 };

    a = a != NULL ? a : &nothing;
    b = b != NULL ? b : &nothing;
    same_text(a->guard ? a->guard->name : NULL, b->guard ? b->guard->name : NULL);
    same_text(a->hook ? a->hook->name : NULL, b->hook ? b->hook->name : NULL);
    same_text(a->update ? a->update->name : NULL, b->update ? b->update->name : NULL);
    same_text(a->reason, b->reason);
    same_keeps(a, b);
    same_ids(a->effects, a->effect_count, b->effects, b->effect_count);
    same_ids(a->arms, a->arm_count, b->arms, b->arm_count);
    same_ids(a->disarms, a->disarm_count, b->disarms, b->disarm_count);
    assert_int_equal(a->within != NULL, b->within != NULL);
    if (a->within != NULL && b->within != NULL)
        same_timeout(a->within, b->within);
}

static inline void same_transition(const struct det_transition *a, const struct det_transition *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->to, b->to);
    same_more(a->more, b->more);
}

static inline void same_choices(
    const struct det_machine *a, const struct det_machine *b, unsigned state, unsigned event)
{
    const struct det_choice *of_a = NULL, *of_b = NULL;

    do {
        of_a = det_machine_choice(a, state, event, of_a);
        of_b = det_machine_choice(b, state, event, of_b);
        assert_int_equal(of_a != NULL, of_b != NULL);
        if (of_a != NULL && of_b != NULL)
            same_transition(&of_a->transition, &of_b->transition);
    } while (of_a != NULL);
}

static inline void same_groups(
    const struct det_group_def *a, const struct det_group_def *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        same_text(a[i].name, b[i].name);
        same_ids(a[i].members, a[i].member_count, b[i].members, b[i].member_count);
    }
}

static inline void same_lists(const struct det_machine *a, const struct det_machine *b)
{
    assert_int_equal(a->effect_count, b->effect_count);
    for (size_t i = 0; i < a->effect_count; i++) {
        same_text(a->effects[i].name, b->effects[i].name);
        same_ids(
            a->effects[i].produces, a->effects[i].produces_count, b->effects[i].produces,
            b->effects[i].produces_count);
    }
    assert_int_equal(a->timer_count, b->timer_count);
    for (size_t i = 0; i < a->timer_count; i++) {
        same_text(a->timers[i].name, b->timers[i].name);
        same_timeout(&a->timers[i].timeout, &b->timers[i].timeout);
    }
    assert_int_equal(a->group_count, b->group_count);
    same_groups(a->groups, b->groups, a->group_count);
    assert_int_equal(a->event_group_count, b->event_group_count);
    same_groups(a->event_groups, b->event_groups, a->event_group_count);
}

static inline void same_states_and_events(const struct det_machine *a, const struct det_machine *b)
{
    assert_int_equal(a->state_count, b->state_count);
    assert_int_equal(a->event_count, b->event_count);
    for (size_t i = 0; i < a->state_count; i++) {
        const struct det_state_def *of_a = &a->states[i], *of_b = &b->states[i];

        same_text(of_a->name, of_b->name);
        assert_int_equal(of_a->flags, of_b->flags);
        same_text(of_a->entry ? of_a->entry->name : NULL, of_b->entry ? of_b->entry->name : NULL);
        same_text(of_a->exit ? of_a->exit->name : NULL, of_b->exit ? of_b->exit->name : NULL);
        same_timeout(&of_a->timeout, &of_b->timeout);
    }
    for (unsigned i = 0; i < a->event_count; i++) {
        same_text(a->events[i].name, b->events[i].name);
        assert_int_equal(a->events[i].is_internal, b->events[i].is_internal);
        assert_int_equal(a->events[i].unhandled, b->events[i].unhandled);
        same_record(det_machine_payload(a, i), det_machine_payload(b, i));
    }
}

static inline void assert_same_machine(const struct det_machine *a, const struct det_machine *b)
{
    same_text(a->name, b->name);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->initial, b->initial);
    same_record(det_machine_data(a), det_machine_data(b));
    same_states_and_events(a, b);
    same_lists(a, b);
    assert_int_equal(a->choice_count, b->choice_count);
    for (unsigned i = 0; i < (unsigned)a->state_count * a->event_count; i++) {
        same_transition(&a->table[i], &b->table[i]);
        same_choices(a, b, i / a->event_count, i % a->event_count);
    }
}

#endif
