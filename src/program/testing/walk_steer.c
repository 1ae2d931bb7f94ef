/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_steer.c - leads a walk to transitions that it has not taken yet.
 *
 * Aimed walks and walks by chance take turns:
 *
 *     by chance ---- at least as long as the aimed one was ----> aimed at one way that was
 *         ^                                                      not taken: the least tried,
 *         +---- it was taken, cannot come, or took too long ---- of those the nearest
 *
 * An aimed walk makes no step by chance, so what depth costs grows with it, not by its powers.
 * `distance` has, by state, what it costs to get to what is aimed at; FAR: it cannot be reached. A
 * way costs one, and one more for each time that it was wanted in vain since it was taken, as
 * guards and effects are not ours to command. A way that TRIES walks have aimed at is aimed at no
 * more.
 *
 * All of it belongs to one walk, so that a seed gives the same run whatever was walked before. */
#include <string.h>

#include "base/memory.h"
#include "testing/transition_index.h"
#include "testing/walk_internal.h"

#define FAR   UINT32_MAX
#define TRIES 100
/* A machine with more ways is walked by chance alone. */
#define WAYS_MAX 65536
/* The least steps by chance between two aimed walks. */
#define PAUSE 8

int walk_steer_open(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct walk_steer *steer = &walk->steer;

    steer->count = cli_ways_count(walk->machine);
    if (steer->count > WAYS_MAX) {
        steer->count = 0;
        return 0;
    }
    steer->ways = DET_NEW_ARRAY(allocator, steer->count, struct walk_way);
    steer->distance = DET_NEW_ARRAY(allocator, walk->machine->state_count, uint32_t);
    steer->order = cli_ways_in_order(walk->machine, allocator);
    return steer->ways && steer->distance && steer->order ? 0 : DET_ERR_NO_MEMORY;
}

void walk_steer_close(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct walk_steer *steer = &walk->steer;

    DET_DELETE_ARRAY(allocator, steer->ways, steer->count);
    DET_DELETE_ARRAY(allocator, steer->distance, walk->machine->state_count);
    if (steer->order)
        cli_ways_free(walk->machine, allocator, steer->order);
    *steer = (struct walk_steer){ 0 };
}

/* A large machine is not measured too often. */
static void end_aimed_walk(struct walk *walk)
{
    struct walk_steer *steer = &walk->steer;
    uint64_t pause = PAUSE + steer->count / 64;

    if (!steer->is_aimed)
        return;
    steer->is_aimed = false;
    steer->next = walk->result->steps + (steer->spent > pause ? steer->spent : pause);
}

void walk_steer_note(struct walk *walk, const struct det_note *note, size_t way)
{
    struct walk_steer *steer = &walk->steer;

    if (way >= steer->count || note->event == UINT16_MAX || note->outcome > DET_OUTCOME_STOP)
        return;
    if (way == steer->aim)
        end_aimed_walk(walk);
    steer->ways[way] = (struct walk_way){ .is_taken = true };
}

static bool is_wanted(const struct walk_steer *steer, size_t number)
{
    const struct walk_way *way = &steer->ways[number];

    if (steer->aim < steer->count)
        return number == steer->aim;
    return !way->is_taken && way->vain < TRIES;
}

/* What it costs to get to what is aimed at, by this way. */
static uint32_t distance_by(const struct walk *walk, size_t number)
{
    const struct det_transition *transition = cli_way_at(walk->machine, number).transition;
    const struct walk_steer *steer = &walk->steer;

    if (transition->outcome == DET_OUTCOME_UNHANDLED)
        return FAR;
    if (is_wanted(steer, number))
        return steer->aim < steer->count ? 0
                                         : steer->ways[number].vain * walk->machine->state_count;
    if (transition->outcome != DET_OUTCOME_GOTO || steer->distance[transition->to] == FAR)
        return FAR;
    return steer->distance[transition->to] + 1 + steer->ways[number].vain;
}

static bool improve_path(struct walk *walk)
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

