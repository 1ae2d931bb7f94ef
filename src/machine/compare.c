/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compare.c - compares two definitions of a machine. */
#include <detent/tool/machine.h>

#include "machine/compare.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const char *const nouns[DET_COMPARE_KINDS] = {
    [DET_NAME_STATE] = "state",
    [DET_NAME_EVENT] = "event",
    [DET_NAME_EFFECT] = "effect",
    [DET_NAME_TIMER] = "timer",
};

/* Returns the number of things of the kind in a machine. */
static size_t count_things(const struct det_machine *machine, enum det_name_kind kind)
{
    switch (kind) {
    case DET_NAME_STATE:
        return machine->state_count;
    case DET_NAME_EVENT:
        return machine->event_count;
    case DET_NAME_EFFECT:
        return machine->effect_count;
    case DET_NAME_TIMER:
        return machine->timer_count;
    }
    return 0;
}

static const char *thing_name(const struct det_machine *machine, enum det_name_kind kind, size_t id)
{
    switch (kind) {
    case DET_NAME_STATE:
        return machine->states[id].name;
    case DET_NAME_EVENT:
        return machine->events[id].name;
    case DET_NAME_EFFECT:
        return machine->effects[id].name;
    case DET_NAME_TIMER:
        return machine->timers[id].name;
    }
    return "";
}

static int find_name(const struct det_machine *machine, enum det_name_kind kind, const char *name)
{
    switch (kind) {
    case DET_NAME_STATE:
        return det_machine_find_state(machine, name);
    case DET_NAME_EVENT:
        return det_machine_find_event(machine, name);
    case DET_NAME_EFFECT:
        return det_machine_find_effect(machine, name);
    case DET_NAME_TIMER:
        return det_machine_find_timer(machine, name);
    }
    return -1;
}

void det_compare_clear(struct det_comparison *comparison, struct det_writer *writer)
{
    comparison->has_failed |= det_buffer_status(&writer->text) < 0;
    det_buffer_clear(&writer->text);
}

static bool is_fine(struct det_comparison *comparison)
{
    comparison->has_failed |= det_buffer_status(&comparison->of_old.text) < 0 ||
                              det_buffer_status(&comparison->of_new.text) < 0;
    return !comparison->has_failed;
}

/* Formats into the text of the comparison. */
DET_PRINTF(2, 0)
static const char *format_text(
    struct det_comparison *comparison, const char *format, va_list arguments)
{
    char text[1024];

    (void)vsnprintf(text, sizeof text, format, arguments);
    det_buffer_clear(&comparison->text);
    det_buffer_append_text(&comparison->text, text);
    comparison->has_failed |= det_buffer_status(&comparison->text) < 0;
    return det_buffer_text(&comparison->text);
}

void det_compare_report(
    struct det_comparison *comparison, struct det_change change, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    change.text = format_text(comparison, format, arguments);
    va_end(arguments);
    if (is_fine(comparison))
        comparison->compare->change(comparison->compare->context, &change);
}

void det_compare_warn(
    struct det_comparison *comparison, enum det_hazard_kind kind, const char *name,
    const char *format, ...)
{
    struct det_hazard hazard = { .kind = kind, .name = name };
    va_list arguments;

    va_start(arguments, format);
    hazard.text = format_text(comparison, format, arguments);
    va_end(arguments);
    if (is_fine(comparison))
        comparison->compare->hazard(comparison->compare->context, &hazard);
}

static void *make_array(struct det_comparison *comparison, size_t count, size_t size)
{
    void *block = det_arena_array(&comparison->arena, count, size);

    comparison->has_failed |= block == NULL;
    return block;
}

static const struct det_rename *find_rename(
    const struct det_compare *compare, enum det_name_kind kind, const char *from)
{
    for (size_t i = 0; i < compare->rename_count; i++) {
        if (compare->renames[i].kind == kind && strcmp(compare->renames[i].from, from) == 0)
            return &compare->renames[i];
    }
    return NULL;
}

