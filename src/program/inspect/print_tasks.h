/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* print_tasks.h - tasks, groups and slots of a running `detent up` for people: words and colors of
 * states, durations, and why something does not run. Missing members are shown as nothing, so that
 * newer versions work too. */
#ifndef DET_INSPECT_PRINT_TASKS_H
#define DET_INSPECT_PRINT_TASKS_H

#include "terminal/table.h"
#include "json/reader.h"

/* A member of an answer: "" if absent or of another type. */
const char *show_text(const struct det_json_value *object, const char *key);

/* A span in at most two units: "0.4s", "1.6s", "12s", "2m", "1m30s", "3h", "5d". */
#define SHOW_SPAN_TEXT 32
const char *show_span(det_time span, char target[SHOW_SPAN_TEXT]);

struct show_state {
    const char *word;
    enum cli_style style;
};
struct show_state show_task_state(const struct det_json_value *task);
struct show_state show_group_state(const struct det_json_value *group);
struct show_state show_slot_state(const struct det_json_value *slot);
/* State of a worker in the color of its phase. */
struct show_state show_worker_state(const struct det_json_value *worker);

/* Cells of a table. `now` is the wall time. */
void show_state_cell(struct table *table, struct show_state state);
/* Time since `since`. */
void show_age_cell(struct table *table, const struct det_json_value *object, det_time now);
/* "in 1.6s", or nothing. */
void show_next_cell(struct table *table, const struct det_json_value *task, det_time now);
/* Its dependency, or the last problem. */
void show_why_cell(struct table *table, const struct det_json_value *task);

#endif
