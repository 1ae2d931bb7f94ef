/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.h - the workers of a detent.yaml, supervised while `detent up` runs.
 *
 *     open ---> supervising ---up_workers_stop---> stopping ---the root is gone---> over -> closed
 *                  | ^ events: lines and metrics      | a second stop, or the grace is over: killed
 *                  | | up_workers_reload: the tree of the current file
 *                  | | requests: worker_requests.h, worker_queries.h, worker_totals.h
 *
 * The supervisor ticks on the loop of the daemon. A tick never blocks: user code runs on threads of
 * the supervisor, and the thread of its recorder writes documents. Requests that need the store run
 * on a pool and call the supervisor from there, so the loop must turn while a client waits.
 *
 * Invariants
 *   1. The store of workers is opened before machines and durable slots, which then use it too, and
 *      closed after them: a reload may close and open machines.
 *   2. Nothing here points into a configuration, which a reload may free. */
#ifndef DET_DAEMON_WORKERS_H
#define DET_DAEMON_WORKERS_H

#include <detent/base.h>

struct cli_problems;
struct config_workers;
struct det_json_writer;
struct up;

/* Opens the store of workers, which all parts of the run share. No effect without workers. */
DET_MUST_CHECK int up_workers_open_store(struct up *up, struct det_error *reterr);
void up_workers_close_store(struct up *up);
/* Opens the supervisor if the file has workers. Close it even after an error. */
DET_MUST_CHECK int up_workers_open(struct up *up, struct det_error *reterr);
/* Requests the stop of all workers; the second call takes them down. */
void up_workers_stop(struct up *up);
/* True if no worker is left, or there were none. */
bool up_workers_are_over(const struct up *up);
/* Waits for the workers, which turns the loop; reports those that did not stop by themselves. */
void up_workers_finish(struct up *up);
void up_workers_close(struct up *up);

/* True if this run supervises workers. */
bool up_has_workers(const struct up *up);
/* Number of workers, including stopping ones. */
size_t up_workers_count(const struct up *up);
/* Writes the number of workers by phase, as an object. */
void up_write_workers_figures(struct up *up, struct det_json_writer *json, const char *key);

/* Applies the current file; opens a supervisor if there was none. A running supervisor fails only
 * when out of memory. */
DET_MUST_CHECK int up_workers_reload(struct up *up, struct det_error *reterr);
/* Checks the workers of another file against the loaded kinds; see config_check_workers(). */
DET_MUST_CHECK int up_workers_check(
    const struct up *up, const struct config_workers *config, struct cli_problems *problems);

#endif