static int check_rename(
    const struct det_compare *compare, const struct det_rename *rename, struct det_error *reterr)
{
    const char *noun = nouns[rename->kind];

    det_assert((size_t)rename->kind < DET_COMPARE_KINDS);
    if (find_name(compare->old, rename->kind, rename->from) < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the old definition has no %s %s that could be renamed", noun,
            rename->from);
    if (find_name(compare->new, rename->kind, rename->to) < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the new definition has no %s %s to rename %s to", noun,
            rename->to, rename->from);
    for (const struct det_rename *other = compare->renames; other < rename; other++) {
        if (other->kind == rename->kind &&
            (strcmp(other->from, rename->from) == 0 || strcmp(other->to, rename->to) == 0))
            return det_error_set(
                reterr, DET_ERR_INVALID, "duplicate rename: %s %s, or two renames to %s", noun,
                rename->from, rename->to);
    }
    return 0;
}

/* A name that is not renamed maps to itself, unless another one was renamed to it. */
static void map_kind(struct det_comparison *comparison, enum det_name_kind kind)
{
    const struct det_compare *compare = comparison->compare;
    size_t count = count_things(comparison->old, kind);
    int *map = make_array(comparison, count, sizeof *map);
    bool *is_kept = make_array(comparison, count_things(comparison->new, kind), sizeof *is_kept);

    comparison->maps[kind] = map;
    comparison->is_kept[kind] = is_kept;
    for (int pass = 0; pass < 2 && !comparison->has_failed; pass++) {
        for (size_t i = 0; i < count; i++) {
            const char *name = thing_name(comparison->old, kind, i);
            const struct det_rename *rename = find_rename(compare, kind, name);
            int id = find_name(comparison->new, kind, rename != NULL ? rename->to : name);

            if ((rename != NULL) != (pass == 0))
                continue;
            det_assert(id < (int)count_things(comparison->new, kind));
            map[i] = id >= 0 && !is_kept[id] ? id : -1;
            if (map[i] >= 0)
                is_kept[map[i]] = true;
        }
    }
}

/* Returns the names that describe old things: the new name of a renamed one. */
static const char **old_names(struct det_comparison *comparison, enum det_name_kind kind)
{
    size_t count = count_things(comparison->old, kind);
    const char **names = make_array(comparison, count, sizeof *names);

    for (size_t i = 0; i < count && names != NULL; i++)
        names[i] = comparison->maps[kind][i] >= 0
                       ? thing_name(comparison->new, kind, (size_t)comparison->maps[kind][i])
                       : thing_name(comparison->old, kind, i);
    return names;
}

static const char **new_names(struct det_comparison *comparison, enum det_name_kind kind)
{
    size_t count = count_things(comparison->new, kind);
    const char **names = make_array(comparison, count, sizeof *names);

    for (size_t i = 0; i < count && names != NULL; i++)
        names[i] = thing_name(comparison->new, kind, i);
    return names;
}

static void init_comparison(struct det_comparison *comparison, const struct det_compare *compare)
{
    memset(comparison, 0, sizeof *comparison);
    comparison->compare = compare;
    comparison->old = compare->old;
    comparison->new = compare->new;
    det_arena_init(&comparison->arena, compare->allocator);
    det_buffer_init(&comparison->text, compare->allocator);
    det_buffer_init(&comparison->of_old.text, compare->allocator);
    det_buffer_init(&comparison->of_new.text, compare->allocator);
    for (size_t kind = 0; kind < DET_COMPARE_KINDS; kind++)
        map_kind(comparison, (enum det_name_kind)kind);
    if (comparison->has_failed)
        return;
    comparison->is_warned = make_array(
        comparison, (size_t)compare->old->state_count * compare->old->event_count,
        sizeof *comparison->is_warned);
    comparison->of_old.machine = compare->old;
    comparison->of_old.states = old_names(comparison, DET_NAME_STATE);
    comparison->of_old.events = old_names(comparison, DET_NAME_EVENT);
    comparison->of_old.effects = old_names(comparison, DET_NAME_EFFECT);
    comparison->of_old.timers = old_names(comparison, DET_NAME_TIMER);
    comparison->of_new.machine = compare->new;
    comparison->of_new.states = new_names(comparison, DET_NAME_STATE);
    comparison->of_new.events = new_names(comparison, DET_NAME_EVENT);
    comparison->of_new.effects = new_names(comparison, DET_NAME_EFFECT);
    comparison->of_new.timers = new_names(comparison, DET_NAME_TIMER);
}

