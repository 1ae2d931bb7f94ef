/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_resolve.c - resolves the names in rows and marks the things they name: entered, taken,
 * produced, used. Also reports mistakes within a single row. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/builder_build.h"

static void mark_used(
    struct det_build *build, enum det_build_kind kind, const struct det_build_name *name)
{
    struct det_build_row *thing = det_build_named(build, kind, name);

    if (thing != NULL)
        thing->is_used = true;
}

static void mark_produced(struct det_build *build, const struct det_build_name *name)
{
    struct det_build_row *event = det_build_named(build, DET_BUILD_EVENT, name);

    if (event != NULL)
        event->event.is_produced = true;
}

/* A use of a name. */
static void resolve_use(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind kind,
    struct det_build_name *name)
{
    det_build_resolve_name(build, row, kind, name);
    mark_used(build, kind, name);
}

static void check_length(
    struct det_build *build, const struct det_build_row *row, const struct det_build_names *names,
    enum det_build_kind kind)
{
    if (names->is_too_long)
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, row, &names->items[0],
            "a row of %s lists more than %d %ss", build->name, DET_LIST_MAX,
            det_build_kind_noun(kind));
}

static void resolve_list(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind kind,
    struct det_build_names *names)
{
    check_length(build, row, names, kind);
    for (uint32_t i = 0; i < names->count; i++)
        det_build_resolve_name(build, row, kind, &names->items[i]);
}

void det_build_resolve_some(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind kind,
    struct det_build_names *names)
{
    if (names->count == 0)
        (void)det_build_report(
            &build->findings, DET_RULE_ROW_ARGUMENTS, row, NULL, "a row of %s names no %s",
            build->name, det_build_kind_noun(kind));
    resolve_list(build, row, kind, names);
}

static void resolve_uses(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind kind,
    struct det_build_names *names)
{
    resolve_list(build, row, kind, names);
    for (uint32_t i = 0; i < names->count; i++)
        mark_used(build, kind, &names->items[i]);
}

static void check_delay(
    struct det_build *build, const struct det_build_row *row,
    const struct det_build_timeout *timeout)
{
    char text[DET_DURATION_TEXT];

    if (timeout->after > 0 && timeout->after <= DET_DELAY_MAX)
        return;
    (void)det_build_report(
        &build->findings, DET_RULE_BAD_DURATION, row, NULL,
        "a row of %s waits for %s; it must be more than 0s and at most ten years", build->name,
        det_format_duration(timeout->after, text, sizeof text));
}

static void resolve_timeout(
    struct det_build *build, const struct det_build_row *row, struct det_build_timeout *timeout)
{
    check_delay(build, row, timeout);
    if (timeout->event.text == NULL)
        (void)det_build_report(
            &build->findings, DET_RULE_ROW_ARGUMENTS, row, NULL, "a timeout of %s names no event",
            build->name);
    det_build_resolve_name(build, row, DET_BUILD_EVENT, &timeout->event);
    mark_produced(build, &timeout->event);
    resolve_use(build, row, DET_BUILD_FILL, &timeout->fill);
}

static const char *row_word(const struct det_build_on *on)
{
    return on->is_override ? "OVERRIDE" : on->is_else ? "ELSE" : "ON";
}

/* Continues as if state and event were in the right order. */
static void swap_ids(struct det_build *build, struct det_build_row *row)
{
    struct det_build_name *from = row->on.from.items, *event = row->on.events.items;
    int32_t id;

    det_build_resolve_name(build, row, DET_BUILD_EVENT, from);
    det_build_resolve_name(build, row, DET_BUILD_STATE, event);
    id = from->id;
    from->id = event->id;
    event->id = id;
    mark_used(build, DET_BUILD_EVENT, event);
    row->on.is_guess = true;
}

/* A state and an event in each other's place are one mistake, reported once. */
static bool resolve_swapped(struct det_build *build, struct det_build_row *row)
{
    struct det_build_on *on = &row->on;
    struct det_build_name *from = on->from.items, *event = on->events.items;
    struct det_diagnostic *finding;

    if (on->from.count != 1 || on->events.count != 1 ||
        det_build_kind_named(build, from->text) != DET_BUILD_EVENT ||
        det_build_kind_named(build, event->text) != DET_BUILD_STATE)
        return false;
    finding = det_build_report(
        &build->findings, DET_RULE_UNKNOWN_STATE, row, from, "%s is an event of %s, not a state",
        from->text, build->name);
    det_build_other(&build->findings, finding, row, event);
    if (on->outcome == DET_OUTCOME_GOTO && on->to.text != NULL)
        det_build_hint(
            &build->findings, finding, "state and event are swapped: write %s(%s, %s, %s)",
            row_word(on), event->text, from->text, on->to.text);
    else
        det_build_hint(
            &build->findings, finding, "state and event are swapped: %s comes first", event->text);
    swap_ids(build, row);
    return true;
}

