/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* idle.c - when nothing happens any more: tells what tasks wait for, and ends a run in which
 * nothing can go on by itself. */
#include <detent/driver/loop.h>
#include <string.h>

#include "base/memory.h"
#include "daemon/daemon.h"

#define QUIET_AFTER (2 * DET_SECOND)

void up_quiet_arm(struct up *up)
{
    /* Without memory nobody is told, and somebody has to end it by hand. */
    (void)!det_loop_timer_set(up->loop, &up->quiet, det_loop_now(up->loop) + QUIET_AFTER);
}

/* Whether nothing is left, or only what somebody has stopped by hand. */

static int count_stopped(void *user, const struct det_task_info *info)
{
    *(uint64_t *)user += info->is_on_hold && strcmp(info->state, "held") == 0;
    return 0;
}

bool up_is_done(struct up *up)
{
    struct det_tasks_counts counts = det_tasks_counts(up->tasks);
    uint64_t stopped = 0;

    for (size_t i = 0; i < up->file.config.task_count; i++) {
        if (up->known[i].is_pending)
            return false;
    }
    if (counts.queued > 0 || counts.held < counts.registered)
        return false;
    /* Machines are served, workers supervised, and durable slots wait for what is submitted, until
     * somebody says so. */
    if ((up->machines || up->durable_count || up->workers || up->options->is_serving) &&
        up->state == UP_RUNNING)
        return false;
    /* Without memory it is looked at again, at the latest when it has been quiet. */
    if (counts.registered > 0 && det_tasks_each(up->tasks, count_stopped, &stopped) < 0)
        up->has_news = true;
    return stopped == counts.registered;
}

/* Who is held, and whether for good. */

struct quiet {
    struct up *up;
    bool *is_held; /* by index of the file's tasks */
    size_t held, others;
};

static bool has_ended(const char *state)
{
    static const char *const states[] = { "completed", "failed", "stopped", "rejected" };

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(state, states[i]) == 0)
            return true;
    }
    return false;
}

static int see(void *user, const struct det_task_info *info)
{
    struct quiet *quiet = user;
    int index = up_find_task(quiet->up, info->name);
    struct up_known *known = index < 0 ? NULL : &quiet->up->known[index];

    if (has_ended(info->state))
        return 0;
    if (!known || !info->waits_for || strcmp(info->state, "held") != 0) {
        quiet->others++;
        return 0;
    }
    quiet->held++;
    quiet->is_held[index] = true;
    if (!known->is_told)
        up_note(quiet->up, info->name, "waits for %s", info->waits_for);
    known->is_told = true;
    return 0;
}

static bool is_lost(const struct quiet *quiet, const struct det_dependency *on)
{
    struct up *up = quiet->up;
    int index = up_find_task(up, on->name);
    const struct up_known *known = index < 0 ? NULL : &up->known[index];
    const char *state;

    if (!known)
        return up_group_has_failed(up, on->name, NULL);
    state = known->has_ended ? up_known_state(known) : "";
    return strcmp(state, "failed") == 0 || strcmp(state, "rejected") == 0;
}

/* What stands before it in the order has been seen, and is in `is_vain`. */
static bool waits_in_vain(
    const struct quiet *quiet, const struct config_task *task, const bool *is_vain)
{
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const struct det_dependency *on = &task->spec.depends_on[i];
        int index = up_find_task(quiet->up, on->name);

        if (is_lost(quiet, on) || (index >= 0 && is_vain[index]))
            return true;
    }
    return false;
}

static size_t count_vain(const struct quiet *quiet, bool *is_vain)
{
    const struct config *config = &quiet->up->file.config;
    size_t count = 0;

    for (size_t i = 0; i < config->task_count; i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);

        is_vain[index] = quiet->is_held[index] && waits_in_vain(quiet, config->order[i], is_vain);
        count += is_vain[index];
    }
    return count;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the look */
static void look_around(struct up *up, bool *is_held, bool *is_vain)
{
    struct quiet quiet = { .up = up, .is_held = is_held };

    if (up_each_task(up, see, &quiet) < 0 || quiet.others > 0 || quiet.held == 0 || up->machines ||
        up->workers || up->options->is_serving || count_vain(&quiet, is_vain) < quiet.held)
        return;
    up->has_failed = true;
    up_note_failure(up, UP_NAME, "nothing can go on: what is left waits for what has failed");
    up_begin_stop(up);
}

void up_on_quiet(void *argument)
{
    struct up *up = argument;
    const struct det_allocator *allocator = up->cli->allocator;
    size_t count = 2 * up->file.config.task_count;
    bool *marks;

    if (up->state != UP_RUNNING)
        return;
    marks = DET_NEW_ARRAY(allocator, count, bool);
    if (!marks)
        return;
    look_around(up, marks, marks + count / 2);
    DET_DELETE_ARRAY(allocator, marks, count);
}
