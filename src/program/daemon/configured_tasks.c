/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* configured_tasks.c - the tasks of the file, including those that the supervisor does not have.
 *
 *     unknown --add, dependencies are met--> in the supervisor --its end--> ended
 *        | add, they are not                     ^      |    ^                |
 *        +------------------> pending -----------+      |    +--- restart ----+
 *                                ^  they are met now    | queued in its slot, and a
 *                                +----------------------+ dependency has gone
 *
 * A task with a slot is pending until its dependencies are met. Otherwise it would hold the slot,
 * or a place in its queue, while it waits for tasks that may need the same slot. Any other task is
 * added once the supervisor has its dependencies. Completed tasks are removed from the
 * dependencies, since the supervisor forgets a completed task that no other depends on.
 *
 * Invariants
 *   1. `id` is not 0 exactly while the supervisor has the task.
 *   2. At most one of `id`, `is_pending` and `has_ended` is set. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/project_internal.h"
#include "daemon/slots.h"
#include "daemon/tasks_internal.h"

static bool has_completed(const struct up_configured *configured)
{
    return configured->has_ended && configured->end.outcome == DET_TASK_OUTCOME_COMPLETED;
}

static struct up_configured *find_known(const struct up *up, const char *name)
{
    int index = up_find_task(up_project(up), name);

    return index < 0 ? NULL : &up_project(up)->configured[index];
}

/* True if the supervisor lacks a task of the group. */
static bool has_pending_member(const struct up *up, const char *group)
{
    const struct config *config = up_config(up);

    for (size_t i = 0; i < config->task_count; i++) {
        if (up_project(up)->configured[i].is_pending &&
            up_is_in_group(up_project(up), config->tasks[i].spec.group, group))
            return true;
    }
    return false;
}

/* True if this dependency permits adding the task. */
static bool permits_adding(
    struct up *up, const struct config_task *task, const struct det_dependency *on)
{
    const struct up_configured *configured = find_known(up, on->name);

    if (configured && has_completed(configured))
        return true;
    if (configured ? det_tasks_find(up_tasks_supervisor(up), on->name) == 0
                   : has_pending_member(up, on->name))
        return false;
    return !task->slot || det_tasks_is_met(up_tasks_supervisor(up), on) == 1;
}

static bool may_be_added(struct up *up, const struct config_task *task)
{
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        if (!permits_adding(up, task, &task->spec.depends_on[i]))
            return false;
    }
    return true;
}

/* Copies the dependencies that have not completed. A task may wait long for a slot, so for it one
 * completion is enough. */
static size_t keep_dependencies(
    struct up *up, const struct config_task *task, struct det_dependency *target)
{
    size_t count = 0;

    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const struct det_dependency *on = &task->spec.depends_on[i];
        const struct up_configured *configured = find_known(up, on->name);

        if ((configured && has_completed(configured)) ||
            (task->slot && on->when == DET_WHEN_COMPLETED))
            continue;
        target[count++] = *on;
    }
    det_assert(count <= task->spec.depends_on_count);
    return count;
}

static void become_pending(struct up *up, struct up_configured *configured)
{
    det_assert(configured->id == 0);
    configured->is_pending = true;
    configured->is_reported = configured->has_ended = false;
    configured->at = det_world_now(up_cli(up)->world, DET_CLOCK_WALL);
}

static void become_ended(
    struct up *up, struct up_configured *configured, const struct det_task_end *end)
{
    configured->id = 0;
    configured->is_pending = false;
    configured->has_ended = true;
    configured->end = *end;
    /* Tasks that depend on it now wait for another reason. */
    for (size_t i = 0; i < up_config(up)->task_count; i++)
        up_project(up)->configured[i].is_reported = false;
    configured->at = det_world_now(up_cli(up)->world, DET_CLOCK_WALL);
}

/* A task may end before the call that adds it returns its id. Ids ascend, so early_end, which keeps
 * the end of the highest id, is that of this task. */
