/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_selection.c - selects the tasks that run: all, or the named ones and their dependencies. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/project_internal.h"

#define NEAR_MAX 512

static void select_task(struct up_project *project, size_t index)
{
    project->selected_count += !project->is_selected[index];
    project->is_selected[index] = true;
}

/* Selects the task of this name, or all of the group. False: neither exists. */
static bool select_name(struct up_project *project, const char *name)
{
    const struct config *config = &project->file.config;
    int index = up_find_task(project, name);

    if (index >= 0) {
        select_task(project, (size_t)index);
        return true;
    }
    if (!up_find_group(project, name))
        return false;
    for (size_t i = 0; i < config->task_count; i++) {
        if (up_is_in_group(project, config->tasks[i].spec.group, name))
            select_task(project, i);
    }
    return true;
}

static int report_name(struct cli *cli, const struct up_project *project, const char *name)
{
    const struct config *config = &project->file.config;
    const char *names[NEAR_MAX];
    size_t count = 0;
    int nearest;

    for (size_t i = 0; i < config->task_count && count < NEAR_MAX; i++)
        names[count++] = config->tasks[i].spec.name;
    for (size_t i = 0; i < config->group_count && count < NEAR_MAX; i++)
        names[count++] = config->groups[i].spec.name;
    nearest = det_text_nearest(name, names, count);
    if (nearest < 0)
        cli_report_error(cli, "%s has no task or group '%s'", project->file.path, name);
    else
        cli_report_error(
            cli, "%s has no task or group '%s'; did you mean '%s'?", project->file.path, name,
            names[nearest]);
    return CLI_NOT_FOUND;
}

/* Visits the tasks in reverse order, dependents first: one pass is enough. */
static void select_dependencies(struct up_project *project)
{
    const struct config *config = &project->file.config;

    for (size_t i = config->task_count; i-- > 0;) {
        const struct config_task *task = config->order[i];

        if (!project->is_selected[task - config->tasks])
            continue;
        for (size_t j = 0; j < task->spec.depends_on_count; j++)
            (void)select_name(project, task->spec.depends_on[j].name);
    }
}

static int report_nothing_to_run(struct cli *cli, const struct up_project *project)
{
    const struct config *config = &project->file.config;
    char text[CONFIG_UNSERVED_TEXT] = "";

    if (config->machine_count > 0 && !config->machines[0].is_served)
        config_unserved_text(&config->machines[0], text);
    cli_report_error(
        cli,
        "%s has no tasks to run, no workers, no flows, no durable slot, and no machine to "
        "serve%s%s",
        project->file.path, *text ? "; " : "", text);
    return CLI_USAGE;
}

static bool has_served(const struct config *config)
{
    for (size_t i = 0; i < config->machine_count; i++) {
        if (config->machines[i].is_served)
            return true;
    }
    return false;
}

int up_select(struct cli *cli, const struct up_options *options, struct up_project *project)
{
    const struct config *config = &project->file.config;

    project->serves_machines = options->name_count == 0 && has_served(config);
    if (config->task_count == 0 && !project->serves_machines && !config_has_durable(config) &&
        !config->workers.node && !config->flow_count)
        return report_nothing_to_run(cli, project);
    /* One more than needed: an empty array would look like a lack of memory. */
    project->is_selected = DET_NEW_ARRAY(cli->allocator, config->task_count + 1, bool);
    project->configured =
        DET_NEW_ARRAY(cli->allocator, config->task_count + 1, struct up_configured);
    if (!project->is_selected || !project->configured)
        return cli_no_memory(cli);
    for (size_t i = 0; i < options->name_count; i++) {
        if (!select_name(project, options->names[i]))
            return report_name(cli, project, options->names[i]);
    }
    for (size_t i = 0; i < config->task_count && options->name_count == 0; i++)
        select_task(project, i);
    select_dependencies(project);
    return CLI_OK;
}
