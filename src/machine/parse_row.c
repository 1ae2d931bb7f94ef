/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_row.c - gives every row of a machine to the builder.
 *
 * Each row of rows.def has one function, named read_<ROW>; a row of that list without one does not
 * compile. A row with a mistake is reported, and only its name reaches the builder. */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/builder_rows.h"
#include "machine/parse_arguments.h"

typedef void read_row_fn(struct det_take *take);

/* Reads INITIAL or FINAL, then the health. A state with a wrong word is still declared: one mistake
 * is one finding. */
static unsigned read_state_flags(struct det_take *take)
{
    static const char *const words[] = { "INITIAL", "FINAL", "GOOD", "WARNING", "BAD", "NEUTRAL" };
    static const unsigned values[] = { DET_STATE_INITIAL, DET_STATE_FINAL, DET_STATE_GOOD,
                                       DET_STATE_WARNING, DET_STATE_BAD,   DET_STATE_NEUTRAL };
    const size_t count = sizeof words / sizeof *words, first_health = 2;
    unsigned flags;
    int word;

    if (take->next == NULL)
        return 0;
    word = det_take_word(take, words, count, "INITIAL or FINAL, or GOOD, WARNING, BAD or NEUTRAL");
    flags = word >= 0 ? values[word] : 0;
    if (word < 0 || take->next == NULL)
        return flags;
    if ((size_t)word >= first_health) {
        det_take_fail(take, take->next, "nothing, because the health comes last");
        return flags;
    }
    word = det_take_word(
        take, words + first_health, count - first_health, "GOOD, WARNING, BAD or NEUTRAL");
    return word >= 0 ? flags | values[first_health + (size_t)word] : flags;
}

static void read_STATE(struct det_take *take)
{
    struct det_state_row row = { .name = det_take_name(take, "the name of a state in C") };

    row.wire = det_take_name(take, "its name on disk");
    if (take->failed)
        return;
    row.flags = read_state_flags(take);
    take->spec->state_names[take->spec->state_count++] = row.name;
    det_machine_builder_state(take->spec->builder, &row);
}

static void read_event(struct det_take *take, bool is_internal)
{
    struct det_event_row row = { .is_internal = is_internal };
    const struct det_node *payload;

    row.name = det_take_name(take, "the name of an event in C");
    row.wire = det_take_name(take, "its name on disk");
    payload = take->next != NULL ? det_take_node(take, "a record") : NULL;
    if (take->failed)
        return;
    if (payload != NULL)
        row.payload = det_parse_record_of(take->spec, payload);
    take->spec->event_names[take->spec->event_count++] = row.name;
    det_machine_builder_event(take->spec->builder, &row);
}

static void read_EVENT(struct det_take *take)
{
    read_event(take, false);
}

static void read_INTERNAL(struct det_take *take)
{
    read_event(take, true);
}

static void read_UNHANDLED(struct det_take *take)
{
    const char *event = det_take_name(take, "an event");
    int policy = det_take_word(
        take, det_parse_policies, DET_PARSE_POLICY_COUNT, "ERROR, IGNORE, DEFER or DEAD_LETTER");

    if (!take->failed)
        det_machine_builder_event_unhandled(take->spec->builder, event, (enum det_unhandled)policy);
}

static void read_group(struct det_take *take, bool is_of_events)
{
    struct det_group_row row = { .is_of_events = is_of_events };

    row.name = det_take_name(take, "the name of a group");
    row.members = det_take_rest(take, is_of_events ? "events" : "states");
    if (!take->failed)
        det_machine_builder_group(take->spec->builder, &row);
}

static void read_GROUP(struct det_take *take)
{
    read_group(take, false);
}

static void read_EVENT_GROUP(struct det_take *take)
{
    read_group(take, true);
}

static void read_EFFECT(struct det_take *take)
{
    struct det_effect_row row = { .name = det_take_name(take, "the name of an effect") };

    row.produces = det_take_rest(take, "events");
    if (!take->failed)
        det_machine_builder_effect(take->spec->builder, &row);
}