static void resolve_pairs(struct det_build *build, struct det_build_row *row)
{
    struct det_build_on *on = &row->on;

    if (resolve_swapped(build, row))
        return;
    det_build_resolve_some(build, row, DET_BUILD_STATE, &on->from);
    det_build_resolve_some(build, row, DET_BUILD_EVENT, &on->events);
    for (uint32_t i = 0; i < on->from.count; i++)
        on->is_guess = on->is_guess || on->from.items[i].is_guess;
    for (uint32_t i = 0; i < on->events.count; i++) {
        on->is_guess = on->is_guess || on->events.items[i].is_guess;
        mark_used(build, DET_BUILD_EVENT, &on->events.items[i]);
    }
}

static void report_row(struct det_build *build, const struct det_build_row *row, const char *what)
{
    (void)det_build_report(
        &build->findings, DET_RULE_ROW_ARGUMENTS, row, NULL, "a row of %s %s", build->name, what);
}

static void check_few(
    struct det_build *build, const struct det_build_row *row, const struct det_build_names *names,
    const char *verb, const char *noun)
{
    if (names->count > DET_EXTRAS_MAX)
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, row, &names->items[0],
            "a transition of %s %s more than %d %s", build->name, verb, DET_EXTRAS_MAX, noun);
}

static void check_on(struct det_build *build, const struct det_build_row *row)
{
    const struct det_build_on *on = &row->on;
    bool is_goto = on->outcome == DET_OUTCOME_GOTO;

    if (!is_goto && on->outcome != DET_OUTCOME_STAY && on->outcome != DET_OUTCOME_STOP)
        report_row(build, row, "has no outcome: add GOTO, STAY or STOP");
    else if (is_goto && on->to.text == NULL)
        report_row(build, row, "has an outcome GOTO without a target state");
    else if (!is_goto && on->to.text != NULL)
        report_row(build, row, "stays or stops, and cannot have a target");
    if (on->is_override && on->is_else)
        report_row(build, row, "is both an OVERRIDE and an ELSE");
    if (!is_goto && (on->within.after != 0 || on->within.event.text != NULL))
        report_row(build, row, "enters no state, and cannot have a WITHIN");
    if (on->outcome != DET_OUTCOME_STOP && on->reason != NULL)
        report_row(build, row, "does not stop, and cannot have a REASON");
    if (on->reason != NULL && strlen(on->reason) > DET_REASON_MAX)
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, row, NULL,
            "a reason of %s has more than %d bytes", build->name, DET_REASON_MAX);
    check_few(build, row, &on->effects, "has", "effects");
    check_few(build, row, &on->arms, "arms", "timers");
    check_few(build, row, &on->disarms, "disarms", "timers");
}

/* Returns true for a guard in place of a hook or update: it was probably meant for IF. */
static bool has_lost_guard(const struct det_build *build, const struct det_build_name *name)
{
    return name->text != NULL && det_build_kind_named(build, name->text) == DET_BUILD_GUARD;
}

static uint64_t mask_of(const struct det_build_names *timers)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < timers->count; i++) {
        if (timers->items[i].id >= 0)
            mask |= UINT64_C(1) << timers->items[i].id;
    }
    return mask;
}

static void check_keep_list(struct det_build *build, const struct det_build_row *row)
{
    if (row->on.keeps.is_too_long)
        (void)det_build_report(
            &build->findings, DET_RULE_TOO_LARGE, row, &row->on.keeps.items[0],
            "a row of %s keeps more than %d fields", build->name, DET_LIST_MAX);
}

static void resolve_on(struct det_build *build, struct det_build_row *row)
{
    struct det_build_on *on = &row->on;

    check_on(build, row);
    check_keep_list(build, row);
    resolve_pairs(build, row);
    resolve_use(build, row, DET_BUILD_STATE, &on->to);
    resolve_use(build, row, DET_BUILD_GUARD, &on->guard);
    resolve_use(build, row, DET_BUILD_HOOK, &on->hook);
    resolve_use(build, row, DET_BUILD_UPDATE, &on->update);
    resolve_uses(build, row, DET_BUILD_EFFECT, &on->effects);
    resolve_uses(build, row, DET_BUILD_TIMER, &on->arms);
    resolve_list(build, row, DET_BUILD_TIMER, &on->disarms);
    if (on->within.after != 0 || on->within.event.text != NULL)
        resolve_timeout(build, row, &on->within);
    on->is_guess =
        on->is_guess || has_lost_guard(build, &on->hook) || has_lost_guard(build, &on->update);
    on->arm_mask = mask_of(&on->arms);
    on->disarm_mask = mask_of(&on->disarms);
}