static void measure_distances(struct walk *walk, size_t aim)
{
    walk->steer.aim = aim;
    for (size_t i = 0; i < walk->machine->state_count; i++)
        walk->steer.distance[i] = FAR;
    while (improve_path(walk))
        ;
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

static void count_vain(struct walk *walk, size_t number)
{
    struct walk_way *way = &walk->steer.ways[number];

    if (way->vain < TRIES)
        way->vain++;
}

/* Whether a timer or an effect is pending: else an event of one cannot come. */
static bool may_wait(struct walk *walk)
{
    struct walk_view view;

    return walk_look(walk, &view, walk->after) == 0 &&
           (view.timers != 0 || view.instance.effects_pending > 0);
}

/* The way of the state that leads on, or `count`: none does. Without `waits` it is none of an
 * effect or a timer; if that would have been nearer, it was wanted in vain. */
static size_t choose_way(struct walk *walk, unsigned state, bool waits)
{
    const struct det_machine *machine = walk->machine;
    const struct walk_steer *steer = &walk->steer;
    uint32_t nearest = FAR, nearest_idle = FAR;
    size_t best = steer->count, idle = steer->count;

    for (size_t i = first_of(walk, state); i < steer->count; i++) {
        size_t number = steer->order[i];
        struct cli_way way = cli_way_at(machine, number);
        uint32_t distance = distance_by(walk, number);

        if (way.state != state)
            break;
        if (machine->events[way.event].is_internal && !waits) {
            idle = distance < nearest_idle ? number : idle;
            nearest_idle = distance < nearest_idle ? distance : nearest_idle;
        } else if (distance < nearest) {
            nearest = distance;
            best = number;
        }
    }
    if (nearest_idle < nearest && idle != steer->aim)
        count_vain(walk, idle);
    return best;
}

/* The end of the shortest path: each of its ways leads to a state that is less far. */
static size_t find_aim(struct walk *walk, unsigned state)
{
    size_t way = choose_way(walk, state, true);

    while (!is_wanted(&walk->steer, way))
        way = choose_way(walk, cli_way_at(walk->machine, way).transition->to, true);
    return way;
}

static bool begin_aimed_walk(struct walk *walk)
{
    struct walk_steer *steer = &walk->steer;
    unsigned from = walk->model.state;

    if (steer->is_done || walk->result->steps < steer->next)
        return false;
    measure_distances(walk, steer->count);
    if (steer->distance[from] == FAR)
        from = walk->machine->initial;
    steer->is_done = steer->distance[from] == FAR;
    if (steer->is_done)
        return false;
    measure_distances(walk, find_aim(walk, from));
    count_vain(walk, steer->aim);
    steer->is_aimed = true;
    steer->spent = 0;
    return true;
}

/* It is here and waits for what is not pending, or no path is left to it. */
static bool cannot_come(const struct walk *walk, bool waits)
{
    const struct walk_steer *steer = &walk->steer;
    struct cli_way aim = cli_way_at(walk->machine, steer->aim);

    if (aim.state == walk->model.state)
        return walk->machine->events[aim.event].is_internal && !waits;
    return steer->distance[walk->model.state] == FAR &&
           steer->distance[walk->machine->initial] == FAR;
}

enum walk_aim walk_steer_aim(struct walk *walk, unsigned *ret_event)
{
    const struct det_machine *machine = walk->machine;
    struct walk_steer *steer = &walk->steer;
    uint64_t patience = 4 * (uint64_t)machine->state_count + 64;
    bool waits;
    size_t way;

    if (steer->count == 0 || (!steer->is_aimed && !begin_aimed_walk(walk)))
        return WALK_AIM_NONE;
    waits = may_wait(walk);
    way = choose_way(walk, walk->model.state, waits);
    if (++steer->spent > patience || cannot_come(walk, waits)) {
        end_aimed_walk(walk);
        return WALK_AIM_NONE;
    }
    if (way == steer->count)
        return WALK_AIM_RESTART;
    if (way != steer->aim)
        count_vain(walk, way);
    *ret_event = cli_way_at(machine, way).event;
    return machine->events[*ret_event].is_internal ? WALK_AIM_WAIT : WALK_AIM_SEND;
}
