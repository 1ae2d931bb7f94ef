/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lookups.h - what the HTTP API can look at on the loop, written at once. Of the loop's thread. */
#ifndef DET_DAEMON_LOOKUPS_H
#define DET_DAEMON_LOOKUPS_H

#include <detent/base.h>

struct det_json_writer;
struct up;

/* "running", "draining", "stopping". */
const char *up_state_name(const struct up *up);
/* `key` NULL: the object itself. */
void up_write_status(struct up *up, struct det_json_writer *json, const char *key);
/* Arrays: all tasks, in the order of ids; all groups, parents first. */
DET_MUST_CHECK int up_write_tasks(struct up *up, struct det_json_writer *json, const char *key);
DET_MUST_CHECK int up_write_groups(struct up *up, struct det_json_writer *json, const char *key);
/* Its object with the delays of its policy. DET_ERR_NOT_FOUND: there is none. */
DET_MUST_CHECK int up_write_one_task(struct up *up, struct det_json_writer *json, const char *name);
/* 1, or 0: there is none, or an error. */
DET_MUST_CHECK int up_has_task(struct up *up, const char *name);

#endif