static void report_second(
    struct det_build *build, enum det_rule rule, const struct det_build_row *row,
    const struct det_build_name *state, const struct det_build_row *first)
{
    const char *what = row->kind == DET_BUILD_AFTER   ? "a timeout"
                       : row->kind == DET_BUILD_ENTRY ? "an entry hook"
                                                      : "an exit hook";
    struct det_diagnostic *finding = det_build_report(
        &build->findings, rule, row, state, "%s of %s already has %s", state->text, build->name,
        what);
    const struct det_build_names *names = &first->about.states;

    for (uint32_t i = 0; i < names->count; i++) {
        if (names->items[i].id == state->id) {
            det_build_other(&build->findings, finding, first, &names->items[i]);
            return;
        }
    }
}

/* Returns the member of a state that stores its row of this kind. */
static const struct det_build_row **slot_of(struct det_build_row *state, enum det_build_kind kind)
{
    det_assert(state->kind == DET_BUILD_STATE);
    det_assert(kind == DET_BUILD_AFTER || kind == DET_BUILD_ENTRY || kind == DET_BUILD_EXIT);
    if (kind == DET_BUILD_AFTER)
        return &state->state.after;
    return kind == DET_BUILD_ENTRY ? &state->state.entry : &state->state.exit;
}

static void attach_row(struct det_build *build, struct det_build_row *row)
{
    enum det_rule rule =
        row->kind == DET_BUILD_AFTER ? DET_RULE_DUPLICATE_TIMEOUT : DET_RULE_DUPLICATE_HOOK;

    for (uint32_t i = 0; i < row->about.states.count; i++) {
        const struct det_build_name *name = &row->about.states.items[i];
        struct det_build_row *state = det_build_named(build, DET_BUILD_STATE, name);
        const struct det_build_row **slot;

        if (state == NULL || name->is_guess)
            continue;
        slot = slot_of(state, row->kind);
        if (*slot == NULL)
            *slot = row;
        else
            report_second(build, rule, row, name, *slot);
    }
}

static void resolve_policy(struct det_build *build, struct det_build_row *row)
{
    struct det_build_row *event;
    struct det_diagnostic *finding;

    det_build_resolve_name(build, row, DET_BUILD_EVENT, &row->name);
    event = det_build_named(build, DET_BUILD_EVENT, &row->name);
    if (event == NULL || row->name.is_guess)
        return;
    if (event->event.policy == NULL) {
        event->event.policy = row;
        return;
    }
    finding = det_build_report(
        &build->findings, DET_RULE_DUPLICATE_POLICY, row, &row->name,
        "event %s of %s already has an UNHANDLED row", row->name.text, build->name);
    det_build_other(&build->findings, finding, event->event.policy, &event->event.policy->name);
}

static void resolve_produces(struct det_build *build, struct det_build_row *row)
{
    struct det_build_names *events = &row->function.produces;

    resolve_list(build, row, DET_BUILD_EVENT, events);
    for (uint32_t i = 0; i < events->count; i++)
        mark_produced(build, &events->items[i]);
}

static void resolve_row(struct det_build *build, struct det_build_row *row)
{
    switch (row->kind) {
    case DET_BUILD_STATE:
    case DET_BUILD_EVENT:
    case DET_BUILD_GUARD:
    case DET_BUILD_HOOK:
    case DET_BUILD_UPDATE:
    case DET_BUILD_FILL:
    case DET_BUILD_FINDING:
        break;
    case DET_BUILD_EFFECT:
        resolve_produces(build, row);
        break;
    case DET_BUILD_TIMER:
        resolve_timeout(build, row, &row->timer);
        break;
    case DET_BUILD_GROUP:
        det_build_resolve_some(build, row, DET_BUILD_STATE, &row->members);
        break;
    case DET_BUILD_EVENT_GROUP:
        det_build_resolve_some(build, row, DET_BUILD_EVENT, &row->members);
        break;
    case DET_BUILD_ON:
        resolve_on(build, row);
        break;
    case DET_BUILD_AFTER:
        det_build_resolve_some(build, row, DET_BUILD_STATE, &row->about.states);
        resolve_timeout(build, row, &row->about.timeout);
        attach_row(build, row);
        break;
    case DET_BUILD_ENTRY:
    case DET_BUILD_EXIT:
        det_build_resolve_some(build, row, DET_BUILD_STATE, &row->about.states);
        resolve_use(build, row, DET_BUILD_HOOK, &row->about.hook);
        attach_row(build, row);
        break;
    case DET_BUILD_POLICY:
        resolve_policy(build, row);
        break;
    case DET_BUILD_DISPATCH:
    case DET_BUILD_FAILURE:
    case DET_BUILD_CLOSED:
    case DET_BUILD_COMPLETION:
    case DET_BUILD_INVARIANT:
        det_build_resolve_component(build, row);
        break;
    }
}

void det_build_resolve(struct det_build *build)
{
    for (struct det_build_row *row = build->builder->rows; row != NULL; row = row->next)
        resolve_row(build, row);
}
