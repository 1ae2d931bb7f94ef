/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* forest_test.h - for suites about whole trees: workers that a test controls by id. Two kinds, node
 * and twin, do the same; their state names deliberately do not match their phases, as only phases
 * count.
 *
 *     node_of("lab/a/b")->act_error = DET_ERR_IO;
 *     forest_begin(&lab, seed, yaml, 3 * DET_SECOND); */
#ifndef DET_WORKER_FOREST_TEST_H
#define DET_WORKER_FOREST_TEST_H

#include "lib/test.h"

#include "worker/behaviour_test.h"

enum { NODE_DOWN, NODE_STARTING, NODE_WELL, NODE_ILL, NODE_ENDING };
enum { NODE_START, NODE_END };
struct node {
    char id[128];
    /* Set by the test. */
    det_time act_takes, act_hangs, end_takes, end_hangs, collect_takes, collect_hangs;
    det_time open_hangs, close_hangs;
    uint64_t noise;
    const struct det_child_spec *children;
    size_t child_count;
    void *offers; /* "thing", for those below */
    int open_error, act_error, collect_error, children_error;
    bool is_stuck;      /* next() of a stopping worker holds for ever */
    bool wants_restart; /* next() of a healthy worker requests a restart */
    bool is_lost;       /* collect does not see the effect of actions */
    bool is_ill;        /* next() of a healthy worker goes to ILL */
    bool rests_ill;     /* next() of an ill worker holds */
    bool refuses;       /* derive */
    /* Counts for the test. */
    bool is_up;
    uint16_t port, acted_port; /* `port` and `host` are what the last collect was to want */
    uint32_t opened, closed, acts, ends, collects, derives, nexts, asked;
    char host[41];
    void *inherited; /* "thing", in open() */
    struct det_world *world;
    det_time ended_at;
    struct det_children_view view; /* the last one */
};
static struct node nodes[64];
static size_t node_count;

static inline struct node *node_of(const char *id)
{
    for (size_t i = 0; i < node_count; i++)
        if (!strcmp(nodes[i].id, id))
            return &nodes[i];
    assert_true(node_count < sizeof nodes / sizeof nodes[0]);
    nodes[node_count] = (struct node){ 0 };
    snprintf(nodes[node_count].id, sizeof nodes[0].id, "%s", id);
    return &nodes[node_count++];
}

static inline struct det_next node_next(const struct det_worker_view *view)
{
    struct node *node = node_of(view->identity->id);
    const struct link_observed *observed = view->observed;

    node->nexts++;
    node->view = *view->children;
    switch (view->state) {
    case NODE_DOWN:
        return (struct det_next){ DET_NEXT_GOTO, NODE_STARTING, "is to run" };
    case NODE_STARTING:
        if (observed->is_up)
            return (struct det_next){ DET_NEXT_GOTO, NODE_WELL, "it is there" };
        return (struct det_next){ DET_NEXT_DO, NODE_START, "it is not there" };
    case NODE_WELL:
        if (node->wants_restart)
            return (struct det_next){ DET_NEXT_RESTART, 0, "all is lost" };
        if (!observed->is_up || node->is_ill)
            return (struct det_next){ DET_NEXT_GOTO, NODE_ILL, "it went" };
        return (struct det_next){ DET_NEXT_HOLD, 0, "well" };
    case NODE_ILL:
        if (observed->is_up && !node->is_ill)
            return (struct det_next){ DET_NEXT_GOTO, NODE_WELL, "it came back" };
        if (node->rests_ill || observed->is_up)
            return (struct det_next){ DET_NEXT_HOLD, 0, "ill" };
        return (struct det_next){ DET_NEXT_DO, NODE_START, "it went" };
    default:
        if (node->is_stuck)
            return (struct det_next){ DET_NEXT_HOLD, 0, "stuck" };
        if (observed->is_up)
            return (struct det_next){ DET_NEXT_DO, NODE_END, "is to stop" };
        return (struct det_next){ DET_NEXT_GOTO, NODE_DOWN, "has ended" };
    }
}

static inline int node_start(
    struct det_worker_context *context, void *deps, const void *desired_data)
{
    struct node *node = node_of(context->identity->id);
    const struct link_desired *desired = desired_data;
    int r;

    (void)deps;
    node->acts++;
    r = lab_take(context, node->act_takes, node->act_hangs);
    if (r < 0)
        return r;
    if (node->act_error)
        return det_worker_fail(context, node->act_error, "cannot start");
    node->acted_port = desired->port;
    node->is_up = true;
    return 0;
}

static inline int node_end(struct det_worker_context *context, void *deps, const void *desired)
{
    struct node *node = node_of(context->identity->id);
    int r;

    (void)deps;
    (void)desired;
    node->ends++;
    r = lab_take(context, node->end_takes, node->end_hangs);
    if (r < 0)
        return r;
    node->is_up = false;
    node->ended_at = context->world->ops->now(context->world, DET_CLOCK_MONOTONIC);
    return 0;
}

