/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_event.h - what a supervisor of workers tells, as words: for the log of `up` and for that
 * of a scenario.
 *
 *     state_transition worker=plant(application)/press(link) from=stopped to=starting reason=... */
#ifndef DET_INSPECT_WORKER_EVENT_H
#define DET_INSPECT_WORKER_EVENT_H

#include <detent/workers.h>

#include "base/buffer.h"
#include "observe/log_line.h"
#include "terminal/terminal.h"
#include "json/writer.h"

/* What is told at the level TRACE is of the level debug for a log. */
enum det_log_level worker_event_level(enum det_worker_event_kind kind);
/* Appends " worker=... from=...": what the event has, each with a space before it. */
void worker_event_text(struct det_buffer *buffer, const struct det_worker_event *event);
/* Appends " key=value", between quotes where it is not a word; nothing of what is empty. */
void worker_event_pair(struct det_buffer *buffer, const char *key, const char *value);
/* The event as members of the object that is open. */
void worker_event_members(struct det_json_writer *json, const struct det_worker_event *event);
/* And of a line of a log. */
void worker_event_line(struct det_log_line *line, const struct det_worker_event *event);

#endif
