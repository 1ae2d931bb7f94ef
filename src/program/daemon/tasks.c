/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks.c - opens and closes the supervisor of tasks, and distributes its events. */
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/tasks_internal.h"

static void on_line(void *user, const struct det_line *line)
{
    up_log_line(user, line);
}

static void on_end(void *user, const struct det_task_end *end)
{
    up_configured_ended(user, end);
    up_waits_ended(user, end);
}

static void on_empty(void *user)
{
    up_check_again(user);
}

static int open_supervisor(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    struct det_tasks_options options = {
        .allocator = up_allocator(up),
        .loop = up_loop(up),
        .concurrent_max = config->limits.concurrent_max,
        .tasks_max = config->limits.tasks_max,
        .slot_depth_max = config->limits.slot_depth_max,
        .grace = config->limits.grace,
        .defaults = config->defaults,
        .on_line = on_line,
        .on_end = on_end,
        .on_empty = on_empty,
        .user = up,
    };

    return det_tasks_open(&options, &up_tasks(up)->supervisor, reterr);
}

static int open_notes(struct up *up, struct det_error *reterr)
{
    struct det_subscriber notes = up_notes_subscriber(up);
    struct det_bus *bus = det_tasks_bus(up_tasks(up)->supervisor);

    return det_bus_subscribe(bus, &notes, &up_tasks(up)->notes, reterr);
}

static int open_journal(struct up *up, struct det_error *reterr)
{
    struct up_tasks *tasks = up_tasks(up);
    struct det_subscriber subscriber;
    int r;

    r = det_task_journal_open(
        up_cli(up)->world, up_options(up)->journal, up_allocator(up), &tasks->journal, reterr);
    if (r < 0)
        return r;
    subscriber = det_task_journal_subscriber(tasks->journal);
    return det_bus_subscribe(
        det_tasks_bus(tasks->supervisor), &subscriber, &tasks->journal_subscription, reterr);
}

int up_tasks_open(struct up *up, struct det_error *reterr)
{
    struct up_tasks *tasks = DET_NEW(up_allocator(up), struct up_tasks);
    int r;

    if (!tasks)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    det_list_init(&tasks->waits);
    up_set_tasks(up, tasks);
    r = open_supervisor(up, reterr);
    if (r == 0)
        r = open_notes(up, reterr);
    if (r == 0 && up_options(up)->journal)
        r = open_journal(up, reterr);
    return r;
}

void up_tasks_close(struct up *up)
{
    struct up_tasks *tasks = up_tasks(up);

    if (!tasks)
        return;
    det_tasks_close(tasks->supervisor);
    det_task_journal_close(tasks->journal);
    up_set_tasks(up, NULL);
    DET_DELETE(up_allocator(up), tasks);
}

bool up_tasks_are_over(const struct up *up)
{
    return up_tasks(up) && up_tasks(up)->are_over;
}

uint64_t up_tasks_restarts(const struct up *up)
{
    return atomic_load(&up_tasks(up)->restarts);
}
