/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_totals.c - counts workers, and lists the first ones that need attention. */
#include "daemon/worker_totals.h"

#include <string.h>

#include "daemon/workers_internal.h"
#include "json/writer.h"

#define FAILURES 3 /* consecutive failures that need attention */

static bool is_down(const struct det_worker_status *status)
{
    return strcmp(status->life, "down") == 0;
}

bool up_workers_is_unwell(const struct det_worker_status *status)
{
    return status->phase == DET_PHASE_DEGRADED || status->freshness == DET_FRESHNESS_STALE ||
           status->is_circuit_open || *status->degraded_by || is_down(status) ||
           status->counts.failures >= FAILURES;
}

/* The most serious reason. */
static const char *reason_of(const struct det_worker_status *status)
{
    if (status->is_circuit_open)
        return "paused: workers below it failed too often";
    if (*status->degraded_by)
        return status->degraded_by;
    if (status->freshness == DET_FRESHNESS_STALE)
        return "paused: its observation is stale";
    return *status->reason ? status->reason : status->life;
}

struct totalling {
    struct det_arena *arena;
    struct up_worker_totals *totals;
};

static int add_unwell(void *user, const struct det_worker_status *status)
{
    const struct totalling *totalling = user;
    struct up_worker_totals *totals = totalling->totals;
    struct up_unwell_worker *unwell = &totals->unwell[totals->unwell_shown];

    if (!up_workers_is_unwell(status) || totals->unwell_count++ >= UP_UNWELL_SHOWN)
        return 0;
    unwell->id = det_arena_copy(totalling->arena, status->id);
    unwell->why = det_arena_copy(totalling->arena, reason_of(status));
    if (!unwell->id || !unwell->why)
        return DET_ERR_NO_MEMORY;
    totals->unwell_shown++;
    return 0;
}

int up_total_workers(struct up *up, struct det_arena *arena, struct up_worker_totals *ret)
{
    struct totalling totalling = { arena, ret };
    const struct up_workers *workers = up_workers(up);

    *ret = (struct up_worker_totals){ .are_there = !up_workers_are_over(up) };
    if (!ret->are_there)
        return 0;
    det_workers_summary(workers->supervisor, &ret->summary);
    return det_workers_each(workers->supervisor, add_unwell, &totalling);
}

static void write_phases(struct det_json_writer *json, const struct det_workers_summary *summary)
{
    for (size_t i = 0; i < sizeof summary->by_phase / sizeof *summary->by_phase; i++)
        det_json_number(json, det_phase_name((enum det_phase)i), summary->by_phase[i]);
}

void up_write_worker_totals(
    struct det_json_writer *json, const char *key, const struct up_worker_totals *totals)
{
    const struct det_workers_summary *summary = &totals->summary;

    if (!totals->are_there) {
        det_json_null(json, key);
        return;
    }
    det_json_open(json, key, '{');
    det_json_number(json, "workers", summary->workers);
    det_json_open(json, "by_phase", '{');
    write_phases(json, summary);
    det_json_close(json, '}');
    det_json_number(json, "stale", summary->stale);
    det_json_number(json, "degraded", summary->degraded);
    det_json_number(json, "circuits_open", summary->circuits_open);
    det_json_number(json, "hung", summary->hung);
    det_json_number(json, "actions_running", summary->actions_running);
    det_json_number(json, "actions_queued", summary->actions_queued);
    det_json_close(json, '}');
}

void up_write_workers_figures(struct up *up, struct det_json_writer *json, const char *key)
{
    struct det_workers_summary summary = { 0 };

    if (!up_workers_are_over(up))
        det_workers_summary(up_workers(up)->supervisor, &summary);
    det_json_open(json, key, '{');
    det_json_number(json, "count", summary.workers);
    det_json_number(json, "stale", summary.stale);
    det_json_number(json, "circuits_open", summary.circuits_open);
    det_json_number(json, "hung", summary.hung);
    write_phases(json, &summary);
    det_json_close(json, '}');
}
