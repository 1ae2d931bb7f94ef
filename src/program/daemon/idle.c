/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* idle.c - detects an idle run: reports what tasks wait for, and ends a run in which no task can
 * proceed. */
#include <detent/driver/loop.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/flows.h"
#include "daemon/project_internal.h"
#include "daemon/slots.h"
#include "daemon/workers.h"

/* True if no work is left, except tasks that a client has stopped. */

static int count_stopped(void *user, const struct det_task_info *info)
{
    *(uint64_t *)user += info->is_on_hold && strcmp(info->state, "held") == 0;
    return 0;
}

bool up_is_done(struct up *up)
{
    struct det_tasks_counts counts = det_tasks_counts(up_tasks_supervisor(up));
    uint64_t stopped = 0;

    for (size_t i = 0; i < up_config(up)->task_count; i++) {
        if (up_project(up)->configured[i].is_pending)
            return false;
    }
    if (counts.queued > 0 || counts.held < counts.registered)
        return false;
    /* Served machines, supervised workers, flows and durable slots keep a run alive until a stop is
     * requested. */
    if ((up_machines(up) || up_durable_count(up) || up_has_workers(up) || up_has_flows(up) ||
         up_options(up)->is_serving) &&
        up_is_running(up))
        return false;
    /* Out of memory: checks again, at the latest when the run is idle. */
    if (counts.registered > 0 &&
        det_tasks_each(up_tasks_supervisor(up), count_stopped, &stopped) < 0)
        up_check_again(up);
    return stopped == counts.registered;
}

/* Tasks that are held, and whether they can ever proceed. */

struct quiet {
    struct up *up;
    bool *is_held; /* by index of the tasks of the file */
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

static int see_task(void *user, const struct det_task_info *info)
{
    struct quiet *quiet = user;
    int index = up_find_task(up_project(quiet->up), info->name);
    struct up_configured *known = index < 0 ? NULL : &up_project(quiet->up)->configured[index];

    if (has_ended(info->state))
        return 0;
    if (!known || !info->waits_for || strcmp(info->state, "held") != 0) {
        quiet->others++;
        return 0;
    }
    det_assert(index >= 0 && (size_t)index < up_config(quiet->up)->task_count);
    quiet->held++;
    quiet->is_held[index] = true;
    if (!known->is_reported)
        up_note(quiet->up, info->name, "waits for %s", info->waits_for);
    known->is_reported = true;
    return 0;
}

static bool has_failed(const struct quiet *quiet, const struct det_dependency *on)
{
    struct up *up = quiet->up;
    int index = up_find_task(up_project(up), on->name);
    const struct up_configured *known = index < 0 ? NULL : &up_project(up)->configured[index];
    const char *state;

    if (!known)
        return up_group_has_failed(up, on->name, NULL);
    state = known->has_ended ? up_configured_state(known) : "";
    return strcmp(state, "failed") == 0 || strcmp(state, "rejected") == 0;
}

/* Tasks are visited in order: `is_blocked` is complete for the dependencies. */
static bool waits_for_failed(
    const struct quiet *quiet, const struct config_task *task, const bool *is_blocked)
{
    for (size_t i = 0; i < task->spec.depends_on_count; i++) {
        const struct det_dependency *on = &task->spec.depends_on[i];
        int index = up_find_task(up_project(quiet->up), on->name);

        if (has_failed(quiet, on) || (index >= 0 && is_blocked[index]))
            return true;
    }
    return false;
}

static size_t count_blocked(const struct quiet *quiet, bool *is_blocked)
{
    const struct config *config = up_config(quiet->up);
    size_t count = 0;

    for (size_t i = 0; i < config->task_count; i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);

        is_blocked[index] =
            quiet->is_held[index] && waits_for_failed(quiet, config->order[i], is_blocked);
        count += is_blocked[index];
    }
    det_assert(count <= config->task_count);
    return count;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the look */
static bool detect_stuck(struct up *up, bool *is_held, bool *is_blocked)
{
    struct quiet quiet = { .up = up, .is_held = is_held };

    if (up_each_task(up, see_task, &quiet) < 0 || quiet.others > 0 || quiet.held == 0 ||
        up_machines(up) || up_has_workers(up) || up_has_flows(up) || up_options(up)->is_serving ||
        count_blocked(&quiet, is_blocked) < quiet.held)
        return false;
    up_set_failed(up);
    up_note_failure(up, UP_NAME, "no task can proceed: all remaining tasks wait for failed ones");
    return true;
}

bool up_report_idle(struct up *up)
{
    const struct det_allocator *allocator = up_allocator(up);
    size_t count = 2 * up_config(up)->task_count;
    bool *marks = DET_NEW_ARRAY(allocator, count, bool);
    bool is_stuck;

    if (!marks)
        return false;
    is_stuck = detect_stuck(up, marks, marks + count / 2);
    DET_DELETE_ARRAY(allocator, marks, count);
    return is_stuck;
}
