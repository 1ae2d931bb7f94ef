/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_test.h - for the suites of behaviour: what was told with the moment it was told at, a
 * worker whose functions a test writes itself, and a scenario over many seeds. */
#ifndef DET_WORKER_BEHAVIOUR_TEST_H
#define DET_WORKER_BEHAVIOUR_TEST_H

#include "worker/lab_test.h"

#ifndef SEEDS
#define SEEDS 20
#endif

/* A test that is run for each seed, with `lab` and `seed` in hand. */
#define SENTENCE(name)                                 \
    static void name##_with(uint64_t seed);            \
    static void name(void **state)                     \
    {                                                  \
        (void)state;                                   \
        for (uint64_t seed = 1; seed <= SEEDS; seed++) \
            name##_with(seed);                         \
    }                                                  \
    static void name##_with(uint64_t seed)

/* What was told, in its order. */
#define REPORTED_MAX 4096
struct reported {
    det_time at, took;
    uint64_t number;
    enum det_worker_event_kind kind;
    int code;
    char id[64], action[32], to[32], reason[DET_WORKER_REASON_MAX + 1];
};
static struct reported reported[REPORTED_MAX];
static size_t reported_count;

static inline void watch_reported(const struct det_worker_event *event)
{
    struct reported *it = &reported[reported_count];

    if (event->kind == DET_WORKER_EVENT_HEARTBEAT ||
        event->kind == DET_WORKER_EVENT_OBSERVED_CHANGED)
        return;
    assert_true(reported_count < REPORTED_MAX);
    reported_count++;
    *it = (struct reported){ .kind = event->kind,
                             .at = event->at,
                             .took = event->took,
                             .code = event->code,
                             .number = event->number };
    snprintf(it->id, sizeof it->id, "%s", event->identity->id);
    snprintf(it->action, sizeof it->action, "%s", event->action ? event->action : "");
    snprintf(it->to, sizeof it->to, "%s", event->to ? event->to : "");
    snprintf(it->reason, sizeof it->reason, "%s", event->reason ? event->reason : "");
}

/* How often this was told of a worker. */
static inline uint32_t reported_times(enum det_worker_event_kind kind, const char *id)
{
    uint32_t count = 0;

    for (size_t i = 0; i < reported_count; i++)
        count += reported[i].kind == kind && !strcmp(reported[i].id, id);
    return count;
}

/* The n-th, from 1. */
static inline const struct reported *reported_nth(
    struct lab *lab, enum det_worker_event_kind kind, const char *id, uint32_t nth)
{
    uint32_t count = 0;

    for (size_t i = 0; i < reported_count; i++)
        if (reported[i].kind == kind && !strcmp(reported[i].id, id) && ++count == nth)
            return &reported[i];
    fail_msg(
        "%s of %s was told %u times, not %u\n%s", det_worker_event_name(kind), id, count, nth,
        det_buffer_text(&lab->log));
    return NULL;
}

/* In milliseconds, so that a failure can be read. */
#define ASSERT_SPAN(span, expected) \
    assert_int_equal((span) / DET_MILLISECOND, (expected) / DET_MILLISECOND)

/* The puppet: stopped -> starting -> working <-> ill; ending. It does what the test says. */
enum { PUPPET_STOPPED, PUPPET_STARTING, PUPPET_WORKING, PUPPET_ILL, PUPPET_ENDING };
enum { PUPPET_ONE, PUPPET_TWO, PUPPET_SHORT };
struct puppet {
    /* NULL: it walks to working and holds, and when it ends to stopped. */
    struct det_next (*next)(const struct det_worker_view *view);
    /* NULL: it works. */
    int (*act)(struct det_worker_context *context, int action);
    int (*collect)(struct det_worker_context *context, struct link_observed *observed);
    int (*children)(const struct det_worker_view *view, struct det_children *children);
    uint32_t nexts, acts[3], collects;
    uint32_t running[3], running_most; /* at once */
    uint32_t most[3];                  /* of one name at once */
    det_time waits, hangs;             /* of an action: may be cancelled; may not */
    int code;                          /* of an action that has waited */
};
static struct puppet puppet;

