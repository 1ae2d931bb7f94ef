/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/workers.h - shows workers: their states as JSON, their history, what they count. */
#ifndef DETENT_TOOL_WORKERS_H
#define DETENT_TOOL_WORKERS_H

#include <detent/workers.h>

DET_BEGIN

/* The desired state, the observed one, the fields of both that differ, and the metrics, as JSON:
 * {"desired": {...}, "observed": {...}, "gap": {"port": {"desired": 1, "observed": 2}}, "metrics":
 * {...}, "states": {"up": {"entered": 2, "total_ms": 1500}}}; allocated, of `size` + 1 bytes of
 * options.allocator. Sensitive fields are cut off; the config is not shown, as it may have secrets
 * in it. DET_ERR_NOT_FOUND. */
DET_API int det_workers_show(
    struct det_workers *workers, const char *id, char **ret, size_t *ret_size) DET_MUST_CHECK;
/* The newest ends of actions and changes of state of a worker, newest first, as JSON lines: at most
 * 256 of this run. Each has its `sequence`, from 1. */
DET_API int det_workers_history(
    struct det_workers *workers, const char *id, char **ret, size_t *ret_size) DET_MUST_CHECK;
/* Drains it: what came after the sequence `after` (0: all), oldest first. Call it again with the
 * sequence of the last line. `ret_lost`, which may be NULL, is how many of them are no longer
 * remembered: 0 when it is drained at least once in 256 rows. A worker that was removed and made
 * anew begins at 1, and so does every worker of a new run: an `after` beyond the newest sequence is
 * of an earlier one, and counts as 0. */
DET_API int det_workers_history_after(
    struct det_workers *workers, const char *id, uint64_t after, char **ret, size_t *ret_size,
    uint64_t *ret_lost) DET_MUST_CHECK;

/* What workers count and measure by themselves: det_worker_count(), det_worker_gauge(). Borrowed
 * for the visit. On the loop; a non-zero answer ends it and is returned. */
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
