/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* health_check.c - readiness and health of an attempt: when it counts as ready, and how long it
 * stays so.
 *
 *     attempt starts --+-- when started --------------------> ready --+--> check passes: healthy
 *                      +-- notified, or a check passes -----> ready   +--> fails: unhealthy
 *                      +-- neither within the limit: failed           +--> too often: failed
 *
 * Before the attempt is ready, failed checks do not count; only the limit does. A check is a
 * process, which is killed and abandoned when the attempt ends, or a function on separate threads,
 * for which the end of the attempt waits: it may use the arguments of the task.
 *
 * Invariants
 *   1. At most one check of an attempt runs.
 *   2. The timer is set from start to stop, at least to never: setting it again needs no memory.
 *   3. This file ends an attempt only from a callback of the loop: never inside of the actor.
 *   4. A check that our own process lacks descriptors, processes or memory for does not count. */
#include <detent/driver/loop.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "task/attempt.h"
#include "task/child.h"

#define WITHIN       (60 * DET_SECOND)
#define EVERY_BEFORE DET_SECOND
#define EVERY_AFTER  (10 * DET_SECOND)
#define TIMEOUT      (5 * DET_SECOND)
#define FAILS_MAX    3

/* A running check. A process may outlive the attempt, and is then detached. */
struct probe {
    struct det_list loose;
    struct det_tasks *tasks;
    struct checks *checks; /* NULL: the result is not needed */
    struct det_child *child;
    struct det_job job;
    int code; /* return value of the function */
    bool is_running;
    bool is_late; /* counted as failed already, by its timeout */
};

struct checks {
    struct det_task *task;
    struct probe *probe;
    struct det_timer limit; /* deadline for readiness */
    struct det_timer timer; /* the next check, or the timeout of the running one */
    uint32_t fails;         /* consecutive failures since it is ready */
    bool is_postponed;      /* the last one lacked resources, which was published */
    bool is_quiet;          /* the attempt was asked to stop */
    bool is_last;           /* the attempt has ended and waits for the running function */
    char text[DET_TASK_REASON_MAX + 1]; /* reason of the last failed check */
};

static const struct det_readiness *readiness_of(const struct checks *checks)
{
    return checks->task->extras->readiness;
}

static const struct det_check *check_of(const struct checks *checks)
{
    return &readiness_of(checks)->check;
}

static bool has_check(const struct det_check *check)
{
    return check->argv || check->run;
}

static struct checks *checks_of(const struct det_task *task)
{
    return task->extras ? task->extras->checks : NULL;
}

/* The timer is set already, so this cannot fail. */
static void set_timer(struct checks *checks, det_time after)
{
    struct det_loop *loop = checks->task->tasks->loop;
    det_time at = after == DET_NEVER ? DET_NEVER : det_add_time(det_loop_now(loop), after);
    int r;

    r = det_loop_timer_set(loop, &checks->timer, at);
    det_assert(r == 0);
}

static det_time period(const struct checks *checks)
{
    const struct det_check *check = check_of(checks);

    if (check->every)
        return check->every;
    return checks->task->is_ready ? EVERY_AFTER : EVERY_BEFORE;
}

/* True if checks are needed now or later. */
static bool is_wanted(const struct checks *checks)
{
    const struct det_readiness *readiness = readiness_of(checks);

    if (checks->is_quiet || !has_check(&readiness->check))
        return false;
    if (checks->task->is_ready)
        return !readiness->check.only_readiness;
    return readiness->by == DET_READY_BY_CHECK;
}

static void plan_next(struct checks *checks)
{
    set_timer(checks, is_wanted(checks) ? period(checks) : DET_NEVER);
}

/* Results of a check. */

static void become_ready(struct checks *checks)
{
    struct det_task *task = checks->task;

    det_assert(!task->is_ready && task->has_permit);
    task->is_ready = true;
    det_loop_timer_cancel(task->tasks->loop, &checks->limit);
    if (readiness_of(checks)->by != DET_READY_WHEN_STARTED)
        det_task_publish(task, DET_TASK_EVENT_TASK_READY);
    det_tree_changed(task);
}

static void end_attempt(struct checks *checks, const char *reason)
{
    checks->is_quiet = true;
    det_actor_expire(checks->task, reason);
}

static void pass(struct checks *checks)
{
    struct det_task *task = checks->task;

    checks->fails = 0;
    if (!task->is_ready) {
        become_ready(checks);
    } else if (!task->is_healthy) {
        task->is_healthy = true;
        det_task_publish(task, DET_TASK_EVENT_TASK_READY);
        det_tree_changed(task);
    }
}

