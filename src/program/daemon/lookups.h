/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lookups.h - what the HTTP API reads on the loop, answered at once. On the loop's thread. */
#ifndef DET_DAEMON_LOOKUPS_H
#define DET_DAEMON_LOOKUPS_H

#include <detent/base.h>

struct det_json_writer;
struct up;

/* `key` is that of the object within the open one; NULL: none. */
void up_write_status(struct up *up, struct det_json_writer *json, const char *key);
/* Writes which machines are served, and the stores of machines, jobs and workers; `url` is the
 * store as shown to clients, `file` its path; or NULL. Any thread, while the API is not paused. */
void up_write_served(
    const struct up *up, struct det_json_writer *json, const char *url, const char *file);
/* Write arrays: all tasks, by id; all groups, parents first. */
DET_MUST_CHECK int up_write_tasks(struct up *up, struct det_json_writer *json, const char *key);
DET_MUST_CHECK int up_write_groups(struct up *up, struct det_json_writer *json, const char *key);
/* Writes a task with the delays of its policy. DET_ERR_NOT_FOUND: no such task. */
DET_MUST_CHECK int up_write_one_task(struct up *up, struct det_json_writer *json, const char *name);
/* Returns 1, 0 if there is none, or an error. */
DET_MUST_CHECK int up_has_task(struct up *up, const char *name);

#endif
