/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_overridden.c - writes replacements for overridden rows, where the rules require them.
 *
 * A machine does not store overridden rows, but a state may be entered, and an internal event
 * produced, by an overridden row only. Also the dispatch function of a component may produce events
 * that no row produces. Each of these gets a row about the first pair that the machine accepts,
 * which the row of the pair then overrides:
 *
 *      ON(HOST, EVENT, LOST)                             LOST is entered
 *      OVERRIDE(HOST, EVENT, S, WITHIN(SECONDS(1), X))   X is produced; S accepts it
 *      OVERRIDE(HOST, EVENT, TARGET, ...)                the real transition */
#include "machine/write.h"

struct lost {
    struct det_writer *writer;
    bool *is_entered;  /* by state */
    bool *is_produced; /* by event */
    size_t host;       /* the pair */
    size_t count;      /* rows so far */
};

static void mark_transition(struct lost *lost, const struct det_transition *transition)
{
    if (transition->outcome == DET_OUTCOME_GOTO)
        lost->is_entered[transition->to] = true;
    if (transition->more != NULL && transition->more->within != NULL)
        lost->is_produced[transition->more->within->event] = true;
}

static void mark_rows(struct lost *lost)
{
    const struct det_machine *machine = lost->writer->machine;
    size_t pairs = (size_t)machine->state_count * machine->event_count;

    lost->is_entered[machine->initial] = true;
    for (size_t i = 0; i < pairs; i++)
        mark_transition(lost, &machine->table[i]);
    for (size_t i = 0; i < machine->choice_count; i++)
        mark_transition(lost, &machine->choices[i].transition);
    for (size_t i = 0; i < machine->state_count; i++) {
        if (machine->states[i].timeout.after > 0)
            lost->is_produced[machine->states[i].timeout.event] = true;
    }
    for (size_t i = 0; i < machine->timer_count; i++)
        lost->is_produced[machine->timers[i].timeout.event] = true;
    for (size_t i = 0; i < machine->effect_count; i++) {
        for (size_t j = 0; j < machine->effects[i].produces_count; j++)
            lost->is_produced[machine->effects[i].produces[j]] = true;
    }
    for (size_t i = 0; i < machine->event_count; i++)
        lost->is_produced[i] |= !machine->events[i].is_internal;
}

/* Returns the first pair, of any event or of this one, that the machine accepts; the number of all
 * pairs if there is none, which no rule permits. */
static size_t first_taken(const struct det_machine *machine, size_t event)
{
    size_t pairs = (size_t)machine->state_count * machine->event_count;

    for (size_t i = 0; i < pairs; i++) {
        if (machine->table[i].outcome != DET_OUTCOME_UNHANDLED &&
            (event == SIZE_MAX || i % machine->event_count == event))
            return i;
    }
    return pairs;
}

/* Writes a row about the host that enters `to`. In a pair with alternatives it needs a guard. */
static void write_row(struct lost *lost, size_t to, const char *produced)
{
    struct det_writer *writer = lost->writer;
    const struct det_machine *machine = writer->machine;
    const struct det_transition_more *more = machine->table[lost->host].more;

    det_buffer_format(
        &writer->text, "%s(%s, %s, %s", lost->count++ == 0 ? "ON" : "OVERRIDE",
        writer->states[lost->host / machine->event_count],
        writer->events[lost->host % machine->event_count], writer->states[to]);
    if (more != NULL && more->guard != NULL)
        det_buffer_format(&writer->text, ", IF(%s)", more->guard->name);
    if (produced != NULL)
        det_buffer_format(&writer->text, ", WITHIN(SECONDS(1), %s)", produced);
    det_buffer_append_text(&writer->text, ")\n");
    writer->row_count++;
}

static void write_all(struct lost *lost)
{
    const struct det_machine *machine = lost->writer->machine;

    for (size_t i = 0; i < machine->state_count; i++) {
        if (!lost->is_entered[i])
            write_row(lost, i, NULL);
    }
    for (size_t i = 0; i < machine->event_count; i++) {
        if (!lost->is_produced[i])
            write_row(
                lost, first_taken(machine, i) / machine->event_count, lost->writer->events[i]);
    }
}

bool det_write_overridden(struct det_writer *writer, size_t *ret)
{
    const struct det_machine *machine = writer->machine;
    struct lost lost = {
        .writer = writer,
        .is_entered = det_write_alloc(writer, machine->state_count, sizeof *lost.is_entered),
        .is_produced = det_write_alloc(writer, machine->event_count, sizeof *lost.is_produced),
        .host = first_taken(machine, SIZE_MAX),
    };

    if (writer->status < 0)
        return false;
    mark_rows(&lost);
    write_all(&lost);
    *ret = lost.host;
    return lost.count > 0;
}
