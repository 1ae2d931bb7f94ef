/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* name_graph.c - references between parts of detent.yaml: unknown names, cycles, and the orders in
 * which things can be added.
 *
 * Tasks and groups are the nodes of one graph. A task refers to its dependencies, a group to its
 * members, tasks and groups: it is healthy when they are. The walk keeps its own stack.
 *
 *     new --first seen--> open --all its references are closed--> closed, and next in the order
 *                           ^------ a reference to an open one is a cycle */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "config/config_internal.h"

/* Number of names tried for "did you mean". */
#define NEAR_MAX 512

enum mark { NEW, OPEN, CLOSED };

struct thing {
    const char *name; /* the key of the map */
    struct config_task *task;
    struct config_group *group;           /* one of the two */
    struct thing **targets;               /* a task's, by dependency; NULL: not there */
    struct thing *members, *last, *after; /* a group's; the next of the same group */
    struct thing *parent;
    size_t depth;     /* a group's: 1 at the top */
    bool is_disputed; /* a group has the same name, which was reported */
    enum mark mark;
    size_t next_edge;     /* of a task that is open */
    struct thing *member; /* of an open group: the next member to visit */
};

struct graph {
    struct cli_reader *reader;
    struct config *config;
    struct thing *things; /* tasks, then groups, in the order of the file */
    size_t count;
    struct det_map map;
    struct thing **stack;
    size_t depth;
};

static int add_thing(struct graph *graph, struct thing *thing, const struct det_datum *node)
{
    struct thing *other = det_map_get(&graph->map, node->key);

    thing->name = node->key;
    if (!other)
        return det_map_put(&graph->map, thing) < 0 ? reader_no_memory(graph->reader, node) : 0;
    other->is_disputed = true;
    return reader_fail_key(
        graph->reader, node, "'%s' is a task already, on line %u; groups and tasks share names",
        node->key, other->task->node->key_line);
}

static int add_things(struct graph *graph)
{
    struct config *config = graph->config;
    int r = 0;

    for (size_t i = 0; i < config->task_count; i++) {
        graph->things[graph->count].task = &config->tasks[i];
        r = reader_both(r, add_thing(graph, &graph->things[graph->count++], config->tasks[i].node));
    }
    for (size_t i = 0; i < config->group_count; i++) {
        graph->things[graph->count].group = &config->groups[i];
        r = reader_both(
            r, add_thing(graph, &graph->things[graph->count++], config->groups[i].node));
    }
    det_assert(graph->count == config->task_count + config->group_count);
    return r;
}

/* "there is no ... 'x'", with the nearest name. */
static int fail_unknown(
    struct graph *graph, const struct det_datum *node, const char *what, const char *name,
    bool with_tasks)
{
    const char *near[NEAR_MAX];
    size_t count = 0;

    for (size_t i = with_tasks ? 0 : graph->config->task_count; i < graph->count; i++) {
        if (count < NEAR_MAX)
            near[count++] = graph->things[i].name;
    }
    return reader_fail_near(
        graph->reader, node, name, near, count, "there is no %s '%s'", what, name);
}

static int find_slot(struct graph *graph, const struct config_task *task)
{
    const struct config *config = graph->config;
    const char *near[NEAR_MAX];
    size_t count = 0;

    for (size_t i = 0; i < config->slot_count; i++) {
        if (strcmp(config->slots[i].name, task->slot) == 0)
            return 0;
        if (count < NEAR_MAX)
            near[count++] = config->slots[i].name;
    }
    return reader_fail_near(
        graph->reader, det_datum_get(task->node, "slot"), task->slot, near, count,
        "there is no slot '%s'", task->slot);
}

/* Makes the thing a member of the group with this name. */
static int join_group(
    struct graph *graph, struct thing *thing, const char *name, const struct det_datum *node)
{
    struct thing *group = det_map_get(&graph->map, name);

    if (group && group->is_disputed)
        return DET_ERR_MALFORMED;
    if (!group || !group->group)
        return fail_unknown(graph, node, "group", name, false);
    det_assert(!thing->parent && !thing->after);
    thing->parent = group;
    if (group->last)
        group->last->after = thing;
    else
        group->members = thing;
    group->last = thing;
    return 0;
}