static void deinit_comparison(struct det_comparison *comparison)
{
    det_buffer_deinit(&comparison->of_old.text);
    det_buffer_deinit(&comparison->of_new.text);
    det_buffer_deinit(&comparison->text);
    det_arena_deinit(&comparison->arena);
}

/* Reports removed, renamed and new things of one kind. */
static void compare_kind(struct det_comparison *comparison, enum det_name_kind kind)
{
    struct det_change change = { .subject = nouns[kind] };

    for (size_t i = 0; i < count_things(comparison->old, kind); i++) {
        int to = comparison->maps[kind][i];

        change.name = thing_name(comparison->old, kind, i);
        if (to < 0) {
            change.kind = DET_CHANGE_REMOVED;
            det_compare_report(comparison, change, "%s %s was removed", nouns[kind], change.name);
        } else if (strcmp(change.name, thing_name(comparison->new, kind, (size_t)to)) != 0) {
            change.kind = DET_CHANGE_RENAMED;
            det_compare_report(
                comparison, change, "%s %s is called %s", nouns[kind], change.name,
                thing_name(comparison->new, kind, (size_t)to));
        }
    }
    for (size_t i = 0; i < count_things(comparison->new, kind); i++) {
        change.kind = DET_CHANGE_ADDED;
        change.name = thing_name(comparison->new, kind, i);
        if (!comparison->is_kept[kind][i])
            det_compare_report(comparison, change, "%s %s is new", nouns[kind], change.name);
    }
}

static const char *policy_word(unsigned policy)
{
    static const char *const words[] = {
        [DET_UNHANDLED_ERROR] = "an error",
        [DET_UNHANDLED_IGNORE] = "ignored",
        [DET_UNHANDLED_DEFER] = "deferred",
        [DET_UNHANDLED_DEAD_LETTER] = "a dead letter",
    };

    return words[policy];
}

static void compare_event(
    struct det_comparison *comparison, const struct det_event_def *old,
    const struct det_event_def *new)
{
    struct det_change change = { DET_CHANGE_CHANGED, "event", old->name, NULL, NULL };

    if (old->is_internal != new->is_internal)
        det_compare_report(
            comparison, change, "event %s is %s internal", old->name,
            new->is_internal ? "now" : "no longer");
    if (old->unhandled != new->unhandled)
        det_compare_report(
            comparison, change, "event %s, if not accepted, is %s (before: %s)", old->name,
            policy_word(new->unhandled), policy_word(old->unhandled));
}

/* Returns true if both produce the same events in the same order. */
static bool is_same_product(
    const struct det_comparison *comparison, const struct det_effect_def *old,
    const struct det_effect_def *new)
{
    if (old->produces_count != new->produces_count)
        return false;
    for (size_t i = 0; i < old->produces_count; i++) {
        if (comparison->maps[DET_NAME_EVENT][old->produces[i]] != new->produces[i])
            return false;
    }
    return true;
}

