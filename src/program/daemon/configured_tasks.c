/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* configured_tasks.c - the tasks of the file, also while the supervisor of tasks does not have
 * them.
 *
 *     unknown --add, its dependencies are there--> with the supervisor --its end--> ended
 *        | add, they are not                         ^      |    ^                    |
 *        +------------------> pending ---------------+      |    +----- restart ------+
 *                                ^   they are there now     | in the queue of its slot, and
 *                                +--------------------------+ what it depends on went away
 *
 * A task that needs a slot is pending until all it depends on is as it wants it: it would own the
 * slot, or stand in its queue, while it waits for others that may need that slot too. Any other is
 * the supervisor's as soon as all it depends on is. What has completed is taken out of what it
 * depends on: the supervisor forgets it when nobody depends on it.
 *
 * Invariants
 *   1. `id` is not 0 exactly while the supervisor has the task.
 *   2. At most one of `id`, `is_pending` and `has_ended` says where it is. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"

static bool has_completed(const struct up_known *known)
{
    return known->has_ended && known->end.outcome == DET_TASK_OUTCOME_COMPLETED;
}

static struct up_known *find_known(const struct up *up, const char *name)
{
    int index = up_find_task(up, name);

    return index < 0 ? NULL : &up->known[index];
}

/* Whether a task of the group is not the supervisor's yet. */
static bool has_pending_member(const struct up *up, const char *group)
{
    const struct config *config = &up->file.config;

    for (size_t i = 0; i < config->task_count; i++) {
        if (up->known[i].is_pending && up_is_in_group(up, config->tasks[i].spec.group, group))
            return true;
    }
    return false;
}

/* Whether the task may be added as far as this goes. */
static bool is_there_for(
    struct up *up, const struct config_task *task, const struct det_dependency *on)
{
    const struct up_known *known = find_known(up, on->name);

    if (known && has_completed(known))
        return true;
    if (known ? det_tasks_find(up->tasks, on->name) == 0 : has_pending_member(up, on->name))
        return false;
    return !task->slot || det_tasks_is_met(up->tasks, on) == 1;
}

static bool may_be_added(struct up *up, const struct config_task *task)
{
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        if (!is_there_for(up, task, &task->spec.depends_on[i]))
            return false;
    }
    return true;
}

/* The spec without what has completed; a slot may take its time, so what has succeeded once is
 * enough for it too. */
static size_t keep_dependencies(
    struct up *up, const struct config_task *task, struct det_dependency *target)
{
    size_t count = 0;

    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const struct det_dependency *on = &task->spec.depends_on[i];
        const struct up_known *known = find_known(up, on->name);

        if ((known && has_completed(known)) || (task->slot && on->when == DET_WHEN_COMPLETED))
            continue;
        target[count++] = *on;
    }
    return count;
}

static void become_pending(struct up *up, struct up_known *known)
{
    known->is_pending = true;
    known->is_told = known->has_ended = false;
    known->at = det_world_now(up->cli->world, DET_CLOCK_WALL);
}

static void become_ended(struct up *up, struct up_known *known, const struct det_task_end *end)
{
    known->id = 0;
    known->is_pending = false;
    known->has_ended = true;
    known->end = *end;
    /* Those that wait for it wait for something else now. */
    for (size_t i = 0; i < up->file.config.task_count; i++)
        up->known[i].is_told = false;
    known->at = det_world_now(up->cli->world, DET_CLOCK_WALL);
}

/* Ends may come before the call that adds the task has told its id: ids grow, so it is the last. */
static int give(
    struct up *up, const struct config_task *task, struct det_admitted *ret,
    struct det_error *reterr)
{
    const struct det_allocator *allocator = up->cli->allocator;
    size_t count = task->spec.depends_on_count + 1;
    struct det_dependency *kept = DET_NEW_ARRAY(allocator, count, struct det_dependency);
    struct det_task_spec spec = task->spec;
    int r;

    if (!kept)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    spec.depends_on_count = keep_dependencies(up, task, kept);
    spec.depends_on = kept;
    up->early_end = (struct det_task_end){ 0 };
    up->submitting = spec.name;
    if (task->slot)
        r = det_slot_submit(
            up->tasks,
            &(struct det_submission){
                .slot = task->slot, .admission = task->admission, .task = &spec },
            NULL, ret, reterr);
    else
        r = det_tasks_add(up->tasks, &spec, NULL, &ret->id, reterr);
    up->submitting = NULL;
    DET_DELETE_ARRAY(allocator, kept, count);
    return r;
}