static int link_task(struct graph *graph, struct thing *thing)
{
    const struct config_task *task = thing->task;
    int r = 0;

    if (task->spec.group)
        r = join_group(graph, thing, task->spec.group, det_datum_get(task->node, "group"));
    if (task->slot)
        r = reader_both(r, find_slot(graph, task));
    thing->targets = det_arena_array(
        graph->reader->arena, task->spec.depends_on_count + 1, sizeof(struct thing *));
    if (!thing->targets)
        return reader_no_memory(graph->reader, task->node);
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const char *name = task->spec.depends_on[i].name;

        thing->targets[i] = det_map_get(&graph->map, name);
        if (!thing->targets[i])
            r = reader_both(r, fail_unknown(graph, task->edges[i], "task or group", name, true));
    }
    return r;
}

static int link_all(struct graph *graph)
{
    int r = 0;

    for (size_t i = 0; i < graph->count && reader_can_continue(graph->reader, r); i++) {
        struct thing *thing = &graph->things[i];

        if (thing->task)
            r = reader_both(r, link_task(graph, thing));
        else if (thing->group->spec.parent)
            r = reader_both(
                r, join_group(
                       graph, thing, thing->group->spec.parent,
                       det_datum_get(thing->group->node, "parent")));
    }
    return r;
}

/* Returns the node of the reference that an open task follows; NULL: a group, which follows its
 * members. */
static const struct det_datum *way_node(const struct thing *thing)
{
    return thing->task ? thing->task->edges[thing->next_edge - 1] : NULL;
}

/* Reports the cycle from `first` to the top of the stack, at its last task. */
static int fail_circle(struct graph *graph, const struct thing *first)
{
    const struct det_datum *place = NULL;
    char path[DET_ERROR_TEXT_MAX] = "";
    size_t from = graph->depth, used = 0;

    det_assert(first->mark == OPEN);
    while (graph->stack[--from] != first)
        det_assert(from > 0);
    for (size_t i = from; i < graph->depth; i++) {
        const struct det_datum *node = way_node(graph->stack[i]);
        int length =
            node ? snprintf(
                       path + used, sizeof path - used, "%s (line %u) -> ", graph->stack[i]->name,
                       node->line)
                 : snprintf(path + used, sizeof path - used, "%s -> ", graph->stack[i]->name);

        place = node ? node : place;
        used += (size_t)length;
        if (used >= sizeof path)
            break;
    }
    /* Parents that form a cycle were reported before: this one has a task. */
    det_assert(place);
    return reader_fail(
        graph->reader, place, "the dependencies form a cycle: %s%s", path, first->name);
}

/* Returns the next reference of the thing; NULL after the last one. */
static struct thing *next_edge(struct thing *thing)
{
    struct thing *member = thing->member;

    if (thing->group) {
        thing->member = member ? member->after : NULL;
        return member;
    }
    while (thing->next_edge < thing->task->spec.depends_on_count) {
        struct thing *target;

        det_assert(thing->targets);
        target = thing->targets[thing->next_edge++];

        if (target)
            return target;
    }
    return NULL;
}

static void open_thing(struct graph *graph, struct thing *thing)
{
    det_assert(thing->mark == NEW && graph->depth < graph->count);
    thing->mark = OPEN;
    thing->member = thing->members;
    graph->stack[graph->depth++] = thing;
}

static void close_thing(struct graph *graph, struct thing *thing, size_t *ordered)
{
    det_assert(thing->mark == OPEN && graph->depth > 0);
    thing->mark = CLOSED;
    graph->depth--;
    det_assert(!thing->task || *ordered < graph->config->task_count);
    if (thing->task)
        graph->config->order[(*ordered)++] = thing->task;
}

/* Visits everything that can be reached from `start`. */
static int walk(struct graph *graph, struct thing *start, size_t *ordered)
{
    int r = 0;

    open_thing(graph, start);
    while (graph->depth) {
        struct thing *top = graph->stack[graph->depth - 1], *target = next_edge(top);

        if (!target)
            close_thing(graph, top, ordered);
        else if (target->mark == NEW)
            open_thing(graph, target);
        else if (target->mark == OPEN)
            r = fail_circle(graph, target);
    }
    return r;
}

