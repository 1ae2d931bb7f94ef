/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_steer.c - leads a walk to transitions that it has not taken.
 *
 * Aimed walks and walks by chance take turns:
 *
 *     by chance ---- at least as long as the aimed one was ----> aimed at one transition that was
 *         ^                                                      not taken: the least tried,
 *         +---- it was taken, cannot come, or took too long ---- of those the nearest
 *
 * An aimed walk makes no random step, so its cost grows linearly with depth, not exponentially.
 * `distance` has, by state, the cost of reaching the aim; FAR: unreachable. A transition costs one,
 * and one more for each time that it was wanted in vain since it was taken, as guards and effects
 * answer at random. A transition that TRIES walks have aimed at is no longer an aim.
 *
 * All of it belongs to one walk, so that a seed gives the same run whatever ran before. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "testing/transition_index.h"
#include "testing/walk_internal.h"

#define FAR   UINT32_MAX
#define TRIES 100
/* A machine with more transitions is walked by chance alone. */
#define TRANSITIONS_MAX 65536
/* The least steps by chance between two aimed walks. */
#define PAUSE 8

int walk_steer_open(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct walk_steer *steer = &walk->steer;

    steer->count = cli_transitions_count(walk->machine);
    if (steer->count > TRANSITIONS_MAX) {
        steer->count = 0;
        return 0;
    }
    steer->transitions = DET_NEW_ARRAY(allocator, steer->count, struct walk_transition);
    steer->distance = DET_NEW_ARRAY(allocator, walk->machine->state_count, uint32_t);
    steer->order = cli_transitions_in_order(walk->machine, allocator);
    return steer->transitions && steer->distance && steer->order ? 0 : DET_ERR_NO_MEMORY;
}

void walk_steer_close(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct walk_steer *steer = &walk->steer;

    DET_DELETE_ARRAY(allocator, steer->transitions, steer->count);
    DET_DELETE_ARRAY(allocator, steer->distance, walk->machine->state_count);
    if (steer->order)
        cli_transitions_free(walk->machine, allocator, steer->order);
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

void walk_steer_note(struct walk *walk, const struct det_note *note, size_t edge)
{
    struct walk_steer *steer = &walk->steer;

    det_assert(steer->count == 0 || edge < steer->count);
    if (edge >= steer->count || note->event == UINT16_MAX || note->outcome > DET_OUTCOME_STOP)
        return;
    if (edge == steer->aim)
        end_aimed_walk(walk);
    steer->transitions[edge] = (struct walk_transition){ .is_taken = true };
}

static bool is_wanted(const struct walk_steer *steer, size_t number)
{
    const struct walk_transition *edge = &steer->transitions[number];

    if (steer->aim < steer->count)
        return number == steer->aim;
    return !edge->is_taken && edge->vain < TRIES;
}

/* Cost of reaching the aim by this transition. */
static uint32_t distance_by(const struct walk *walk, size_t number)
{
    const struct det_transition *transition = cli_transition_at(walk->machine, number).transition;
    const struct walk_steer *steer = &walk->steer;

    if (transition->outcome == DET_OUTCOME_UNHANDLED)
        return FAR;
    if (is_wanted(steer, number))
        return steer->aim < steer->count
                   ? 0
                   : steer->transitions[number].vain * walk->machine->state_count;
    if (transition->outcome != DET_OUTCOME_GOTO || steer->distance[transition->to] == FAR)
        return FAR;
    return steer->distance[transition->to] + 1 + steer->transitions[number].vain;
}

static bool improve_path(struct walk *walk)
{
    struct walk_steer *steer = &walk->steer;
    bool is_better = false;

    for (size_t i = 0; i < steer->count; i++) {
        unsigned state = cli_transition_at(walk->machine, i).state;
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

/* Binary search of the first transition of the state in `order`, which is sorted by state. */
static size_t first_of(const struct walk *walk, unsigned state)
{
    size_t low = 0, high = walk->steer.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (cli_transition_at(walk->machine, walk->steer.order[middle]).state < state)
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
        struct cli_transition edge = cli_transition_at(walk->machine, steer->order[i]);
        uint32_t distance = distance_by(walk, steer->order[i]);

        if (edge.state != walk->model.state)
            break;
        for (size_t k = 0; k < count && distance < nearest; k++) {
            if (events[k] == edge.event) {
                nearest = distance;
                best = edge.event;
            }
        }
    }
    return best;
}

static void count_vain(struct walk *walk, size_t number)
{
    struct walk_transition *edge = &walk->steer.transitions[number];

    det_assert(number < walk->steer.count);
    if (edge->vain < TRIES)
        edge->vain++;
}

/* Returns true if a timer or an effect is pending; otherwise their events cannot come. */
static bool may_wait(struct walk *walk)
{
    struct walk_view view;

    return walk_observe(walk, &view, walk->after) == 0 &&
           (view.timers != 0 || view.instance.effects_pending > 0);
}

/* Returns the transition of the state that leads to the aim, or `count`: none. Without `waits` it
 * skips transitions of effects and timers; if such a transition would have been nearer, counts it
 * as wanted in vain. */
static size_t choose_transition(struct walk *walk, unsigned state, bool waits)
{
    const struct det_machine *machine = walk->machine;
    const struct walk_steer *steer = &walk->steer;
    uint32_t nearest = FAR, nearest_idle = FAR;
    size_t best = steer->count, idle = steer->count;

    for (size_t i = first_of(walk, state); i < steer->count; i++) {
        size_t number = steer->order[i];
        struct cli_transition edge = cli_transition_at(machine, number);
        uint32_t distance = distance_by(walk, number);

        if (edge.state != state)
            break;
        if (machine->events[edge.event].is_internal && !waits) {
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

/* Returns the end of the shortest path: each of its transitions leads to a nearer state. */
static size_t find_aim(struct walk *walk, unsigned state)
{
    size_t edge = choose_transition(walk, state, true);

    det_assert(edge < walk->steer.count);
    while (!is_wanted(&walk->steer, edge)) {
        edge = choose_transition(walk, cli_transition_at(walk->machine, edge).transition->to, true);
        det_assert(edge < walk->steer.count);
    }
    return edge;
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

/* Returns true if its event is not pending, or no path leads to it. */
static bool cannot_come(const struct walk *walk, bool waits)
{
    const struct walk_steer *steer = &walk->steer;
    struct cli_transition aim = cli_transition_at(walk->machine, steer->aim);

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
    size_t edge;

    if (steer->count == 0 || (!steer->is_aimed && !begin_aimed_walk(walk)))
        return WALK_AIM_NONE;
    waits = may_wait(walk);
    edge = choose_transition(walk, walk->model.state, waits);
    if (++steer->spent > patience || cannot_come(walk, waits)) {
        end_aimed_walk(walk);
        return WALK_AIM_NONE;
    }
    if (edge == steer->count)
        return WALK_AIM_RESTART;
    if (edge != steer->aim)
        count_vain(walk, edge);
    *ret_event = cli_transition_at(machine, edge).event;
    return machine->events[*ret_event].is_internal ? WALK_AIM_WAIT : WALK_AIM_SEND;
}
