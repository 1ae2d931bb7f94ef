/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_read_machine.c - the states of a worker as a machine, for draw.h; no event is ever sent to
 * it. */
#include <string.h>

#include "worker/spec_read.h"

#define PHASE_COUNT (DET_PHASE_STOPPING + 1)

struct drawing {
    struct det_worker_spec *spec;
    struct det_state_def *states;
    struct det_event_def *events;
    struct det_transition *cells;
    struct det_group_def *groups;
    uint16_t *members;
    size_t event_capacity;
    struct det_machine *machine;
};

static bool allocate(struct drawing *drawing, size_t transition_count)
{
    struct det_spec *text = drawing->spec->text;
    size_t count = drawing->spec->facts.state_count;

    drawing->event_capacity = transition_count + 1;
    drawing->machine = det_parse_alloc(text, sizeof *drawing->machine);
    drawing->states = det_parse_alloc(text, count * sizeof *drawing->states);
    drawing->events = det_parse_alloc(text, drawing->event_capacity * sizeof *drawing->events);
    drawing->cells =
        det_parse_alloc(text, count * drawing->event_capacity * sizeof *drawing->cells);
    drawing->groups = det_parse_alloc(text, PHASE_COUNT * sizeof *drawing->groups);
    drawing->members = det_parse_alloc(text, count * sizeof *drawing->members);
    return text->error == 0;
}

static struct det_transition *cell(const struct drawing *drawing, uint16_t state, uint16_t event)
{
    return &drawing->cells[(size_t)state * drawing->event_capacity + event];
}

/* The table has room for the maximum number of events; this makes its rows contiguous. */
static void pack(struct drawing *drawing)
{
    size_t width = drawing->machine->event_count;

    for (uint16_t i = 0; i < drawing->spec->facts.state_count; i++)
        memmove(&drawing->cells[i * width], cell(drawing, i, 0), width * sizeof *drawing->cells);
}

static void add_groups(struct drawing *drawing)
{
    static const char *const names[] = {
#define DET_PHASE(name, text) #name,
        DET_PHASES(DET_PHASE)
#undef DET_PHASE
    };
    const struct det_worker_spec_summary *facts = &drawing->spec->facts;
    uint16_t used = 0, count = 0;

    for (unsigned phase = 0; phase < PHASE_COUNT; phase++) {
        struct det_group_def group = { .name = names[phase], .members = &drawing->members[used] };

        for (uint16_t i = 0; i < facts->state_count; i++) {
            if ((unsigned)facts->states[i].phase == phase) {
                drawing->members[used++] = i;
                group.member_count++;
            }
        }
        if (group.member_count > 0)
            drawing->groups[count++] = group;
    }
    drawing->machine->groups = drawing->groups;
    drawing->machine->group_count = count;
}

static void add_states(struct drawing *drawing)
{
    const struct det_worker_spec_summary *facts = &drawing->spec->facts;

    for (uint16_t i = 0; i < facts->state_count; i++) {
        drawing->states[i] = (struct det_state_def){
            .name = facts->states[i].wire,
            .flags = i == 0 ? DET_STATE_INITIAL : 0,
        };
        for (size_t event = 0; event < drawing->event_capacity; event++)
            cell(drawing, i, (uint16_t)event)->to = i;
    }
}

/* An event of this name that is unused in the state, or a new one. */
static uint16_t event_for(struct drawing *drawing, const char *name, uint16_t state)
{
    struct det_machine *machine = drawing->machine;

    for (uint16_t i = 0; i < machine->event_count; i++) {
        if (strcmp(drawing->events[i].name, name) == 0 &&
            cell(drawing, state, i)->outcome == DET_OUTCOME_UNHANDLED)
            return i;
    }
    drawing->events[machine->event_count].name = name;
    return machine->event_count++;
}

static void add_transition(struct drawing *drawing, const char *name, uint16_t from, uint16_t to)
{
    uint16_t event = event_for(drawing, name, from);

    *cell(drawing, from, event) = (struct det_transition){ .outcome = DET_OUTCOME_GOTO, .to = to };
}

static void add_stops(struct drawing *drawing)
{
    const struct det_worker_spec_summary *facts = &drawing->spec->facts;

    drawing->events[0].name = "stop";
    drawing->machine->event_count = 1;
    for (uint16_t i = 0; i < facts->state_count; i++) {
        if (facts->states[i].on_stop != DET_WORKER_NO_STOP)
            add_transition(drawing, "stop", i, facts->states[i].on_stop);
    }
}

/* A known transition is drawn once. */
static bool is_known(const struct drawing *drawing, const struct det_worker_transition *way)
{
    for (uint16_t i = 0; i < drawing->machine->event_count; i++) {
        const struct det_transition *at = cell(drawing, way->from, i);

        if (at->outcome == DET_OUTCOME_GOTO && at->to == way->to &&
            strcmp(drawing->events[i].name, way->reason) == 0)
            return true;
    }
    return false;
}

int det_worker_spec_machine(
    struct det_worker_spec *spec, const struct det_worker_transition *transitions,
    size_t transition_count, const struct det_machine **ret)
{
    struct drawing drawing = { .spec = spec };
    uint16_t count = spec->facts.state_count;

    if (!det_worker_spec_is_valid(spec) || transition_count >= UINT16_MAX)
        return DET_ERR_INVALID;
    for (size_t i = 0; i < transition_count; i++) {
        if (transitions[i].from >= count || transitions[i].to >= count)
            return DET_ERR_INVALID;
    }
    if (!allocate(&drawing, transition_count))
        return DET_ERR_NO_MEMORY;
    add_states(&drawing);
    add_groups(&drawing);
    add_stops(&drawing);
    for (size_t i = 0; i < transition_count; i++) {
        if (!is_known(&drawing, &transitions[i]))
            add_transition(&drawing, transitions[i].reason, transitions[i].from, transitions[i].to);
    }
    pack(&drawing);
    drawing.machine->name = spec->facts.name;
    drawing.machine->version = 1;
    drawing.machine->state_count = count;
    drawing.machine->states = drawing.states;
    drawing.machine->events = drawing.events;
    drawing.machine->table = drawing.cells;
    *ret = drawing.machine;
    return 0;
}