static void compare_timer(
    struct det_comparison *comparison, const struct det_timer_def *old,
    const struct det_timer_def *new)
{
    struct det_buffer *before = &comparison->of_old.text, *after = &comparison->of_new.text;

    det_compare_clear(comparison, &comparison->of_old);
    det_compare_clear(comparison, &comparison->of_new);
    det_write_timeout(&comparison->of_old, &old->timeout);
    det_write_timeout(&comparison->of_new, &new->timeout);
    if (strcmp(det_buffer_text(before), det_buffer_text(after)) != 0)
        det_compare_report(
            comparison, (struct det_change){ DET_CHANGE_CHANGED, "timer", old->name, NULL, NULL },
            "timer %s: %s (before: %s)", old->name, det_buffer_text(after),
            det_buffer_text(before));
}

static void compare_things(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old, *new = comparison->new;

    for (size_t i = 0; i < old->event_count; i++) {
        int to = comparison->maps[DET_NAME_EVENT][i];

        if (to >= 0)
            compare_event(comparison, &old->events[i], &new->events[to]);
    }
    for (size_t i = 0; i < old->effect_count; i++) {
        int to = comparison->maps[DET_NAME_EFFECT][i];

        if (to >= 0 && !is_same_product(comparison, &old->effects[i], &new->effects[to]))
            det_compare_report(
                comparison,
                (struct det_change){ DET_CHANGE_CHANGED, "effect", old->effects[i].name, NULL,
                                     NULL },
                "effect %s produces other events", old->effects[i].name);
    }
    for (size_t i = 0; i < old->timer_count; i++) {
        int to = comparison->maps[DET_NAME_TIMER][i];

        if (to >= 0)
            compare_timer(comparison, &old->timers[i], &new->timers[to]);
    }
}

static void compare_machine(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old, *new = comparison->new;
    struct det_change change = { DET_CHANGE_CHANGED, "machine", old->name, NULL, NULL };
    int initial = comparison->maps[DET_NAME_STATE][old->initial];

    if (old->version != new->version)
        det_compare_report(
            comparison, change, "version %u (before: %u)", new->version, old->version);
    if (initial != new->initial)
        det_compare_report(
            comparison, change, "new instances begin in %s (before: %s)",
            new->states[new->initial].name, old->states[old->initial].name);
}

static void warn_of_gone(struct det_comparison *comparison)
{
    static const enum det_hazard_kind hazards[DET_COMPARE_KINDS] = {
        [DET_NAME_STATE] = DET_HAZARD_STATE,
        [DET_NAME_EVENT] = DET_HAZARD_EVENT,
        [DET_NAME_EFFECT] = DET_HAZARD_EFFECT,
        [DET_NAME_TIMER] = DET_HAZARD_TIMER,
    };

    for (size_t kind = 0; kind < DET_COMPARE_KINDS; kind++) {
        size_t count = count_things(comparison->old, (enum det_name_kind)kind);

        for (size_t i = 0; i < count; i++) {
            if (comparison->maps[kind][i] < 0)
                det_compare_warn(
                    comparison, hazards[kind],
                    thing_name(comparison->old, (enum det_name_kind)kind, i), "was removed");
        }
    }
}

static void run_comparison(struct det_comparison *comparison)
{
    compare_machine(comparison);
    for (size_t kind = 0; kind < DET_COMPARE_KINDS; kind++)
        compare_kind(comparison, (enum det_name_kind)kind);
    compare_things(comparison);
    det_compare_all_records(comparison);
    det_compare_transitions(comparison);
    warn_of_gone(comparison);
    det_compare_record_hazards(comparison);
    det_compare_transition_hazards(comparison);
}

int det_compare_machines(const struct det_compare *compare, struct det_error *reterr)
{
    struct det_comparison comparison;
    int r;

    for (size_t i = 0; i < compare->rename_count; i++) {
        r = check_rename(compare, &compare->renames[i], reterr);
        if (r < 0)
            return r;
    }
    init_comparison(&comparison, compare);
    if (is_fine(&comparison))
        run_comparison(&comparison);
    r = !is_fine(&comparison) ? det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory") : 0;
    deinit_comparison(&comparison);
    return r;
}
