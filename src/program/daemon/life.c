/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* life.c - the life of a run: the functions that life.fsm names.
 *
 * Invariants
 *   1. The time of the stop is known exactly in the states STOPPING and OVER.
 *   2. A run is over only after tasks and workers have ended.
 *   3. A repeated stop kills; a signal within UP_SAME_STOP of the first one does not. */
#include "daemon/life.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "daemon/run.h"

/* From the stop to the first report of what has not ended, and from one report to the next. */
#define REPORT_FIRST (2 * DET_SECOND)
#define REPORT_EVERY (5 * DET_SECOND)
/* A run without events for this time is idle. */
#define IDLE_AFTER (2 * DET_SECOND)

struct up_life {
    struct det_component component;
    struct up *up;
    const struct det_allocator *allocator;
    const struct up_life_handler *functions;
    struct det_executor *executor;
    const char *why;     /* reason of the stop being offered; NULL: no work is left */
    det_time started_at; /* wall */
    det_time stop_at;    /* monotonic: when the stop began; DET_NEVER before */
    det_time report_at;  /* monotonic: the next report of a stop; DET_NEVER: none is scheduled */
    det_time idle_at;    /* monotonic: when the run becomes idle; DET_NEVER: not armed */
    bool check_wanted;
    bool has_failed, was_forced;
};

#define FSM_LOCAL
#define FSM_SPEC "daemon/life.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "daemon/life.fsm"
#include <detent/fsm/define.h>

static det_time now_of(const struct up_life *life)
{
    return det_loop_now(det_executor_loop(life->executor));
}

static enum up_life_state state_of(const struct up *up)
{
    return up->life ? (enum up_life_state)det_component_state(&up->life->component)
                    : UP_LIFE_STARTING;
}

static bool is_stopping(enum up_life_state state)
{
    return state == UP_LIFE_STOPPING || state == UP_LIFE_OVER;
}

static bool life_is_sound(const struct up_life *life)
{
    enum up_life_state state = (enum up_life_state)det_component_state(&life->component);

    if (is_stopping(state) != (life->stop_at != DET_NEVER))
        return false;
    if (life->was_forced && !is_stopping(state))
        return false;
    return state != UP_LIFE_OVER || life->functions->is_empty(life->up);
}

/* Guards and actions. */

static bool is_repeated(const struct up_life *life, const struct up_life_event *event)
{
    (void)event;
    return life->why && now_of(life) - life->stop_at >= UP_SAME_STOP;
}

static int stop_all(
    struct up_life *life, const struct up_life_event *event, struct up_life_event *ret)
{
    (void)event;
    det_assert(life->stop_at == DET_NEVER);
    life->stop_at = now_of(life);
    life->report_at = det_add_time(life->stop_at, REPORT_FIRST);
    life->functions->stop(life->up, life->why);
    if (!life->functions->is_empty(life->up))
        return DET_EFFECT_DONE;
    *ret = up_life_empty();
    return DET_EFFECT_PRODUCED;
}

static int force_all(
    struct up_life *life, const struct up_life_event *event, struct up_life_event *ret)
{
    (void)event;
    (void)ret;
    life->functions->force(life->up, life->why);
    return DET_EFFECT_DONE;
}

/* Waiting. Out of memory for a timer, reports are missed; the grace does not depend on it. */

static int watch_idle(struct up_life *life, struct up_life_event *ret)
{
    if (life->idle_at > now_of(life)) {
        if (life->idle_at != DET_NEVER)
            (void)!det_component_wake_at(&life->component, life->idle_at);
        return DET_DIRECTIVE_CONTINUE;
    }
    life->idle_at = DET_NEVER;
    if (!life->functions->report_idle(life->up))
        return DET_DIRECTIVE_CONTINUE;
    *ret = up_life_stop();
    return DET_DIRECTIVE_TRANSITION;
}

static int watch_stop(struct up_life *life, struct up_life_event *ret)
{
    det_time now = now_of(life), left;

    (void)ret;
    det_assert(life->stop_at <= now);
    if (life->report_at <= now) {
        left = life->stop_at + life->functions->grace(life->up) - now;
        life->functions->report_stop(life->up, left <= 0);
        life->report_at = det_add_time(now, left > 0 && left < REPORT_EVERY ? left : REPORT_EVERY);
    }
    (void)!det_component_wake_at(&life->component, life->report_at);
    return DET_DIRECTIVE_CONTINUE;
}

/* Opening. */

