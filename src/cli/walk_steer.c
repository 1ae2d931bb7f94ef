/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_steer.c - leads a walk to transitions that it has not taken yet.
 *
 * `distance` has, by state, how many transitions lie between it and one that was not taken; FAR:
 * none can be reached. It is computed again some steps after something new was taken. All of it
 * belongs to one walk, so that a seed gives the same run whatever was walked before. A transition
 * that was aimed at TRIES times in vain, as its guards or its effects are not ours to command, is
 * aimed at no more. */
#include <string.h>

#include "base/memory.h"
#include "cli/walk_parts.h"
#include "cli/ways.h"

#define FAR   UINT32_MAX
#define TRIES 100
/* A machine with more ways is walked by chance alone. */
#define WAYS_MAX 65536

int walk_steer_open(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct walk_steer *steer = &walk->steer;

    steer->count = cli_ways_count(walk->machine);
    if (steer->count > WAYS_MAX) {
        steer->count = 0;
        return 0;
    }
    steer->tries = DET_NEW_ARRAY(allocator, steer->count, uint8_t);
    steer->distance = DET_NEW_ARRAY(allocator, walk->machine->state_count, uint32_t);
    steer->order = cli_ways_in_order(walk->machine, allocator);
    steer->is_stale = true;
    return steer->tries && steer->distance && steer->order ? 0 : DET_ERR_NO_MEMORY;
}

void walk_steer_close(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct walk_steer *steer = &walk->steer;

    DET_DELETE_ARRAY(allocator, steer->tries, steer->count);
    DET_DELETE_ARRAY(allocator, steer->distance, walk->machine->state_count);
    if (steer->order)
        cli_ways_free(walk->machine, allocator, steer->order);
    *steer = (struct walk_steer){ 0 };
}

void walk_steer_note(struct walk *walk, const struct det_note *note, size_t way)
{
    struct walk_steer *steer = &walk->steer;

    if (way >= steer->count || note->event == UINT16_MAX || note->outcome > DET_STOP)
        return;
    steer->is_stale |= steer->tries[way] < TRIES;
    steer->tries[way] = TRIES;
}

/* How far what was not taken lies, by this way. */
static uint32_t distance_by(const struct walk *walk, size_t number)
{
    const struct det_transition *transition = cli_way_at(walk->machine, number).transition;
    const struct walk_steer *steer = &walk->steer;

    if (transition->outcome == DET_UNHANDLED)
        return FAR;
    if (steer->tries[number] < TRIES)
        return 0;
    if (transition->outcome != DET_GOTO || steer->distance[transition->to] == FAR)
        return FAR;
    return steer->distance[transition->to] + 1;
}

static bool improve(struct walk *walk)
{
    struct walk_steer *steer = &walk->steer;
    bool is_better = false;

    for (size_t i = 0; i < steer->count; i++) {
        unsigned state = cli_way_at(walk->machine, i).state;
        uint32_t distance = distance_by(walk, i);

        if (distance < steer->distance[state]) {
            steer->distance[state] = distance;
            is_better = true;
        }
    }
    return is_better;
}

/* Again where something has changed, but not at every step of a large machine. */
static void measure(struct walk *walk)
{
    struct walk_steer *steer = &walk->steer;

    if (!steer->is_stale || walk->result->steps < steer->next)
        return;
    for (size_t i = 0; i < walk->machine->state_count; i++)
        steer->distance[i] = FAR;
    while (improve(walk))
        ;
    steer->is_stale = false;
    steer->next = walk->result->steps + steer->count / 64;
}

/* Where the ways of the state begin in `order`: by halves, as it is sorted by state. */
static size_t first_of(const struct walk *walk, unsigned state)
{
    size_t low = 0, high = walk->steer.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (cli_way_at(walk->machine, walk->steer.order[middle]).state < state)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

unsigned walk_steer_product(struct walk *walk, const uint16_t *events, size_t count)
{
    const struct walk_steer *steer = &walk->steer;
    uint32_t nearest = FAR;
    unsigned best = events[0];

    for (size_t i = first_of(walk, walk->model.state); i < steer->count; i++) {
        struct cli_way way = cli_way_at(walk->machine, steer->order[i]);
        uint32_t distance = distance_by(walk, steer->order[i]);

        if (way.state != walk->model.state)
            break;
        for (size_t k = 0; k < count && distance < nearest; k++) {
            if (events[k] == way.event) {
                nearest = distance;
                best = way.event;
            }
        }
    }
    return best;
}

/* The ways of the event were aimed at. */
static void count_try(struct walk *walk, size_t from, unsigned event)
{
    struct walk_steer *steer = &walk->steer;

    for (size_t i = from; i < steer->count; i++) {
        struct cli_way way = cli_way_at(walk->machine, steer->order[i]);
        uint8_t *tries = &steer->tries[steer->order[i]];

        if (way.state != walk->model.state)
            break;
        if (way.event == event && *tries < TRIES)
            steer->is_stale |= ++*tries == TRIES;
    }
}

enum walk_aim walk_steer_aim(struct walk *walk, unsigned *ret_event)
{
    const struct det_machine *machine = walk->machine;
    struct walk_steer *steer = &walk->steer;
    size_t from = first_of(walk, walk->model.state);
    uint32_t nearest = FAR;

    if (steer->count == 0)
        return WALK_AIM_NONE;
    measure(walk);
    for (size_t i = from; i < steer->count; i++) {
        struct cli_way way = cli_way_at(machine, steer->order[i]);
        uint32_t distance = distance_by(walk, steer->order[i]);

        if (way.state != walk->model.state)
            break;
        if (distance < nearest) {
            nearest = distance;
            *ret_event = way.event;
        }
    }
    if (nearest == FAR)
        return steer->distance[machine->initial] == FAR ? WALK_AIM_NONE : WALK_AIM_RESTART;
    count_try(walk, from, *ret_event);
    return machine->events[*ret_event].is_internal ? WALK_AIM_WAIT : WALK_AIM_SEND;
}
