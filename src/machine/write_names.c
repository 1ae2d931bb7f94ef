/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_names.c - collects by a walk what a machine does not list: the names of its functions, its
 * records, and names in C for its states and events. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/reserved_names.h"
#include "machine/write.h"

/* An entry of a map of names. */
struct taken {
    const char *name;
};

/* In capitals. */
static char *capitals_of(struct det_writer *writer, const char *wire)
{
    size_t length = strlen(wire);
    char *name = det_write_alloc(writer, length + 1, 1);

    for (size_t i = 0; i < length && name != NULL; i++)
        name[i] = (char)(wire[i] >= 'a' && wire[i] <= 'z' ? wire[i] - 'a' + 'A' : wire[i]);
    return name;
}

const char *det_write_prefix(struct det_writer *writer)
{
    const char *name = capitals_of(writer, writer->machine->name);
    char *longer;

    if (name == NULL || det_name_use(name) == NULL)
        return name != NULL ? name : "";
    longer = det_write_alloc(writer, DET_NAME_MAX + 1, 1);
    if (longer == NULL)
        return "";
    snprintf(longer, DET_NAME_MAX + 1, "MY_%.*s", DET_NAME_MAX - 3, name);
    return longer;
}

/* A name on disk may be free while its capitals are reserved: null, _late, det_late. */
static bool is_free(const struct det_map *map, const char *name)
{
    return det_name_use(name) == NULL && det_map_get(map, name) == NULL;
}

/* STATE_7, with underscores appended until it is unique. */
static const char *numbered_name(
    struct det_writer *writer, const struct det_map *map, const char *noun)
{
    char *name = det_write_alloc(writer, DET_NAME_MAX + 1, 1);
    size_t length;

    if (name == NULL)
        return NULL;
    length = (size_t)snprintf(name, DET_NAME_MAX + 1, "%s_%zu", noun, map->count);
    while (!is_free(map, name) && length < DET_NAME_MAX)
        name[length++] = '_';
    return name;
}

const char *det_write_c_name(
    struct det_writer *writer, struct det_map *map, const char *wire, const char *noun)
{
    const char *name = capitals_of(writer, wire);
    struct taken *taken = det_write_alloc(writer, 1, sizeof *taken);

    if (name != NULL && !is_free(map, name))
        name = is_free(map, wire) ? wire : numbered_name(writer, map, noun);
    if (name == NULL || taken == NULL)
        return "";
    taken->name = name;
    if (det_map_put(map, taken) == DET_ERR_NO_MEMORY)
        det_write_fail(writer, DET_ERR_NO_MEMORY, "out of memory");
    return name;
}

struct det_write_thing *det_write_thing(
    struct det_writer *writer, enum det_write_kind kind, const char *name)
{
    struct det_write_list *list = &writer->lists[kind];
    struct det_write_thing *thing = det_map_get(&list->map, name);

    if (thing != NULL)
        return thing;
    thing = det_write_alloc(writer, 1, sizeof *thing);
    if (thing == NULL)
        return NULL;
    thing->name = name;
    if (det_map_put(&list->map, thing) < 0) {
        det_write_fail(writer, DET_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    det_assert(*list->end == NULL);
    *list->end = thing;
    list->end = &thing->next;
    return thing;
}

static void add_hook(struct det_writer *writer, const struct det_hook_def *hook)
{
    if (hook != NULL)
        (void)det_write_thing(writer, DET_WRITE_HOOK, hook->name);
}

static void add_fill(struct det_writer *writer, const struct det_timeout *timeout)
{
    if (timeout != NULL && timeout->after > 0 && timeout->fill != NULL)
        (void)det_write_thing(writer, DET_WRITE_FILL, timeout->fill->name);
}

static void add_transition(struct det_writer *writer, const struct det_transition *transition)
{
    const struct det_transition_more *more = transition->more;

    if (more == NULL)
        return;
    if (more->guard != NULL)
        (void)det_write_thing(writer, DET_WRITE_GUARD, more->guard->name);
    add_hook(writer, more->hook);
    if (more->update != NULL)
        (void)det_write_thing(writer, DET_WRITE_UPDATE, more->update->name);
    add_fill(writer, more->within);
}

/* In the order of the states, not of the rows: two equal machines may have rows in different
 * orders. */
static void add_functions(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;
    size_t pairs = (size_t)machine->state_count * machine->event_count;

    for (size_t i = 0; i < machine->timer_count; i++)
        add_fill(writer, &machine->timers[i].timeout);
    for (size_t i = 0; i < machine->state_count; i++) {
        add_hook(writer, machine->states[i].entry);
        add_hook(writer, machine->states[i].exit);
        add_fill(writer, &machine->states[i].timeout);
    }
    for (size_t i = 0; i < pairs; i++) {
        add_transition(writer, &machine->table[i]);
        for (const struct det_choice *choice = det_write_choice(writer, i, NULL); choice != NULL;
             choice = det_write_choice(writer, i, choice))
            add_transition(writer, &choice->transition);
    }
}

static void name_all(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    for (size_t i = 0; i < machine->state_count; i++)
        writer->states[i] =
            det_write_c_name(writer, &writer->c_names, machine->states[i].name, "STATE");
    for (size_t i = 0; i < machine->event_count; i++)
        writer->events[i] =
            det_write_c_name(writer, &writer->c_names, machine->events[i].name, "EVENT");
    for (size_t i = 0; i < machine->effect_count; i++)
        writer->effects[i] = machine->effects[i].name;
    for (size_t i = 0; i < machine->timer_count; i++)
        writer->timers[i] = machine->timers[i].name;
}

/* Links the alternatives of each pair, so that they are found without a search of all. */
static void index_choices(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    for (size_t i = machine->choice_count; i > 0; i--) {
        const struct det_choice *choice = &machine->choices[i - 1];
        size_t pair = (size_t)choice->state * machine->event_count + choice->event;

        det_assert(choice->state < machine->state_count && choice->event < machine->event_count);
        writer->next_choice[i - 1] = writer->first_choice[pair];
        writer->first_choice[pair] = (uint32_t)i;
    }
}

const struct det_choice *det_write_choice(
    const struct det_writer *writer, size_t pair, const struct det_choice *after)
{
    const struct det_choice *choices = writer->machine->choices;
    uint32_t index =
        after != NULL ? writer->next_choice[after - choices] : writer->first_choice[pair];

    return index != 0 ? &choices[index - 1] : NULL;
}

void det_write_collect(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;
    size_t pairs = (size_t)machine->state_count * machine->event_count;

    writer->states = det_write_alloc(writer, machine->state_count, sizeof *writer->states);
    writer->events = det_write_alloc(writer, machine->event_count, sizeof *writer->events);
    writer->effects = det_write_alloc(writer, machine->effect_count, sizeof *writer->effects);
    writer->timers = det_write_alloc(writer, machine->timer_count, sizeof *writer->timers);
    writer->first_choice = det_write_alloc(writer, pairs, sizeof *writer->first_choice);
    writer->next_choice =
        det_write_alloc(writer, machine->choice_count, sizeof *writer->next_choice);
    writer->is_written = det_write_alloc(writer, pairs, sizeof *writer->is_written);
    if (writer->status < 0)
        return;
    index_choices(writer);
    name_all(writer);
    add_functions(writer);
    det_write_add_record(writer, det_record_of(machine->data));
    for (size_t i = 0; i < machine->event_count; i++)
        det_write_add_record(writer, det_record_of(machine->events[i].payload));
}
