/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_behaviour.c - writes the rows of a machine's behaviour.
 *
 * One row has one event and all states with the same transition, in the order of the states; a pair
 * with alternatives has separate rows. */
#include <string.h>

#include "base/assert.h"
#include "machine/write.h"

/* The relation of a row to those before it. */
enum stand { PLAIN, OVERRIDE, ELSE };

static const char *row_word(enum stand stand, unsigned outcome)
{
    static const char *const words[][3] = {
        [PLAIN] = { "ON", "STAY", "STOP" },
        [OVERRIDE] = { "OVERRIDE", "OVERRIDE_STAY", "OVERRIDE_STOP" },
        [ELSE] = { "ELSE", "ELSE_STAY", "ELSE_STOP" },
    };

    return words[stand][outcome == DET_OUTCOME_STAY ? 1 : outcome == DET_OUTCOME_STOP ? 2 : 0];
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_ids(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

static bool same_timeout(const struct det_timeout *a, const struct det_timeout *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->after == b->after && a->event == b->event &&
           same_name(a->fill ? a->fill->name : NULL, b->fill ? b->fill->name : NULL);
}

static bool same_keeps(const struct det_transition_more *a, const struct det_transition_more *b)
{
    if (a->keep_count != b->keep_count)
        return false;
    for (size_t i = 0; i < a->keep_count; i++) {
        if (!same_name(a->keeps[i].name, b->keeps[i].name))
            return false;
    }
    return true;
}

/* Compares names, not addresses: each row of a template has separate copies. */
static bool same_more(const struct det_transition_more *a, const struct det_transition_more *b)
{
    static const struct det_transition_more nothing = { 0 };

    if (a == b)
        return true;
    a = a != NULL ? a : &nothing;
    b = b != NULL ? b : &nothing;
    return same_name(a->guard ? a->guard->name : NULL, b->guard ? b->guard->name : NULL) &&
           same_name(a->hook ? a->hook->name : NULL, b->hook ? b->hook->name : NULL) &&
           same_name(a->update ? a->update->name : NULL, b->update ? b->update->name : NULL) &&
           same_keeps(a, b) && same_ids(a->effects, a->effect_count, b->effects, b->effect_count) &&
           same_ids(a->arms, a->arm_count, b->arms, b->arm_count) &&
           same_ids(a->disarms, a->disarm_count, b->disarms, b->disarm_count) &&
           same_timeout(a->within, b->within) && same_name(a->reason, b->reason);
}

static bool same_transition(const struct det_transition *a, const struct det_transition *b)
{
    return a->outcome == b->outcome && (a->outcome != DET_OUTCOME_GOTO || a->to == b->to) &&
           same_more(a->more, b->more);
}

static void write_duration(struct det_writer *writer, det_time span)
{
    static const struct {
        const char *word;
        det_time length;
    } units[] = {
        { "DAYS", DET_DAY },
        { "HOURS", DET_HOUR },
        { "MINUTES", DET_MINUTE },
        { "SECONDS", DET_SECOND },
        { "MILLISECONDS", DET_MILLISECOND },
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (span % units[i].length == 0) {
            det_buffer_format(
                &writer->text, "%s(%lld)", units[i].word, (long long)(span / units[i].length));
            return;
        }
    }
    det_write_fail(
        writer, DET_ERR_UNSUPPORTED,
        "a timeout of %s is not a whole number of milliseconds, which a spec cannot express",
        writer->machine->name);
}

void det_write_timeout(struct det_writer *writer, const struct det_timeout *timeout)
{
    write_duration(writer, timeout->after);
    det_buffer_format(&writer->text, ", %s", writer->events[timeout->event]);
    if (timeout->fill != NULL)
        det_buffer_format(&writer->text, ", %s", timeout->fill->name);
}

static void write_reason(struct det_writer *writer, const char *reason)
{
    det_buffer_append_text(&writer->text, ", REASON(\"");
    for (; *reason != '\0'; reason++) {
        if (*reason == '\n' || *reason == '\t')
            det_buffer_append_text(&writer->text, *reason == '\n' ? "\\n" : "\\t");
        else if (*reason == '"' || *reason == '\\')
            det_buffer_format(&writer->text, "\\%c", *reason);
        else
            det_buffer_append_char(&writer->text, *reason);
    }
    det_buffer_append_text(&writer->text, "\")");
}

/* A field with a presence may have two ranges of one name, which are written once. */
static void write_keeps(struct det_writer *writer, const struct det_transition_more *more)
{
    const char *before = NULL;

    for (size_t i = 0; i < more->keep_count; i++) {
        if (!same_name(before, more->keeps[i].name))
            det_buffer_format(
                &writer->text, "%s%s", i == 0 ? ", KEEP(" : ", ", more->keeps[i].name);
        before = more->keeps[i].name;
    }
    if (more->keep_count > 0)
        det_buffer_append_char(&writer->text, ')');
}

static void write_effects(struct det_writer *writer, const struct det_transition_more *more)
{
    for (size_t i = 0; i < more->effect_count; i++)
        det_buffer_format(
            &writer->text, "%s%s", i == 0 ? ", DO(" : ", ", writer->effects[more->effects[i]]);
    if (more->effect_count > 0)
        det_buffer_append_char(&writer->text, ')');
}

static void write_timers(
    struct det_writer *writer, const char *word, const uint16_t *timers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        det_buffer_format(&writer->text, "%s%s", i == 0 ? word : ", ", writer->timers[timers[i]]);
    if (count > 0)
        det_buffer_append_char(&writer->text, ')');
}

static void write_extras(struct det_writer *writer, const struct det_transition_more *more)
{
    struct det_buffer *text = &writer->text;

    if (more->guard != NULL)
        det_buffer_format(text, ", IF(%s)", more->guard->name);
    if (more->hook != NULL)
        det_buffer_format(text, ", CALL(%s)", more->hook->name);
    write_keeps(writer, more);
    if (more->update != NULL)
        det_buffer_format(text, ", SET(%s)", more->update->name);
    write_effects(writer, more);
    write_timers(writer, ", ARM(", more->arms, more->arm_count);
    write_timers(writer, ", DISARM(", more->disarms, more->disarm_count);
    if (more->within != NULL) {
        det_buffer_append_text(text, ", WITHIN(");
        det_write_timeout(writer, more->within);
        det_buffer_append_char(text, ')');
    }
    if (more->reason != NULL)
        write_reason(writer, more->reason);
}

void det_write_transition(struct det_writer *writer, const struct det_transition *transition)
{
    if (transition->outcome == DET_OUTCOME_GOTO)
        det_buffer_format(&writer->text, "goes to %s", writer->states[transition->to]);
    else
        det_buffer_append_text(
            &writer->text, transition->outcome == DET_OUTCOME_STAY   ? "stays"
                           : transition->outcome == DET_OUTCOME_STOP ? "stops"
                                                                     : "is not accepted");
    if (transition->more != NULL)
        write_extras(writer, transition->more);
}

/* Writes the part of a row after its states. */
static void write_rest(
    struct det_writer *writer, size_t event, const struct det_transition *transition)
{
    det_buffer_format(&writer->text, ", %s", writer->events[event]);
    if (transition->outcome == DET_OUTCOME_GOTO)
        det_buffer_format(&writer->text, ", %s", writer->states[transition->to]);
    if (transition->more != NULL)
        write_extras(writer, transition->more);
    det_buffer_append_text(&writer->text, ")\n");
    writer->row_count++;
}

/* Collects the states from `state` on with the same transition, at most the size of a list. */
static size_t gather_alike(
    struct det_writer *writer, size_t state, size_t event, uint16_t states[DET_LIST_MAX])
{
    const struct det_machine *machine = writer->machine;
    const struct det_transition *first =
        det_machine_step(machine, (unsigned)state, (unsigned)event);
    size_t count = 0;

    for (size_t i = state; i < machine->state_count && count < DET_LIST_MAX; i++) {
        size_t pair = i * machine->event_count + event;

        if (writer->is_written[pair] || writer->first_choice[pair] != 0 ||
            !same_transition(first, &machine->table[pair]))
            continue;
        writer->is_written[pair] = true;
        states[count++] = (uint16_t)i;
    }
    return count;
}

static void write_alike(struct det_writer *writer, size_t state, size_t event)
{
    const struct det_transition *transition =
        det_machine_step(writer->machine, (unsigned)state, (unsigned)event);
    uint16_t states[DET_LIST_MAX];
    size_t count = gather_alike(writer, state, event, states);

    det_assert(count > 0 && states[0] == state);
    det_buffer_format(
        &writer->text, "%s(%s", row_word(PLAIN, transition->outcome), count > 1 ? "ANY(" : "");
    for (size_t i = 0; i < count; i++)
        det_buffer_format(&writer->text, "%s%s", i > 0 ? ", " : "", writer->states[states[i]]);
    if (count > 1)
        det_buffer_append_char(&writer->text, ')');
    write_rest(writer, event, transition);
}

static void write_one(
    struct det_writer *writer, enum stand stand, size_t pair,
    const struct det_transition *transition)
{
    size_t events = writer->machine->event_count;

    det_assert(writer->is_written[pair] && pair < events * writer->machine->state_count);
    det_buffer_format(
        &writer->text, "%s(%s", row_word(stand, transition->outcome),
        writer->states[pair / events]);
    write_rest(writer, pair % events, transition);
}

static void write_choices(struct det_writer *writer, size_t pair)
{
    for (const struct det_choice *choice = det_write_choice(writer, pair, NULL); choice != NULL;
         choice = det_write_choice(writer, pair, choice))
        write_one(writer, ELSE, pair, &choice->transition);
}

/* AFTER, ENTRY and EXIT. */
static void write_about_states(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->state_count; i++) {
        const struct det_state_def *state = &machine->states[i];

        if (state->entry != NULL)
            det_buffer_format(
                &writer->text, "ENTRY(%s, %s)\n", writer->states[i], state->entry->name);
        if (state->exit != NULL)
            det_buffer_format(
                &writer->text, "EXIT(%s, %s)\n", writer->states[i], state->exit->name);
        if (state->timeout.after > 0) {
            det_buffer_format(&writer->text, "AFTER(%s, ", writer->states[i]);
            det_write_timeout(writer, &state->timeout);
            det_buffer_append_text(&writer->text, ")\n");
        }
    }
}

static void write_pair(struct det_writer *writer, enum stand stand, size_t pair)
{
    const struct det_machine *machine = writer->machine;

    if (writer->is_written[pair] || machine->table[pair].outcome == DET_OUTCOME_UNHANDLED)
        return;
    if (stand == PLAIN && writer->first_choice[pair] == 0) {
        write_alike(writer, pair / machine->event_count, pair % machine->event_count);
        return;
    }
    writer->is_written[pair] = true;
    write_one(writer, stand, pair, &machine->table[pair]);
    write_choices(writer, pair);
}

void det_write_behaviour(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;
    size_t host;

    write_about_states(writer);
    det_buffer_append_char(&writer->text, '\n');
    if (det_write_overridden(writer, &host))
        write_pair(writer, OVERRIDE, host);
    for (size_t state = 0; state < machine->state_count; state++) {
        det_buffer_append_char(&writer->text, '\n');
        for (size_t event = 0; event < machine->event_count; event++)
            write_pair(writer, PLAIN, state * machine->event_count + event);
        if (writer->row_count > DET_SPEC_ROWS_MAX) {
            det_write_fail(
                writer, DET_ERR_LIMIT, "%s needs more than %d rows, which no spec has",
                machine->name, DET_SPEC_ROWS_MAX);
            return;
        }
    }
}