static int walk_tasks(struct graph *graph)
{
    size_t ordered = 0;
    int r = 0;

    for (size_t i = 0; i < graph->config->task_count; i++) {
        if (graph->things[i].mark == NEW)
            r = reader_both(r, walk(graph, &graph->things[i], &ordered));
    }
    det_assert(ordered == graph->config->task_count);
    return r;
}

static int fail_parents(struct graph *graph, const struct thing *thing)
{
    char path[DET_ERROR_TEXT_MAX] = "";
    const struct thing *at = thing;
    size_t used = 0;

    do {
        used += (size_t)snprintf(path + used, sizeof path - used, "%s -> ", at->name);
        at = at->parent;
    } while (at != thing && used < sizeof path);
    return reader_fail(
        graph->reader, det_datum_get(thing->group->node, "parent"),
        "the parents form a cycle: %s%s", path, thing->name);
}

/* Reported once for each branch: groups below this one are too deep as well. */
static int set_depth(struct graph *graph, struct thing *thing)
{
    thing->depth = thing->parent ? thing->parent->depth + 1 : 1;
    if (thing->depth != DET_TASK_GROUP_DEPTH_MAX + 1)
        return 0;
    return reader_fail(
        graph->reader, det_datum_get(thing->group->node, "parent"),
        "groups are at most %d deep, and this one would be in %d others", DET_TASK_GROUP_DEPTH_MAX,
        DET_TASK_GROUP_DEPTH_MAX);
}

/* Climbs from each group to the first ancestor with a position, then assigns positions on the way
 * back. Uses the marks before the walk does. */
static int order_groups(struct graph *graph)
{
    size_t ordered = 0;
    int r = 0;

    for (size_t i = graph->config->task_count; i < graph->count; i++) {
        struct thing *thing = &graph->things[i];

        for (; thing && thing->mark == NEW; thing = thing->parent) {
            thing->mark = OPEN;
            graph->stack[graph->depth++] = thing;
        }
        if (thing && thing->mark == OPEN)
            r = reader_both(r, fail_parents(graph, thing));
        while (graph->depth) {
            thing = graph->stack[--graph->depth];
            thing->mark = CLOSED;
            r = reader_both(r, set_depth(graph, thing));
            graph->config->group_order[ordered++] = thing->group;
        }
    }
    det_assert(ordered == graph->config->group_count);
    for (size_t i = graph->config->task_count; i < graph->count; i++)
        graph->things[i].mark = NEW;
    return r;
}

static int make_graph(struct graph *graph, const struct det_datum *place)
{
    struct det_arena *arena = graph->reader->arena;
    struct config *config = graph->config;
    size_t count = config->task_count + config->group_count + 1;

    graph->things = det_arena_array(arena, count, sizeof *graph->things);
    graph->stack = det_arena_array(arena, count, sizeof(struct thing *));
    config->order = det_arena_array(arena, count, sizeof(struct config_task *));
    config->group_order = det_arena_array(arena, count, sizeof(struct config_group *));
    if (!graph->things || !graph->stack || !config->order || !config->group_order)
        return reader_no_memory(graph->reader, place);
    return 0;
}

/* Unknown names form no cycle, so both are reported; a cycle of parents would also cause one of
 * members. When the list of problems is full, some things are not linked and cannot be walked. */
static int link_and_order(struct graph *graph)
{
    int r = link_all(graph), parents;

    if (!reader_can_continue(graph->reader, r))
        return r;
    parents = order_groups(graph);
    return reader_both(r, parents < 0 ? parents : walk_tasks(graph));
}

int config_link(struct cli_reader *reader, struct config *config)
{
    struct graph graph = { .reader = reader, .config = config };
    int r;

    if (config->task_count == 0)
        return 0;
    det_map_init(&graph.map, reader->arena->allocator, 0, offsetof(struct thing, name));
    r = make_graph(&graph, config->tasks[0].node);
    if (r == 0)
        r = add_things(&graph);
    if (r != DET_ERR_NO_MEMORY)
        r = reader_both(r, link_and_order(&graph));
    det_map_deinit(&graph.map);
    return r;
}