static void print_reason(struct checks *checks, enum det_task_event_kind kind)
{
    struct det_task_event event;

    det_task_event_init(&event, checks->task, kind);
    det_event_set_text(event.reason, sizeof event.reason, checks->text);
    det_tasks_publish(checks->task->tasks, &event);
}

/* `checks->text` is the reason. */
static void miss(struct checks *checks)
{
    struct det_task *task = checks->task;
    uint32_t fails_max = check_of(checks)->fails_max ? check_of(checks)->fails_max : FAILS_MAX;
    char reason[DET_TASK_REASON_MAX + 1];

    if (!task->is_ready)
        return;
    checks->fails++;
    if (task->is_healthy) {
        task->is_healthy = false;
        print_reason(checks, DET_TASK_EVENT_TASK_UNHEALTHY);
        det_tree_changed(task);
    }
    if (checks->fails < fails_max)
        return;
    snprintf(
        reason, sizeof reason, "unhealthy: the check failed %u time%s, the last time: %.120s",
        (unsigned)checks->fails, det_plural(checks->fails), checks->text);
    end_attempt(checks, reason);
}

/* `checks->text` is the missing resource. */
static void postpone(struct checks *checks)
{
    if (!checks->is_postponed)
        print_reason(checks, DET_TASK_EVENT_CHECK_POSTPONED);
    checks->is_postponed = true;
}

/* Readiness is unknown while no check can be started, so the limit starts again. The timer has just
 * run, so this needs no memory. */
static void extend_limit(struct checks *checks, det_time within)
{
    struct det_loop *loop = checks->task->tasks->loop;
    int r;

    r = det_loop_timer_set(loop, &checks->limit, det_add_time(det_loop_now(loop), within));
    det_assert(r == 0);
}

static void on_limit(void *argument)
{
    struct checks *checks = argument;
    det_time within = readiness_of(checks)->within ? readiness_of(checks)->within : WITHIN;
    char reason[DET_TASK_REASON_MAX + 1], span[DET_DURATION_TEXT];

    if (checks->is_postponed) {
        extend_limit(checks, within);
        return;
    }
    det_format_duration(within, span, sizeof span);
    if (checks->text[0])
        snprintf(
            reason, sizeof reason, "not ready within %s; the last check: %.100s", span,
            checks->text);
    else
        snprintf(reason, sizeof reason, "not ready within %s", span);
    end_attempt(checks, reason);
}

/* Probes. */

static void free_probe(struct probe *probe)
{
    det_assert(!probe->is_running || !probe->checks);
    det_list_remove(&probe->loose);
    det_child_close(probe->child);
    DET_DELETE(probe->tasks->allocator, probe);
}

/* Handles the end of a probe; its result is in `text`: "" is a success. */
static void conclude(struct checks *checks)
{
    struct probe *probe = checks->probe;
    struct attempt_end end = checks->task->attempts.ended;

    det_assert(probe->is_running && probe->checks == checks);
    probe->is_running = false;
    if (checks->is_last) {
        det_actor_ended(checks->task, &end);
        return;
    }
    if (checks->is_quiet)
        return;
    if (!probe->is_late && checks->text[0])
        miss(checks);
    else if (!probe->is_late)
        pass(checks);
    plan_next(checks);
}

static void child_ended(void *user, const struct det_process_end *end)
{
    struct probe *probe = user;
    struct checks *checks = probe->checks;

    if (!checks) {
        free_probe(probe);
        return;
    }
    det_child_close(probe->child);
    probe->child = NULL;
    if (!probe->is_late) {
        checks->text[0] = 0;
        if (end->code != 0 || end->signal)
            det_process_end_text(end, checks->text, sizeof checks->text);
    }
    conclude(checks);
}

static void job_run(void *argument)
{
    struct probe *probe = argument;
    struct det_task *task = probe->checks->task;

    probe->code = task->extras->readiness->check.run(&task->context, task->work.argument);
}

static void job_done(void *argument)
{
    struct probe *probe = argument;
    struct checks *checks = probe->checks;

    det_assert(probe->tasks->checks.running > 0);
    probe->tasks->checks.running--;
    if (!probe->is_late) {
        checks->text[0] = 0;
        if (probe->code > 0)
            snprintf(checks->text, sizeof checks->text, "answered %d", probe->code);
        else if (probe->code < 0)
            det_event_set_text(checks->text, sizeof checks->text, det_error_text(probe->code));
    }
    conclude(checks);
}