static void read_GUARD(struct det_take *take)
{
    const char *name = det_take_name(take, "the name of a guard");

    if (!take->failed)
        det_machine_builder_guard(take->spec->builder, name, NULL);
}

static void read_HOOK(struct det_take *take)
{
    const char *name = det_take_name(take, "the name of a hook");

    if (!take->failed)
        det_machine_builder_hook(take->spec->builder, name, NULL);
}

static void read_UPDATE(struct det_take *take)
{
    const char *name = det_take_name(take, "the name of an update");

    if (!take->failed)
        det_machine_builder_update(take->spec->builder, name, NULL);
}

static void read_FILL(struct det_take *take)
{
    const char *name = det_take_name(take, "the name of a fill");

    if (!take->failed)
        det_machine_builder_fill(take->spec->builder, name, NULL);
}

static void read_TIMER(struct det_take *take)
{
    struct det_timer_row row = { .name = det_take_name(take, "the name of a timer") };

    row.timeout = det_take_timeout(take);
    if (!take->failed)
        det_machine_builder_timer(take->spec->builder, &row);
}

/* The file was read with the text. */
static void read_USES(struct det_take *take)
{
    (void)det_take_string(take, "the name of a file in double quotes");
}

/* Returns true if the extra is valid on the row and not a duplicate; otherwise reports it. */
static bool extra_fits(
    struct det_take *take, const struct det_node *node, enum det_extra extra,
    const struct det_on_row *row, unsigned seen)
{
    struct det_place place = det_parse_place(node);
    const char *problem = NULL;

    if (seen & (1u << extra))
        problem = "is a duplicate on this row";
    else if (extra == DET_EXTRA_WITHIN && row->outcome != DET_OUTCOME_GOTO)
        problem = "is permitted only on ON, OVERRIDE and ELSE, which enter a state";
    else if (extra == DET_EXTRA_REASON && row->outcome != DET_OUTCOME_STOP)
        problem = "is permitted only on STOP, OVERRIDE_STOP and ELSE_STOP";
    if (problem == NULL)
        return true;
    det_parse_report(take->spec, DET_RULE_ROW_ARGUMENTS, &place, "%s %s", node->text, problem);
    return false;
}

static void read_extra(struct det_take *take, enum det_extra extra, struct det_on_row *row)
{
    switch (extra) {
    case DET_EXTRA_IF:
        row->guard = det_take_name(take, "a guard");
        break;
    case DET_EXTRA_CALL:
        row->hook = det_take_name(take, "a hook");
        break;
    case DET_EXTRA_SET:
        row->update = det_take_name(take, "an update");
        break;
    case DET_EXTRA_KEEP:
        row->keeps = det_take_rest(take, "fields");
        break;
    case DET_EXTRA_DO:
        row->effects = det_take_rest(take, "effects");
        break;
    case DET_EXTRA_ARM:
        row->arms = det_take_rest(take, "timers");
        break;
    case DET_EXTRA_DISARM:
        row->disarms = det_take_rest(take, "timers");
        break;
    case DET_EXTRA_WITHIN:
        row->within = det_take_timeout(take);
        break;
    case DET_EXTRA_REASON:
        row->reason = det_take_string(take, "the reason in double quotes");
        break;
    case DET_EXTRA_COUNT:
        break;
    }
}

/* Returns the extra whose argument is declared by a row of this kind, or -1. */
static int extra_for(enum det_row row)
{
    static const struct {
        enum det_row row;
        enum det_extra extra;
    } uses[] = {
        { DET_ROW_GUARD, DET_EXTRA_IF },   { DET_ROW_HOOK, DET_EXTRA_CALL },
        { DET_ROW_UPDATE, DET_EXTRA_SET }, { DET_ROW_EFFECT, DET_EXTRA_DO },
        { DET_ROW_TIMER, DET_EXTRA_ARM },
    };

    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (uses[i].row == row)
            return (int)uses[i].extra;
    }
    return -1;
}

