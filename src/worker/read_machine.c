/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* read_machine.c - the lifecycle of a worker as a machine, so that draw.h can draw it: no event
 * ever happens in it. */
#include <string.h>

#include "worker/read.h"

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

static bool allocate(struct drawing *drawing, size_t way_count)
{
    struct det_spec *text = drawing->spec->text;
    size_t count = drawing->spec->facts.state_count;

    drawing->event_capacity = way_count + 1;
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

/* Cells are laid out for all events there might be; a machine has them side by side. */
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
    const struct det_worker_spec_facts *facts = &drawing->spec->facts;
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
    const struct det_worker_spec_facts *facts = &drawing->spec->facts;

    for (uint16_t i = 0; i < facts->state_count; i++) {
        drawing->states[i] = (struct det_state_def){
            .name = facts->states[i].wire,
            .flags = i == 0 ? DET_STATE_INITIAL : 0,
        };
        for (size_t event = 0; event < drawing->event_capacity; event++)
            cell(drawing, i, (uint16_t)event)->to = i;
    }
}

/* The event of this name that the state does not have yet, or a new one. */
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

static void add_way(struct drawing *drawing, const char *name, uint16_t from, uint16_t to)
{
    uint16_t event = event_for(drawing, name, from);

    *cell(drawing, from, event) = (struct det_transition){ .outcome = DET_OUTCOME_GOTO, .to = to };
}

static void add_stops(struct drawing *drawing)
{
    const struct det_worker_spec_facts *facts = &drawing->spec->facts;

    drawing->events[0].name = "stop";
    drawing->machine->event_count = 1;
    for (uint16_t i = 0; i < facts->state_count; i++) {
        if (facts->states[i].on_stop != DET_WORKER_NO_STOP)
            add_way(drawing, "stop", i, facts->states[i].on_stop);
    }
}

/* A way that is known already is drawn once. */
static bool is_known(const struct drawing *drawing, const struct det_worker_way *way)
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
    struct det_worker_spec *spec, const struct det_worker_way *ways, size_t way_count,
    const struct det_machine **ret)
{
    struct drawing drawing = { .spec = spec };
    uint16_t count = spec->facts.state_count;

    if (!det_worker_spec_is_valid(spec) || way_count >= UINT16_MAX)
        return DET_ERR_INVALID;
    for (size_t i = 0; i < way_count; i++) {
        if (ways[i].from >= count || ways[i].to >= count)
            return DET_ERR_INVALID;
    }
    if (!allocate(&drawing, way_count))
        return DET_ERR_NO_MEMORY;
    add_states(&drawing);
    add_groups(&drawing);
    add_stops(&drawing);
    for (size_t i = 0; i < way_count; i++) {
        if (!is_known(&drawing, &ways[i]))
            add_way(&drawing, ways[i].reason, ways[i].from, ways[i].to);
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
