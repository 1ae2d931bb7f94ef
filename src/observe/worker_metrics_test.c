/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_metrics_test.c - events of workers as metrics. */
#include "observe/worker_metrics.h"

#include "lib/test.h"

static const struct det_worker_identity press = { "plant/press", "press", "link", "plant/press" };

static void assert_metric(struct det_metrics *metrics, const char *line)
{
    struct det_buffer text;

    det_buffer_init(&text, NULL);
    det_metrics_write(metrics, DET_METRICS_TEXT, &text);
    if (!strstr(det_buffer_text(&text), line))
        fail_msg("no '%s' in: %s", line, det_buffer_text(&text));
    det_buffer_deinit(&text);
}

static void report(struct det_metrics *metrics, struct det_worker_event event)
{
    event.identity = &press;
    det_monitor_worker(metrics, &event);
}

static void worker_events_are_counted(void **state)
{
    struct det_metrics *metrics;

    (void)state;
    assert_int_equal(det_metrics_open(&(struct det_metrics_options){ 0 }, &metrics), 0);
    report(
        metrics, (struct det_worker_event){
                     .kind = DET_WORKER_EVENT_TRANSITION, .from = "stopped", .to = "up" });
    assert_metric(
        metrics, "detent_worker_transitions_total{kind=\"link\",from=\"stopped\",to=\"up\"} 1\n");
    report(
        metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_COMPLETED,
                                            .action = "connect",
                                            .took = DET_MILLISECOND });
    report(
        metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_FAILED,
                                            .action = "connect",
                                            .code = DET_ERR_IO });
    report(
        metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_FAILED,
                                            .action = "connect",
                                            .code = DET_ERR_TIMEOUT });
    report(
        metrics,
        (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_PANIC, .action = "connect" });
    report(metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_OBSERVE_PANIC });
    report(metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_STALE });
#define ACTIONS "detent_worker_actions_total{kind=\"link\",action=\"connect\",result="
    assert_metric(metrics, ACTIONS "\"done\"} 1\n");
    assert_metric(metrics, ACTIONS "\"failed\"} 1\n");
    assert_metric(metrics, ACTIONS "\"timeout\"} 1\n");
    assert_metric(metrics, ACTIONS "\"panic\"} 1\n");
    assert_metric(metrics, "detent_worker_panics_total{kind=\"link\"} 2\n");
    assert_metric(metrics, "detent_worker_incidents_total{kind=\"link\",event=\"data_stale\"} 1\n");
    assert_metric(
        metrics,
        "detent_worker_action_duration_seconds_count{kind=\"link\",action=\"connect\"} 1\n");
    det_metrics_close(metrics);
}

/* None of them is forgotten, and none that is of no use does harm. */
static void every_worker_event_is_accepted(void **state)
{
    struct det_metrics *metrics;

    (void)state;
    assert_int_equal(det_metrics_open(&(struct det_metrics_options){ 0 }, &metrics), 0);
#define DET_WORKER_EVENT(name, wire, level, text) \
    det_monitor_worker(metrics, &(struct det_worker_event){ .kind = DET_WORKER_EVENT_##name });
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
    det_metrics_close(metrics);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_events_are_counted),
        cmocka_unit_test(every_worker_event_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
