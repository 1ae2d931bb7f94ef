/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics_thread_test.c - real threads that count, look up and scrape at once. */
/* test: threads */
#include "observe/metrics_test.h"

#include "os/os.h"

#define THREADS 4
#define ROUNDS  5000

struct counter {
    struct det_metrics *metrics;
    struct det_thread *thread;
};

/* Each looks up its series in every round; the first thread creates it. */
static void count(void *argument)
{
    struct counter *counter = argument;
    struct det_series *duration = det_metrics_only(counter->metrics, DET_METRIC_COMMIT_DURATION);

    for (int i = 0; i < ROUNDS; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i % 10);
        det_series_count(SERIES(counter->metrics, RESTARTS, name), 1);
        det_series_move(det_metrics_only(counter->metrics, DET_METRIC_HTTP_CONNECTIONS), 1);
        det_series_observe(duration, i % 2 ? DET_MILLISECOND : DET_SECOND);
        if (i % 1000 == 0)
            free(scrape_as(counter->metrics, DET_METRICS_TEXT));
    }
}

static void concurrent_counts_are_neither_lost_nor_doubled(void **state)
{
    struct det_metrics *metrics = metrics_of(NULL);
    struct det_world *world = det_world_real();
    struct counter counters[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        counters[i].metrics = metrics;
        assert_int_equal(
            det_thread_start(world, "count", count, &counters[i], &counters[i].thread), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        det_thread_join(world, counters[i].thread);
    for (int i = 0; i < 10; i++) {
        char line[80];

        snprintf(
            line, sizeof line, "detent_restarts_total{task=\"t%d\"} %d", i, THREADS * ROUNDS / 10);
        assert_metric(metrics, line);
    }
    assert_metric(metrics, "detent_http_connections 20000");
    assert_metric(metrics, "detent_journal_commit_duration_seconds_count 20000");
    assert_metric(metrics, "detent_journal_commit_duration_seconds_sum 10010");
    det_metrics_close(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concurrent_counts_are_neither_lost_nor_doubled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
