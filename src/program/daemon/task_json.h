/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_json.h - members of the JSON objects in answers of the HTTP API. */
#ifndef DET_DAEMON_TASK_JSON_H
#define DET_DAEMON_TASK_JSON_H

#include <detent/slot.h>

#include "daemon/line_buffer.h"
#include "json/writer.h"

/* These functions write members of an open object. */
/* null for 0. */
void up_write_time(struct det_json_writer *json, const char *key, det_time wall);
void up_write_task(struct det_json_writer *json, const struct det_task_info *info);
void up_write_group(struct det_json_writer *json, const struct det_task_group_info *info);
/* A durable slot has no `depth_max` and no counters of this process. */
void up_write_slot(struct det_json_writer *json, const struct det_slot_info *info, bool is_durable);
/* `missed`: the number of lost events or lines before this one. */
void up_write_event(
    struct det_json_writer *json, const struct det_task_event *event, uint64_t missed);
void up_write_line(struct det_json_writer *json, const struct up_line *line, uint64_t missed);
/* How a task has ended. */
void up_write_end(struct det_json_writer *json, const struct det_task_end *end);

#endif
