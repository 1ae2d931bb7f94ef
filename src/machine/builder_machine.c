/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_machine.c - lays out the machine of a definition without errors.
 *
 *      struct det_built: | machine | arena --> states, events, table, ..., every name |
 *
 * All events of a built machine have the same event struct:
 *
 *      0         4         8
 *      | kind    | (pad)   | payload, as large as the largest |
 *
 * Invariants:
 *   1. no pointer of the machine leads into the builder or its rows;
 *   2. only rows that still decide a pair contribute to the machine. */
#include "machine/builder_machine.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "machine/builder_build.h"
#include "machine/builder_keep.h"

#define PAYLOAD_OFFSET    8
#define PAYLOAD_ALIGNMENT 8

_Static_assert(sizeof(unsigned) <= PAYLOAD_OFFSET, "the kind is before the payload");
_Static_assert(DET_LIST_MAX *DET_BUILD_KEEP_RANGES <= UINT8_MAX, "keep_count holds all ranges");

struct lay {
    const struct det_build *build;
    struct det_built *built;
    bool has_failed;
};

static void *lay_array(struct lay *lay, size_t count, size_t size)
{
    void *block = det_arena_array(&lay->built->arena, count, size);

    lay->has_failed = lay->has_failed || block == NULL;
    return block;
}

static const char *lay_text(struct lay *lay, const char *text)
{
    const char *copy = det_arena_copy(&lay->built->arena, text);

    lay->has_failed = lay->has_failed || copy == NULL;
    return copy;
}

static size_t count_of(const struct lay *lay, enum det_build_kind kind)
{
    return det_build_count(lay->build, kind);
}

static const struct det_build_row *thing_of(
    const struct lay *lay, enum det_build_kind kind, size_t id)
{
    return det_build_thing(lay->build, kind, id);
}

/* Returns the ids of a list; NULL for an empty one. */
static const uint16_t *lay_ids(struct lay *lay, const struct det_build_names *names)
{
    uint16_t *ids;

    if (names->count == 0)
        return NULL;
    ids = lay_array(lay, names->count, sizeof *ids);
    for (uint32_t i = 0; i < names->count && ids != NULL; i++) {
        det_assert(names->items[i].id >= 0 && !names->items[i].is_guess);
        ids[i] = (uint16_t)names->items[i].id;
    }
    return ids;
}

/* The same with every id once, at its first place: for sets. */
static const uint16_t *lay_set(
    struct lay *lay, const struct det_build_names *names, uint16_t *ret_count)
{
    uint16_t *ids = lay_array(lay, names->count, sizeof *ids);
    uint16_t count = 0;

    for (uint32_t i = 0; i < names->count && ids != NULL; i++) {
        bool is_new = true;

        for (uint16_t j = 0; j < count && is_new; j++)
            is_new = ids[j] != names->items[i].id;
        if (is_new)
            ids[count++] = (uint16_t)names->items[i].id;
    }
    *ret_count = count;
    return count > 0 ? ids : NULL;
}

/* Guards, hooks, updates and fills: the same members in four types. */
#define DEFINE_LAY(kind, KIND)                                                        \
    static void lay_##kind##s(struct lay *lay)                                        \
    {                                                                                 \
        struct det_built *built = lay->built;                                         \
                                                                                      \
        built->kind##_count = count_of(lay, KIND);                                    \
        built->kind##s = lay_array(lay, built->kind##_count, sizeof *built->kind##s); \
        for (size_t i = 0; i < built->kind##_count && built->kind##s != NULL; i++) {  \
            const struct det_build_row *row = thing_of(lay, KIND, i);                 \
                                                                                      \
            built->kind##s[i].name = lay_text(lay, row->name.text);                   \
            built->kind##s[i].run = (det_##kind##_fn *)row->function.run;             \
        }                                                                             \
    }

DEFINE_LAY(guard, DET_BUILD_GUARD)
DEFINE_LAY(hook, DET_BUILD_HOOK)
DEFINE_LAY(update, DET_BUILD_UPDATE)
DEFINE_LAY(fill, DET_BUILD_FILL)
DEFINE_LAY(effect, DET_BUILD_EFFECT)

static void lay_products(struct lay *lay)
{
    struct det_built *built = lay->built;

    for (size_t i = 0; i < built->effect_count && built->effects != NULL; i++)
        built->effects[i].produces = lay_set(
            lay, &thing_of(lay, DET_BUILD_EFFECT, i)->function.produces,
            &built->effects[i].produces_count);
}