static int add(struct up *up, size_t index, struct det_error *reterr)
{
    const struct config_task *task = &up->file.config.tasks[index];
    struct up_known *known = &up->known[index];
    struct det_admitted admitted = { 0 };
    int r;

    r = give(up, task, &admitted, reterr);
    known->is_pending = false;
    if (r < 0) {
        struct det_task_end end = { .outcome = DET_TASK_OUTCOME_REJECTED,
                                    .rejection = r == DET_ERR_REFUSED ? admitted.rejection
                                                                      : DET_REJECTION_FAILED };

        become_ended(up, known, &end);
        return r;
    }
    known->id = admitted.id;
    known->has_ended = known->is_told = false;
    if (up->early_end.id == admitted.id)
        become_ended(up, known, &up->early_end);
    return 0;
}

struct group_look {
    const char *name;
    char *reason; /* NULL: not wanted; DET_TASK_REASON_MAX and the end */
    bool has_failed;
};

static int see_group(void *user, const struct det_task_group_info *info)
{
    struct group_look *look = user;

    if (strcmp(info->name, look->name) != 0 || strcmp(info->state, "failed") != 0)
        return 0;
    look->has_failed = true;
    if (look->reason)
        (void)det_text_copy(look->reason, DET_TASK_REASON_MAX + 1, info->reason);
    return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the look */
bool up_group_has_failed(const struct up *up, const char *name, char *reason)
{
    struct group_look look = { .name = name, .reason = reason };

    return det_tasks_each_group(up->tasks, see_group, &look) == 0 && look.has_failed;
}

/* Whether what has this name has come to a bad end; with its state and the reason. */
static bool has_ended_badly(
    const struct up *up, const char *name, const char **ret_state, char *reason)
{
    const struct up_known *known = find_known(up, name);

    *ret_state = known ? up_known_state(known) : "failed";
    if (!known)
        return up_group_has_failed(up, name, reason);
    if (!known->has_ended || has_completed(known))
        return false;
    (void)det_text_copy(reason, DET_TASK_REASON_MAX + 1, known->end.reason);
    return true;
}

/* Why it cannot begin before somebody does something; `target` is returned, or NULL: it can. */
const char *up_known_obstacle(const struct up *up, size_t index, char *target, size_t size)
{
    const struct det_task_spec *spec = &up->file.config.tasks[index].spec;

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

int up_add_one(struct up *up, size_t index, struct det_error *reterr)
{
    const struct config_task *task = &up->file.config.tasks[index];
    char obstacle[UP_OBSTACLE_TEXT];

    if (up_known_obstacle(up, index, obstacle, sizeof obstacle))
        return det_error_set(
            reterr, DET_ERR_REFUSED, "%s depends on %s; restart that first", task->spec.name,
            obstacle);
    if (may_be_added(up, task))
        return add(up, index, reterr);
    become_pending(up, &up->known[index]);
    return 0;
}

void up_add_pending(struct up *up)
{
    const struct config *config = &up->file.config;

    for (size_t i = 0; i < config->task_count && up->state == UP_RUNNING; i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);
        struct det_error error = { 0 };
        int r;

        if (!up->known[index].is_pending || !may_be_added(up, config->order[i]))
            continue;
        r = add(up, index, &error);
        up->has_failed = up->has_failed || r < 0;
        if (r < 0 && r != DET_ERR_REFUSED)
            up_note_failure(up, config->order[i]->spec.name, "not admitted: %s", error.text);
    }
}

/* What it depends on went away while it stood in the queue. */
static bool has_lost_dependency(struct up *up, const struct config_task *task)
{
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const char *name = task->spec.depends_on[i].name;

        if (up_find_task(up, name) >= 0 && det_tasks_find(up->tasks, name) == 0)
            return true;
    }
    return false;
}

void up_known_ended(struct up *up, const struct det_task_end *end)
{
    const struct config *config = &up->file.config;

    up->has_news = true;
    if (end->id > up->early_end.id)
        up->early_end = *end;
    for (size_t i = 0; i < config->task_count; i++) {
        struct up_known *known = &up->known[i];

        if (known->id != end->id)
            continue;
        become_ended(up, known, end);
        if (known->is_replaced)
            up_known_wait(up, i);
        else if (
            end->outcome == DET_TASK_OUTCOME_REJECTED && end->rejection == DET_REJECTION_FAILED &&
            has_lost_dependency(up, &config->tasks[i]))
            become_pending(up, known);
        else if (up_is_refusal(end->rejection))
            up->has_failed = true;
        return;
    }
}