int up_life_open(struct up *up, const struct up_life_handler *handler)
{
    const struct det_allocator *allocator = up->cli->allocator;
    const struct det_executor_options options = { .allocator = allocator };
    struct up_life *life = DET_NEW(allocator, struct up_life);
    int r;

    det_assert(!up->life && handler);
    if (!life)
        return DET_ERR_NO_MEMORY;
    life->up = up;
    life->allocator = allocator;
    life->functions = handler;
    life->stop_at = life->report_at = life->idle_at = DET_NEVER;
    life->started_at = det_world_now(up->cli->world, DET_CLOCK_WALL);
    r = det_executor_open(up->loop, &options, &life->executor, NULL);
    if (r == 0)
        r = up_life_supervise(
            life->executor, life, &(struct det_supervise_options){ .without_handle = true }, NULL,
            NULL);
    if (r < 0) {
        det_executor_close(life->executor);
        DET_DELETE(allocator, life);
        return r;
    }
    up->life = life;
    return 0;
}

void up_life_close(struct up_life *life)
{
    if (!life)
        return;
    life->up->life = NULL;
    det_executor_close(life->executor);
    DET_DELETE(life->allocator, life);
}

struct det_executor *up_executor(const struct up *up)
{
    return up->life->executor;
}

/* The state. */

bool up_is_running(const struct up *up)
{
    enum up_life_state state = state_of(up);

    return state == UP_LIFE_STARTING || state == UP_LIFE_RUNNING;
}

bool up_has_begun(const struct up *up)
{
    return state_of(up) != UP_LIFE_STARTING;
}

bool up_is_stopping(const struct up *up)
{
    return is_stopping(state_of(up));
}

bool up_is_over(const struct up *up)
{
    return state_of(up) == UP_LIFE_OVER;
}

const char *up_state_name(const struct up *up)
{
    enum up_life_state state = state_of(up);

    /* No client is answered before the run begins; clients wait for the end of the process. */
    if (state == UP_LIFE_STARTING)
        state = UP_LIFE_RUNNING;
    else if (state == UP_LIFE_OVER)
        state = UP_LIFE_STOPPING;
    return up_life_machine.states[state].name;
}

det_time up_started_at(const struct up *up)
{
    return up->life->started_at;
}

det_time up_stop_began_at(const struct up *up)
{
    det_assert(up_is_stopping(up));
    return up->life->stop_at;
}

/* The only place where the state changes. */

static void offer_event(struct up *up, struct up_life_event event)
{
    int r;

    if (up_is_over(up))
        return;
    r = up_life_offer(up->life, event);
    /* Refused: a repeated first stop. Busy: stop_all() itself checks for the end of all parts. */
    det_assert(
        r == 0 || (r == DET_ERR_REFUSED && event.kind == UP_LIFE_STOP) ||
        (r == DET_ERR_BUSY && event.kind == UP_LIFE_EMPTY));
}

void up_begin(struct up *up)
{
    offer_event(up, up_life_begin());
}

void up_set_draining(struct up *up)
{
    offer_event(up, up_life_drain());
}

void up_begin_stop(struct up *up)
{
    offer_event(up, up_life_stop());
}

void up_stop(struct up *up, const char *why)
{
    det_assert(!up->life->why);
    up->life->why = why;
    offer_event(up, up_life_stop());
    up->life->why = NULL;
}

void up_check_empty(struct up *up)
{
    if (up_is_stopping(up) && up->life->functions->is_empty(up))
        offer_event(up, up_life_empty());
}

/* Facts. */

void up_check_again(struct up *up)
{
    if (up->life)
        up->life->check_wanted = true;
}

bool up_take_check(struct up *up)
{
    bool check_wanted = up->life->check_wanted && !up_is_stopping(up);

    if (check_wanted)
        up->life->check_wanted = false;
    return check_wanted;
}

void up_idle_arm(struct up *up)
{
    struct up_life *life = up->life;

    life->idle_at = det_add_time(now_of(life), IDLE_AFTER);
    if (state_of(up) == UP_LIFE_RUNNING)
        (void)!det_component_wake_at(&life->component, life->idle_at);
}

void up_set_failed(struct up *up)
{
    if (up->life)
        up->life->has_failed = true;
}

bool up_has_failed(const struct up *up)
{
    return up->life->has_failed;
}

void up_set_forced(struct up *up)
{
    if (up->life)
        up->life->was_forced = true;
}

bool up_was_forced(const struct up *up)
{
    return up->life->was_forced;
}