static int submit_task(
    struct up *up, const struct config_task *task, struct det_admitted *ret,
    struct det_error *reterr)
{
    const struct det_allocator *allocator = up_allocator(up);
    size_t count = task->spec.depends_on_count + 1;
    struct det_dependency *kept = DET_NEW_ARRAY(allocator, count, struct det_dependency);
    struct det_task_spec spec = task->spec;
    int r;

    if (!kept)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    spec.depends_on_count = keep_dependencies(up, task, kept);
    spec.depends_on = kept;
    up_tasks(up)->early_end = (struct det_task_end){ 0 };
    if (task->slot)
        r = up_slot_submit(
            up,
            &(struct det_submission){
                .slot = task->slot, .admission = task->admission, .task = &spec },
            ret, reterr);
    else
        r = det_tasks_add(up_tasks_supervisor(up), &spec, NULL, &ret->id, reterr);
    DET_DELETE_ARRAY(allocator, kept, count);
    return r;
}

static int add_task(struct up *up, size_t index, struct det_error *reterr)
{
    const struct config_task *task = &up_config(up)->tasks[index];
    struct up_configured *configured = &up_project(up)->configured[index];
    struct det_admitted admitted = { 0 };
    int r;

    r = submit_task(up, task, &admitted, reterr);
    configured->is_pending = false;
    if (r < 0) {
        struct det_task_end end = { .outcome = DET_TASK_OUTCOME_REJECTED,
                                    .rejection = r == DET_ERR_REFUSED ? admitted.rejection
                                                                      : DET_REJECTION_FAILED };

        become_ended(up, configured, &end);
        return r;
    }
    configured->id = admitted.id;
    configured->has_ended = configured->is_reported = false;
    if (up_tasks(up)->early_end.id == admitted.id)
        become_ended(up, configured, &up_tasks(up)->early_end);
    return 0;
}

struct group_check {
    const char *name;
    char *reason; /* NULL: not requested; DET_TASK_REASON_MAX and the final zero */
    bool has_failed;
};

static int see_group(void *user, const struct det_task_group_info *info)
{
    struct group_check *search = user;

    if (strcmp(info->name, search->name) != 0 || strcmp(info->state, "failed") != 0)
        return 0;
    search->has_failed = true;
    if (search->reason)
        (void)det_text_copy(search->reason, DET_TASK_REASON_MAX + 1, info->reason);
    return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the look */
bool up_group_has_failed(const struct up *up, const char *name, char *reason)
{
    struct group_check search = { .name = name, .reason = reason };

    return det_tasks_each_group(up_tasks_supervisor(up), see_group, &search) == 0 &&
           search.has_failed;
}

/* True if the task or group of this name has ended without success; with its state and the
 * reason. */
static bool has_ended_badly(
    const struct up *up, const char *name, const char **ret_state, char *reason)
{
    const struct up_configured *configured = find_known(up, name);

    *ret_state = configured ? up_configured_state(configured) : "failed";
    if (!configured)
        return up_group_has_failed(up, name, reason);
    if (!configured->has_ended || has_completed(configured))
        return false;
    (void)det_text_copy(reason, DET_TASK_REASON_MAX + 1, configured->end.reason);
    return true;
}

#define OBSTACLE_TEXT (DET_TASK_NAME_MAX + DET_TASK_REASON_MAX + 32)

/* Returns the dependency that keeps the task from starting until a client acts, in `target`; NULL:
 * none. */
static const char *find_obstacle(const struct up *up, size_t index, char *target, size_t size)
{
    const struct det_task_spec *spec = &up_config(up)->tasks[index].spec;

    for (size_t i = 0; i < spec->depends_on_count; i++) {
        const char *name = spec->depends_on[i].name, *state;
        char reason[DET_TASK_REASON_MAX + 1] = "";

        if (!has_ended_badly(up, name, &state, reason))
            continue;
        snprintf(target, size, "%s: %s%s%s", name, state, *reason ? ": " : "", reason);
        return target;
    }
    return NULL;
}

struct failed_group {
    const struct up *up;
    const char *name; /* the group that has failed, or one below it */
    bool is_there;
};

static int see_failed_group(void *user, const struct det_task_group_info *info)
{
    struct failed_group *wanted = user;

    wanted->is_there |= strcmp(info->state, "failed") == 0 &&
                        up_is_in_group(up_project(wanted->up), wanted->name, info->name);
    return 0;
}

static bool is_in_failed_group(const struct up *up, const char *group)
{
    struct failed_group wanted = { .up = up, .name = group };

    return group && det_tasks_each_group(up_tasks_supervisor(up), see_failed_group, &wanted) == 0 &&
           wanted.is_there;
}

bool up_waits_for_failure(const struct up *up, const struct det_task_info *info)
{
    int index = up_find_task(up_project(up), info->name);
    const struct det_task_spec *spec = index < 0 ? NULL : &up_config(up)->tasks[index].spec;

    if (strcmp(info->state, "held") != 0)
        return false;
    for (size_t i = 0; spec && i < spec->depends_on_count; i++) {
        char reason[DET_TASK_REASON_MAX + 1];
        const char *state;

        if (has_ended_badly(up, spec->depends_on[i].name, &state, reason) &&
            strcmp(state, "failed") == 0)
            return true;
    }
    return is_in_failed_group(up, info->group);
}

int up_add_one(struct up *up, size_t index, struct det_error *reterr)
{
    const struct config_task *task = &up_config(up)->tasks[index];
    char obstacle[OBSTACLE_TEXT];

    if (find_obstacle(up, index, obstacle, sizeof obstacle))
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%s depends on %s; restart that first", task->spec.name,
            obstacle);
    if (may_be_added(up, task))
        return add_task(up, index, reterr);
    become_pending(up, &up_project(up)->configured[index]);
    return 0;
}

