/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan.c - when a task runs again: backoff after a failure, rest after a success, or the times of
 * its schedule.
 *
 * A pause ends at `task->deadline` on the monotonic clock. A schedule uses wall time, so its pause
 * has no deadline; a timer on the wall clock sets it when the time has come. If the monotonic clock
 * reaches the expected time first, the wall clock was set back: the schedule is then evaluated
 * again, so that it does not stall. */
#include <detent/driver/loop.h>
#include <detent/driver/policy.h>
#include <detent/driver/schedule.h>

#include "task/registry.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/unset.h"

/* The timer of the wall clock comes first, if both clocks agree. */
#define CHECK_LATER   DET_SECOND
#define SHORTAGE_SPAN DET_SECOND /* up to twice that */

struct plan {
    struct det_timetable table;
    struct det_timer timer;
    det_time last;     /* wall: the last time that was run or skipped; 0: none */
    det_time due;      /* wall: the next time */
    det_time due_at;   /* monotonic: the expected time of `due` */
    uint32_t reported; /* number of missed times reported since `last` */
};

/* A sufficiently long run ends the streak, even if it failed in the end. */
static uint32_t streak(const struct det_task *task)
{
    det_time ran = det_loop_now(task->tasks->loop) - task->times.started_at;

    return ran >= task->policy->backoff.stable_after ? 0 : task->attempts.failures;
}

static bool has_failed(const struct det_task *task, bool is_late)
{
    return is_late || task->attempts.ended.result == ATTEMPT_FAILED ||
           task->attempts.ended.result == ATTEMPT_FORCED;
}

bool det_plan_will_retry(const struct det_task *task, bool is_late)
{
    if (task->attempts.ended.is_shortage && !is_late)
        return !task->attempts.is_last;
    if (!has_failed(task, is_late) || task->attempts.is_last ||
        task->policy->restart == DET_RESTART_NEVER)
        return false;
    return task->policy->retries_max == DET_RETRIES_UNLIMITED ||
           streak(task) < task->policy->retries_max;
}

bool det_plan_will_repeat(const struct det_task *task, bool is_late)
{
    bool is_planned = task->extras && task->extras->plan;

    if (task->attempts.is_last)
        return false;
    if (has_failed(task, is_late))
        return is_planned;
    return task->attempts.ended.result == ATTEMPT_SUCCEEDED &&
           (is_planned || task->policy->restart == DET_RESTART_ALWAYS);
}

static void publish_delay(struct det_task *task, enum det_backoff_source source, det_time delay)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, DET_TASK_EVENT_BACKOFF_SCHEDULED);
    event.source = (uint8_t)source;
    event.delay = delay;
    if (source == DET_BACKOFF_AFTER_FAILURE && task->reason)
        det_event_set_text(event.reason, sizeof event.reason, task->reason);
    det_tasks_publish(task->tasks, &event);
}

static void pause_for(struct det_task *task, det_time delay)
{
    det_assert(!task->has_permit && !task->attempt && delay >= 0);
    task->times.since = det_loop_now(task->tasks->loop);
    task->times.deadline = det_add_time(task->times.since, delay);
}

void det_plan_count_restart(struct det_task *task)
{
    task->attempts.is_restarting = task->attempts.number > 0;
    task->attempts.restarts++;
    task->tasks->counts.restarts++;
}

int det_plan_backoff(struct det_task *task)
{
    uint32_t failures = streak(task);
    det_time before = failures == 0 ? 0 : task->times.delay;

    task->times.delay =
        det_backoff_delay(&task->policy->backoff, failures, before, det_tasks_chance(task->tasks));
    task->attempts.failures = failures < UINT32_MAX ? failures + 1 : failures;
    if (!det_group_gives_up(task->group))
        publish_delay(task, DET_BACKOFF_AFTER_FAILURE, task->times.delay);
    pause_for(task, task->times.delay);
    det_plan_count_restart(task);
    return 0;
}

/* An attempt for which our own process lacks descriptors, processes or memory is not a failure of
 * the task: it does not count, and is retried at a steady pace. */
int det_plan_put_off(struct det_task *task)
{
    det_time delay =
        SHORTAGE_SPAN + (det_time)(det_tasks_chance(task->tasks) % (uint64_t)SHORTAGE_SPAN);

    det_assert(task->attempts.ended.is_shortage && task->attempts.number > 0);
    task->attempts.number--;
    publish_delay(task, DET_BACKOFF_AFTER_FAILURE, delay);
    task->times.since = det_loop_now(task->tasks->loop);
    task->times.deadline = det_add_time(task->times.since, delay);
    return 0;
}

static void report_missed(struct det_task *task, uint32_t missed)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, DET_TASK_EVENT_RUNS_MISSED);
    event.count = missed;
    det_tasks_publish(task->tasks, &event);
}

