/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_metrics.c - workers as metrics: events are counted when reported, gauges are read at each
 * scrape. */
#include <detent/tool/workers.h>

#include "observe/worker_metrics.h"

#include <math.h>

static struct det_series *series_of(
    struct det_metrics *metrics, enum det_metric metric, const char *a, const char *b,
    const char *c)
{
    const char *values[DET_LABELS_MAX] = { a, b, c };

    return det_metrics_series(metrics, metric, values);
}

static const char *or_none(const char *text)
{
    return text ? text : "";
}

/* Counts an event; `word` is the result of an action. */
typedef void count_fn(
    struct det_metrics *metrics, const struct det_worker_event *event, const char *kind,
    const char *word);

static void count_transition(
    struct det_metrics *metrics, const struct det_worker_event *event, const char *kind,
    const char *word)
{
    (void)word;
    det_series_count(
        series_of(
            metrics, DET_METRIC_WORKER_TRANSITIONS, kind, or_none(event->from), or_none(event->to)),
        1);
}

static void count_action(
    struct det_metrics *metrics, const struct det_worker_event *event, const char *kind,
    const char *word)
{
    const char *action = or_none(event->action);

    det_series_count(
        series_of(
            metrics, DET_METRIC_WORKER_ACTIONS, kind, action,
            event->code == DET_ERR_TIMEOUT ? "timeout" : word),
        1);
    if (event->took > 0)
        det_series_observe(
            series_of(metrics, DET_METRIC_WORKER_ACTION_DURATION, kind, action, NULL), event->took);
}

static void count_panic(
    struct det_metrics *metrics, const struct det_worker_event *event, const char *kind,
    const char *word)
{
    det_series_count(series_of(metrics, DET_METRIC_WORKER_PANICS, kind, NULL, NULL), 1);
    if (event->action)
        count_action(metrics, event, kind, word);
}

static void count_incident(
    struct det_metrics *metrics, const struct det_worker_event *event, const char *kind,
    const char *word)
{
    (void)word;
    det_series_count(
        series_of(
            metrics, DET_METRIC_WORKER_INCIDENTS, kind, det_worker_event_name(event->kind), NULL),
        1);
}

void det_monitor_worker(struct det_metrics *metrics, const struct det_worker_event *event)
{
    static const struct {
        count_fn *count; /* NULL: the event is in the summary, or follows from other events */
        const char *word;
    } rules[] = {
        [DET_WORKER_EVENT_TRANSITION] = { count_transition, NULL },
        [DET_WORKER_EVENT_ACTION_COMPLETED] = { count_action, "done" },
        [DET_WORKER_EVENT_ACTION_FAILED] = { count_action, "failed" },
        [DET_WORKER_EVENT_ACTION_PANIC] = { count_panic, "panic" },
        [DET_WORKER_EVENT_ACTION_QUARANTINED] = { count_action, "abandoned" },
        [DET_WORKER_EVENT_OBSERVE_PANIC] = { count_panic, NULL },
        [DET_WORKER_EVENT_NEXT_INVALID] = { count_panic, NULL },
        [DET_WORKER_EVENT_COLLECTOR_QUARANTINED] = { count_incident, NULL },
        [DET_WORKER_EVENT_COLLECTOR_RESTARTING] = { count_incident, NULL },
        [DET_WORKER_EVENT_COLLECTOR_GIVEN_UP] = { count_incident, NULL },
        [DET_WORKER_EVENT_ADD_FAILED] = { count_incident, NULL },
        [DET_WORKER_EVENT_CHILD_REFUSED] = { count_incident, NULL },
        [DET_WORKER_EVENT_DERIVE_FAILED] = { count_incident, NULL },
        [DET_WORKER_EVENT_TEMPLATE_FAILED] = { count_incident, NULL },
        [DET_WORKER_EVENT_ACTION_QUEUE_FULL] = { count_incident, NULL },
        [DET_WORKER_EVENT_STALE] = { count_incident, NULL },
        [DET_WORKER_EVENT_RESTART_REQUESTED] = { count_incident, NULL },
        [DET_WORKER_EVENT_RESTART_FORCED] = { count_incident, NULL },
        [DET_WORKER_EVENT_RESTART_INTENSITY] = { count_incident, NULL },
        [DET_WORKER_EVENT_CIRCUIT_OPENED] = { count_incident, NULL },
        [DET_WORKER_EVENT_PANIC_CIRCUIT_OPENED] = { count_incident, NULL },
        [DET_WORKER_EVENT_STORE_FAILED] = { count_incident, NULL },
        [DET_WORKER_EVENT_STOP_TIMEOUT] = { count_incident, NULL },
    };
    size_t kind = (size_t)event->kind;

    if (kind < sizeof rules / sizeof *rules && rules[kind].count)
        rules[kind].count(
            metrics, event, event->identity ? event->identity->kind : "", rules[kind].word);
}

/* The gauges. */

static void set_gauge(struct det_metrics *metrics, enum det_metric metric, int64_t value)
{
    det_series_set(det_metrics_only(metrics, metric), value);
}

#define MILLIONTHS 1e6
static int64_t to_millionths(double value)
{
    value *= MILLIONTHS;
    if (isnan(value))
        return 0;
    return value >= 9.2e18 ? INT64_MAX : value <= -9.2e18 ? INT64_MIN : (int64_t)value;
}

static int add_value(void *user, const struct det_worker_value *value)
{
    struct det_series *series =
        series_of(user, DET_METRIC_WORKER_VALUES, value->kind, value->id, value->name);

    /* Values beyond the limit add up in "other". */
    det_series_move(series, to_millionths(value->is_gauge ? value->value : (double)value->count));
    return 0;
}

static void set_all(void *user, struct det_metrics *metrics)
{
    struct det_workers *workers = user;
    struct det_workers_summary summary;

    det_workers_summary(workers, &summary);
    for (size_t i = 0; i < sizeof summary.by_phase / sizeof *summary.by_phase; i++)
        det_series_set(
            series_of(metrics, DET_METRIC_WORKERS, det_phase_name((enum det_phase)i), NULL, NULL),
            summary.by_phase[i]);
    set_gauge(metrics, DET_METRIC_WORKERS_STALE, summary.stale);
    set_gauge(metrics, DET_METRIC_WORKERS_DEGRADED, summary.degraded);
    set_gauge(metrics, DET_METRIC_WORKER_CIRCUITS_OPEN, summary.circuits_open);
    set_gauge(metrics, DET_METRIC_WORKER_ACTIONS_RUNNING, summary.actions_running);
    set_gauge(metrics, DET_METRIC_WORKER_ACTIONS_QUEUED, summary.actions_queued);
    set_gauge(metrics, DET_METRIC_WORKER_THREADS_HUNG, summary.hung);
    set_gauge(metrics, DET_METRIC_WORKER_TICK, summary.tick_took);
    set_gauge(metrics, DET_METRIC_WORKER_TICK_MAX, summary.tick_took_max);
    det_series_set(
        series_of(metrics, DET_METRIC_WORKER_OBSERVATIONS, "done", NULL, NULL),
        (int64_t)summary.observations);
    det_series_set(
        series_of(metrics, DET_METRIC_WORKER_OBSERVATIONS, "failed", NULL, NULL),
        (int64_t)summary.observations_failed);
    det_metrics_reset(metrics, DET_METRIC_WORKER_VALUES);
    (void)!det_workers_each_value(workers, add_value, metrics);
}

void det_monitor_workers(struct det_metrics *metrics, struct det_workers *workers)
{
    det_metrics_change(metrics, set_all, workers);
}
