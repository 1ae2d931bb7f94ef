/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_metrics_thread_test.c - real threads that report at once, of a machine that becomes known
 * meanwhile. */
/* test: threads */
#include "observe/metrics_test.h"
#include "observe/runtime_metrics.h"
#include "os/os.h"

#define THREADS 3
#define STEPS   3000

static const struct det_state_def states[] = { { .name = "open" }, { .name = "paid" } };
static const struct det_event_def events[] = { { .name = "pay" }, { .name = "ship" } };
static const struct det_machine order = {
    .name = "order", .states = states, .state_count = 2, .events = events, .event_count = 2
};

struct teller {
    struct det_monitor *monitor;
    struct det_thread *thread;
};

static void report(void *argument)
{
    struct teller *teller = argument;

    for (int i = 0; i < STEPS; i++) {
        det_monitor_note(
            teller->monitor, &(struct det_note){ .machine = &order,
                                                 .from = (uint16_t)(i % 2),
                                                 .event = (uint16_t)(i / 2 % 2),
                                                 .outcome = DET_OUTCOME_GOTO,
                                                 .since = 1,
                                                 .at = 1 + DET_SECOND });
        det_monitor_timeout(teller->monitor, &order, DET_SECOND);
        if (i == STEPS / 2)
            det_monitor_add_machine(teller->monitor, &order);
    }
}

static void every_step_is_counted_once(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_world *world = det_world_real();
    struct teller tellers[THREADS];
    struct det_monitor *monitor;

    (void)state;
    assert_int_equal(det_monitor_open(metrics, NULL, NULL, &monitor), 0);
    for (size_t i = 0; i < THREADS; i++) {
        tellers[i].monitor = monitor;
        assert_int_equal(
            det_thread_start(world, "tell", report, &tellers[i], &tellers[i].thread), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        det_thread_join(world, tellers[i].thread);
    assert_metric(
        metrics, "detent_transitions_total{machine=\"order\",state=\"open\",event=\"pay\","
                 "outcome=\"goto\"} 2250");
    assert_metric(
        metrics, "detent_transitions_total{machine=\"order\",state=\"paid\",event=\"ship\","
                 "outcome=\"goto\"} 2250");
    assert_metric(
        metrics, "detent_state_duration_seconds_sum{machine=\"order\",state=\"paid\"} 4500");
    assert_metric(metrics, "detent_timer_lateness_seconds_count{machine=\"order\"} 9000");
    det_monitor_close(monitor);
    det_metrics_close(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_is_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
