/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_groups.c - the groups of a machine as a tree, as far as they nest.
 *
 * Groups are sets of states and may overlap; a drawing can only show nested boxes. Larger groups
 * are placed first. A group nests if all its members are in the same innermost box, which becomes
 * its parent: no smaller box has been placed before. Otherwise it is left out and noted. */
#include "base/assert.h"
#include "machine/draw.h"

/* Sorts by size, the largest first; equal ones stay in declaration order. */
static void sort_by_size(const struct det_machine *machine, uint16_t *order, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++) {
        uint16_t at = i;

        for (; at > 0; at--) {
            if (machine->groups[order[at - 1]].member_count >= machine->groups[i].member_count)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static bool stands_in_one_box(
    const struct det_draw_groups *groups, const struct det_group_def *group)
{
    for (uint16_t i = 1; i < group->member_count; i++) {
        if (groups->inner[group->members[i]] != groups->inner[group->members[0]])
            return false;
    }
    return group->member_count > 0;
}

static void place_state(
    struct det_draw_groups *groups, const struct det_machine *machine, uint16_t index)
{
    const struct det_group_def *group = &machine->groups[index];

    groups->is_drawn[index] = stands_in_one_box(groups, group);
    if (!groups->is_drawn[index])
        return;
    groups->parent[index] = groups->inner[group->members[0]];
    det_assert(groups->parent[index] != index);
    for (uint16_t i = 0; i < group->member_count; i++) {
        det_assert(group->members[i] < machine->state_count);
        groups->inner[group->members[i]] = index;
    }
}

void det_draw_groups_init(struct det_draw_groups *groups, const struct det_machine *machine)
{
    uint16_t order[DET_DRAW_GROUPS_MAX] = { 0 };

    groups->count = machine->group_count <= DET_DRAW_GROUPS_MAX ? machine->group_count : 0;
    for (unsigned state = 0; state < machine->state_count; state++)
        groups->inner[state] = DET_DRAW_NO_GROUP;
    sort_by_size(machine, order, groups->count);
    for (uint16_t i = 0; i < groups->count; i++)
        place_state(groups, machine, order[i]);
}

/* Returns the next group inside `parent` after `group`. DET_DRAW_NO_GROUP as `group` requests the
 * first one; as a result it means that there is none. */
static uint16_t next_child(const struct det_draw_groups *groups, uint16_t parent, uint16_t group)
{
    uint16_t child = group == DET_DRAW_NO_GROUP ? 0 : (uint16_t)(group + 1);

    for (; child < groups->count; child++) {
        if (groups->is_drawn[child] && groups->parent[child] == parent)
            return child;
    }
    return DET_DRAW_NO_GROUP;
}

static void walk_states(
    struct det_picture *picture, const struct det_draw_walk *walk, uint16_t group, size_t depth)
{
    for (unsigned state = 0; state < picture->machine->state_count; state++) {
        if (picture->groups.inner[state] == group)
            walk->state(picture, state, depth);
    }
}

/* Depth first, by the parents instead of a stack. */
void det_draw_groups_walk(struct det_picture *picture, const struct det_draw_walk *walk)
{
    const struct det_draw_groups *groups = &picture->groups;
    uint16_t inside = DET_DRAW_NO_GROUP, last = DET_DRAW_NO_GROUP, child;
    size_t depth = 1;

    for (;;) {
        child = next_child(groups, inside, last);
        if (child != DET_DRAW_NO_GROUP) {
            walk->open(picture, child, depth++);
            walk_states(picture, walk, child, depth);
            inside = child;
            last = DET_DRAW_NO_GROUP;
            continue;
        }
        if (inside == DET_DRAW_NO_GROUP)
            break;
        walk->close(picture, --depth);
        last = inside;
        inside = groups->parent[inside];
    }
    det_assert(depth == 1);
    walk_states(picture, walk, DET_DRAW_NO_GROUP, depth);
}

void det_draw_groups_note(struct det_picture *picture, const char *comment_mark)
{
    const struct det_machine *machine = picture->machine;
    bool are_too_many = machine->group_count > DET_DRAW_GROUPS_MAX;

    if (are_too_many)
        det_pen_format(picture->pen, "    %s too many groups to draw\n", comment_mark);
    for (unsigned i = 0; i < picture->groups.count; i++) {
        if (picture->groups.is_drawn[i] || machine->groups[i].member_count == 0)
            continue;
        det_pen_format(picture->pen, "    %s group ", comment_mark);
        det_pen_text(picture->pen, machine->groups[i].name);
        det_pen_raw(picture->pen, " overlaps another one and is not drawn\n");
    }
}
