/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* add.c - requests to the registry, each executed as one step on the loop: add, remove, restart,
 * wake, find, watch. */
#include "base/memory.h"
#include "task/registry.h"

struct add {
    const struct det_task_spec *specs;
    size_t count;
    struct det_task **made;
    struct det_waiter **ret_waiter;
    det_task_id *ret;
    struct det_error *reterr;
    bool is_made; /* a later failure is published */
};

static void refuse(struct det_task *task, int code, const struct det_error *error)
{
    det_task_publish_refused(task, det_rejection_of(code), error->text);
    det_task_free(task);
}

static int add_one(struct det_tasks *tasks, void *argument)
{
    struct add *add = argument;
    struct det_waiter *waiter = NULL;
    struct det_task *task;
    struct det_error error;
    int r;

    r = det_task_make(tasks, add->specs, &task, add->reterr);
    if (r < 0)
        return r;
    add->is_made = true;
    det_task_publish(task, DET_TASK_EVENT_TASK_ADD_REQUESTED);
    r = add->ret_waiter ? det_waiter_open(task, &waiter) : 0;
    if (r < 0) {
        det_error_set(&error, r, "task %s: out of memory", task->name);
    } else {
        r = det_task_admit(task, &error);
        if (r < 0)
            det_waiter_close(waiter);
    }
    if (r < 0) {
        refuse(task, r, &error);
        return det_error_set(add->reterr, r, "%s", error.text);
    }
    if (add->ret_waiter)
        *add->ret_waiter = waiter;
    if (add->ret)
        *add->ret = task->node.id;
    return 0;
}

/* The caller has nothing to clean up: refused tasks are released, too. */
static int release_refused(const struct det_task_spec *specs, size_t count, int code)
{
    for (size_t i = 0; i < count && code < 0; i++)
        if (specs[i].release)
            specs[i].release(specs[i].argument);
    return code;
}

static int add_call(
    struct det_tasks *tasks, bool may_wait, const struct det_task_spec *spec,
    /* NOLINTNEXTLINE(readability-non-const-parameter): written through `add` */
    struct det_waiter **ret_waiter, det_task_id *ret, struct det_error *reterr)
{
    struct add add = { .specs = spec, .ret_waiter = ret_waiter, .ret = ret, .reterr = reterr };
    int r;

    r = det_tasks_wait_for_subscribers(tasks, may_wait, reterr);
    if (r < 0)
        return release_refused(spec, 1, r);
    r = det_tasks_call(tasks, may_wait, add_one, &add);
    if (r == DET_ERR_BUSY)
        det_error_set(
            reterr, r, "task %s: intake_max (%u) calls are waiting; try again",
            spec->name ? spec->name : "", (unsigned)tasks->options.intake_max);
    return release_refused(spec, 1, r);
}

int det_tasks_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_waiter **ret_waiter,
    det_task_id *ret, struct det_error *reterr)
{
    return add_call(tasks, true, spec, ret_waiter, ret, reterr);
}

int det_tasks_try_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_waiter **ret_waiter,
    det_task_id *ret, struct det_error *reterr)
{
    return add_call(tasks, false, spec, ret_waiter, ret, reterr);
}

static void publish_failure(
    struct det_tasks *tasks, const char *name, const struct det_error *error)
{
    struct det_task_event event = { .kind = DET_TASK_EVENT_TASK_ADD_FAILED,
                                    .rejection = DET_REJECTION_FAILED };

    det_event_set_text(event.name, sizeof event.name, name ? name : "");
    det_event_set_text(event.reason, sizeof event.reason, error->text);
    det_tasks_publish(tasks, &event);
}

static void run_posted_add(struct det_tasks *tasks, struct det_posted_call *call)
{
    struct det_posted_task *posted = DET_CONTAINER(call, struct det_posted_task, call);
    struct det_error error = { .code = 0 };
    det_task_id id = 0;
    struct add add = { .specs = &posted->spec, .ret = &id, .reterr = &error };
    int r;

    r = add_one(tasks, &add);
    if (r < 0 && !add.is_made && !posted->answer.run)
        publish_failure(tasks, posted->spec.name, &error);
    det_posted_task_end(posted, r, id, &error);
}

int det_tasks_post_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, const struct det_answer *answer)
{
    return det_tasks_post_task(tasks, spec, NULL, 0, answer, run_posted_add);
}