static struct det_timeout timeout_of(
    const struct lay *lay, const struct det_build_timeout *declared)
{
    return (struct det_timeout){
        .after = declared->after,
        .event = (uint16_t)declared->event.id,
        .fill = declared->fill.id >= 0 ? &lay->built->fills[declared->fill.id] : NULL,
    };
}

static const struct det_hook_def *hook_of(const struct lay *lay, const struct det_build_row *row)
{
    return row != NULL ? &lay->built->hooks[row->about.hook.id] : NULL;
}

static void lay_states(struct lay *lay)
{
    size_t count = count_of(lay, DET_BUILD_STATE);
    struct det_state_def *states = lay_array(lay, count, sizeof *states);

    for (size_t i = 0; i < count && states != NULL; i++) {
        const struct det_build_row *row = thing_of(lay, DET_BUILD_STATE, i);

        states[i].name = lay_text(lay, row->wire.text);
        states[i].flags = row->state.flags;
        states[i].entry = hook_of(lay, row->state.entry);
        states[i].exit = hook_of(lay, row->state.exit);
        if (row->state.after != NULL)
            states[i].timeout = timeout_of(lay, &row->state.after->about.timeout);
    }
    lay->built->machine.states = states;
    lay->built->machine.state_count = (uint16_t)count;
}

static uint32_t lay_event(struct lay *lay, size_t id, struct det_event_def *event)
{
    const struct det_build_row *row = thing_of(lay, DET_BUILD_EVENT, id);

    event->name = lay_text(lay, row->wire.text);
    event->is_internal = row->event.is_internal;
    event->unhandled = (uint8_t)det_build_policy(lay->build, row);
    event->payload_offset = PAYLOAD_OFFSET;
    event->payload.record = row->event.payload;
    return row->event.payload != NULL ? row->event.payload->size : 0;
}

static void lay_events(struct lay *lay)
{
    size_t count = count_of(lay, DET_BUILD_EVENT);
    struct det_event_def *events = lay_array(lay, count, sizeof *events);
    uint32_t largest = 0;

    for (size_t i = 0; i < count && events != NULL; i++) {
        uint32_t size = lay_event(lay, i, &events[i]);

        largest = size > largest ? size : largest;
    }
    lay->built->machine.events = events;
    lay->built->machine.event_count = (uint16_t)count;
    /* If no event has a payload, an event is only its kind. */
    lay->built->machine.event_size =
        largest == 0 ? (uint32_t)sizeof(unsigned)
                     : PAYLOAD_OFFSET + (largest + PAYLOAD_ALIGNMENT - 1) / PAYLOAD_ALIGNMENT *
                                            PAYLOAD_ALIGNMENT;
}

static void lay_timers(struct lay *lay)
{
    size_t count = count_of(lay, DET_BUILD_TIMER);
    struct det_timer_def *timers = lay_array(lay, count, sizeof *timers);

    for (size_t i = 0; i < count && timers != NULL; i++) {
        const struct det_build_row *row = thing_of(lay, DET_BUILD_TIMER, i);

        timers[i].name = lay_text(lay, row->name.text);
        timers[i].timeout = timeout_of(lay, &row->timer);
    }
    lay->built->machine.timers = timers;
    lay->built->machine.timer_count = (uint16_t)count;
}

static const struct det_group_def *lay_groups(struct lay *lay, enum det_build_kind kind)
{
    size_t count = count_of(lay, kind);
    struct det_group_def *groups = lay_array(lay, count, sizeof *groups);

    for (size_t i = 0; i < count && groups != NULL; i++) {
        const struct det_build_row *row = thing_of(lay, kind, i);

        groups[i].name = lay_text(lay, row->name.text);
        groups[i].members = lay_set(lay, &row->members, &groups[i].member_count);
    }
    return groups;
}

static void lay_keeps(
    struct lay *lay, const struct det_build_on *on, const struct det_build_row *event,
    struct det_transition_more *more)
{
    struct det_keep *keeps =
        lay_array(lay, (size_t)on->keeps.count * DET_BUILD_KEEP_RANGES, sizeof *keeps);
    size_t count = 0;

