/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_totals.c - workers as a whole, for an overview: how many there are in which phase, and
 * the first of those that are not well. */
#include <string.h>

#include "daemon/task_json.h"
#include "daemon/verbs.h"
#include "daemon/workers.h"

#define UNWELL_SHOWN 20
#define FAILURES     3 /* in a row: so many are no accident */
#define PHASES       (sizeof((struct det_workers_summary *)0)->by_phase / sizeof(uint32_t))

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

/* The worst of it. */
static const char *why(const struct det_worker_status *status)
{
    if (status->is_circuit_open)
        return "it is paused: what is below it failed too often";
    if (*status->degraded_by)
        return status->degraded_by;
    if (status->freshness == DET_FRESHNESS_STALE)
        return "it is paused: what was observed is too old";
    return *status->reason ? status->reason : status->life;
}

struct unwell {
    json_t *list;
    size_t count;
};

static int add_unwell(void *user, const struct det_worker_status *status)
{
    struct unwell *unwell = user;

    if (!up_workers_is_unwell(status))
        return 0;
    if (unwell->count++ >= UNWELL_SHOWN)
        return 0;
    if (json_array_append_new(
            unwell->list,
            json_pack("{s:s, s:o}", "id", status->id, "why", cli_json_text(why(status)))) < 0)
        return DET_ERR_NO_MEMORY;
    return 0;
}

static json_t *phases_of(const struct det_workers_summary *summary)
{
    json_t *phases = json_object();

    for (size_t i = 0; i < PHASES; i++)
        (void)json_object_set_new(
            phases, det_phase_name((enum det_phase)i), json_integer(summary->by_phase[i]));
    return phases;
}

static json_t *sum(struct det_workers *workers)
{
    struct unwell unwell = { json_array(), 0 };
    struct det_workers_summary summary;

    det_workers_summary(workers, &summary);
    if (det_workers_each(workers, add_unwell, &unwell) < 0) {
        json_decref(unwell.list);
        return NULL;
    }
    return json_pack(
        "{s:s, s:{s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I}, s:o, s:I}", "kind", "workers_summary",
        "workers", "workers", (json_int_t)summary.workers, "by_phase", phases_of(&summary), "stale",
        (json_int_t)summary.stale, "degraded", (json_int_t)summary.degraded, "circuits_open",
        (json_int_t)summary.circuits_open, "hung", (json_int_t)summary.hung, "actions_running",
        (json_int_t)summary.actions_running, "actions_queued", (json_int_t)summary.actions_queued,
        "unwell", unwell.list, "unwell_total", (json_int_t)unwell.count);
}

/* Where there are none, that is the answer. */
void up_run_workers_summary(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { NULL, UP_TEXT } };
    struct up *up = context;

    if (!up_arguments_check(request, call, table))
        return;
    if (!up->workers || !up->workers->workers || up->workers->is_over)
        socket_call_answer(
            call, json_pack("{s:s, s:n, s:[]}", "kind", "workers_summary", "workers", "unwell"));
    else
        socket_call_answer(call, sum(up->workers->workers));
}
