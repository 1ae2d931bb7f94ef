/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/workers.h - shows workers: their states as JSON, their history, their metrics. */
#ifndef DETENT_TOOL_WORKERS_H
#define DETENT_TOOL_WORKERS_H

#include <detent/workers.h>

DET_BEGIN

/* The desired state, the observed state, their differences, and the metrics, as JSON: {"desired":
 * {...}, "observed": {...}, "gap": {"port": {"desired": 1, "observed": 2}}, "metrics": {...},
 * "states": {"up": {"entered": 2, "total_ms": 1500}}}; `size` + 1 bytes, allocated from
 * options.allocator. Sensitive fields are removed; the config is not included, as it may contain
 * secrets. DET_ERR_NOT_FOUND. */
DET_API int det_workers_show(
    struct det_workers *workers, const char *id, char **ret, size_t *ret_size) DET_MUST_CHECK;
/* The latest ends of actions and changes of state of a worker, newest first, as JSON lines: at most
 * 256 of this run. Each has its `sequence`, from 1. */
DET_API int det_workers_history(
    struct det_workers *workers, const char *id, char **ret, size_t *ret_size) DET_MUST_CHECK;
/* Reads the history after the sequence `after` (0: all), oldest first; continue with the sequence
 * of the last line. `ret_lost` (may be NULL) is the number of forgotten rows: 0 if the history is
 * read at least once per 256 rows. A worker that was removed and created again starts at 1, as does
 * every worker in a new run: an `after` beyond the newest sequence belongs to an earlier run and
 * counts as 0. */
DET_API int det_workers_history_after(
    struct det_workers *workers, const char *id, uint64_t after, char **ret, size_t *ret_size,
    uint64_t *ret_lost) DET_MUST_CHECK;

/* The workers' own metrics: det_worker_count(), det_worker_gauge(). Borrowed for the visit. On the
 * loop; a non-zero return value ends the walk and is returned. */
struct det_worker_value {
    const char *id, *kind, *name;
    bool is_gauge;
    uint64_t count;
    double value;
};
DET_API int det_workers_each_value(
    struct det_workers *workers, int (*visit)(void *user, const struct det_worker_value *value),
    void *user) DET_MUST_CHECK;

DET_END
#endif
