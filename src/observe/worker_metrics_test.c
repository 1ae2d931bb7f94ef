/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_metrics_test.c - events of workers as metrics. */
#include "observe/worker_metrics.h"

#include "lib/test.h"

static const struct det_worker_identity press = { "plant/press", "press", "link", "plant/press" };

static void assert_told(struct det_metrics *metrics, const char *line)
{
    struct det_buffer text;

    det_buffer_init(&text, NULL);
    det_metrics_write(metrics, DET_METRICS_TEXT, &text);
    if (!strstr(det_buffer_text(&text), line))
        fail_msg("no '%s' in: %s", line, det_buffer_text(&text));
    det_buffer_deinit(&text);
}

static void tell(struct det_metrics *metrics, struct det_worker_event event)
{
    event.identity = &press;
    det_monitor_worker(metrics, &event);
}

static void what_happens_is_counted(void **state)
{
    struct det_metrics *metrics;

    (void)state;
    assert_int_equal(det_metrics_open(&(struct det_metrics_options){ 0 }, &metrics), 0);
    tell(
        metrics, (struct det_worker_event){
                     .kind = DET_WORKER_EVENT_TRANSITION, .from = "stopped", .to = "up" });
    assert_told(
        metrics, "detent_worker_transitions_total{kind=\"link\",from=\"stopped\",to=\"up\"} 1\n");
    tell(
        metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_COMPLETED,
                                            .action = "connect",
                                            .took = DET_MILLISECOND });
    tell(
        metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_FAILED,
                                            .action = "connect",
                                            .code = DET_ERR_IO });
    tell(
        metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_FAILED,
                                            .action = "connect",
                                            .code = DET_ERR_TIMEOUT });
    tell(
        metrics,
        (struct det_worker_event){ .kind = DET_WORKER_EVENT_ACTION_PANIC, .action = "connect" });
    tell(metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_OBSERVE_PANIC });
    tell(metrics, (struct det_worker_event){ .kind = DET_WORKER_EVENT_STALE });
#define ACTIONS "detent_worker_actions_total{kind=\"link\",action=\"connect\",result="
    assert_told(metrics, ACTIONS "\"done\"} 1\n");
    assert_told(metrics, ACTIONS "\"failed\"} 1\n");
    assert_told(metrics, ACTIONS "\"timeout\"} 1\n");
    assert_told(metrics, ACTIONS "\"panic\"} 1\n");
    assert_told(metrics, "detent_worker_panics_total{kind=\"link\"} 2\n");
    assert_told(metrics, "detent_worker_troubles_total{kind=\"link\",event=\"data_stale\"} 1\n");
    assert_told(
        metrics,
        "detent_worker_action_duration_seconds_count{kind=\"link\",action=\"connect\"} 1\n");
    det_metrics_close(metrics);
}

/* None of them is forgotten, and none that is of no use does harm. */
static void every_event_may_come(void **state)
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
        cmocka_unit_test(what_happens_is_counted),
        cmocka_unit_test(every_event_may_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
