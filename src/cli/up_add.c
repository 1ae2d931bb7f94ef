/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_add.c - what the file says, given to the supervisor of tasks: groups, slots, tasks. */
#include <string.h>

#include "base/memory.h"
#include "cli/up.h"

static int add_groups(struct up *up, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    int r;

    for (size_t i = 0; i < config->group_count; i++) {
        r = det_tasks_add_group(up->tasks, &config->group_order[i]->spec, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_slots(struct up *up, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    int r;

    for (size_t i = 0; i < config->slot_count; i++) {
        const struct config_slot *slot = &config->slots[i];

        r = det_slot_configure(up->tasks, slot->name, &slot->options, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int up_add_one(struct up *up, size_t index, struct det_error *reterr)
{
    const struct config_task *task = &up->file.config.tasks[index];
    struct det_admitted admitted;

    if (!task->slot)
        return det_tasks_add(up->tasks, &task->spec, NULL, NULL, reterr);
    return det_slot_submit(
        up->tasks,
        &(struct det_submission){
            .slot = task->slot, .admission = task->admission, .task = &task->spec },
        NULL, &admitted, reterr);
}

/* Those that need no slot, all at once and in order, from `*next` on. */
static int add_run(
    struct up *up, struct det_task_spec *specs, size_t *next, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    size_t count = 0;

    for (; *next < config->task_count && !config->order[*next]->slot; (*next)++) {
        const struct config_task *task = config->order[*next];

        if (up->is_selected[task - config->tasks])
            specs[count++] = task->spec;
    }
    return count ? det_tasks_add_batch(up->tasks, specs, count, NULL, reterr) : 0;
}

/* A slot that does not take a task has said so on the bus; the others run all the same. */
static int submit_one(struct up *up, const struct config_task *task, struct det_error *reterr)
{
    size_t index = (size_t)(task - up->file.config.tasks);
    int r = up->is_selected[index] ? up_add_one(up, index, reterr) : 0;

    return r == DET_ERR_REFUSED ? 0 : r;
}

static int add_tasks(struct up *up, struct det_task_spec *specs, struct det_error *reterr)
{
    const struct config *config = &up->file.config;
    size_t next = 0;
    int r = 0;

    while (r == 0 && next < config->task_count) {
        r = add_run(up, specs, &next, reterr);
        if (r == 0 && next < config->task_count)
            r = submit_one(up, config->order[next++], reterr);
    }
    return r;
}

int up_add_all(struct up *up, struct det_error *reterr)
{
    size_t count = up->file.config.task_count;
    struct det_task_spec *specs;
    int r;

    r = add_groups(up, reterr);
    if (r == 0)
        r = add_slots(up, reterr);
    if (r < 0)
        return r;
    specs = DET_NEW_ARRAY(up->cli->allocator, count, struct det_task_spec);
    if (!specs)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    r = add_tasks(up, specs, reterr);
    DET_DELETE_ARRAY(up->cli->allocator, specs, count);
    return r;
}
