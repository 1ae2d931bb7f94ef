/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* persistence.c - compacts the deltas of the store that is provided as "documents". */
#include <detent/tool/documents.h>
#include <detent/world.h>

#include "base/assert.h"
#include "base/text.h"
#include "kinds/kinds.h"

#define WORKER_SPEC "kinds/persistence.worker"
#include <detent/worker/declare.h>

struct persistence_deps {
    struct det_store *store;
    struct persistence_observed seen;
};

#define WORKER_SPEC "kinds/persistence.worker"
#include <detent/worker/define.h>

static struct persistence_next persistence_in_stopped(const struct persistence_view *view)
{
    (void)view;
    return persistence_goto(PERSISTENCE_TRYING_TO_START, "must run");
}

static struct persistence_next persistence_in_trying_to_start(const struct persistence_view *view)
{
    if (view->observed->runs > 0)
        return persistence_goto(PERSISTENCE_RUNNING, "the store is compacted");
    return persistence_do(PERSISTENCE_COMPACT, "compacts at the start");
}

static struct persistence_next persistence_in_running(const struct persistence_view *view)
{
    det_time age = view->all->wall - view->observed->compacted_at;

    if (view->observed->failures > 0)
        return persistence_goto(PERSISTENCE_DEGRADED, "the store could not be compacted");
    /* A clock that was set back must not keep it from its work. */
    if (age < 0 || age >= (det_time)view->desired->interval_seconds * DET_SECOND)
        return persistence_do(PERSISTENCE_COMPACT, "the interval is over");
    return persistence_hold("the store is compacted");
}

static struct persistence_next persistence_in_degraded(const struct persistence_view *view)
{
    if (view->observed->failures == 0)
        return persistence_goto(PERSISTENCE_RUNNING, "the store is compacted again");
    return persistence_do(
        PERSISTENCE_COMPACT,
        det_reason(
            view->all, "%u failure%s in a row", (unsigned)view->observed->failures,
            det_plural(view->observed->failures)));
}

/* One last attempt, whatever comes of it. */
static struct persistence_next persistence_in_stopping(const struct persistence_view *view)
{
    const struct det_action_end *last = view->all->last_action;

    if (!last->action || last->at < view->all->since)
        return persistence_do(PERSISTENCE_COMPACT, "compacts before the stop");
    return persistence_goto(
        PERSISTENCE_STOPPED,
        last->code == 0 ? "the store is compacted" : "the store could not be compacted");
}

static void note_end(
    struct det_worker_context *context, struct persistence_deps *deps, int r, uint64_t dropped)
{
    det_worker_lock(context);
    deps->seen.dropped += dropped;
    if (r < 0) {
        deps->seen.failures++;
    } else {
        deps->seen.failures = 0;
        deps->seen.runs++;
        deps->seen.compacted_at = det_world_now(context->world, DET_CLOCK_WALL);
    }
    det_assert(r < 0 ? deps->seen.failures > 0 : deps->seen.runs > 0);
    det_worker_unlock(context);
    det_worker_count(context, "deltas_dropped", dropped);
}

static int persistence_do_compact(
    struct det_worker_context *context, struct persistence_deps *deps,
    const struct persistence_desired *desired)
{
    det_time now = det_world_now(context->world, DET_CLOCK_WALL);
    struct det_document_keep keep = {
        .since = desired->keep_seconds ? now - (det_time)desired->keep_seconds * DET_SECOND : 0,
        .count_max = desired->keep_deltas,
        .bytes_max = desired->keep_bytes,
    };
    uint64_t dropped = 0;
    int r = det_store_documents_compact(deps->store, &keep, &dropped);

    note_end(context, deps, r, dropped);
    if (r < 0)
        return det_worker_fail(
            context, r,
            "the store could not be compacted: %s; check that it exists and is writable",
            det_error_text(r));
    return 0;
}

static int persistence_collect(
    struct det_worker_context *context, struct persistence_deps *deps,
    const struct persistence_desired *desired, struct persistence_observed *observed)
{
    (void)desired;
    det_worker_lock(context);
    *observed = deps->seen;
    det_worker_unlock(context);
    return 0;
}

static int persistence_open(struct det_worker_context *context, struct persistence_deps *deps)
{
    deps->store = det_worker_inherited(context, "documents");
    if (!deps->store)
        return det_worker_fail(
            context, DET_ERR_NOT_FOUND,
            "no store to compact: the program that runs the workers must provide it as "
            "\"documents\"");
    return 0;
}

static void persistence_close(struct persistence_deps *deps)
{
    (void)deps;
}

static int persistence_derive(
    struct det_derive *derive, const struct persistence_desired *config,
    struct persistence_desired *desired)
{
    (void)derive;
    *desired = *config;
    if (!desired->interval_seconds)
        desired->interval_seconds = 300;
    if (!desired->keep_seconds && !desired->keep_deltas && !desired->keep_bytes)
        desired->keep_seconds = 86400;
    return 0;
}
