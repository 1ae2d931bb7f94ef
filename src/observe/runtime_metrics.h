/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_metrics.h - metrics of a runtime and its tasks.
 *
 *     observer, incidents, meter of a runtime --+
 *     events of the task bus ---------------+--> det_monitor_*() --> series
 *
 * The series of a registered machine are found by index: after the first occurrence a step costs
 * one or two additions. For other machines each series is looked up by name.
 *
 * Invariants
 *   1. A cache has only pointers to series of the metrics, so forgetting a machine loses no number.
 *   2. Nothing here fails: without memory for a cache, series are looked up by name.
 *   3. Labels are names of definitions and of tasks and slots of the file, never of submissions, so
 *      their number does not grow with time. */
#ifndef DET_OBSERVE_RUNTIME_METRICS_H
#define DET_OBSERVE_RUNTIME_METRICS_H

#include <detent/bus.h>
#include <detent/runtime.h>

#include "observe/metrics.h"

struct det_monitor;

/* The metrics must outlive the monitor. `world` NULL: the real one. */
DET_MUST_CHECK int det_monitor_open(
    struct det_metrics *metrics, struct det_world *world, const struct det_allocator *allocator,
    struct det_monitor **ret);
void det_monitor_close(struct det_monitor *monitor);

/* Registers a machine, which must stay until it is forgotten. Any thread. */
void det_monitor_add_machine(struct det_monitor *monitor, const struct det_machine *machine);
/* Forgets all machines. Not while another thread reports events of one. */
void det_monitor_forget(struct det_monitor *monitor);

/* Any thread: for the callbacks of det_runtime_options and struct det_meter. */
void det_monitor_note(struct det_monitor *monitor, const struct det_note *note);
void det_monitor_incident(struct det_monitor *monitor, const struct det_incident *incident);
void det_monitor_commit(struct det_monitor *monitor, const struct det_commit_figures *figures);
void det_monitor_attempt(struct det_monitor *monitor, const struct det_attempt_figures *figures);
void det_monitor_timeout(
    struct det_monitor *monitor, const struct det_machine *machine, det_time late);
void det_monitor_unhandled(
    struct det_monitor *monitor, const struct det_machine *machine, unsigned state, unsigned event);
/* For a subscriber of the bus, or the loop of the tasks: one thread. `is_lasting`: the task or slot
 * is in the file. Events of all others are counted under their slot ("slot:batch") or "other". When
 * a task is no longer in the file and is removed, its series are hidden. */
void det_monitor_task(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting);

#endif
