/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_metrics.h - metrics of a runtime and its tasks.
 *
 *     observe, trouble, meter of a runtime --+
 *     events of the bus of tasks ------------+--> det_monitor_*() --> series
 *
 * The series of a machine that was made known are found by index: a step costs an addition or two
 * once its like has happened. Of others each is looked up by name.
 *
 * Invariants
 *   1. What is cached is the series of the metrics, so forgetting a machine loses no number.
 *   2. Nothing here fails: without memory for a cache there is none.
 *   3. Labels are names of definitions and of tasks and slots of the file, never of what is
 *      submitted: there are not more of them for being up longer. */
#ifndef DET_OBSERVE_RUNTIME_METRICS_H
#define DET_OBSERVE_RUNTIME_METRICS_H

#include <detent/bus.h>
#include <detent/runtime.h>

#include "observe/metrics.h"

struct det_monitor;

/* The metrics must stay. `world` NULL: the real one. */
DET_MUST_CHECK int det_monitor_open(
    struct det_metrics *metrics, struct det_world *world, const struct det_allocator *allocator,
    struct det_monitor **ret);
void det_monitor_close(struct det_monitor *monitor);

/* The machine must stay until it is forgotten; from any thread. */
void det_monitor_know(struct det_monitor *monitor, const struct det_machine *machine);
/* All machines; while nothing tells of any. */
void det_monitor_forget(struct det_monitor *monitor);

/* From any thread: for `observe` and `trouble` of det_runtime_options, and for struct det_meter. */
void det_monitor_note(struct det_monitor *monitor, const struct det_note *note);
void det_monitor_trouble(struct det_monitor *monitor, const struct det_incident *trouble);
void det_monitor_commit(struct det_monitor *monitor, const struct det_commit_figures *figures);
void det_monitor_attempt(struct det_monitor *monitor, const struct det_attempt_figures *figures);
void det_monitor_timeout(
    struct det_monitor *monitor, const struct det_machine *machine, det_time late);
void det_monitor_unhandled(
    struct det_monitor *monitor, const struct det_machine *machine, unsigned state, unsigned event);
/* For a subscriber of the bus, or the loop of the tasks: one thread. `is_lasting`: its name is that
 * of a task or slot that somebody has written down. Others come and go: what can be counted of them
 * is counted under their slot ("slot:batch"), or "other", and the series of one that is removed and
 * was lasting before goes. */
void det_monitor_task(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting);

#endif