/* Hints at the extra for a bare name: charge_card means DO(charge_card). */
static void hint_bare(struct det_take *take, const char *name)
{
    for (const struct det_node *row = take->spec->complaint != NULL ? take->spec->rows.first : NULL;
         row != NULL; row = row->next) {
        int extra = extra_for(row->row);

        if (extra < 0 || row->arguments == NULL || strcmp(row->arguments->text, name) != 0)
            continue;
        det_parse_hint(
            take->spec, "did you mean %s(%s)?", det_extra_kind((enum det_extra)extra)->name, name);
        return;
    }
}

static void fail_extra(struct det_take *take, const struct det_node *node)
{
    const char *names[DET_EXTRA_COUNT];
    int meant = det_extra_find(node->text, node->width);

    for (unsigned i = 0; i < DET_EXTRA_COUNT; i++)
        names[i] = det_extra_kind((enum det_extra)i)->name;
    det_take_fail(take, node, "one of IF, CALL, SET, KEEP, DO, ARM, DISARM, WITHIN, REASON");
    if (meant >= 0)
        det_parse_hint(take->spec, "it is written %s", det_extra_kind((enum det_extra)meant)->form);
    else if (node->kind == DET_NODE_CALL)
        det_parse_hint_nearest(take->spec, node->text, names, DET_EXTRA_COUNT);
    else
        hint_bare(take, node->text);
}

static void take_extras(struct det_take *take, struct det_on_row *row)
{
    unsigned seen = 0;

    for (const struct det_node *node = take->next; node != NULL && !take->failed;
         node = node->next, take->index++) {
        int extra = node->kind == DET_NODE_CALL ? det_extra_find(node->text, node->width) : -1;
        struct det_take inner;

        if (extra < 0) {
            fail_extra(take, node);
        } else if (!extra_fits(take, node, (enum det_extra)extra, row, seen)) {
            take->failed = true;
        } else {
            inner = det_take_start(take->spec, node, det_extra_kind((enum det_extra)extra));
            read_extra(&inner, (enum det_extra)extra, row);
            take->failed = inner.failed;
            seen |= 1u << extra;
        }
    }
}

/* `row` already has the outcome, and whether it is an override or an alternative. */
static void read_transition(struct det_take *take, struct det_on_row row)
{
    row.from = det_take_names(take, "a state or ANY(...) of states");
    row.events = det_take_names(take, "an event or ANY(...) of events");
    if (row.outcome == DET_OUTCOME_GOTO)
        row.to = det_take_name(take, "the state to go to");
    take_extras(take, &row);
    if (!take->failed)
        det_machine_builder_on(take->spec->builder, &row);
}

static void read_ON(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_GOTO });
}

static void read_STAY(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_STAY });
}

static void read_STOP(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_STOP });
}

static void read_OVERRIDE(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_GOTO, .is_override = true });
}

static void read_OVERRIDE_STAY(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_STAY, .is_override = true });
}

static void read_OVERRIDE_STOP(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_STOP, .is_override = true });
}

static void read_ELSE(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_GOTO, .is_else = true });
}

static void read_ELSE_STAY(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_STAY, .is_else = true });
}

static void read_ELSE_STOP(struct det_take *take)
{
    read_transition(take, (struct det_on_row){ .outcome = DET_OUTCOME_STOP, .is_else = true });
}

static void read_ON_EACH(struct det_take *take)
{
    struct det_on_row row = { .outcome = DET_OUTCOME_GOTO };

    row.events = det_take_names(take, "an event or ANY(...) of events");
    row.to = det_take_name(take, "the state to go to");
    row.from = det_take_rest(take, "states");
    if (!take->failed)
        det_machine_builder_on(take->spec->builder, &row);
}

