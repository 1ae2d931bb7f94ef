/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_selection.c - which tasks of the file run: all, or those that were named and whatever they
 * depend on. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"

#define NEAR_MAX 512

int up_find_task(const struct up *up, const char *name)
{
    const struct config *config = &up->file.config;

    for (size_t i = 0; i < config->task_count; i++) {
        if (strcmp(config->tasks[i].spec.name, name) == 0)
            return (int)i;
    }
    return -1;
}

const struct config_group *up_find_group(const struct up *up, const char *name)
{
    const struct config *config = &up->file.config;

    for (size_t i = 0; i < config->group_count; i++) {
        if (strcmp(config->groups[i].spec.name, name) == 0)
            return &config->groups[i];
    }
    return NULL;
}

bool up_is_in_group(const struct up *up, const char *group, const char *name)
{
    while (group && strcmp(group, name) != 0) {
        const struct config_group *found = up_find_group(up, group);

        group = found ? found->spec.parent : NULL;
    }
    return group != NULL;
}

static void select_task(struct up *up, size_t index)
{
    up->selected_count += !up->is_selected[index];
    up->is_selected[index] = true;
}

/* The task of this name, or all of the group. False: there is neither. */
static bool select_name(struct up *up, const char *name)
{
    const struct config *config = &up->file.config;
    int index = up_find_task(up, name);

    if (index >= 0) {
        select_task(up, (size_t)index);
        return true;
    }
    if (!up_find_group(up, name))
        return false;
    for (size_t i = 0; i < config->task_count; i++) {
        if (up_is_in_group(up, config->tasks[i].spec.group, name))
            select_task(up, i);
    }
    return true;
}

static int complain(struct up *up, const char *name)
{
    const struct config *config = &up->file.config;
    const char *names[NEAR_MAX];
    size_t count = 0;
    int nearest;

    for (size_t i = 0; i < config->task_count && count < NEAR_MAX; i++)
        names[count++] = config->tasks[i].spec.name;
    for (size_t i = 0; i < config->group_count && count < NEAR_MAX; i++)
        names[count++] = config->groups[i].spec.name;
    nearest = det_text_nearest(name, names, count);
    if (nearest < 0)
        cli_complain(up->cli, "%s has no task or group '%s'", up->file.path, name);
    else
        cli_complain(
            up->cli, "%s has no task or group '%s'; did you mean '%s'?", up->file.path, name,
            names[nearest]);
    return CLI_NOT_FOUND;
}

/* Backwards through the order, in which what a task depends on stands before it: once is enough. */
static void select_dependencies(struct up *up)
{
    const struct config *config = &up->file.config;

    for (size_t i = config->task_count; i-- > 0;) {
        const struct config_task *task = config->order[i];

        if (!up->is_selected[task - config->tasks])
            continue;
        for (size_t j = 0; j < task->spec.depends_on_count; j++)
            (void)select_name(up, task->spec.depends_on[j].name);
    }
}

static bool has_served(const struct config *config)
{
    for (size_t i = 0; i < config->machine_count; i++) {
        if (config->machines[i].is_served)
            return true;
    }
    return false;
}

int up_select(struct up *up)
{
    const struct config *config = &up->file.config;
    const struct up_options *options = up->options;

    up->serves_machines = options->name_count == 0 && has_served(config);
    if (config->task_count == 0 && !up->serves_machines && !config_has_durable(config) &&
        !config->workers.node) {
        cli_complain(
            up->cli,
            "%s has no tasks to run, no workers, no durable slot, and no machine that says "
            "'effects' to be "
            "served",
            up->file.path);
        return CLI_USAGE;
    }
    /* One more than there may be: none is no lack of memory. */
    up->is_selected = DET_NEW_ARRAY(up->cli->allocator, config->task_count + 1, bool);
    up->known = DET_NEW_ARRAY(up->cli->allocator, config->task_count + 1, struct up_known);
    if (!up->is_selected || !up->known)
        return cli_no_memory(up->cli);
    for (size_t i = 0; i < options->name_count; i++) {
        if (!select_name(up, options->names[i]))
            return complain(up, options->names[i]);
    }
    for (size_t i = 0; i < config->task_count && options->name_count == 0; i++)
        select_task(up, i);
    select_dependencies(up);
    return CLI_OK;
}