void up_known_wait(struct up *up, size_t index)
{
    up->known[index].is_replaced = false;
    become_pending(up, &up->known[index]);
    up->has_news = true;
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

bool up_known_forget(struct up *up, size_t index)
{
    struct up_known *known = &up->known[index];

    if (!known->is_pending)
        return false;
    become_ended(up, known, &(struct det_task_end){ .outcome = DET_TASK_OUTCOME_CANCELLED });
    up->has_news = true;
    return true;
}

/* Looking. */

const char *up_known_state(const struct up_known *known)
{
    if (known->is_pending)
        return "held";
    switch (known->end.outcome) {
    case DET_TASK_OUTCOME_COMPLETED:
        return "completed";
    case DET_TASK_OUTCOME_FAILED:
    case DET_TASK_OUTCOME_FATAL:
        return "failed";
    case DET_TASK_OUTCOME_REJECTED:
        return up_is_refusal(known->end.rejection) ? "rejected" : "stopped";
    case DET_TASK_OUTCOME_CANCELLED:
    case DET_TASK_OUTCOME_FORCE_ABORTED:
    case DET_TASK_OUTCOME_NONE:
    case DET_TASK_OUTCOME_COUNT:
        break;
    }
    return "stopped";
}

/* What a pending one waits for. */
static const char *wait_of(struct up *up, size_t index, char *target, size_t size)
{
    static const char *const texts[] = {
        [DET_WHEN_RUNNING] = "not running yet",
        [DET_WHEN_HEALTHY] = "not healthy yet",
        [DET_WHEN_COMPLETED] = "not completed yet",
    };
    const struct config_task *task = &up->file.config.tasks[index];

    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const struct det_dependency *on = &task->spec.depends_on[i];

        if (is_there_for(up, task, on))
            continue;
        snprintf(target, size, "%s: %s", on->name, texts[on->when]);
        return target;
    }
    return NULL;
}

static int show(struct up *up, size_t index, up_each_fn *each, void *user)
{
    const struct config_task *task = &up->file.config.tasks[index];
    const struct up_known *known = &up->known[index];
    char text[UP_OBSTACLE_TEXT];
    const char *wait = known->is_pending ? up_known_obstacle(up, index, text, sizeof text) : NULL;
    struct det_task_info info = {
        .id = known->end.id,
        .name = task->spec.name,
        .group = task->spec.group,
        .slot = task->slot,
        .kind = "process",
        .state = up_known_state(known),
        .reason = known->is_pending ? "" : known->end.reason,
        .attempt = known->end.attempts,
        .restarts = known->end.restarts,
        .since = known->at,
        .last = known->end,
    };

    info.waits_for = wait || !known->is_pending ? wait : wait_of(up, index, text, sizeof text);
    return each(user, &info);
}

struct overlay {
    struct up *up;
    up_each_fn *each;
    void *user;
};

/* What the supervisor says, but for what it has forgotten. */
static int show_overlaid(void *user, const struct det_task_info *info)
{
    const struct overlay *overlay = user;
    struct det_task_info copy = *info;
    int index = up_find_task(overlay->up, info->name);
    char text[UP_OBSTACLE_TEXT];
    const char *obstacle;

    if (info->is_on_hold && strcmp(info->state, "held") == 0) {
        copy.state = "stopped";
        copy.waits_for = NULL;
    } else if (index >= 0 && info->waits_for) {
        obstacle = up_known_obstacle(overlay->up, (size_t)index, text, sizeof text);
        copy.waits_for = obstacle ? obstacle : info->waits_for;
    }
    return overlay->each(overlay->user, &copy);
}

int up_each_task(struct up *up, up_each_fn *each, void *user)
{
    struct overlay overlay = { .up = up, .each = each, .user = user };
    int r;

    r = det_tasks_each(up->tasks, show_overlaid, &overlay);
    for (size_t i = 0; i < up->file.config.task_count && r >= 0; i++) {
        if (up->known[i].id == 0 && (up->known[i].is_pending || up->known[i].has_ended))
            r = show(up, i, each, user);
    }
    return r;
}