    for (uint32_t i = 0; i < on->keeps.count && keeps != NULL; i++) {
        const char *name = on->keeps.items[i].text;
        const char *copy = lay_text(lay, name);
        size_t before = count;

        count += det_build_keep_ranges(
            det_record_field(event->event.payload, name),
            det_record_field(lay->build->builder->data, name), PAYLOAD_OFFSET, &keeps[count]);
        for (size_t j = before; j < count; j++)
            keeps[j].name = copy;
    }
    det_assert(count <= (size_t)on->keeps.count * DET_BUILD_KEEP_RANGES);
    more->keeps = keeps;
    more->keep_count = (uint8_t)count;
}

static bool has_more(const struct det_build_on *on)
{
    return on->guard.id >= 0 || on->hook.id >= 0 || on->update.id >= 0 || on->keeps.count > 0 ||
           on->effects.count > 0 || on->arms.count > 0 || on->disarms.count > 0 ||
           on->within.after > 0 || on->reason != NULL;
}

static const struct det_timeout *lay_within(struct lay *lay, const struct det_build_on *on)
{
    struct det_timeout *within = NULL;

    if (on->within.after > 0)
        within = lay_array(lay, 1, sizeof *within);
    if (within != NULL)
        *within = timeout_of(lay, &on->within);
    return within;
}

/* Returns NULL if the row has no extras, or if memory failed, which sets `has_failed`. */
static const struct det_transition_more *lay_more(
    struct lay *lay, const struct det_build_on *on, const struct det_build_row *event)
{
    const struct det_built *built = lay->built;
    struct det_transition_more *more = NULL;

    if (has_more(on))
        more = lay_array(lay, 1, sizeof *more);
    if (more == NULL)
        return NULL;
    more->guard = on->guard.id >= 0 ? &built->guards[on->guard.id] : NULL;
    more->hook = on->hook.id >= 0 ? &built->hooks[on->hook.id] : NULL;
    more->update = on->update.id >= 0 ? &built->updates[on->update.id] : NULL;
    if (on->keeps.count > 0)
        lay_keeps(lay, on, event, more);
    more->effects = lay_ids(lay, &on->effects);
    more->effect_count = (uint8_t)on->effects.count;
    more->arms = lay_ids(lay, &on->arms);
    more->arm_count = (uint8_t)on->arms.count;
    more->disarms = lay_ids(lay, &on->disarms);
    more->disarm_count = (uint8_t)on->disarms.count;
    more->within = lay_within(lay, on);
    more->reason = on->reason != NULL ? lay_text(lay, on->reason) : NULL;
    return more;
}

/* Lays out the pairs of a row with one event that the row still decides. All pairs of a row share
 * their extras; only the ranges of KEEP depend on the event. */
static void lay_column(
    struct lay *lay, const struct det_build_row *row, size_t event, struct det_transition *table,
    const struct det_transition_more **more)
{
    const struct det_build_on *on = &row->on;

    for (uint32_t i = 0; i < on->from.count; i++) {
        size_t state = (size_t)on->from.items[i].id;

        if (det_build_cell(lay->build, state, event) != row)
            continue;
        if (*more == NULL)
            *more = lay_more(lay, on, thing_of(lay, DET_BUILD_EVENT, event));
        table[state * count_of(lay, DET_BUILD_EVENT) + event] = (struct det_transition){
            .outcome = (uint16_t)on->outcome,
            .to = (uint16_t)(on->outcome == DET_OUTCOME_GOTO ? (size_t)on->to.id : state),
            .row = row->number,
            .more = *more,
        };
    }
}

/* A cell without a row leads back to its own state. */
static struct det_transition *lay_cells(struct lay *lay)
{
    size_t row = count_of(lay, DET_BUILD_EVENT), cells = count_of(lay, DET_BUILD_STATE) * row;
    struct det_transition *table = lay_array(lay, cells, sizeof *table);

    for (size_t i = 0; i < cells && table != NULL; i++)
        table[i].to = (uint16_t)(i / row);
    return table;
}

static void lay_table(struct lay *lay)
{
    struct det_transition *table = lay_cells(lay);

    for (size_t i = 0; i < lay->build->ons.count && table != NULL; i++) {
        const struct det_build_row *row = lay->build->ons.items[i];
        const struct det_transition_more *more = NULL;

        for (uint32_t j = 0; j < row->on.events.count && !lay->has_failed; j++) {
            more = row->on.keeps.count > 0 ? NULL : more;
            lay_column(lay, row, (size_t)row->on.events.items[j].id, table, &more);
        }
    }
    lay->built->machine.table = table;
}

