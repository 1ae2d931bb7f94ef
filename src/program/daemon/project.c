/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project.c - reads the current file, and finds names in it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/project_internal.h"

int up_find_task(const struct up_project *project, const char *name)
{
    const struct config *config = &project->file.config;

    for (size_t i = 0; i < config->task_count; i++) {
        if (strcmp(config->tasks[i].spec.name, name) == 0)
            return (int)i;
    }
    return -1;
}

const struct config_group *up_find_group(const struct up_project *project, const char *name)
{
    const struct config *config = &project->file.config;

    for (size_t i = 0; i < config->group_count; i++) {
        if (strcmp(config->groups[i].spec.name, name) == 0)
            return &config->groups[i];
    }
    return NULL;
}

bool up_is_in_group(const struct up_project *project, const char *group, const char *name)
{
    while (group && strcmp(group, name) != 0) {
        const struct config_group *found = up_find_group(project, group);

        group = found ? found->spec.parent : NULL;
    }
    return group != NULL;
}

/* Resolves paths of the file relative to its folder. */
static int settle_project(
    struct cli *cli, const struct up_options *options, struct up_project *project)
{
    const char *const *base = (const char *const *)environ;
    char *whole;
    int r;

    r = det_file_folder(options->path, project->folder);
    /* Processes start in the project folder, even if the working directory changes. */
    whole = r == 0 ? realpath(project->folder, NULL) : NULL;
    if (whole && strlen(whole) < sizeof project->folder)
        memcpy(project->folder, whole, strlen(whole) + 1);
    free(whole);
    if (r == 0)
        r = config_settle(&project->file.config, &project->file.arena, project->folder, base);
    if (r < 0)
        cli_report_error(cli, "%s: %s", options->path, det_error_text(r));
    return r < 0 ? cli_exit_of(r) : CLI_OK;
}

int up_project_init(struct cli *cli, const struct up_options *options, struct up_project *project)
{
    int code = config_project_open(cli, options->path, true, &project->file);

    if (code == CLI_OK)
        code = up_select(cli, options, project);
    return code == CLI_OK ? settle_project(cli, options, project) : code;
}

void up_project_deinit(struct cli *cli, struct up_project *project)
{
    size_t count = project->file.config.task_count + 1;

    if (project->is_selected)
        DET_DELETE_ARRAY(cli->allocator, project->is_selected, count);
    if (project->configured)
        DET_DELETE_ARRAY(cli->allocator, project->configured, count);
    project->is_selected = NULL;
    project->configured = NULL;
    config_file_close(cli, &project->file);
}