/* Arms the next time. Needs no memory while the timer is set, or has just run. */
static int arm(struct det_task *task, struct plan *plan, det_time now, uint32_t *ret_missed)
{
    struct det_loop *loop = task->tasks->loop;
    det_time span;

    plan->due = det_timetable_next(&plan->table, plan->last, now, ret_missed);
    span = plan->due > now ? det_add_time(plan->due, -now) : 0;
    plan->due_at = det_add_time(det_loop_now(loop), det_add_time(span, CHECK_LATER));
    return det_loop_timer_set_wall(loop, &plan->timer, plan->due);
}

/* A manual run, for example, evaluates the schedule again: missed times are reported once. */
static int wait_for_time(struct det_task *task, struct plan *plan, uint32_t missed, det_time now)
{
    uint32_t since_last = 0;
    int r;

    r = arm(task, plan, now, &since_last);
    if (since_last > plan->reported) {
        missed += since_last - plan->reported;
        plan->reported = since_last;
    }
    if (missed > 0)
        report_missed(task, missed);
    return r;
}

/* A time that came while the machine slept may have expired already. */
static void on_time(void *argument)
{
    struct det_task *task = argument;
    struct plan *plan = task->extras->plan;
    det_time now = det_world_now(task->tasks->world, DET_CLOCK_WALL);
    bool is_over = det_timetable_is_over(&plan->table, plan->due, now);

    plan->last = plan->due;
    plan->reported = 0;
    /* The timer that has just run keeps its place in the heap: this cannot fail. */
    if (is_over && wait_for_time(task, plan, 1, now) == 0)
        return;
    task->times.deadline = 0;
    det_component_wake(&task->component);
}

/* Also with a schedule a pause has an end on the monotonic clock, to check the wall clock. */
det_time det_plan_check(struct det_task *task)
{
    struct plan *plan = task->extras ? task->extras->plan : NULL;
    det_time now;
    int r;

    if (!plan || task->times.deadline != DET_NEVER)
        return task->times.deadline;
    if (plan->due_at > det_loop_now(task->tasks->loop))
        return plan->due_at;
    now = det_world_now(task->tasks->world, DET_CLOCK_WALL);
    r = arm(task, plan, now, NULL);
    det_assert(r == 0);
    return plan->due_at;
}

static int rest_until_time(struct det_task *task, struct plan *plan)
{
    det_time now = det_world_now(task->tasks->world, DET_CLOCK_WALL);
    int r;

    r = wait_for_time(task, plan, 0, now);
    if (r < 0)
        return r;
    if (task->attempts.number > 0)
        publish_delay(task, DET_BACKOFF_AFTER_SUCCESS, plan->due > now ? plan->due - now : 0);
    /* A scheduled run is not a restart. */
    pause_for(task, 0);
    task->times.deadline = DET_NEVER;
    return 0;
}

/* An interval starts at the end of the attempt; the minimum below it at its start. */
int det_plan_rest(struct det_task *task)
{
    det_time interval = task->policy->interval;
    det_time ran = det_loop_now(task->tasks->loop) - task->times.started_at, delay = interval;

    task->attempts.failures = 0;
    task->times.delay = 0;
    if (task->extras && task->extras->plan)
        return rest_until_time(task, task->extras->plan);
    if (ran < DET_DELAY_FLOOR && delay < DET_DELAY_FLOOR - ran)
        delay = DET_DELAY_FLOOR - ran;
    if (interval > 0)
        publish_delay(task, DET_BACKOFF_AFTER_SUCCESS, delay);
    pause_for(task, delay);
    det_plan_count_restart(task);
    return 0;
}

void det_plan_drop(struct det_task *task)
{
    if (task->extras && task->extras->plan)
        det_loop_timer_cancel(task->tasks->loop, &task->extras->plan->timer);
    task->times.deadline = DET_NEVER;
}

int det_plan_open(
    struct det_task *task, const struct det_schedule *schedule, struct det_error *reterr)
{
    struct plan *plan = det_arena_alloc(&task->extras->arena, sizeof *plan);
    int r;

    if (!plan)
        return DET_ERR_NO_MEMORY;
    r = det_timetable_init(
        &plan->table, schedule, det_world_now(task->tasks->world, DET_CLOCK_WALL),
        det_tasks_chance(task->tasks), reterr);
    if (r < 0)
        return r;
    if (schedule->zone) {
        struct det_zone *zone = det_arena_alloc(&task->extras->arena, sizeof *zone);

        if (!zone)
            return DET_ERR_NO_MEMORY;
        *zone = *schedule->zone;
        plan->table.zone = zone;
    }
    plan->timer.run = on_time;
    plan->timer.argument = task;
    task->extras->plan = plan;
    return 0;
}

det_time det_plan_next_wall(struct det_task *task)
{
    if (task->extras && task->extras->plan && task->times.deadline == DET_NEVER)
        return task->extras->plan->due;
    if (task->times.deadline == DET_NEVER)
        return 0;
    return det_tasks_wall_of(task->tasks, task->times.deadline);
}
