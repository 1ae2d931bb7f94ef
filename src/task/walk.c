/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk.c - a walk along dependencies: from a task to its dependencies, from a group to its members.
 * Depth first, each node once, without a stack: the nodes store the way back. */
#include "task/task_tree.h"

static struct group *group_of_node(struct node *node)
{
    return DET_CONTAINER(node, struct group, node);
}

static struct needs *needs_of_node(struct node *node)
{
    return DET_CONTAINER(node, struct needs, node);
}

const char *det_node_name(struct node *node)
{
    return node->is_group ? group_of_node(node)->name : needs_of_node(node)->task->name;
}

static void enter(struct node *node, struct node *from, uint64_t walk)
{
    node->from = from;
    node->walk = walk;
    node->next_need = 0;
    if (node->is_group)
        node->next = group_of_node(node)->members.next;
}

/* A task without dependencies has no node: it is a leaf. */
static struct node *node_of_task(const struct det_task *task)
{
    return task->extras && task->extras->needs ? &task->extras->needs->node : NULL;
}

/* The successor of a node: another node, a leaf, or none. */
struct step {
    struct node *node;
    struct det_task *leaf;
};

static struct step step_to_task(struct det_task *task)
{
    struct node *node = node_of_task(task);

    return (struct step){ .node = node, .leaf = node ? NULL : task };
}

static struct step step_to_member(struct member *member)
{
    if (member->is_group)
        return (struct step){ .node = &group_of_member(member)->node };
    return step_to_task(task_of_member(member));
}

static struct step step_to_anchor(const struct anchor *anchor)
{
    if (anchor->task)
        return step_to_task(anchor->task);
    return (struct step){ .node = anchor->group ? &anchor->group->node : NULL };
}

/* False: the node has no further successor. */
static bool next_step(struct node *node, struct step *ret)
{
    const struct needs *needs;

    if (node->is_group) {
        if (node->next == &group_of_node(node)->members)
            return false;
        *ret = step_to_member(member_at(node->next));
        node->next = node->next->next;
        return true;
    }
    needs = needs_of_node(node);
    if (node->next_need == needs->count)
        return false;
    *ret = step_to_anchor(needs->list[node->next_need++].anchor);
    return true;
}

static void leave(const struct walk *walk, struct node *node)
{
    if (walk->leave && !node->is_group)
        walk->leave(needs_of_node(node)->task);
}

bool det_walk(const struct walk *walk, struct node *start)
{
    uint64_t number = ++walk->tasks->tree.walks;
    struct node *node = start;
    struct step step;

    enter(start, NULL, number);
    while (node) {
        if (!next_step(node, &step)) {
            leave(walk, node);
            node = node->from;
        } else if (step.node && step.node == walk->goal) {
            step.node->from = node;
            return true;
        } else if (step.node && step.node->walk != number) {
            enter(step.node, node, number);
            node = step.node;
        } else if (step.leaf && walk->leave) {
            walk->leave(step.leaf);
        }
    }
    return false;
}
