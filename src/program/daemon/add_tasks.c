/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* add_tasks.c - adds the groups, slots and tasks of the file to the supervisor of tasks. */
#include "daemon/daemon.h"
#include "daemon/project_internal.h"

static int add_groups(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    int r;

    for (size_t i = 0; i < config->group_count; i++) {
        r = det_tasks_add_group(up_tasks_supervisor(up), &config->group_order[i]->spec, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_slots(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    int r;

    for (size_t i = 0; i < config->slot_count; i++) {
        const struct config_slot *slot = &config->slots[i];

        r = det_slot_configure(up_tasks_supervisor(up), slot->name, &slot->options, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Dependencies first. A slot that rejects a task reports it on the bus; the other tasks are still
 * added. */
static int add_tasks(struct up *up, struct det_error *reterr)
{
    const struct config *config = up_config(up);
    int r = 0;

    for (size_t i = 0; i < config->task_count && (r == 0 || r == DET_ERR_REFUSED); i++) {
        size_t index = (size_t)(config->order[i] - config->tasks);

        r = up_project(up)->is_selected[index] ? up_add_one(up, index, reterr) : 0;
        if (r == DET_ERR_REFUSED)
            up_set_failed(up);
    }
    return r == DET_ERR_REFUSED ? 0 : r;
}

int up_add_all(struct up *up, struct det_error *reterr)
{
    int r;

    r = add_groups(up, reterr);
    if (r == 0)
        r = add_slots(up, reterr);
    return r < 0 ? r : add_tasks(up, reterr);
}
