/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* extras.c - parts that few tasks have: a process to run, dependencies, checks, a schedule. Copies
 * everything that the spec points to. */
#include "task/extras.h"

#include <string.h>

#include "base/memory.h"

static const char *copy_text(struct det_arena *arena, const char *text, bool *failed)
{
    const char *copy;

    if (!text)
        return NULL;
    copy = det_arena_copy(arena, text);
    *failed |= !copy;
    return copy;
}

/* A NULL-terminated list of strings. */
static const char *const *copy_list(struct det_arena *arena, const char *const *list, bool *failed)
{
    const char **copy;
    size_t count = 0;

    if (!list)
        return NULL;
    while (list[count])
        count++;
    copy = det_arena_array(arena, count + 1, sizeof *copy);
    *failed |= !copy;
    for (size_t i = 0; i < count && !*failed; i++)
        copy[i] = copy_text(arena, list[i], failed);
    return copy;
}

static const int *copy_codes(struct det_arena *arena, const int *codes, size_t count, bool *failed)
{
    int *copy;

    if (count == 0)
        return NULL;
    copy = det_arena_array(arena, count, sizeof *copy);
    *failed |= !copy;
    if (copy)
        memcpy(copy, codes, count * sizeof *copy);
    return copy;
}

static const struct det_process_limit *copy_limits(
    struct det_arena *arena, const struct det_process_limit *limits, size_t count, bool *failed)
{
    struct det_process_limit *copy;

    if (!count)
        return NULL;
    copy = det_arena_array(arena, count, sizeof *copy);
    *failed |= !copy;
    if (copy)
        memcpy(copy, limits, count * sizeof *copy);
    return copy;
}

static const struct det_process_spec *copy_process(
    struct det_arena *arena, const struct det_process_spec *spec, bool *failed)
{
    struct det_process_spec *copy = det_arena_alloc(arena, sizeof *copy);

    *failed |= !copy;
    if (!copy)
        return NULL;
    *copy = *spec;
    copy->argv = copy_list(arena, spec->argv, failed);
    copy->environment = copy_list(arena, spec->environment, failed);
    copy->folder = copy_text(arena, spec->folder, failed);
    copy->user = copy_text(arena, spec->user, failed);
    copy->limits = copy_limits(arena, spec->limits, spec->limit_count, failed);
    copy->success_codes = copy_codes(arena, spec->success_codes, spec->success_code_count, failed);
    copy->fatal_codes = copy_codes(arena, spec->fatal_codes, spec->fatal_code_count, failed);
    return copy;
}

static const struct det_dependency *copy_dependencies(
    struct det_arena *arena, const struct det_dependency *list, size_t count, bool *failed)
{
    struct det_dependency *copy = det_arena_array(arena, count, sizeof *copy);

    *failed |= !copy;
    for (size_t i = 0; i < count && !*failed; i++) {
        copy[i] = list[i];
        copy[i].name = copy_text(arena, list[i].name, failed);
    }
    return copy;
}

static void copy_readiness(
    struct task_extras *extras, const struct det_readiness *readiness, bool *failed)
{
    struct det_readiness *copy = det_arena_alloc(&extras->arena, sizeof *copy);

    *failed |= !copy;
    if (!copy)
        return;
    *copy = *readiness;
    copy->check.argv = copy_list(&extras->arena, readiness->check.argv, failed);
    extras->readiness = copy;
}

static const struct det_zone *copy_zone(
    struct det_arena *arena, const struct det_zone *zone, bool *failed)
{
    struct det_zone *copy = zone ? det_arena_alloc(arena, sizeof *copy) : NULL;

    *failed |= zone && !copy;
    if (copy)
        *copy = *zone;
    return copy;
}

int det_task_spec_copy(
    struct det_arena *arena, const struct det_task_spec *spec, struct det_task_spec *ret)
{
    bool failed = false;

    *ret = *spec;
    ret->name = copy_text(arena, spec->name, &failed);
    ret->group = copy_text(arena, spec->group, &failed);
    ret->schedule.cron = copy_text(arena, spec->schedule.cron, &failed);
    ret->schedule.zone = copy_zone(arena, spec->schedule.zone, &failed);
    ret->readiness.check.argv = copy_list(arena, spec->readiness.check.argv, &failed);
    if (spec->process)
        ret->process = copy_process(arena, spec->process, &failed);
    if (spec->depends_on_count > 0)
        ret->depends_on =
            copy_dependencies(arena, spec->depends_on, spec->depends_on_count, &failed);
    return failed ? DET_ERR_NO_MEMORY : 0;
}

static bool has_check(const struct det_check *check)
{
    return check->argv || check->run;
}

static bool has_readiness(const struct det_readiness *readiness)
{
    return readiness->by != DET_READY_WHEN_STARTED || has_check(&readiness->check);
}

static bool has_schedule(const struct det_schedule *schedule)
{
    /* Includes a schedule with only dependent fields, which is then refused. */
    return schedule->every || schedule->cron || schedule->from || schedule->missed ||
           schedule->spread || schedule->zone;
}

static bool needs_extras(const struct det_task_spec *spec)
{
    return spec->process || spec->depends_on_count > 0 || has_readiness(&spec->readiness) ||
           has_schedule(&spec->schedule);
}

static int fill(struct det_task *task, const struct det_task_spec *spec, struct det_error *reterr)
{
    struct det_process_spec process = { .argv = NULL };
    struct task_extras *extras = task->extras;
    bool failed = false;

    if (spec->process) {
        process = *spec->process;
        process.has_notify |= spec->readiness.by == DET_READY_BY_NOTIFY;
    }
    if (spec->process)
        extras->process = copy_process(&extras->arena, &process, &failed);
    if (spec->depends_on_count > 0) {
        extras->depends_on =
            copy_dependencies(&extras->arena, spec->depends_on, spec->depends_on_count, &failed);
        extras->depends_on_count = spec->depends_on_count;
    }
    if (has_readiness(&spec->readiness))
        copy_readiness(extras, &spec->readiness, &failed);
    if (failed)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "task %s: out of memory", spec->name);
    return has_schedule(&spec->schedule) ? det_plan_open(task, &spec->schedule, reterr) : 0;
}

int det_task_extras_open(
    struct det_task *task, const struct det_task_spec *spec, struct det_error *reterr)
{
    int r;

    if (!needs_extras(spec))
        return 0;
    task->extras = DET_NEW(task->tasks->allocator, struct task_extras);
    if (!task->extras)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "task %s: out of memory", spec->name);
    det_arena_init(&task->extras->arena, task->tasks->allocator);
    r = fill(task, spec, reterr);
    if (r < 0)
        det_task_extras_close(task);
    return r;
}

void det_task_extras_close(struct det_task *task)
{
    if (!task->extras)
        return;
    det_plan_drop(task);
    det_arena_deinit(&task->extras->arena);
    DET_DELETE(task->tasks->allocator, task->extras);
    task->extras = NULL;
}