static inline int node_collect(
    struct det_worker_context *context, void *deps, const void *desired_data, void *observed_data)
{
    struct node *node = node_of(context->identity->id);
    const struct link_desired *desired = desired_data;
    struct link_observed *observed = observed_data;
    int r;

    (void)deps;
    node->collects++;
    snprintf(node->host, sizeof node->host, "%s", desired->host);
    node->port = desired->port;
    observed->is_up = node->is_up && !node->is_lost;
    observed->noise = node->noise;
    r = lab_take(context, node->collect_takes, node->collect_hangs);
    if (r == 0 && node->collect_error)
        return det_worker_fail(context, node->collect_error, "cannot see");
    return r;
}

/* The deps are the address of the node, so that close() has it. */
static inline int node_open(struct det_worker_context *context, void *deps)
{
    struct node *node = node_of(context->identity->id);

    (void)!lab_take(context, 0, node->open_hangs);
    if (node->open_error)
        return det_worker_fail(context, node->open_error, "cannot open");
    node->opened++;
    node->world = context->world;
    node->inherited = det_worker_inherited(context, "thing");
    if (node->offers)
        det_worker_provide(context, "thing", node->offers);
    *(struct node **)deps = node;
    return 0;
}

static inline void node_close(void *deps)
{
    struct node *node = *(struct node **)deps;
    struct det_worker_context context = { .world = node->world };

    (void)!lab_take(&context, 0, node->close_hangs);
    node->closed++;
}

static inline int node_derive(struct det_derive *derive, const void *config, void *desired)
{
    struct node *node = node_of(derive->identity->id);
    const struct link_desired *wanted = config;

    node->derives++;
    if (node->refuses || wanted->port == 666)
        return derive->refuse(derive, "port %u is not for us", wanted->port);
    *(struct link_desired *)desired = *wanted;
    return 0;
}

static inline int node_children(const struct det_worker_view *view, struct det_children *children)
{
    struct node *node = node_of(view->identity->id);
    int r = 0;

    node->asked++;
    for (size_t i = 0; i < node->child_count && r == 0; i++)
        r = children->add(children, &node->children[i]);
    return r ? r : node->children_error;
}

static const struct det_worker_action node_actions[] = {
    { "start", 0, node_start },
    { "end", 0, node_end },
};
#define NODE_KIND(own)                                                                          \
    {                                                                                           \
        .name = #own, .desired = { .get = link_desired_record },                                \
        .observed = { .get = link_observed_record }, .deps_size = sizeof(struct node *),        \
        .states = own##_states, .state_count = sizeof own##_states / sizeof own##_states[0],    \
        .actions = node_actions, .action_count = sizeof node_actions / sizeof node_actions[0],  \
        .open = node_open, .close = node_close, .collect = node_collect, .derive = node_derive, \
        .children = node_children,                                                              \
    }
static const struct det_worker_state node_states[] = {
    { "down", DET_PHASE_STOPPED, 0, node_next },
    { "starting", DET_PHASE_STARTING, NODE_DOWN, node_next },
    { "well", DET_PHASE_RUNNING, NODE_ENDING, node_next },
    { "ill", DET_PHASE_DEGRADED, NODE_ENDING, node_next },
    { "ending", DET_PHASE_STOPPING, 0, node_next },
};
static const struct det_worker_kind node_kind = NODE_KIND(node);
static const struct det_worker_state twin_states[] = {
    { "running_connected", DET_PHASE_STOPPED, 0, node_next },
    { "stopped_running", DET_PHASE_STARTING, NODE_DOWN, node_next },
    { "not_stopped_degraded", DET_PHASE_RUNNING, NODE_ENDING, node_next },
    { "running_healthy", DET_PHASE_DEGRADED, NODE_ENDING, node_next },
    { "connected_stopped", DET_PHASE_STOPPING, 0, node_next },
};
static const struct det_worker_kind twin_kind = NODE_KIND(twin);
static const struct det_worker_kind *const forest_kinds[] = { &node_kind, &twin_kind, &puppet_kind,
                                                              NULL };

/* Forgets all nodes: before the test says what it wants of them. */
static inline struct lab_options forest_options(uint64_t seed)
{
    struct lab_options options = behaviour_options(seed);

    node_count = 0;
    options.kinds = forest_kinds;
    return options;
}

static inline void forest_end(struct lab *lab)
{
    lab_close(lab);
    for (size_t i = 0; i < node_count; i++)
        assert_int_equal(nodes[i].opened, nodes[i].closed);
}

#define NODE(name) "{name: " name ", kind: node, config: {host: h, port: 1}}"
#define NODE_OVER(name, below) \
    "{name: " name ", kind: node, config: {host: h, port: 1}, children: [" below "]}"

#endif