void up_add_pending(struct up *up)
{
    const struct config *config = up_config(up);

    for (size_t i = 0; i < config->task_count && up_is_running(up); i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);
        struct det_error error = { 0 };
        int r;

        if (!up_project(up)->configured[index].is_pending || !may_be_added(up, config->order[i]))
            continue;
        r = add_task(up, index, &error);
        if (r < 0)
            up_set_failed(up);
        if (r < 0 && r != DET_ERR_REFUSED)
            up_note_failure(up, config->order[i]->spec.name, "not admitted: %s", error.text);
    }
}

/* True if a dependency has gone while the task was queued. */
static bool has_lost_dependency(struct up *up, const struct config_task *task)
{
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const char *name = task->spec.depends_on[i].name;

        if (up_find_task(up_project(up), name) >= 0 &&
            det_tasks_find(up_tasks_supervisor(up), name) == 0)
            return true;
    }
    return false;
}

void up_configured_ended(struct up *up, const struct det_task_end *end)
{
    const struct config *config = up_config(up);

    up_check_again(up);
    if (end->id > up_tasks(up)->early_end.id)
        up_tasks(up)->early_end = *end;
    for (size_t i = 0; i < config->task_count; i++) {
        struct up_configured *configured = &up_project(up)->configured[i];

        if (configured->id != end->id)
            continue;
        become_ended(up, configured, end);
        if (configured->is_replaced)
            up_configured_wait(up, i);
        else if (
            end->outcome == DET_TASK_OUTCOME_REJECTED && end->rejection == DET_REJECTION_FAILED &&
            has_lost_dependency(up, &config->tasks[i]))
            become_pending(up, configured);
        else if (up_is_refusal(end->rejection))
            up_set_failed(up);
        return;
    }
}

void up_configured_wait(struct up *up, size_t index)
{
    up_project(up)->configured[index].is_replaced = false;
    become_pending(up, &up_project(up)->configured[index]);
    up_check_again(up);
}

bool up_is_refusal(enum det_rejection rejection)
{
    switch (rejection) {
    case DET_REJECTION_ALREADY_EXISTS:
    case DET_REJECTION_BATCH_REJECTED:
    case DET_REJECTION_SLOT_BUSY:
    case DET_REJECTION_QUEUE_FULL:
    case DET_REJECTION_FAILED:
        return true;
    case DET_REJECTION_NONE:
    case DET_REJECTION_SUPERSEDED:
    case DET_REJECTION_REMOVED:
    case DET_REJECTION_PURGED:
    case DET_REJECTION_SHUTTING_DOWN:
    case DET_REJECTION_COUNT:
        break;
    }
    return false;
}

