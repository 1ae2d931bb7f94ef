/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project.h - the current detent.yaml and its tasks: selected, pending, running or ended. On the
 * loop's thread. */
#ifndef DET_DAEMON_PROJECT_H
#define DET_DAEMON_PROJECT_H

#include <detent/task.h>

#include "config/config.h"

struct cli;
struct up;
struct up_configured;
struct up_options;
struct up_project;

/* project.c */

/* Reads the file, selects its tasks and resolves its paths. CLI_OK, or an exit code after a
 * message. Deinit it even after an error. */
DET_MUST_CHECK int up_project_init(
    struct cli *cli, const struct up_options *options, struct up_project *project);
void up_project_deinit(struct cli *cli, struct up_project *project);
/* The index of the task in the file, or -1. */
int up_find_task(const struct up_project *project, const char *name);
/* NULL: no such group. */
const struct config_group *up_find_group(const struct up_project *project, const char *name);
/* True if `group` (NULL: none) is `name` or below it. */
bool up_is_in_group(const struct up_project *project, const char *group, const char *name);

/* task_selection.c */

/* CLI_OK, or an exit code after a message. */
DET_MUST_CHECK int up_select(
    struct cli *cli, const struct up_options *options, struct up_project *project);

/* add_tasks.c */

/* Adds the groups, slots and selected tasks of the file to the supervisor. */
DET_MUST_CHECK int up_add_all(struct up *up, struct det_error *reterr);

/* configured_tasks.c */

/* Admits the task of this index, again if it has ended, at once or when its dependencies are met.
 * DET_ERR_REFUSED: its slot rejects it, or a dependency has failed. */
DET_MUST_CHECK int up_add_one(struct up *up, size_t index, struct det_error *reterr);
/* Admits pending tasks whose dependencies are met. */
void up_add_pending(struct up *up);
void up_configured_ended(struct up *up, const struct det_task_end *end);
/* Makes the task pending: it is admitted when its dependencies are met. */
void up_configured_wait(struct up *up, size_t index);
/* Cancels a pending task. False: it is not pending. */
bool up_configured_forget(struct up *up, size_t index);
/* True if the rejection counts as a failure. */
bool up_is_refusal(enum det_rejection rejection);
/* The state of a task that the supervisor does not have. */
const char *up_configured_state(const struct up_configured *configured);
/* True if the task is held because a task that it depends on, or its group, has failed. */
bool up_waits_for_failure(const struct up *up, const struct det_task_info *info);
/* True if the group exists and has failed; `reason` has DET_TASK_REASON_MAX bytes and the final
 * zero, or is NULL. */
bool up_group_has_failed(const struct up *up, const char *name, char *reason);
/* Calls the function with all tasks: those of the supervisor, and those of the file that it does
 * not have. */
typedef int up_each_fn(void *user, const struct det_task_info *info);
DET_MUST_CHECK int up_each_task(struct up *up, up_each_fn *each, void *user);

#endif
