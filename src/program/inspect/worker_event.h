/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_event.h - formats events of a worker supervisor, for the log of `up` and of a scenario.
 *
 *     state_transition worker=plant(application)/press(link) from=stopped to=starting reason=... */
#ifndef DET_INSPECT_WORKER_EVENT_H
#define DET_INSPECT_WORKER_EVENT_H

#include <detent/workers.h>

#include "base/buffer.h"
#include "observe/log_line.h"
#include "terminal/terminal.h"
#include "json/writer.h"

/* The level TRACE becomes debug in a log. */
enum det_log_level worker_event_level(enum det_worker_event_kind kind);
/* Appends " worker=... from=...": the present members, each after a space. */
void worker_event_text(struct det_buffer *buffer, const struct det_worker_event *event);
/* Appends " key=value", quoted if necessary; nothing for an empty value. */
void worker_event_pair(struct det_buffer *buffer, const char *key, const char *value);
/* Adds the event to the open object. */
void worker_event_members(struct det_json_writer *json, const struct det_worker_event *event);
/* Adds the event to a log line. */
void worker_event_line(struct det_log_line *line, const struct det_worker_event *event);

#endif