static inline struct det_next puppet_walk(const struct det_worker_view *view)
{
    switch (view->state) {
    case PUPPET_STOPPED:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_WORKING, "is to run" };
    case PUPPET_ENDING:
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_STOPPED, "has ended" };
    default:
        return (struct det_next){ DET_NEXT_HOLD, 0, "works" };
    }
}

static inline struct det_next puppet_next(const struct det_worker_view *view)
{
    puppet.nexts++;
    return puppet.next ? puppet.next(view) : puppet_walk(view);
}

static inline int puppet_act(struct det_worker_context *context, int action)
{
    uint32_t running = 0;
    int r;

    puppet.acts[action]++;
    puppet.running[action]++;
    if (puppet.running[action] > puppet.most[action])
        puppet.most[action] = puppet.running[action];
    for (int i = 0; i < 3; i++)
        running += puppet.running[i];
    if (running > puppet.running_most)
        puppet.running_most = running;
    r = lab_take(context, puppet.waits, puppet.hangs);
    if (r == 0)
        r = puppet.act ? puppet.act(context, action) : puppet.code;
    puppet.running[action]--;
    return r;
}

#define PUPPET_ACTION(name, index)                                                           \
    static inline int name(struct det_worker_context *context, void *deps, const void *want) \
    {                                                                                        \
        (void)deps;                                                                          \
        (void)want;                                                                          \
        return puppet_act(context, index);                                                   \
    }
PUPPET_ACTION(puppet_one, PUPPET_ONE)
PUPPET_ACTION(puppet_two, PUPPET_TWO)
PUPPET_ACTION(puppet_short, PUPPET_SHORT)

static inline int puppet_collect(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    (void)deps;
    (void)desired;
    puppet.collects++;
    return puppet.collect ? puppet.collect(context, observed) : 0;
}

static inline int puppet_children(const struct det_worker_view *view, struct det_children *children)
{
    return puppet.children ? puppet.children(view, children) : 0;
}

static const struct det_worker_state puppet_states[] = {
    { "stopped", DET_PHASE_STOPPED, 0, puppet_next },
    { "starting", DET_PHASE_STARTING, PUPPET_STOPPED, puppet_next },
    { "working", DET_PHASE_RUNNING, PUPPET_ENDING, puppet_next },
    { "ill", DET_PHASE_DEGRADED, PUPPET_ENDING, puppet_next },
    { "ending", DET_PHASE_STOPPING, 0, puppet_next },
};
static const struct det_worker_action puppet_actions[] = {
    { "one", 0, puppet_one },
    { "two", 0, puppet_two },
    { "short", 2 * DET_SECOND, puppet_short },
};
static const struct det_worker_kind puppet_kind = {
    .name = "puppet",
    .observed = { .get = link_observed_record },
    .states = puppet_states,
    .state_count = sizeof puppet_states / sizeof puppet_states[0],
    .actions = puppet_actions,
    .action_count = sizeof puppet_actions / sizeof puppet_actions[0],
    .collect = puppet_collect,
    .children = puppet_children,
};
static const struct det_worker_kind *const puppet_kinds[] = { &puppet_kind, NULL };

#define LAB_PUPPET "children: [{name: p, kind: puppet}]"

static inline struct lab_options behaviour_options(uint64_t seed)
{
    reported_count = 0;
    puppet = (struct puppet){ 0 };
    return (struct lab_options){ .seed = seed, .watch = watch_reported, .kinds = puppet_kinds };
}

/* A lab with this spec, some seconds later. */
static inline void behaviour_begin(
    struct lab *lab, struct lab_options options, const char *yaml, det_time span)
{
    lab_open(lab, options);
    lab_apply(lab, yaml);
    lab_run(lab, span);
}

static inline void behaviour_end(struct lab *lab)
{
    lab_close(lab);
}

#endif