/* Adds a batch: makes, indexes and enters its tasks one by one; a failure undoes everything. */

static int make_all(struct det_tasks *tasks, struct add *add)
{
    int r;

    for (size_t i = 0; i < add->count; i++) {
        r = det_task_make(tasks, &add->specs[i], &add->made[i], add->reterr);
        if (r < 0)
            return r;
        det_task_publish(add->made[i], DET_TASK_EVENT_TASK_ADD_REQUESTED);
    }
    return 0;
}

/* All tasks are indexed before any is entered, so that they may depend on each other. */
static int step_all(
    struct add *add, int (*step)(struct det_task *task, struct det_error *reterr),
    size_t *ret_culprit)
{
    int r = 0;

    for (size_t i = 0; i < add->count && r >= 0; i++) {
        r = step(add->made[i], add->reterr);
        if (r < 0)
            *ret_culprit = i;
    }
    return r < 0 ? r : 0;
}

/* Undoes all changes of a task of the batch, which is not published yet. */
static void undo(struct det_task *task)
{
    if (det_component_is_supervised(&task->component))
        det_actor_abandon(task);
    det_tree_leave(task);
    if (task->is_registered)
        det_task_unindex(task);
}

static void undo_all(struct add *add, size_t culprit, int code)
{
    const char *text = add->reterr ? add->reterr->text : det_error_text(code);

    for (size_t i = 0; i < add->count; i++)
        if (add->made[i])
            undo(add->made[i]);
    for (size_t i = 0; i < add->count; i++) {
        enum det_rejection why =
            i == culprit ? det_rejection_of(code) : DET_REJECTION_BATCH_REJECTED;

        if (!add->made[i])
            continue;
        det_task_publish_refused(add->made[i], why, text);
        det_task_free(add->made[i]);
    }
}

static int add_all(struct det_tasks *tasks, struct add *add)
{
    size_t culprit = add->count;
    int r;

    r = make_all(tasks, add);
    if (r == 0)
        r = step_all(add, det_task_index, &culprit);
    if (r == 0)
        r = step_all(add, det_task_enter, &culprit);
    if (r < 0) {
        undo_all(add, culprit, r);
        return r;
    }
    for (size_t i = 0; i < add->count; i++) {
        det_task_announce(add->made[i]);
        if (add->ret)
            add->ret[i] = add->made[i]->node.id;
    }
    return 0;
}

static int add_batch(struct det_tasks *tasks, void *argument)
{
    struct add *add = argument;
    int r;

    add->made = DET_NEW_ARRAY(tasks->allocator, add->count, struct det_task *);
    if (!add->made)
        return det_error_set(add->reterr, DET_ERR_NO_MEMORY, "out of memory for a batch of tasks");
    r = add_all(tasks, add);
    DET_DELETE_ARRAY(tasks->allocator, add->made, add->count);
    return r;
}

int det_tasks_add_batch(
    /* NOLINTNEXTLINE(readability-non-const-parameter): written through `add` */
    struct det_tasks *tasks, const struct det_task_spec *specs, size_t count, det_task_id *ret,
    struct det_error *reterr)
{
    struct add add = { .specs = specs, .count = count, .ret = ret, .reterr = reterr };

    int r;

    if (count == 0)
        return 0;
    r = det_tasks_wait_for_subscribers(tasks, true, reterr);
    if (r == 0)
        r = det_tasks_call(tasks, true, add_batch, &add);
    return release_refused(specs, count, r);
}

/* By id. */

static int remove_one(struct det_tasks *tasks, void *argument)
{
    struct det_task *task = det_task_find(tasks, *(const det_task_id *)argument);

    return task && det_task_remove(task);
}

int det_tasks_remove(struct det_tasks *tasks, det_task_id id)
{
    return det_tasks_call(tasks, true, remove_one, &id);
}

struct posted_remove {
    struct det_posted_call call;
    det_task_id id;
};

static void run_posted_remove(struct det_tasks *tasks, struct det_posted_call *call)
{
    struct posted_remove *posted = DET_CONTAINER(call, struct posted_remove, call);

    (void)remove_one(tasks, &posted->id);
    DET_DELETE(tasks->allocator, posted);
}

