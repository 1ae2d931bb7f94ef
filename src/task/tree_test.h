/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree_test.h - a supervisor in virtual time whose tasks are controlled by the test, with their
 * events as one line of text:
 *
 *     +a started   !a failed   -a stopped   =a succeeded   #a gone   r:a ready   u:a unhealthy
 *     G:g started   R:g restarts   F:g failed   S:g stopped */
#ifndef DET_TASK_TREE_TEST_H
#define DET_TASK_TREE_TEST_H

#include <detent/sim.h>
#include <detent/task.h>

#include "lib/test.h"

#define ACTORS_MAX 64

/* The next action of a task of the test. */
enum part {
    PART_RUN,
    PART_FAIL,
    PART_SUCCEED,
    PART_FATAL,
    PART_READY,
};

struct player {
    char name[16];
    det_task_id id;
    enum part part;
    bool keeps_part;   /* also in the attempts to come */
    det_time stops_in; /* after a stop request */
    det_time reported_at;
    unsigned starts;
    uint32_t attempt;
};

struct stage {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_tasks *tasks;
    struct player players[ACTORS_MAX];
    size_t count;
    char trace[16384];
    size_t used;
    struct det_task_end ends[ACTORS_MAX];
    size_t end_count;
    char text[DET_ERROR_TEXT_MAX];        /* of the last error, or what was looked at */
    char reason[DET_TASK_REASON_MAX + 1]; /* of the last event of a group, or about health */
};

/* NULL: not traced. */
static inline const char *stage_mark(const struct det_task_event *event)
{
    static const char *const marks[DET_TASK_EVENT_COUNT] = {
        [DET_TASK_EVENT_ATTEMPT_STARTING] = "+",  [DET_TASK_EVENT_ATTEMPT_FAILED] = "!",
        [DET_TASK_EVENT_ATTEMPT_TIMED_OUT] = "!", [DET_TASK_EVENT_ATTEMPT_CANCELLED] = "-",
        [DET_TASK_EVENT_ATTEMPT_SUCCEEDED] = "=", [DET_TASK_EVENT_TASK_REMOVED] = "#",
        [DET_TASK_EVENT_TASK_READY] = "r:",       [DET_TASK_EVENT_TASK_UNHEALTHY] = "u:",
        [DET_TASK_EVENT_GROUP_STARTED] = "G:",    [DET_TASK_EVENT_GROUP_RESTARTING] = "R:",
        [DET_TASK_EVENT_GROUP_FAILED] = "F:",     [DET_TASK_EVENT_GROUP_STOPPED] = "S:",
        [DET_TASK_EVENT_CHECK_POSTPONED] = "p:",
    };

    return marks[event->kind];
}

static inline int stage_keep(void *user, const struct det_task_event *event)
{
    struct stage *stage = user;
    const char *mark = stage_mark(event);

    if (!mark)
        return 0;
    if (event->kind == DET_TASK_EVENT_GROUP_FAILED ||
        event->kind == DET_TASK_EVENT_GROUP_RESTARTING ||
        event->kind == DET_TASK_EVENT_TASK_UNHEALTHY ||
        event->kind == DET_TASK_EVENT_ATTEMPT_FAILED ||
        event->kind == DET_TASK_EVENT_CHECK_POSTPONED)
        memcpy(stage->reason, event->reason, sizeof stage->reason);
    if (stage->used < sizeof stage->trace)
        stage->used += (size_t)snprintf(
            stage->trace + stage->used, sizeof stage->trace - stage->used, "%s%s%s",
            stage->used ? " " : "", mark, event->name);
    return 0;
}

static inline void stage_keep_end(void *user, const struct det_task_end *end)
{
    struct stage *stage = user;

    stage->ends[stage->end_count++ % ACTORS_MAX] = *end;
}

static inline int stage_try_open(
    struct stage *stage, uint64_t seed, struct det_tasks_options options)
{
    struct det_subscription *subscription;
    int r;