/* The check of a process runs with the same user and folder as the process. */
static int start_child(struct checks *checks)
{
    const struct det_process_spec *own = checks->task->extras->process;
    struct det_process_spec spec = { .argv = check_of(checks)->argv };
    struct det_tasks *tasks = checks->task->tasks;
    struct det_error error;
    int r;

    if (own) {
        spec.environment = own->environment;
        spec.folder = own->folder;
        spec.user = own->user;
        spec.ends_with_us = own->ends_with_us;
    }
    r = det_child_start(
        tasks->loop, tasks->allocator, &spec,
        &(struct det_child_events){ .on_end = child_ended, .user = checks->probe },
        &checks->probe->child, &error);
    if (r < 0)
        det_event_set_text(checks->text, sizeof checks->text, error.text);
    return r;
}

/* If the system refuses more threads, a check waits for a free one. */
static void grow_pool(struct det_tasks *tasks)
{
    if (tasks->checks.running > tasks->checks.pool_size &&
        tasks->checks.pool_size < tasks->options.pool_threads &&
        det_pool_grow(tasks->checks.pool, tasks->checks.pool_size + 1))
        tasks->checks.pool_size++;
}

static void start_job(struct checks *checks)
{
    struct probe *probe = checks->probe;

    probe->tasks->checks.running++;
    grow_pool(probe->tasks);
    probe->code = 0;
    probe->job = (struct det_job){
        .run = job_run, .done = job_done, .argument = probe, .loop = checks->task->tasks->loop
    };
    det_pool_submit(checks->task->tasks->checks.pool, &probe->job);
}

static void start_probe(struct checks *checks)
{
    const struct det_check *check = check_of(checks);
    int r = check->argv ? start_child(checks) : 0;

    checks->probe->is_late = false;
    if (r < 0) {
        if (r == DET_ERR_LIMIT || r == DET_ERR_NO_MEMORY)
            postpone(checks);
        else
            miss(checks);
        plan_next(checks);
        return;
    }
    checks->is_postponed = false;
    checks->probe->is_running = true;
    if (!check->argv)
        start_job(checks);
    set_timer(checks, check->timeout ? check->timeout : TIMEOUT);
}

/* The check has timed out: it counts as failed now, and the next one waits for its end. */
static void give_up_probe(struct checks *checks)
{
    const struct det_check *check = check_of(checks);
    char span[DET_DURATION_TEXT];

    snprintf(
        checks->text, sizeof checks->text, "timed out after %s",
        det_format_duration(check->timeout ? check->timeout : TIMEOUT, span, sizeof span));
    checks->probe->is_late = true;
    set_timer(checks, DET_NEVER);
    if (checks->probe->child)
        (void)det_child_kill(checks->probe->child);
    miss(checks);
}

static void on_timer(void *argument)
{
    struct checks *checks = argument;
    bool is_over = checks->is_quiet || checks->is_last;

    if (!is_over && checks->probe->is_running)
        give_up_probe(checks);
    else if (!is_over && is_wanted(checks))
        start_probe(checks);
    else
        set_timer(checks, DET_NEVER);
}

/* Called from outside. */

static int refuse(const struct det_task_spec *spec, const char *why, struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_INVALID, "task %s: %s", spec->name, why);
}

int det_checks_validate(const struct det_task_spec *spec, struct det_error *reterr)
{
    const struct det_readiness *readiness = &spec->readiness;
    const struct det_check *check = &readiness->check;

    if ((unsigned)readiness->by > DET_READY_BY_CHECK)
        return refuse(spec, "unknown readiness", reterr);
    if (readiness->by == DET_READY_BY_CHECK && !has_check(check))
        return refuse(spec, "ready by a check, but the check has neither argv nor run", reterr);
    if (check->argv && check->run)
        return refuse(spec, "a check has argv or run, not both", reterr);
    if (check->argv && !check->argv[0])
        return refuse(spec, "argv of its check is empty", reterr);
    if (readiness->within < 0 || check->every < 0 || check->timeout < 0)
        return refuse(spec, "a time of readiness is negative", reterr);
    return 0;
}

/* With one thread; more are started on demand. */
static int open_pool(struct det_tasks *tasks)
{
    if (tasks->checks.pool)
        return 0;
    tasks->checks.pool_size = 1;
    return det_pool_open(tasks->world, tasks->allocator, 1, &tasks->checks.pool);
}