int det_tasks_post_remove(struct det_tasks *tasks, det_task_id id)
{
    struct posted_remove *posted = DET_NEW(tasks->allocator, struct posted_remove);
    int r;

    if (!posted)
        return DET_ERR_NO_MEMORY;
    posted->call.run = run_posted_remove;
    posted->id = id;
    r = det_tasks_post(tasks, &posted->call);
    if (r < 0)
        DET_DELETE(tasks->allocator, posted);
    return r;
}

struct watch {
    det_task_id id;
    struct det_waiter *waiter;
    bool remove_wanted;
};

static int watch_one(struct det_tasks *tasks, void *argument)
{
    struct watch *watch = argument;
    struct det_task *task = det_task_find(tasks, watch->id);
    int r;

    if (!task)
        return DET_ERR_NOT_FOUND;
    r = det_waiter_open(task, &watch->waiter);
    if (r < 0)
        return r;
    return watch->remove_wanted && det_task_remove(task);
}

int det_tasks_watch(struct det_tasks *tasks, det_task_id id, struct det_waiter **ret)
{
    struct watch watch = { .id = id };
    int r;

    r = det_tasks_call(tasks, true, watch_one, &watch);
    if (r < 0)
        return r;
    *ret = watch.waiter;
    return 0;
}

int det_tasks_stop(struct det_tasks *tasks, det_task_id id, det_time deadline)
{
    struct watch watch = { .id = id, .remove_wanted = true };
    int claimed, r;

    claimed = det_tasks_call(tasks, true, watch_one, &watch);
    if (claimed == DET_ERR_NOT_FOUND)
        return 0;
    if (claimed < 0)
        return claimed;
    r = det_waiter_wait(watch.waiter, deadline, NULL);
    det_waiter_close(watch.waiter);
    return r < 0 ? r : claimed;
}

static int drain_one(struct det_tasks *tasks, void *argument)
{
    struct det_task *task = det_task_find(tasks, *(const det_task_id *)argument);

    if (!task || task->is_removing || task->attempts.is_last ||
        task->attempts.outcome != DET_TASK_OUTCOME_NONE)
        return 0;
    if (!task->is_registered || !det_actor_has_attempt(task) || det_actor_restarts(task))
        return det_task_remove(task);
    task->attempts.is_last = true;
    return 1;
}

int det_tasks_drain(struct det_tasks *tasks, det_task_id id)
{
    return det_tasks_call(tasks, true, drain_one, &id);
}

static int restart_one(struct det_tasks *tasks, void *argument)
{
    struct det_task *task = det_task_find(tasks, *(const det_task_id *)argument);

    if (!task || !task->is_registered || task->is_removing || task->attempts.is_last)
        return 0;
    if (task->is_on_hold)
        det_tree_resume(task);
    det_actor_restart(task);
    return 1;
}

int det_tasks_restart(struct det_tasks *tasks, det_task_id id)
{
    return det_tasks_call(tasks, true, restart_one, &id);
}

static int hold_one(struct det_tasks *tasks, void *argument)
{
    struct det_task *task = det_task_find(tasks, *(const det_task_id *)argument);

    if (!task || !task->is_registered || task->is_removing || task->attempts.is_last ||
        task->is_on_hold || task->attempts.outcome != DET_TASK_OUTCOME_NONE)
        return 0;
    task->is_on_hold = true;
    det_actor_hold(task);
    return 1;
}

int det_tasks_hold(struct det_tasks *tasks, det_task_id id)
{
    return det_tasks_call(tasks, true, hold_one, &id);
}

static int wake_one(struct det_tasks *tasks, void *argument)
{
    struct det_task *task = det_task_find(tasks, *(const det_task_id *)argument);

    if (!task || !task->is_registered)
        return 0;
    det_component_wake(&task->component);
    return 1;
}

int det_tasks_wake(struct det_tasks *tasks, det_task_id id)
{
    return det_tasks_call(tasks, true, wake_one, &id);
}

struct find {
    const char *name;
    det_task_id id;
};

static int find_one(struct det_tasks *tasks, void *argument)
{
    struct find *find = argument;
    const struct det_task *task = det_map_get(&tasks->index.names, find->name);

    find->id = task ? task->node.id : 0;
    return 0;
}

det_task_id det_tasks_find(struct det_tasks *tasks, const char *name)
{
    struct find find = { .name = name };

    return det_tasks_call(tasks, true, find_one, &find) < 0 ? 0 : find.id;
}