    memset(stage, 0, sizeof *stage);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &stage->sim, NULL), 0);
    r = det_loop_open(det_sim_world(stage->sim), options.allocator, &stage->loop);
    if (r < 0)
        return r;
    options.loop = stage->loop;
    options.on_end = stage_keep_end;
    options.user = stage;
    options.defaults.backoff.first = DET_SECOND;
    options.defaults.backoff.jitter = DET_JITTER_NONE;
    r = det_tasks_open(&options, &stage->tasks, NULL);
    if (r == 0)
        r = det_bus_subscribe(
            det_tasks_bus(stage->tasks),
            &(struct det_subscriber){
                .delivery = DET_DELIVER_LOSSLESS, .on_event = stage_keep, .user = stage },
            &subscription, NULL);
    return r;
}

static inline void stage_open(struct stage *stage)
{
    assert_int_equal(stage_try_open(stage, 1, (struct det_tasks_options){ 0 }), 0);
}

static inline void stage_close(struct stage *stage)
{
    det_tasks_close(stage->tasks);
    det_loop_close(stage->loop);
    det_sim_close(stage->sim);
}

static inline det_time stage_now(const struct stage *stage)
{
    return det_world_now(det_sim_world(stage->sim), DET_CLOCK_MONOTONIC);
}

/* Everything that can happen now does, on the loop and on other threads. */
static inline void stage_settle(struct stage *stage)
{
    int r;

    do {
        assert_int_equal(det_sim_settle(stage->sim), 0);
        r = det_loop_turn(stage->loop, 0);
        assert_true(r >= 0);
    } while (r > 0);
}

/* Everything that is due in this span of virtual time happens. */
static inline void stage_pass(struct stage *stage, det_time span)
{
    det_time until = stage_now(stage) + span;

    stage_settle(stage);
    while (stage_now(stage) < until)
        assert_true(det_loop_turn(stage->loop, until) >= 0);
    stage_settle(stage);
}

/* The events since the last call. */
static inline void stage_expect(struct stage *stage, const char *trace)
{
    stage_settle(stage);
    assert_string_equal(stage->trace, trace);
    stage->used = 0;
    stage->trace[0] = 0;
}

static inline int player_stop(struct player *player, struct det_task_context *context)
{
    det_time now = det_world_now(det_task_world(context), DET_CLOCK_MONOTONIC);

    if (player->reported_at == 0)
        player->reported_at = now;
    if (now - player->reported_at >= player->stops_in)
        return DET_ERR_CANCELLED;
    det_task_wake_at(context, player->reported_at + player->stops_in);
    return DET_STEP_WAIT;
}

static inline int player_step(struct det_task_context *context, void *argument)
{
    struct player *player = argument;
    enum part part = player->part;

    if (det_task_attempt(context) != player->attempt) {
        player->attempt = det_task_attempt(context);
        player->reported_at = 0;
        player->starts++;
    }
    if (det_task_is_cancelled(context))
        return player_stop(player, context);
    if (!player->keeps_part)
        player->part = PART_RUN;
    switch (part) {
    case PART_RUN:
        return DET_STEP_WAIT;
    case PART_FAIL:
        return det_task_fail(context, DET_ERR_IO, "broken");
    case PART_SUCCEED:
        return DET_STEP_DONE;
    case PART_FATAL:
        return det_task_fatal(context, DET_ERR_IO, "hopeless");
    case PART_READY:
        det_task_ready(context);
        return DET_STEP_WAIT;
    }
    return DET_ERR_INVALID;
}

static inline struct player *stage_player(struct stage *stage, const char *name)
{
    for (size_t i = 0; i < stage->count; i++)
        if (strcmp(stage->players[i].name, name) == 0)
            return &stage->players[i];
    assert_true(stage->count < ACTORS_MAX && strlen(name) < sizeof stage->players[0].name);
    memcpy(stage->players[stage->count].name, name, strlen(name) + 1);
    return &stage->players[stage->count++];
}

