/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_json.h - what `detent up` tells as objects of JSON; docs/formats/socket.md. Those that
 * return a tree return NULL when there is no memory. */
#ifndef DET_DAEMON_TASK_JSON_H
#define DET_DAEMON_TASK_JSON_H

#include <detent/slot.h>
#include <jansson.h>

#include "daemon/line_buffer.h"
#include "json/writer.h"

/* Members of an object that is open. */
void up_write_task(struct det_json_writer *json, const struct det_task_info *info);
void up_write_group(struct det_json_writer *json, const struct det_task_group_info *info);

json_t *up_json_slot(const struct det_slot_info *info);
json_t *up_json_end(const struct det_task_end *end);
/* `missed`: how many before it are gone. */
json_t *up_json_event(const struct det_task_event *event, uint64_t missed);
json_t *up_json_line(const struct up_line *line, uint64_t missed);
json_t *up_json_time(det_time wall);

#endif
