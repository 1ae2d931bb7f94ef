/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_totals.h - counts workers, and lists the first ones that need attention. */
#ifndef DET_DAEMON_WORKER_TOTALS_H
#define DET_DAEMON_WORKER_TOTALS_H

#include <detent/workers.h>

struct det_arena;
struct det_json_writer;
struct up;

#define UP_UNWELL_SHOWN 20

struct up_worker_totals {
    bool are_there; /* false: this run has no workers, and all other members are zero */
    struct det_workers_summary summary;
    uint64_t unwell_count;
    size_t unwell_shown;
    struct up_unwell_worker {
        const char *id, *why;
    } unwell[UP_UNWELL_SHOWN]; /* the first ones */
};
/* 0 or DET_ERR_NO_MEMORY. Texts are in the arena. */
DET_MUST_CHECK int up_total_workers(
    struct up *up, struct det_arena *arena, struct up_worker_totals *ret);
/* Writes the totals as an object; null without workers. */
void up_write_worker_totals(
    struct det_json_writer *json, const char *key, const struct up_worker_totals *totals);

#endif