/* Lays out the pairs of an ELSE row from `choices` on, in the order of the template. Their extras
 * are shared as in a column of the table. */
static void lay_choices_of(
    struct lay *lay, const struct det_build_row *row, struct det_choice *choices)
{
    const struct det_transition_more *more[DET_LIST_MAX] = { NULL };
    const struct det_build_on *on = &row->on;

    for (uint32_t i = 0; i < on->from.count * on->events.count; i++) {
        uint32_t state = i / on->events.count, event = i % on->events.count;
        uint32_t shared = on->keeps.count > 0 ? event : 0;
        const struct det_build_name *from = &on->from.items[state];
        const struct det_build_name *by = &on->events.items[event];

        if (more[shared] == NULL)
            more[shared] = lay_more(lay, on, thing_of(lay, DET_BUILD_EVENT, (size_t)by->id));
        choices[i] = (struct det_choice){
            .state = (uint16_t)from->id,
            .event = (uint16_t)by->id,
            .transition = { .outcome = (uint16_t)on->outcome,
                            .to =
                                (uint16_t)(on->outcome == DET_OUTCOME_GOTO ? on->to.id : from->id),
                            .row = row->number,
                            .more = more[shared] },
        };
    }
}

static void lay_choices(struct lay *lay)
{
    struct det_choice *choices = lay_array(lay, lay->build->else_count, sizeof *choices);
    uint32_t count = 0;

    for (size_t i = 0; i < lay->build->ons.count && choices != NULL; i++) {
        const struct det_build_row *row = lay->build->ons.items[i];

        if (!row->on.is_else)
            continue;
        lay_choices_of(lay, row, &choices[count]);
        count += row->on.from.count * row->on.events.count;
    }
    det_assert(choices == NULL || count == lay->build->else_count);
    lay->built->machine.choices = choices;
    lay->built->machine.choice_count = count;
}

static void lay_machine(struct lay *lay)
{
    const struct det_machine_builder *builder = lay->build->builder;
    struct det_machine *machine = &lay->built->machine;

    machine->name = lay_text(lay, builder->name.text);
    machine->version = builder->version;
    machine->initial = (uint16_t)lay->build->initial;
    machine->data.record = builder->data;
    lay_guards(lay);
    lay_hooks(lay);
    lay_updates(lay);
    lay_fills(lay);
    lay_effects(lay);
    lay_products(lay);
    machine->effects = lay->built->effects;
    machine->effect_count = (uint16_t)lay->built->effect_count;
    machine->groups = lay_groups(lay, DET_BUILD_GROUP);
    machine->group_count = (uint16_t)count_of(lay, DET_BUILD_GROUP);
    machine->event_groups = lay_groups(lay, DET_BUILD_EVENT_GROUP);
    machine->event_group_count = (uint16_t)count_of(lay, DET_BUILD_EVENT_GROUP);
    lay_events(lay);
    /* The lists below have pointers to functions, which must be laid out already. */
    if (lay->has_failed)
        return;
    lay_states(lay);
    lay_timers(lay);
    lay_table(lay);
    lay_choices(lay);
}

/* In checked builds: every cell leads to a state. */
static void assert_machine(const struct det_machine *machine)
{
    size_t cells = (size_t)machine->state_count * machine->event_count;

    det_assert(machine->initial < machine->state_count && machine->event_count > 0);
    for (size_t i = 0; DET_CHECKS && i < cells; i++)
        det_assert(
            machine->table[i].to < machine->state_count &&
            machine->table[i].outcome <= DET_OUTCOME_STOP);
}

int det_build_lay(struct det_build *build, struct det_machine **ret)
{
    const struct det_allocator *allocator = build->builder->allocator;
    struct lay lay = { .build = build, .built = DET_NEW(allocator, struct det_built) };

    det_assert(build->initial >= 0 && !build->is_too_large && build->cells != NULL);
    det_assert(build->findings.found[DET_SEVERITY_BROKEN] == 0);
    if (lay.built == NULL)
        return DET_ERR_NO_MEMORY;
    lay.built->allocator = allocator;
    det_arena_init(&lay.built->arena, allocator);
    lay_machine(&lay);
    if (lay.has_failed) {
        det_machine_close(&lay.built->machine);
        return DET_ERR_NO_MEMORY;
    }
    assert_machine(&lay.built->machine);
    *ret = &lay.built->machine;
    return 0;
}