/* A spec whose work is the player of that name. */
static inline struct det_task_spec stage_spec(
    struct stage *stage, const char *name, const char *group)
{
    struct player *player = stage_player(stage, name);

    return (struct det_task_spec){
        .name = player->name, .step = player_step, .argument = player, .group = group
    };
}

static inline int stage_try_add(struct stage *stage, const struct det_task_spec *spec)
{
    struct player *player = stage_player(stage, spec->name);
    struct det_error error;
    int r = det_tasks_add(stage->tasks, spec, NULL, &player->id, &error);

    if (r < 0)
        snprintf(stage->text, sizeof stage->text, "%s", error.text);
    return r;
}

static inline void stage_add(struct stage *stage, const char *name, const char *group)
{
    struct det_task_spec spec = stage_spec(stage, name, group);

    if (stage_try_add(stage, &spec) < 0)
        fail_msg("%s", stage->text);
}

static inline int stage_add_needing(
    struct stage *stage, const char *name, const char *group, const char *need,
    enum det_condition_kind when)
{
    struct det_dependency dependency = { .name = need, .when = when };
    struct det_task_spec spec = stage_spec(stage, name, group);

    spec.depends_on = &dependency;
    spec.depends_on_count = 1;
    return stage_try_add(stage, &spec);
}

static inline void stage_group(
    struct stage *stage, const char *name, const char *parent, enum det_strategy strategy)
{
    struct det_task_group_spec spec = { .name = name, .parent = parent, .strategy = strategy };

    assert_int_equal(det_tasks_add_group(stage->tasks, &spec, NULL), 0);
}

static inline void stage_play(struct stage *stage, const char *name, enum part part)
{
    struct player *player = stage_player(stage, name);

    player->part = part;
    assert_int_equal(det_tasks_wake(stage->tasks, player->id), 1);
}

static inline int stage_see_state(void *user, const struct det_task_info *info)
{
    struct stage *stage = user;

    snprintf(
        stage->text, sizeof stage->text, "%s%s%s", info->state, info->waits_for ? " " : "",
        info->waits_for ? info->waits_for : "");
    return 0;
}

/* "running", or "held db: not healthy yet". */
static inline const char *stage_state(struct stage *stage, const char *name)
{
    det_task_id id = stage_player(stage, name)->id;

    stage_settle(stage);
    if (det_tasks_get(stage->tasks, id, stage_see_state, stage) < 0)
        return "gone";
    return stage->text;
}

struct stage_group_check {
    const char *name;
    char text[DET_ERROR_TEXT_MAX];
};

static inline int stage_see_group(void *user, const struct det_task_group_info *info)
{
    struct stage_group_check *look = user;

    if (strcmp(info->name, look->name) == 0)
        snprintf(
            look->text, sizeof look->text, "%s in %s, %u members, %u of %u restarts", info->state,
            info->parent ? info->parent : "top", (unsigned)info->members, (unsigned)info->restarts,
            (unsigned)info->restarts_max);
    return 0;
}

static inline void stage_expect_group(struct stage *stage, const char *name, const char *text)
{
    struct stage_group_check look = { .name = name };

    stage_settle(stage);
    assert_int_equal(det_tasks_each_group(stage->tasks, stage_see_group, &look), 0);
    assert_string_equal(look.text, text);
}

/* A group g with a, b and c, which run. */
static inline void stage_open_three(struct stage *stage, enum det_strategy strategy)
{
    stage_open(stage);
    stage_group(stage, "g", NULL, strategy);
    stage_add(stage, "a", "g");
    stage_add(stage, "b", "g");
    stage_add(stage, "c", "g");
    stage_expect(stage, "G:g +a +b +c");
}

/* As often as that, without the pauses. */
static inline void stage_fail_times(struct stage *stage, const char *name, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        stage_play(stage, name, PART_FAIL);
        stage_pass(stage, 0);
        assert_int_equal(det_tasks_restart(stage->tasks, stage_player(stage, name)->id), 1);
        stage_pass(stage, 0);
    }
}

#endif
