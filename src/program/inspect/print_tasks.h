/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* print_tasks.h - tasks, groups and slots of a running `detent up` for people: words and colors of
 * states, durations, and why something does not run. Missing members are shown as nothing, so that
 * newer versions work too. */
#ifndef DET_INSPECT_PRINT_TASKS_H
#define DET_INSPECT_PRINT_TASKS_H

#include "terminal/table.h"

/* Members of an answer: "" and 0 if absent or of another type. */
const char *show_text(const json_t *object, const char *key);
json_int_t show_number(const json_t *object, const char *key);
/* Wall time; 0: none. */
det_time show_time(const json_t *object, const char *key);

/* A span in at most two units: "0.4s", "1.6s", "12s", "2m", "1m30s", "3h", "5d". */
#define SHOW_SPAN_TEXT 32
const char *show_span(det_time span, char target[SHOW_SPAN_TEXT]);

struct show_state {
    const char *word;
    enum cli_style style;
};
struct show_state show_task_state(const json_t *task);
struct show_state show_group_state(const json_t *group);
struct show_state show_slot_state(const json_t *slot);
/* State of a worker in the color of its phase. */
struct show_state show_worker_state(const json_t *worker);

/* Cells of a table. `now` is the wall time. */
void show_state_cell(struct table *table, struct show_state state);
/* Time since `since`. */
void show_age_cell(struct table *table, const json_t *object, det_time now);
/* "in 1.6s", or nothing. */
void show_next_cell(struct table *table, const json_t *task, det_time now);
/* What it waits for, or the last problem. */
void show_why_cell(struct table *table, const json_t *task);

#endif