static struct checks *make_checks(struct det_task *task)
{
    const struct det_allocator *allocator = task->tasks->allocator;
    struct checks *checks = DET_NEW(allocator, struct checks);

    if (!checks)
        return NULL;
    checks->probe = DET_NEW(allocator, struct probe);
    if (!checks->probe) {
        DET_DELETE(allocator, checks);
        return NULL;
    }
    *checks->probe = (struct probe){ .tasks = task->tasks, .checks = checks };
    det_list_init(&checks->probe->loose);
    checks->task = task;
    checks->limit = (struct det_timer){ .run = on_limit, .argument = checks };
    checks->timer = (struct det_timer){ .run = on_timer, .argument = checks };
    return checks;
}

/* All operations that may fail; the first check runs in the next turn. */
static int arm(struct checks *checks)
{
    const struct det_readiness *readiness = readiness_of(checks);
    struct det_loop *loop = checks->task->tasks->loop;
    det_time now = det_loop_now(loop), within = readiness->within ? readiness->within : WITHIN;
    int r;

    r = readiness->check.run ? open_pool(checks->task->tasks) : 0;
    if (r == 0)
        r = det_loop_timer_set(
            loop, &checks->timer, readiness->by == DET_READY_BY_CHECK ? now : DET_NEVER);
    if (r == 0 && readiness->by != DET_READY_WHEN_STARTED && within != DET_NEVER)
        r = det_loop_timer_set(loop, &checks->limit, det_add_time(now, within));
    return r;
}

int det_checks_start(struct det_task *task)
{
    int r;

    if (!task->extras || !task->extras->readiness)
        return 0;
    task->extras->checks = make_checks(task);
    r = task->extras->checks ? arm(task->extras->checks) : DET_ERR_NO_MEMORY;
    if (r == 0)
        return 0;
    det_task_set_reason(task, det_error_text(r));
    return r;
}

void det_checks_begin(struct det_task *task)
{
    struct checks *checks = checks_of(task);

    if (!checks) {
        task->is_ready = true;
        det_tree_changed(task);
    } else if (readiness_of(checks)->by == DET_READY_WHEN_STARTED) {
        become_ready(checks);
        plan_next(checks);
    } else {
        det_tree_changed(task);
    }
}

void det_checks_notified(struct det_task *task)
{
    struct checks *checks = checks_of(task);

    if (!checks || task->is_ready || checks->is_quiet ||
        readiness_of(checks)->by != DET_READY_BY_NOTIFY)
        return;
    become_ready(checks);
    plan_next(checks);
}

void det_checks_quiet(struct det_task *task)
{
    struct checks *checks = checks_of(task);

    if (!checks)
        return;
    checks->is_quiet = true;
    det_loop_timer_cancel(task->tasks->loop, &checks->limit);
    if (checks->probe->child)
        (void)det_child_kill(checks->probe->child);
}

bool det_checks_delay(struct det_task *task)
{
    struct checks *checks = checks_of(task);

    if (!checks || !checks->probe->is_running || checks->probe->child)
        return false;
    det_checks_quiet(task);
    checks->is_last = true;
    det_attempt_cancel_work(task);
    return true;
}

bool det_checks_are_last(const struct det_task *task)
{
    const struct checks *checks = checks_of(task);

    return checks && checks->is_last && checks->probe->is_running;
}

void det_checks_stop(struct det_task *task)
{
    struct checks *checks = checks_of(task);
    struct det_tasks *tasks = task->tasks;

    if (!checks)
        return;
    task->extras->checks = NULL;
    det_loop_timer_cancel(tasks->loop, &checks->limit);
    det_loop_timer_cancel(tasks->loop, &checks->timer);
    det_assert(!checks->probe->is_running || checks->probe->child);
    if (checks->probe->child) {
        (void)det_child_kill(checks->probe->child);
        checks->probe->checks = NULL;
        det_list_append(&tasks->checks.loose, &checks->probe->loose);
    } else {
        free_probe(checks->probe);
    }
    DET_DELETE(tasks->allocator, checks);
}

void det_checks_close(struct det_tasks *tasks)
{
    struct det_list *node;

    while ((node = det_list_take(&tasks->checks.loose)))
        free_probe(DET_CONTAINER(node, struct probe, loose));
    if (tasks->checks.pool)
        det_pool_close(tasks->checks.pool);
}