bool up_configured_forget(struct up *up, size_t index)
{
    struct up_configured *configured = &up_project(up)->configured[index];

    if (!configured->is_pending)
        return false;
    become_ended(up, configured, &(struct det_task_end){ .outcome = DET_TASK_OUTCOME_CANCELLED });
    up_check_again(up);
    return true;
}

/* Reading. */

const char *up_configured_state(const struct up_configured *configured)
{
    if (configured->is_pending)
        return "held";
    switch (configured->end.outcome) {
    case DET_TASK_OUTCOME_COMPLETED:
        return "completed";
    case DET_TASK_OUTCOME_FAILED:
    case DET_TASK_OUTCOME_FATAL:
        return "failed";
    case DET_TASK_OUTCOME_REJECTED:
        return up_is_refusal(configured->end.rejection) ? "rejected" : "stopped";
    case DET_TASK_OUTCOME_CANCELLED:
    case DET_TASK_OUTCOME_FORCE_ABORTED:
    case DET_TASK_OUTCOME_NONE:
    case DET_TASK_OUTCOME_COUNT:
        break;
    }
    return "stopped";
}

/* Returns what a pending task waits for. */
static const char *find_wait(struct up *up, size_t index, char *target, size_t size)
{
    static const char *const texts[] = {
        [DET_WHEN_RUNNING] = "not running yet",
        [DET_WHEN_HEALTHY] = "not healthy yet",
        [DET_WHEN_COMPLETED] = "not completed yet",
    };
    const struct config_task *task = &up_config(up)->tasks[index];

    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const struct det_dependency *on = &task->spec.depends_on[i];

        if (permits_adding(up, task, on))
            continue;
        snprintf(target, size, "%s: %s", on->name, texts[on->when]);
        return target;
    }
    return NULL;
}

static int show_task(struct up *up, size_t index, up_each_fn *each, void *user)
{
    const struct config_task *task = &up_config(up)->tasks[index];
    const struct up_configured *configured = &up_project(up)->configured[index];
    char text[OBSTACLE_TEXT];
    const char *wait = configured->is_pending ? find_obstacle(up, index, text, sizeof text) : NULL;
    struct det_task_info info = {
        .id = configured->end.id,
        .name = task->spec.name,
        .group = task->spec.group,
        .slot = task->slot,
        .kind = "process",
        .state = up_configured_state(configured),
        .reason = configured->is_pending ? "" : configured->end.reason,
        .attempt = configured->end.attempts,
        .restarts = configured->end.restarts,
        .since = configured->at,
        .last = configured->end,
    };

    info.waits_for =
        wait || !configured->is_pending ? wait : find_wait(up, index, text, sizeof text);
    return each(user, &info);
}

struct overlay {
    struct up *up;
    up_each_fn *each;
    void *user;
};

/* Reports the task as the supervisor does, and adds what the supervisor has forgotten. */
static int show_overlaid(void *user, const struct det_task_info *info)
{
    const struct overlay *overlay = user;
    struct det_task_info copy = *info;
    int index = up_find_task(up_project(overlay->up), info->name);
    char text[OBSTACLE_TEXT];
    const char *obstacle;

    if (info->is_on_hold && strcmp(info->state, "held") == 0) {
        copy.state = "stopped";
        copy.waits_for = NULL;
    } else if (index >= 0 && info->waits_for) {
        obstacle = find_obstacle(overlay->up, (size_t)index, text, sizeof text);
        copy.waits_for = obstacle ? obstacle : info->waits_for;
    }
    return overlay->each(overlay->user, &copy);
}

int up_each_task(struct up *up, up_each_fn *each, void *user)
{
    struct overlay overlay = { .up = up, .each = each, .user = user };
    int r;

    r = det_tasks_each(up_tasks_supervisor(up), show_overlaid, &overlay);
    for (size_t i = 0; i < up_config(up)->task_count && r >= 0; i++) {
        if (up_project(up)->configured[i].id == 0 &&
            (up_project(up)->configured[i].is_pending || up_project(up)->configured[i].has_ended))
            r = show_task(up, i, each, user);
    }
    return r;
}