static void read_ENTRY(struct det_take *take)
{
    const char *const *states = det_take_names(take, "a state or ANY(...) of states");
    const char *hook = det_take_name(take, "a hook");

    if (!take->failed)
        det_machine_builder_entry(take->spec->builder, states, hook);
}

static void read_EXIT(struct det_take *take)
{
    const char *const *states = det_take_names(take, "a state or ANY(...) of states");
    const char *hook = det_take_name(take, "a hook");

    if (!take->failed)
        det_machine_builder_exit(take->spec->builder, states, hook);
}

static void read_AFTER(struct det_take *take)
{
    const char *const *states = det_take_names(take, "a state or ANY(...) of states");
    struct det_timeout_row row = det_take_timeout(take);

    if (!take->failed)
        det_machine_builder_after(take->spec->builder, states, &row);
}

static void read_DISPATCH(struct det_take *take)
{
    /* In the order of enum det_dispatch_mode. */
    static const char *const modes[] = { "BLOCK", "POLL", "IGNORE" };
    struct det_dispatch_row row = { .states =
                                        det_take_names(take, "a state or ANY(...) of states") };
    int mode = det_take_word(take, modes, 3, "BLOCK, POLL or IGNORE");

    row.function = det_take_name_if_any(take, "the function of the state");
    if (take->failed)
        return;
    row.mode = (enum det_dispatch_mode)mode;
    det_machine_builder_dispatch(take->spec->builder, &row);
}

static void read_FAILURE(struct det_take *take)
{
    const char *event = det_take_name(take, "an event");

    if (!take->failed)
        det_machine_builder_failure(take->spec->builder, event);
}

static void read_CLOSED(struct det_take *take)
{
    const char *const *states = det_take_names(take, "a state or ANY(...) of states");
    const char *event = det_take_name(take, "an event");

    if (!take->failed)
        det_machine_builder_closed(take->spec->builder, states, event);
}

static void read_COMPLETION(struct det_take *take)
{
    const char *function = det_take_name(take, "a function");

    if (!take->failed)
        det_machine_builder_completion(take->spec->builder, function);
}

static void read_INVARIANT(struct det_take *take)
{
    const char *function = det_take_name(take, "a function");

    if (!take->failed)
        det_machine_builder_invariant(take->spec->builder, function);
}

/* Rows of records were read by parse_record.c. */
#define READ_MACHINE(name) read_##name
#define READ_RECORD(name)  NULL

static read_row_fn *const readers[] = {
#define DET_ROW(name, where, least, most, columns, form, help) \
    [DET_ROW_##name] = READ_##where(name),
#include "machine/rows.def"
};

/* Records the number that the builder gave the row; returns false if it did not get the row. */
static bool number_row(struct det_spec *spec, const struct det_node *row)
{
    bool is_given = spec->builder->row_count > spec->numbered_count;

    det_assert(spec->numbered_count <= spec->row_count);
    if (is_given)
        spec->numbered[spec->numbered_count++] = row;
    det_assert(spec->builder->row_count == spec->numbered_count);
    return is_given;
}

void det_parse_rows(struct det_spec *spec)
{
    spec->state_names = det_parse_alloc(spec, (spec->row_count + 1) * sizeof *spec->state_names);
    spec->event_names = det_parse_alloc(spec, (spec->row_count + 1) * sizeof *spec->event_names);
    spec->numbered = det_parse_alloc(spec, (spec->row_count + 1) * sizeof(struct det_node *));
    /* A text beyond the limit has this one finding. */
    if (spec->row_count > DET_SPEC_ROWS_MAX)
        return;
    det_parse_words(spec);
    for (struct det_node *row = spec->rows.first; row != NULL && spec->error == 0;
         row = row->next) {
        struct det_take take;

        if (readers[row->row] == NULL)
            continue;
        take = det_take_start(spec, row, det_row_kind(row->row));
        readers[row->row](&take);
        if (!number_row(spec, row) && take.failed)
            row->is_broken = true;
    }
    det_parse_declare_readable(spec);
}
